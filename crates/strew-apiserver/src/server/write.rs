//! Create, update, delete.

use std::sync::Arc;

use strew_manifest::read::KubeObject;
use strew_model::time::{Instant, Span};

use super::{AdmissionRequest, Server};
use crate::object::{Deletion, Key, Kind, Name, Object, Part, Pod, is_ending_namespace, moment};
use crate::workloads::generated_name;
use crate::{ApiError, DeleteOptions};

impl Server {
    /// Adds an object that existed before the simulation began; a missing uid is generated.
    pub fn preload(&mut self, now: Instant, mut object: Object) {
        let uid = super::uuid(&mut self.dice);
        self.register(&mut object, None, now);
        let meta = object.meta_mut();
        if meta.uid.is_empty() {
            meta.uid = uid;
        }
        if meta.created == Instant::default() {
            meta.created = moment::whole_seconds(now);
        }
        meta.generation = meta.generation.max(1);
        self.admission.observe(&object.key());
        self.put(object);
    }

    /// Removes an object without a request, as [`Server::preload`] adds one: for a server that follows another.
    pub fn forget(&mut self, key: &Key) {
        self.take(key);
    }

    /// Creates an object.
    ///
    /// # Errors
    /// Admission refuses it, or the name is taken.
    pub fn create(&mut self, now: Instant, object: Object) -> Result<Object, ApiError> {
        let object = self.admission.admit(object, &self.tables)?;
        let object = self.call_webhook(now, object)?;
        self.store_new(now, object)
    }

    /// Stores a new object after mutating admission.
    ///
    /// Source: `BeforeCreate` of `k8s.io/apiserver/pkg/registry/rest/create.go`: the name is generated before the
    /// object is prepared and validated.
    pub(super) fn store_new(
        &mut self,
        now: Instant,
        mut object: Object,
    ) -> Result<Object, ApiError> {
        if object.meta().name.name.is_empty() {
            let name = self.generate_name(&object);
            object.meta_mut().name = name;
        }
        self.refuse_in_ending_namespace(&object)?;
        if let Object::Pod(pod) = &object {
            object = self.admission.prepare(pod, &self.tables)?.into();
        }
        let key = object.key();
        if self.tables.find(&key).is_some() {
            return Err(ApiError::AlreadyExists(key));
        }
        let uid = super::uuid(&mut self.dice);
        let meta = object.meta_mut();
        meta.uid = uid;
        meta.created = moment::whole_seconds(now);
        meta.generation = 1;
        meta.deletion = None;
        self.register(&mut object, None, now);
        if let Object::Pod(pod) = &object {
            self.charge(now, pod)?;
        }
        self.admission.observe(&key);
        let was_hub = self.is_hub;
        let stored = self.put(object);
        if self.is_hub && !was_hub {
            self.keep_default_sets(now);
        }
        Ok(stored)
    }

    /// Source: `NamespaceLifecycle` of `k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`.
    fn refuse_in_ending_namespace(&self, object: &Object) -> Result<(), ApiError> {
        let key = object.key();
        let namespace = &key.name.namespace;
        if !self.has_ending_namespaces || namespace.is_empty() {
            return Ok(());
        }
        let found = self.tables.find(&Key {
            kind: Kind::of("Namespace"),
            name: Name::new("", Arc::clone(namespace)),
        });
        match found.as_ref().is_some_and(is_ending_namespace) {
            false => Ok(()),
            true => Err(ApiError::Forbidden(
                format!(
                    "{key} is forbidden: unable to create new content in namespace {namespace} because it is being \
                     terminated"
                )
                .into(),
            )),
        }
    }

    /// Writes metadata and spec of a changed object, if admission allows it.
    ///
    /// # Errors
    /// Admission refuses it, or a conflict.
    pub fn replace(
        &mut self,
        now: Instant,
        stored: &Object,
        new: KubeObject,
    ) -> Result<Object, ApiError> {
        let mut admitted = self.admission.admit_update(new, stored)?;
        self.register(&mut admitted, Some(stored), now);
        let request = AdmissionRequest::Update {
            object: &admitted,
            old: stored,
        };
        self.review(now, request)?;
        self.update(Part::Main, admitted)
    }

    fn generate_name(&mut self, object: &Object) -> Name {
        let meta = object.meta();
        let base = meta.generate_name.as_deref().unwrap_or_default();
        loop {
            let name = generated_name(base, &mut self.dice);
            let key = Key {
                kind: object.kind(),
                name: Name::new(Arc::clone(&meta.name.namespace), name),
            };
            if self.tables.find(&key).is_none() {
                return key.name;
            }
        }
    }

    /// Writes a part of an object. A terminating object is removed with its last finalizer.
    ///
    /// # Errors
    /// The object does not exist, or has another version than the written one was made from.
    pub fn update(&mut self, part: Part, object: Object) -> Result<Object, ApiError> {
        let key = object.key();
        let Some(stored) = self.tables.find(&key) else {
            return Err(ApiError::NotFound(key));
        };
        let (old, new) = (stored.meta(), object.meta());
        if old.uid != new.uid || (new.version != 0 && old.version != new.version) {
            return Err(ApiError::stale(&key));
        }
        let Some(mut merged) = stored.with_part_of(part, object) else {
            return Err(ApiError::Internal(
                format!("{key} was replaced by an object of another kind").into(),
            ));
        };
        if merged == stored {
            return Ok(stored);
        }
        if part == Part::Main && !merged.has_spec_of(&stored) {
            merged.meta_mut().generation = old.generation.wrapping_add(1);
        }
        let meta = merged.meta();
        if meta.is_terminating() && meta.finalizers.is_empty() && is_due(&merged) {
            self.take(&key);
            return Ok(merged);
        }
        self.admission.observe(&key);
        Ok(self.put(merged))
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// The object does not exist, or another one has its name.
    pub fn delete(
        &mut self,
        now: Instant,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        self.delete_if(now, key, options, true)
    }

    /// Deletes an object; calls the webhook, unless the pod is evicted.
    pub(super) fn delete_if(
        &mut self,
        now: Instant,
        key: &Key,
        options: &DeleteOptions,
        asks: bool,
    ) -> Result<(), ApiError> {
        let Some(mut object) = self.tables.find(key) else {
            return Err(ApiError::NotFound(key.clone()));
        };
        if options
            .uid
            .as_ref()
            .is_some_and(|uid| *uid != object.meta().uid)
        {
            return Err(another_uid(options, &object));
        }
        if asks {
            self.review(now, AdmissionRequest::Delete(&object))?;
        }
        let grace = match &object {
            Object::Pod(pod) => grace_of(pod, options),
            _ => Span::default(),
        };
        let meta = object.meta_mut();
        let at = moment::whole_seconds(now + grace);
        let is_sooner = meta.deletion.is_none_or(|old| at < old.at);
        let has_time = grace > Span::default();
        // A pod that ends already, and has time for it, stays as it is.
        if has_time && !is_sooner {
            return Ok(());
        }
        let is_changed = options.set_finalizer(meta);
        if meta.finalizers.is_empty() && !has_time {
            self.take(key);
            return Ok(());
        }
        if is_sooner {
            meta.deletion = Some(Deletion { at, grace });
            meta.generation = meta.generation.wrapping_add(1);
        } else if !is_changed {
            return Ok(());
        }
        self.admission.observe(key);
        self.put(object);
        Ok(())
    }
}

/// Source: spec/controllers §9: a pod that is on no node, or has finished, needs no grace.
fn grace_of(pod: &Pod, options: &DeleteOptions) -> Span {
    if pod.node.is_none() || pod.is_finished() {
        return Span::default();
    }
    let own = pod.spec.termination_grace_period_seconds.unwrap_or(30);
    let own = Span::from_secs(u64::try_from(own).unwrap_or(1));
    options.grace.unwrap_or(own)
}

/// True if only finalizers keep a terminating object. For a pod, its kubelet must have confirmed the deletion.
fn is_due(object: &Object) -> bool {
    match object {
        Object::Pod(pod) => {
            pod.node.is_none()
                || pod.is_finished()
                || pod
                    .meta
                    .deletion
                    .is_some_and(|d| d.grace == Span::default())
        }
        _ => true,
    }
}

fn another_uid(options: &DeleteOptions, object: &Object) -> ApiError {
    let wanted = options.uid.as_deref().unwrap_or_default();
    let found = &object.meta().uid;
    ApiError::Conflict(
        format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}")
            .into(),
    )
}

/// The key of a pod.
pub fn pod_key(name: &Name) -> Key {
    Key {
        kind: Kind::Pod,
        name: name.clone(),
    }
}
