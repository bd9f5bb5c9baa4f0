//! StatefulSets: pods with stable names, by default one after the other.
//!
//! `state` has the pods by ordinal, `identity` their names, `claims` their volumes, `steps` runs a sync.
//!
//! Source: spec/controllers §3; upstream `pkg/controller/statefulset`.

mod claims;
mod identity;
mod state;
mod steps;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSetSpec, StatefulSetStatus};
use strew_apiserver::object::{ControllerRevision, Name, Object, Pod, StatefulSet};
use strew_apiserver::selection::Selection;
use strew_apiserver::{ApiError, Tables};
use strew_model::time::Instant;

pub use identity::is_made_from_current;

use crate::workers;
use state::Places;
use steps::Sync;

use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::sets::revisions::{self, History, RevisionOwner};
use crate::sets::unseen::Unseen;
use crate::sets::{
    HASH_LABEL, REVISION_LABEL, claim, controller_of, current_of, observe_pod, to_sync,
    write_status,
};

/// The source of its events.
const SOURCE: &str = "statefulset-controller";

/// The settings of [`StatefulSetController`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatefulSetSettings {
    /// Gate MaxUnavailableStatefulSet (beta, off in 1.36).
    pub max_unavailable: bool,
}

/// The StatefulSet controller.
#[derive(Debug)]
pub struct StatefulSetController {
    settings: StatefulSetSettings,
    unseen: Unseen,
}

impl StatefulSetController {
    /// A controller that has seen no object.
    pub fn new(settings: StatefulSetSettings) -> Self {
        Self {
            settings,
            unseen: Unseen::default(),
        }
    }

    fn sync_set(&mut self, set: &Arc<StatefulSet>, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let name = &set.meta.name;
        let Some(selection) = Selection::of(&set.spec.selector) else {
            return Ok(());
        };
        let is_member = |pod: &Pod| identity::ordinal_of(&name.name, &pod.meta.name.name).is_some();
        if claim(&**set, &selection, is_member, &mut self.unseen, cx)? {
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
        let owned = cx.cache.pods_of(&set.meta.uid);
        let pods = owned.into_iter().flat_map(|owned| owned.iter());
        let places = Places::new(&name.name, &set.spec, pods, cx.now);
        let next_available = places.next_available();
        let status = status_of(set, &history, &current, &places);
        let mut sync = Sync {
            set,
            current: &current,
            update: &history.update,
            places,
            unseen: &mut self.unseen,
            settings: self.settings,
        };
        let done = match set.meta.is_terminating() {
            true => Ok(()),
            false => sync.run(cx),
        };
        let places = sync.places;
        if done.as_ref().is_err_and(ApiError::is_no_answer) {
            return done;
        }
        let written = write_status(&**set, status, &mut self.unseen, cx);
        done.and(written)?;
        if let Some(at) = next_available {
            cx.queue.add_at(name, at);
        }
        clean_up(set, &history, &current, &places, cx)
    }
}

impl Controller for StatefulSetController {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn n_workers(&self) -> usize {
        workers::STATEFUL_SET
    }

    fn observe(&mut self, _now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.unseen.observe(&change);
        match change.object() {
            Some(Object::StatefulSet(set)) => queue.add(&set.meta.name),
            Some(Object::Pod(_)) => {
                let selection = |set: &StatefulSet| Selection::of(&set.spec.selector);
                observe_pod(&change, selection, cache, queue);
            }
            // Upstream does not watch revisions; here a set waits for its own writes of them. A deleted revision does
            // not queue the set: if the set is deleted in the foreground, the collector deletes its revisions, and the
            // set would recreate them for ever.
            Some(Object::ControllerRevision(revision)) if change.new.is_some() => {
                if let Some(name) = controller_of::<StatefulSet>(&revision.meta) {
                    queue.add(&name);
                }
            }
            Some(Object::Plain(claim)) if claim.kind.name() == claims::CLAIM => {
                let sets = cache.of::<StatefulSet>();
                let here = sets.in_namespace(&claim.meta.name.namespace);
                for set in here.filter(|set| claims::templates(&set.spec).next().is_some()) {
                    queue.add(&set.meta.name);
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
}

/// The status to write. Source: spec/controllers §3.1, §3.2.
fn status_of(
    set: &StatefulSet,
    history: &History,
    current: &ControllerRevision,
    places: &Places,
) -> StatefulSetStatus {
    let (current, update) = (&*current.meta.name.name, &*history.update.meta.name.name);
    let mut status = set.status.clone();
    status.observed_generation = Some(set.meta.generation);
    status.collision_count = history.collisions;
    status.current_revision = Some(current.to_owned());
    status.update_revision = Some(update.to_owned());
    places.count(current, update, &mut status);
    let wanted = set.spec.replicas.unwrap_or(1);
    let is_complete = is_rolling(&set.spec)
        && status.replicas == wanted
        && status.updated_replicas == Some(wanted)
        && status.ready_replicas == Some(wanted);
    if is_complete {
        status.current_replicas = status.updated_replicas;
        status.current_revision = Some(update.to_owned());
    }
    status
}

/// True if the update strategy is RollingUpdate.
fn is_rolling(spec: &StatefulSetSpec) -> bool {
    let strategy = spec.update_strategy.as_ref();
    let kind = strategy.and_then(|strategy| strategy.type_.as_deref());
    matches!(kind, None | Some("" | "RollingUpdate"))
}

fn clean_up(
    set: &StatefulSet,
    history: &History,
    current: &ControllerRevision,
    places: &Places,
    cx: &mut Context<'_>,
) -> Result<(), ApiError> {
    let is_live = |revision: &ControllerRevision| {
        let name = &*revision.meta.name.name;
        let mut pods = places.pods();
        name == &*current.meta.name.name
            || pods.any(|pod| pod.meta.label(REVISION_LABEL) == Some(name))
    };
    if set.meta.is_terminating() {
        return Ok(());
    }
    let limit = set.spec.revision_history_limit;
    revisions::clean_up(&history.others, is_live, limit, false, cx)
}
