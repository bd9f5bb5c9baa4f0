//! ControllerRevisions: the templates that a StatefulSet, DaemonSet or CloneSet has had.
//!
//! Source: spec/controllers §3.1, §4; upstream `pkg/controller/history`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Value, json};
use strew_apiserver::object::{ControllerRevision, Kind, Meta, Name, Object, Stored};
use strew_apiserver::selection::Selection;
use strew_apiserver::workloads::template_hash;
use strew_apiserver::{ApiError, DeleteOptions};
use strew_manifest::json::Json;

use super::unseen::Unseen;
use super::{HASH_LABEL, REVISION_LABEL, owner_of, still_wants, tolerate_gone};
use crate::controller::Context;
use crate::deployment::template::equals;

/// A set's revisions.
#[derive(Debug, Clone)]
pub(crate) struct History {
    /// The revision of the present template.
    pub(crate) update: Arc<ControllerRevision>,
    /// All others, oldest first.
    pub(crate) others: Vec<Arc<ControllerRevision>>,
    /// `status.collisionCount`
    pub(crate) collisions: Option<i32>,
}

/// The owner of revisions, with its template.
pub(crate) struct RevisionOwner<'a, T> {
    /// The set.
    pub(crate) set: &'a T,
    /// Its selector.
    pub(crate) selection: &'a Selection,
    /// Its template.
    pub(crate) template: &'a PodTemplateSpec,
    /// Its `status.collisionCount`.
    pub(crate) collisions: Option<i32>,
    /// The label of a revision with its hash.
    pub(crate) hash_label: &'static str,
}

impl<T: Stored> RevisionOwner<'_, T> {
    /// Adopts revisions, and finds or creates that of the present template. If an old template returns, its revision
    /// gets a new number.
    ///
    /// # Errors
    /// A write was refused.
    pub(crate) fn history(
        &self,
        unseen: &mut Unseen,
        cx: &mut Context<'_>,
    ) -> Result<History, ApiError> {
        let mut all = self.owned(cx);
        all.extend(self.adopt(unseen, cx)?);
        all.sort_by(|a, b| {
            let key = |r: &ControllerRevision| (r.spec.revision, r.meta.created);
            key(a)
                .cmp(&key(b))
                .then_with(|| a.meta.name.cmp(&b.meta.name))
        });
        let data = data_of(self.template);
        let mut collisions = self.collisions;
        let newest = all.last().map_or(0, |r| r.spec.revision);
        let next = newest.saturating_add(1);
        // What a real controller wrote may have other fields without a value (`creationTimestamp: null`).
        let is_present = |r: &ControllerRevision| {
            r.spec.data == data || template_of(r).is_some_and(|t| equals(&t, self.template))
        };
        let equal = all.iter().rposition(|r| is_present(r));
        let update = match equal {
            // There is no number after the largest one.
            Some(at) if at + 1 == all.len() || all[at].spec.revision == next => all.remove(at),
            Some(at) => {
                let mut renumbered = ControllerRevision::clone(&all.remove(at));
                Arc::make_mut(&mut renumbered.spec).revision = next;
                let stored = cx.api.update(renumbered.into())?;
                self.stored(stored, unseen, cx)?
            }
            None => self.create(data, next, &mut collisions, unseen, cx)?,
        };
        Ok(History {
            update,
            others: all,
            collisions,
        })
    }

    /// Does not use the index of dependents, which has all the pods as well.
    fn owned(&self, cx: &Context<'_>) -> Vec<Arc<ControllerRevision>> {
        let meta = self.set.meta();
        let table = cx.cache.of::<ControllerRevision>();
        let here = table.in_namespace(&meta.name.namespace);
        let controlled = here.filter(|r| {
            let controller = r.meta.controller();
            controller.is_some_and(|c| c.uid == meta.uid)
        });
        controlled.cloned().collect()
    }

    fn adopt(
        &self,
        unseen: &mut Unseen,
        cx: &mut Context<'_>,
    ) -> Result<Vec<Arc<ControllerRevision>>, ApiError> {
        let meta = self.set.meta();
        let table = cx.cache.of::<ControllerRevision>();
        let here = table.in_namespace(&meta.name.namespace);
        let orphans: Vec<_> = here
            .filter(|r| r.meta.controller().is_none() && !r.meta.is_terminating())
            .filter(|r| self.selection.matches(&r.meta.labels))
            .collect();
        if orphans.is_empty() || meta.is_terminating() || !still_wants(self.set, cx.api) {
            return Ok(Vec::new());
        }
        let mut mine = Vec::new();
        for orphan in orphans {
            let mut adopted = ControllerRevision::clone(orphan);
            let mut owners = adopted.meta.owners.to_vec();
            owners.push(owner_of(self.set));
            adopted.meta.owners = owners.into();
            if let Some(stored) = tolerate_gone(cx.api.update(adopted.into()))? {
                mine.push(self.stored(stored, unseen, cx)?);
            }
        }
        Ok(mine)
    }

    fn create(
        &self,
        data: Value,
        number: i64,
        collisions: &mut Option<i32>,
        unseen: &mut Unseen,
        cx: &mut Context<'_>,
    ) -> Result<Arc<ControllerRevision>, ApiError> {
        loop {
            let hash = hash_of(self.template, *collisions);
            let meta = self.meta_of_new(&hash);
            let revision = Object::revision(meta, data.clone(), number);
            let key = revision.key();
            match cx.api.create(revision) {
                Ok(stored) => return self.stored(stored, unseen, cx),
                Err(ApiError::AlreadyExists(_)) => {}
                Err(error) => return Err(error),
            }
            let present = cx.api.get(&key);
            let present = present.as_ref().and_then(ControllerRevision::of_object);
            match present {
                // An own write whose answer was lost, or that the cache does not show yet.
                Some(present) if present.spec.data == data => return Ok(Arc::clone(present)),
                _ => *collisions = Some(collisions.unwrap_or(0).saturating_add(1)),
            }
        }
    }

    fn meta_of_new(&self, hash: &str) -> Meta {
        let set = self.set.meta();
        let name = format!("{}-{hash}", set.name.name);
        let mut meta = Meta::new(Name::new(Arc::clone(&set.name.namespace), name));
        let of_template = self.template.metadata.as_ref();
        let mut labels = of_template
            .and_then(|metadata| metadata.labels.clone())
            .unwrap_or_default();
        labels.insert(self.hash_label.to_owned(), hash.to_owned());
        meta.labels = Arc::new(labels);
        meta.annotations = Arc::clone(&set.annotations);
        meta.owners = Arc::new([owner_of(self.set)]);
        meta
    }

    fn stored(
        &self,
        stored: Object,
        unseen: &mut Unseen,
        cx: &Context<'_>,
    ) -> Result<Arc<ControllerRevision>, ApiError> {
        unseen.wrote(&self.set.meta().name, &stored, cx.now);
        let revision = ControllerRevision::of_object(&stored).cloned();
        revision.ok_or_else(|| ApiError::Internal("a revision became another kind".into()))
    }
}

/// Deletes the oldest of `others` beyond `limit` that no pod has. `counts_live`: revisions in use count towards the
/// limit.
///
/// # Errors
/// A deletion was refused.
pub(crate) fn clean_up(
    others: &[Arc<ControllerRevision>],
    is_live: impl Fn(&ControllerRevision) -> bool,
    limit: Option<i32>,
    counts_live: bool,
    cx: &mut Context<'_>,
) -> Result<(), ApiError> {
    let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(0);
    let idle: Vec<_> = others.iter().filter(|r| !is_live(r)).collect();
    let n_counted = if counts_live {
        others.len()
    } else {
        idle.len()
    };
    let n_excess = n_counted.saturating_sub(limit);
    for revision in idle.into_iter().take(n_excess) {
        let key = Object::ControllerRevision(Arc::clone(revision)).key();
        match cx
            .api
            .delete(&key, &DeleteOptions::of_uid(&revision.meta.uid))
        {
            Ok(()) | Err(ApiError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The hash of a template; the number of collisions makes it differ.
fn hash_of(template: &PodTemplateSpec, collisions: Option<i32>) -> String {
    let hash = template_hash(template);
    match collisions {
        None | Some(0) => hash,
        Some(n) => format!("{hash}-{n}"),
    }
}

/// The patch that restores a template. Source: upstream `getPatch`.
fn data_of(template: &PodTemplateSpec) -> Value {
    let mut template = template.to_json();
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The revision of a set's present template, under the name that its pods know it by; `label` is their
/// [`REVISION_LABEL`].
pub fn revision_of_pods<T: Stored>(set: &T, template: &PodTemplateSpec, label: &str) -> Object {
    let of = &set.meta().name;
    let prefix = format!("{}-", of.name);
    // The pods of a DaemonSet have the hash alone.
    let (name, hash_label, hash) = match T::KIND {
        Kind::DaemonSet => (format!("{prefix}{label}"), REVISION_LABEL, label),
        _ => {
            let hash = label.strip_prefix(&prefix).unwrap_or(label);
            (label.to_owned(), HASH_LABEL, hash)
        }
    };
    let mut meta = Meta::new(Name::new(Arc::clone(&of.namespace), name));
    let given = template.metadata.as_ref();
    let mut labels = given.and_then(|m| m.labels.clone()).unwrap_or_default();
    labels.insert(hash_label.to_owned(), hash.to_owned());
    meta.labels = Arc::new(labels);
    meta.owners = Arc::new([owner_of(set)]);
    Object::revision(meta, data_of(template), 1)
}

/// The template in a revision.
pub fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.spec.data.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    PodTemplateSpec::of_json(template).ok()
}

/// True if a set waits for own writes; then it is queued for the end of the wait.
pub(crate) fn must_wait(unseen: &mut Unseen, name: &Name, cx: &mut Context<'_>) -> bool {
    match unseen.wait_until(name, cx.now) {
        Some(until) => {
            cx.queue.add_at(name, until);
            true
        }
        None => false,
    }
}
