//! One sync of a StatefulSet: replicas, then surplus pods, then the update.
//!
//! Source: spec/controllers §3.2 to §3.4; upstream `stateful_set_control.go`.

use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use strew_apiserver::object::{ControllerRevision, Object, Phase, Pod, StatefulSet, Stored};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_model::time::Instant;

use super::state::{Places, max_unavailable};
use super::{SOURCE, StatefulSetSettings, claims, identity, is_rolling};
use crate::api::Event;
use crate::controller::Context;
use crate::sets::revisions::template_of;
use crate::sets::unseen::Unseen;
use crate::sets::{is_namespace_terminating, tolerate_gone};

/// The largest batch of the policy Parallel. Source: spec/controllers §12.
const BATCH_MAX: usize = 500;

/// Whether a sync continues after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Goes,
    Stops,
}

use Flow::{Goes, Stops};

/// A sync of a set.
pub(super) struct Sync<'a> {
    pub(super) set: &'a Arc<StatefulSet>,
    pub(super) current: &'a ControllerRevision,
    pub(super) update: &'a ControllerRevision,
    pub(super) places: Places,
    pub(super) unseen: &'a mut Unseen,
    pub(super) settings: StatefulSetSettings,
}

impl Sync<'_> {
    /// Does the pending work.
    ///
    /// # Errors
    /// A write was refused.
    pub(super) fn run(&mut self, cx: &mut Context<'_>) -> Result<(), ApiError> {
        if self.replicas(cx)? == Stops || self.condemned(cx)? == Stops {
            return Ok(());
        }
        if is_rolling(&self.set.spec) {
            for pod in self.update_victims() {
                self.delete(&pod, cx)?;
            }
        }
        Ok(())
    }

    fn is_monotonic(&self) -> bool {
        self.set.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    fn replicas(&mut self, cx: &mut Context<'_>) -> Result<Flow, ApiError> {
        let n = self.places.replicas.len();
        if self.is_monotonic() {
            for index in 0..n {
                if self.replica(index, cx)? == Stops {
                    return Ok(Stops);
                }
            }
            return Ok(Goes);
        }
        // Slow start: 1, 2, 4, …; a batch with an error is finished and is the last one.
        let (mut done, mut batch) = (0, 1);
        while done < n {
            let end = (done + batch).min(n);
            let mut refused = None;
            for index in done..end {
                match self.replica(index, cx) {
                    Ok(_) => {}
                    Err(ApiError::Lost) => return Err(ApiError::Lost),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            if let Some(error) = refused {
                return Err(error);
            }
            (done, batch) = (end, (batch * 2).min(BATCH_MAX));
        }
        Ok(Goes)
    }

    fn replica(&mut self, index: usize, cx: &mut Context<'_>) -> Result<Flow, ApiError> {
        let place = &self.places.replicas[index];
        let (ordinal, present) = (place.ordinal, place.pod.clone());
        let Some(pod) = present else {
            let flow = self.create(index, ordinal, cx)?;
            let goes_on = flow == Goes && !self.is_monotonic();
            return Ok(if goes_on { Goes } else { Stops });
        };
        if pod.is_finished() {
            self.replace_finished(&pod, cx)?;
            // With the policy Parallel the sync continues, and must not delete the pod again.
            self.places.replicas[index].pod = None;
            return Ok(Stops);
        }
        if pod.status.phase == Phase::Pending {
            self.create_claims(&pod, cx)?;
        }
        if self.is_monotonic() && self.places.is_unavailable(Some(&pod)) {
            return Ok(Stops);
        }
        self.hold_claims(&pod, false, cx)?;
        if let Some(fixed) = identity::with_identity(&pod, ordinal) {
            let stored = cx.api.update(fixed.into())?;
            self.wrote(&stored, cx.now);
        }
        Ok(Goes)
    }

    fn replace_finished(&mut self, pod: &Arc<Pod>, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let name = &self.set.meta.name;
        let pod_name = &pod.meta.name.name;
        let object = self.object();
        let event = match pod.status.phase {
            Phase::Failed => Event::warning(
                SOURCE,
                &object,
                "RecreatingFailedPod",
                format!("StatefulSet {name} is recreating failed Pod {pod_name}"),
            ),
            _ => Event::normal(
                SOURCE,
                &object,
                "RecreatingTerminatedPod",
                format!("StatefulSet {name} is recreating terminated Pod {pod_name}"),
            ),
        };
        cx.api.record(event);
        if !pod.meta.is_terminating() {
            self.delete(pod, cx)?;
        }
        Ok(())
    }

    /// Returns true if the pod was created. A claim of a deleted pod must be gone first.
    fn create(
        &mut self,
        index: usize,
        ordinal: u32,
        cx: &mut Context<'_>,
    ) -> Result<Flow, ApiError> {
        let set = self.set;
        let n_current = set.status.current_replicas.unwrap_or(0);
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let revision = match identity::is_made_from_current(&set.spec, n_current, index) {
            true => self.current,
            false => self.update,
        };
        let template = template_of(revision).unwrap_or_else(|| set.spec.template.clone());
        let pod = identity::new_pod(set, &template, &revision.meta.name.name, ordinal);
        if claims::follows_pods(&set.spec) {
            let keys = claims::claim_keys(&set.spec, &pod.meta.name);
            let claims = keys.iter().filter_map(|key| cx.cache.find(key));
            if claims
                .into_iter()
                .any(|claim| claims::is_stale(&claim, &pod))
            {
                return Ok(Stops);
            }
        }
        let name = Arc::clone(&pod.meta.name.name);
        if let Err(error) = self.create_claims(&pod, cx) {
            self.tell("create", &name, Err(&error), cx);
            return Err(error);
        }
        let made = cx.api.create(pod.into());
        match &made {
            Ok(stored) => {
                self.wrote(stored, cx.now);
                self.tell("create", &name, Ok(()), cx);
            }
            // The watch will show the pod.
            Err(ApiError::AlreadyExists(_) | ApiError::Lost | ApiError::Later) => {}
            Err(error) => self.tell("create", &name, Err(error), cx),
        }
        made.map(|_| Goes)
    }

    /// Creates the missing claims of a pod.
    fn create_claims(&mut self, pod: &Pod, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let set = self.set;
        for template in claims::templates(&set.spec) {
            self.create_claim(template, pod, cx)?;
        }
        Ok(())
    }

    fn create_claim(
        &mut self,
        template: &PersistentVolumeClaim,
        pod: &Pod,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let key = claims::claim_key(template, &pod.meta.name);
        if let Some(present) = cx.cache.find(&key) {
            if present.meta().is_terminating() {
                let text = format!("pvc {} is being deleted", key.name.name);
                return Err(ApiError::Internal(text.into()));
            }
            return Ok(());
        }
        let mut claim = claims::new_claim(self.set, template, &pod.meta.name);
        if let Some(held) = claims::with_owners(&claim, self.set, None, false) {
            claim = held;
        }
        let made = cx.api.create(claim);
        let (set, of) = (&self.set.meta.name.name, &pod.meta.name.name);
        let claim = &key.name.name;
        let object = self.object();
        match &made {
            Ok(stored) => {
                self.wrote(stored, cx.now);
                let note = format!("create Claim {claim} Pod {of} in StatefulSet {set} success");
                cx.api
                    .record(Event::normal(SOURCE, &object, "SuccessfulCreate", note));
            }
            Err(ApiError::AlreadyExists(_)) => return Ok(()),
            Err(ApiError::Lost) => {}
            Err(error) if is_namespace_terminating(error) => {}
            Err(error) => {
                let note = format!(
                    "create Claim {claim} for Pod {of} in StatefulSet {set} failed error: {error}"
                );
                cx.api
                    .record(Event::warning(SOURCE, &object, "FailedCreate", note));
            }
        }
        made.map(|_| ())
    }

    /// Sets the owners of a pod's claims by the retention policy: the set, the pod, or none.
    fn hold_claims(
        &mut self,
        pod: &Pod,
        is_condemned: bool,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        for key in claims::claim_keys(&self.set.spec, &pod.meta.name) {
            let Some(claim) = cx.cache.find(&key) else {
                continue;
            };
            if let Some(held) = claims::with_owners(&claim, self.set, Some(pod), is_condemned)
                && let Some(stored) = tolerate_gone(cx.api.update(held))?
            {
                self.wrote(&stored, cx.now);
            }
        }
        Ok(())
    }

    fn condemned(&mut self, cx: &mut Context<'_>) -> Result<Flow, ApiError> {
        let first = self.places.first_unavailable();
        let condemned = self.places.condemned.clone();
        for (_, pod) in &condemned {
            self.hold_claims(pod, true, cx)?;
        }
        let is_monotonic = self.is_monotonic();
        for (ordinal, pod) in &condemned {
            let waits = pod.meta.is_terminating()
                || is_monotonic && !self.places.is_available(pod) && Some(*ordinal) != first;
            if !waits {
                self.delete(pod, cx)?;
            }
            if is_monotonic {
                return Ok(Stops);
            }
        }
        Ok(Goes)
    }

    fn update_victims(&self) -> Vec<Arc<Pod>> {
        let strategy = self.set.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|r| r.partition).unwrap_or(0);
        let n = self.places.replicas.len();
        let limit = self.settings.max_unavailable.then(|| {
            let given = rolling.and_then(|r| r.max_unavailable.as_ref());
            max_unavailable(given, n)
        });
        let partition = usize::try_from(partition).unwrap_or(0);
        let update = &self.update.meta.name.name;
        self.places.update_victims(update, partition, limit)
    }

    fn delete(&mut self, pod: &Arc<Pod>, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let key = Object::Pod(Arc::clone(pod)).key();
        let uid = &pod.meta.uid;
        let gone = cx.api.delete(&key, &DeleteOptions::of_uid(uid));
        match &gone {
            Ok(()) => {
                self.unseen.deleted(&self.set.meta.name, key, uid, cx.now);
                self.tell("delete", &pod.meta.name.name, Ok(()), cx);
            }
            Err(ApiError::NotFound(_)) => return Ok(()),
            Err(ApiError::Lost) => {}
            Err(error) => self.tell("delete", &pod.meta.name.name, Err(error), cx),
        }
        gone
    }

    fn wrote(&mut self, stored: &Object, now: Instant) {
        self.unseen.wrote(&self.set.meta.name, stored, now);
    }

    fn object(&self) -> Object {
        StatefulSet::into_object(Arc::clone(self.set))
    }

    /// Source: spec/controllers §3, "Events".
    fn tell(&self, verb: &str, pod: &str, outcome: Result<(), &ApiError>, cx: &mut Context<'_>) {
        let set = &self.set.meta.name.name;
        let object = self.object();
        let is_create = verb == "create";
        let event = match outcome {
            Ok(()) => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} successful");
                let reason = match is_create {
                    true => "SuccessfulCreate",
                    false => "SuccessfulDelete",
                };
                Event::normal(SOURCE, &object, reason, note)
            }
            Err(error) if is_namespace_terminating(error) => return,
            Err(error) => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}");
                let reason = match is_create {
                    true => "FailedCreate",
                    false => "FailedDelete",
                };
                Event::warning(SOURCE, &object, reason, note)
            }
        };
        cx.api.record(event);
    }
}
