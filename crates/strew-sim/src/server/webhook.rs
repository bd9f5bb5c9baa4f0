//! Where the server asks the webhook: pods that are created, deleted, evicted; WorkloadSpreads that are written.
//!
//! Source: spec/workloadspread §2.6, §4.1, §4.7.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as core;
use serde_json::Value;
use strew_api::patch::json_patch;
use strew_api::read::KubeObject;
use strew_api::workloadspread::facts::white_list::WhiteList;
use strew_api::workloadspread::v1beta1;
use strew_api::workloadspread::validation::{Context, validate};
use strew_controllers::ApiError;
use strew_controllers::object::{Key, Kind, Name, Object, Pod, WorkloadSpread};
use strew_model::time::Instant;

use super::Server;
use crate::workloadspread::{Asked, Called, Hook, Webhook};

/// What becomes of a creation.
pub(crate) enum Creation {
    /// The object is stored.
    Done(Object),
    /// The webhook is being asked; what becomes of it is told under this number.
    UnderWay(u64),
}

impl Server {
    /// From now on the webhook is asked.
    pub(crate) fn install(&mut self, webhook: Webhook) {
        self.webhook = Some(Box::new(webhook));
    }

    pub(crate) fn webhook(&self) -> Option<&Webhook> {
        self.webhook.as_deref()
    }

    pub(crate) fn webhook_mut(&mut self) -> Option<&mut Webhook> {
        self.webhook.as_deref_mut()
    }

    /// Lets the webhook do something with the server; it is not asked meanwhile.
    pub(crate) fn with_webhook<T>(
        &mut self,
        act: impl FnOnce(&mut Webhook, &mut Self) -> T,
    ) -> Option<T> {
        let mut webhook = self.webhook.take()?;
        let done = act(&mut webhook, self);
        self.webhook = Some(webhook);
        Some(done)
    }

    /// A new object on its way through the webhook: a pod as it is to be stored, a WorkloadSpread if it may be.
    pub(super) fn call_webhook(
        &mut self,
        now: Instant,
        object: Object,
    ) -> Result<Object, ApiError> {
        let Object::Pod(pod) = &object else {
            self.check_spread(&object, None)?;
            return Ok(object);
        };
        let answered = self.with_webhook(|webhook, server| {
            let asked = Asked::Create(pod);
            webhook.review(now, server, asked)
        });
        match answered.transpose()?.flatten() {
            Some(patch) => self.patched(pod, &patch),
            None => Ok(object),
        }
    }

    /// Creates an object for somebody who can wait for the webhook's answer.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub(crate) fn begin_create(
        &mut self,
        now: Instant,
        object: Object,
    ) -> Result<Creation, ApiError> {
        if self.webhook.is_none() || object.kind() != Kind::Pod {
            return self.create(now, object).map(Creation::Done);
        }
        let object = self.admission.admit(object, &self.tables)?;
        let Object::Pod(pod) = &object else {
            return self.store_new(now, object).map(Creation::Done);
        };
        let called = self.with_webhook(|webhook, server| webhook.call(now, server, pod));
        let object = match called.transpose()? {
            Some(Called::Waits(number)) => return Ok(Creation::UnderWay(number)),
            Some(Called::Answered(Some(patch))) => self.patched(pod, &patch)?,
            Some(Called::Answered(None)) | None => object,
        };
        self.store_new(now, object).map(Creation::Done)
    }

    /// Replicas of the webhook go on, and creations go on that they have answered; whether there was anything to do.
    pub(crate) fn step_webhook(&mut self, now: Instant) -> bool {
        let stepped = self.with_webhook(|webhook, server| {
            let acted = webhook.step(now, server);
            (acted, webhook.late_answers(now))
        });
        let Some((acted, late)) = stepped else {
            return false;
        };
        let any = acted || !late.is_empty();
        for (number, pod, answer) in late {
            let done = answer.and_then(|patch| match patch {
                Some(patch) => self.patched(&pod, &patch),
                None => Ok(Object::Pod(pod)),
            });
            let done = done.and_then(|object| self.store_new(now, object));
            self.answers.push((number, done));
        }
        any
    }

    /// What became of creations that were under way.
    pub(crate) fn take_answers(&mut self) -> Vec<(u64, Result<Object, ApiError>)> {
        std::mem::take(&mut self.answers)
    }

    /// A pod with the webhook's patch, admitted again.
    fn patched(&mut self, pod: &Arc<Pod>, patch: &Value) -> Result<Object, ApiError> {
        let wrong = |error: &dyn std::error::Error| {
            ApiError::Internal(format!("Internal error occurred: {error}").into())
        };
        let before = Object::Pod(Arc::clone(pod)).to_json();
        let patched = json_patch(&before, patch).map_err(|error| wrong(&error))?;
        let patched: core::Pod = serde_json::from_value(patched).map_err(|error| wrong(&error))?;
        let pod = self.admission.admit_patched(pod, patched, &self.tables)?;
        Ok(pod.into())
    }

    /// A pod is to be deleted. Of one that is going already, or has finished, nothing is asked: the webhook would say
    /// nothing to it.
    pub(super) fn ask_about_deletion(
        &mut self,
        now: Instant,
        object: &Object,
    ) -> Result<(), ApiError> {
        match object {
            Object::Pod(pod) if pod.is_active() => self.ask(now, Asked::Delete(pod)),
            _ => Ok(()),
        }
    }

    /// A pod is to be evicted.
    pub(super) fn ask_about_eviction(
        &mut self,
        now: Instant,
        pod: &Arc<Pod>,
    ) -> Result<(), ApiError> {
        self.ask(now, Asked::Evict(&pod.meta.name))
    }

    fn ask(&mut self, now: Instant, asked: Asked<'_>) -> Result<(), ApiError> {
        let answered = self.with_webhook(|webhook, server| webhook.review(now, server, asked));
        answered.transpose().map(drop)
    }

    /// Whether a WorkloadSpread may be written so.
    pub(super) fn check_spread(
        &self,
        object: &Object,
        before: Option<&Object>,
    ) -> Result<(), ApiError> {
        let Some(spread) = wire(object) else {
            return Ok(());
        };
        if self.webhook().is_some_and(|webhook| !webhook.is_alive()) {
            return Err(Hook::SPREAD.unreachable());
        }
        let namespace = &object.meta().name.namespace;
        let others = self.tables.of::<WorkloadSpread>().in_namespace(namespace);
        let others = others.filter(|other| other.meta.name != object.meta().name);
        let others: Vec<v1beta1::WorkloadSpread> = others
            .filter_map(|other| wire(&Object::WorkloadSpread(Arc::clone(other))))
            .collect();
        let others: Vec<&v1beta1::WorkloadSpread> = others.iter().collect();
        let target = spread
            .spec
            .as_ref()
            .and_then(|s| s.target_reference.as_ref());
        let target = target.and_then(|target| {
            let key = Key {
                kind: Kind::of_group(&target.api_version, &target.kind),
                name: Name::new(Arc::clone(namespace), target.name.as_str()),
            };
            self.tables.find(&key)?.to_kube()
        });
        let before = before.and_then(wire);
        let list = WhiteList::default();
        let errors = validate(
            &spread,
            &Context {
                white_list: Some(Ok(&list)),
                target: target.as_ref(),
                others: Some(Ok(&others)),
                before: before.as_ref(),
            },
        );
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        match texts.is_empty() {
            true => Ok(()),
            false => Err(Hook::SPREAD.denied(&texts.join(", "))),
        }
    }
}

fn wire(object: &Object) -> Option<v1beta1::WorkloadSpread> {
    if !matches!(object, Object::WorkloadSpread(_)) {
        return None;
    }
    match object.to_kube() {
        Some(KubeObject::WorkloadSpread(wire)) => Some(*wire),
        _ => None,
    }
}
