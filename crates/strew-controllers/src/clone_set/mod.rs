//! CloneSets: equal pods; deletion costs decide which pods are deleted; updates recreate pods.
//!
//! `rollout` computes how many pods of each revision there should be, and which are deleted.
//!
//! Left out, since nothing in the simulation needs it: updates in place (pods are recreated under every update type),
//! pods named for deletion, lifecycle hooks, priorities and scattering of updates, claims.
//!
//! Source: `pkg/controller/cloneset` of openkruise/kruise at 07169cfa.

mod rollout;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;
use strew_apiserver::object::{CloneSet, ControllerRevision, Key, Kind, Name, Object, Pod};
use strew_apiserver::selection::Selection;
use strew_apiserver::{ApiError, Tables};
use strew_manifest::kruise::workloads::WorkloadStatus;
use strew_model::time::Instant;

use self::rollout::{Counted, Wanted, to_delete, to_update};

use crate::controller::{Change, Context, Controller};
use crate::pod_control::{create_pod, delete_pod, is_controlled_by, slow_start, tell_created};
use crate::queue::Queue;
use crate::sets::revisions::{self, History, RevisionOwner};
use crate::sets::unseen::Unseen;
use crate::sets::{
    HASH_LABEL, REVISION_LABEL, claim, controller_of, current_of, min_ready, observe_pod, owner_of,
    pod_of, to_sync, write_status,
};
use crate::workers;

/// The source of its events.
const SOURCE: &str = "cloneset-controller";

/// The CloneSet controller.
#[derive(Debug, Default)]
pub struct CloneSetController {
    unseen: Unseen,
}

impl CloneSetController {
    /// A controller that has seen no object.
    pub fn new() -> Self {
        Self::default()
    }

    fn sync_set(&mut self, set: &Arc<CloneSet>, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let name = &set.meta.name;
        let Some(selection) = set.spec.selector.as_ref().and_then(Selection::of) else {
            return Ok(());
        };
        if claim(&**set, &selection, |_| true, &mut self.unseen, cx)? {
            return Ok(());
        }
        let owner = RevisionOwner {
            set: &**set,
            selection: &selection,
            template: &set.spec.template,
            collisions: set.status.collision_count,
            hash_label: HASH_LABEL,
        };
        let history = owner.history(&mut self.unseen, cx)?;
        let current = current_of(&history, set.status.current_revision.as_deref());
        let update_name = Arc::clone(&history.update.meta.name.name);
        let owned = cx.cache.pods_of(&set.meta.uid);
        let pods: Vec<Arc<Pod>> = owned
            .into_iter()
            .flat_map(|owned| owned.iter())
            .filter(|pod| pod.is_active())
            .cloned()
            .collect();
        let counted = Counted::new(
            &pods,
            &update_name,
            min_ready(set.spec.min_ready_seconds),
            cx.now,
        );
        let wanted = Wanted::of(&set.spec, &counted);
        let status = status_of(set, &history, &current, &counted, &wanted);
        let done = match set.meta.is_terminating() {
            true => Ok(()),
            false => self.act(set, &counted, &wanted, &history, &current, cx),
        };
        if done.as_ref().is_err_and(ApiError::is_no_answer) {
            return done;
        }
        let written = write_status(&**set, status, &mut self.unseen, cx);
        done.and(written)?;
        if let Some(at) = counted.next_available {
            cx.queue.add_at(name, at);
        }
        if set.meta.is_terminating() {
            return Ok(());
        }
        let is_live = |revision: &ControllerRevision| {
            let name = &revision.meta.name.name;
            *name == current.meta.name.name
                || pods
                    .iter()
                    .any(|pod| pod.meta.label(REVISION_LABEL) == Some(name))
        };
        let limit = set.spec.revision_history_limit;
        revisions::clean_up(&history.others, is_live, limit, false, cx)
    }

    /// Scales the set; if that needs nothing, updates it.
    fn act(
        &mut self,
        set: &Arc<CloneSet>,
        counted: &Counted,
        wanted: &Wanted,
        history: &History,
        current: &ControllerRevision,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let n_active = counted.n_active();
        let resumed = cx.queue.resume(&set.meta.name);
        if n_active < wanted.total {
            let n = wanted.total - n_active;
            let n_old = wanted.old.saturating_sub(counted.old.len()).min(n);
            let old_template = revisions::template_of(current);
            let is_other = current.meta.name != history.update.meta.name;
            let n_old = if is_other && old_template.is_some() {
                n_old
            } else {
                0
            };
            if let Some(template) = old_template.filter(|_| n_old > 0) {
                let of = (&template, &*current.meta.name.name);
                self.create(set, of, n_old, resumed.clone(), cx)?;
            }
            let of = (&set.spec.template, &*history.update.meta.name.name);
            return self.create(set, of, n - n_old, resumed, cx);
        }
        let victims = match n_active > wanted.total {
            true => to_delete(counted, wanted, cx.now, cx.dice),
            false => to_update(counted, wanted, cx.now, cx.dice),
        };
        self.delete(set, &victims, cx)
    }

    fn create(
        &mut self,
        set: &Arc<CloneSet>,
        (template, revision): (&PodTemplateSpec, &str),
        n: usize,
        resumed: Result<usize, ApiError>,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let namespace = Arc::clone(&set.meta.name.namespace);
        let spec = template.spec.clone().unwrap_or_default();
        let labels = [(REVISION_LABEL, revision)];
        let mut prototype = pod_of(
            template,
            spec,
            owner_of(&**set),
            Name::new(namespace, ""),
            &labels,
        );
        prototype.meta.generate_name = Some(format!("{}-", set.meta.name.name).into());
        let owner = Object::CloneSet(Arc::clone(set));
        let unseen = &mut self.unseen;
        slow_start(n, resumed, || {
            let pod = create_pod(cx, SOURCE, &owner, prototype.clone())?;
            unseen.wrote(&set.meta.name, &pod, cx.now);
            Ok(())
        })
    }

    fn delete(
        &mut self,
        set: &Arc<CloneSet>,
        victims: &[Arc<Pod>],
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let owner = Object::CloneSet(Arc::clone(set));
        let mut outcome = Ok(());
        for pod in victims {
            match delete_pod(cx, SOURCE, &owner, pod) {
                Ok(()) => {
                    let key = Key {
                        kind: Kind::Pod,
                        name: pod.meta.name.clone(),
                    };
                    let (set, uid) = (&set.meta.name, &pod.meta.uid);
                    self.unseen.deleted(set, key, uid, cx.now);
                }
                Err(ApiError::Lost) => return Err(ApiError::Lost),
                Err(ApiError::NotFound(_)) => (),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome
    }
}

impl Controller for CloneSetController {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn n_workers(&self) -> usize {
        workers::CLONE_SET
    }

    fn observe(&mut self, _now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.unseen.observe(&change);
        match change.object() {
            Some(Object::CloneSet(set)) => queue.add(&set.meta.name),
            Some(Object::Pod(_)) => {
                let selection = |set: &CloneSet| Selection::of(set.spec.selector.as_ref()?);
                observe_pod(&change, selection, cache, queue);
            }
            Some(Object::ControllerRevision(revision)) => {
                if let Some(name) = controller_of::<CloneSet>(&revision.meta) {
                    queue.add(&name);
                }
            }
            _ => {}
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(set) = to_sync(name, &mut self.unseen, cx) else {
            return Ok(());
        };
        self.sync_set(&set, cx)
    }

    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        let Some(set) = cx.cache.get::<CloneSet>(name).cloned() else {
            return;
        };
        tell_created(cx, SOURCE, &Object::CloneSet(Arc::clone(&set)), answer);
        if let Ok(pod) = answer
            && is_controlled_by(pod, &set.meta.uid)
        {
            self.unseen.wrote(name, pod, cx.now);
        }
    }
}

/// The status to write.
fn status_of(
    set: &CloneSet,
    history: &History,
    current: &ControllerRevision,
    counted: &Counted,
    wanted: &Wanted,
) -> WorkloadStatus {
    let count = |n: usize| Some(i32::try_from(n).unwrap_or(i32::MAX));
    let update = history.update.meta.name.name.to_string();
    let is_complete = counted.old.is_empty() && counted.n_ready == counted.n_active();
    let current = match is_complete {
        true => update.clone(),
        false => current.meta.name.name.to_string(),
    };
    WorkloadStatus {
        observed_generation: Some(set.meta.generation),
        replicas: count(counted.n_active()),
        ready_replicas: count(counted.n_ready),
        available_replicas: count(counted.n_available),
        updated_replicas: count(counted.updated.len()),
        updated_ready_replicas: count(counted.n_updated_ready),
        updated_available_replicas: count(counted.n_updated_available),
        expected_updated_replicas: count(wanted.replicas - wanted.old),
        update_revision: Some(update),
        current_revision: Some(current),
        collision_count: history.collisions,
        ..set.status.clone()
    }
}
