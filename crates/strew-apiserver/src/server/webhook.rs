//! Admission webhooks: reviews of objects that are created, changed or deleted, and of evictions.
//!
//! The server does not know what the webhooks decide, or how to reach them: its user implements [`AdmissionWebhooks`].
//!
//! Source: spec/workloadspread §2.6, §4.1, §4.7.

use std::any::Any;
use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_manifest::patch::json_patch;
use strew_model::time::Instant;

use super::Server;
use crate::ApiError;
use crate::object::{Kind, Object, Pod};

/// The subject of an admission review.
#[derive(Debug, Clone, Copy)]
pub enum AdmissionRequest<'a> {
    /// A new object, after the mutating plug-ins.
    Create(&'a Object),
    /// A changed object.
    Update {
        /// The new object.
        object: &'a Object,
        /// The stored object.
        old: &'a Object,
    },
    /// A deleted object.
    Delete(&'a Object),
    /// A pod that is to be evicted; its budgets are asked afterwards.
    Evict(&'a Pod),
}

/// The result of a call that may wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    /// The webhooks allow the object, with this JSON patch (RFC 6902) if there is one.
    Answered(Option<Value>),
    /// The answer follows ([`AdmissionWebhooks::late_answers`]), with this number.
    Waits(u64),
}

/// The answer to a call that waited.
#[derive(Debug, Clone, PartialEq)]
pub struct LateAnswer {
    /// The number of the call.
    pub number: u64,
    /// The pod as it was sent.
    pub pod: Arc<Pod>,
    /// The JSON patch, if there is one.
    pub answer: Result<Option<Value>, ApiError>,
}

/// The admission webhooks that a server calls. While they act on the server, it calls none.
pub trait AdmissionWebhooks: Any {
    /// Calls the webhooks and waits for their answer: the JSON patch (RFC 6902) of a mutating one, if there is one.
    ///
    /// # Errors
    /// A webhook denies the request, or a call fails.
    fn review(
        &mut self,
        now: Instant,
        server: &mut Server,
        request: AdmissionRequest<'_>,
    ) -> Result<Option<Value>, ApiError>;

    /// Calls the webhooks about a new pod, for a client that can wait for the answer.
    ///
    /// # Errors
    /// As for [`review`](Self::review).
    fn begin(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
    ) -> Result<Called, ApiError>;

    /// Continues waiting calls. Returns whether there was anything to do.
    fn step(&mut self, now: Instant, server: &mut Server) -> bool;

    /// The answers since the last call, to calls that waited.
    fn late_answers(&mut self, now: Instant) -> Vec<LateAnswer>;
}

/// The result of a creation.
#[derive(Debug, Clone, PartialEq)]
pub enum Creation {
    /// The object is stored.
    Done(Object),
    /// The webhooks were called; the result follows with this number.
    UnderWay(u64),
}

impl Server {
    /// Installs these webhooks.
    pub fn install(&mut self, webhooks: Box<dyn AdmissionWebhooks>) {
        self.webhooks = Some(webhooks);
    }

    /// The installed webhooks, if they are of this type; `None` while they act on the server.
    pub fn webhooks<W: AdmissionWebhooks>(&self) -> Option<&W> {
        let webhooks: &dyn Any = self.webhooks.as_deref()?;
        webhooks.downcast_ref()
    }

    /// The installed webhooks, if they are of this type; `None` while they act on the server.
    pub fn webhooks_mut<W: AdmissionWebhooks>(&mut self) -> Option<&mut W> {
        let webhooks: &mut dyn Any = self.webhooks.as_deref_mut()?;
        webhooks.downcast_mut()
    }

    /// Lets the installed webhooks act on the server, which calls none meanwhile.
    pub fn with_webhooks<W: AdmissionWebhooks, T>(
        &mut self,
        act: impl FnOnce(&mut W, &mut Self) -> T,
    ) -> Option<T> {
        let mut webhooks = self.webhooks.take()?;
        let any: &mut dyn Any = &mut *webhooks;
        let done = any.downcast_mut().map(|webhooks| act(webhooks, self));
        self.webhooks = Some(webhooks);
        done
    }

    /// Calls the webhooks; `None` if there are none, or if they are acting.
    fn call<T>(
        &mut self,
        act: impl FnOnce(&mut dyn AdmissionWebhooks, &mut Self) -> T,
    ) -> Option<T> {
        let mut webhooks = self.webhooks.take()?;
        let done = act(&mut *webhooks, self);
        self.webhooks = Some(webhooks);
        Some(done)
    }

    pub(super) fn review(
        &mut self,
        now: Instant,
        request: AdmissionRequest<'_>,
    ) -> Result<Option<Value>, ApiError> {
        let answered = self.call(|webhooks, server| webhooks.review(now, server, request));
        answered.transpose().map(Option::flatten)
    }

    /// Sends a new object through the webhooks; returns the object to store.
    pub(super) fn call_webhook(
        &mut self,
        now: Instant,
        object: Object,
    ) -> Result<Object, ApiError> {
        let patch = self.review(now, AdmissionRequest::Create(&object))?;
        match (&object, patch) {
            (Object::Pod(pod), Some(patch)) => self.patched(pod, &patch),
            _ => Ok(object),
        }
    }

    /// Creates an object for a client that can wait for the webhooks' answer.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn begin_create(&mut self, now: Instant, object: Object) -> Result<Creation, ApiError> {
        if self.webhooks.is_none() || object.kind() != Kind::Pod {
            return self.create(now, object).map(Creation::Done);
        }
        let object = self.admission.admit(object, &self.tables)?;
        let Object::Pod(pod) = &object else {
            return self.store_new(now, object).map(Creation::Done);
        };
        let called = self.call(|webhooks, server| webhooks.begin(now, server, pod));
        let object = match called.transpose()? {
            Some(Called::Waits(number)) => return Ok(Creation::UnderWay(number)),
            Some(Called::Answered(Some(patch))) => self.patched(pod, &patch)?,
            Some(Called::Answered(None)) | None => object,
        };
        self.store_new(now, object).map(Creation::Done)
    }

    /// Continues waiting calls of the webhooks, and finishes creations that they have answered. Returns whether there
    /// was anything to do.
    pub fn step_webhooks(&mut self, now: Instant) -> bool {
        let stepped = self.call(|webhooks, server| {
            let acted = webhooks.step(now, server);
            (acted, webhooks.late_answers(now))
        });
        let Some((acted, late)) = stepped else {
            return false;
        };
        let any = acted || !late.is_empty();
        for late in late {
            let done = late.answer.and_then(|patch| match patch {
                Some(patch) => self.patched(&late.pod, &patch),
                None => Ok(Object::Pod(late.pod)),
            });
            let done = done.and_then(|object| self.store_new(now, object));
            self.answers.push((late.number, done));
        }
        any
    }

    /// The results of waiting creations since the last call.
    pub fn take_answers(&mut self) -> Vec<(u64, Result<Object, ApiError>)> {
        std::mem::take(&mut self.answers)
    }

    /// The pod with the webhooks' patch, after running the mutating plug-ins again.
    fn patched(&mut self, pod: &Arc<Pod>, patch: &Value) -> Result<Object, ApiError> {
        let wrong = |error: &dyn std::error::Error| {
            ApiError::Internal(format!("Internal error occurred: {error}").into())
        };
        let before = Object::Pod(Arc::clone(pod)).to_json();
        let patched = json_patch(&before, patch).map_err(|error| wrong(&error))?;
        let patched = core::Pod::of_json(patched).map_err(|error| wrong(&error))?;
        let pod = self.admission.admit_patched(pod, patched, &self.tables)?;
        Ok(pod.into())
    }
}
