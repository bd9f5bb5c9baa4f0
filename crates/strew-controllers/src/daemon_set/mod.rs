//! DaemonSets: one pod on each node that should run it.
//!
//! `ledger` has the state of all nodes, `on_node` computes the work on one node, `rollout` the next updates, `steps`
//! runs a sync.
//!
//! Source: spec/controllers §4; upstream `pkg/controller/daemon`.

mod ledger;
mod on_node;
mod rollout;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSetStatus;
use strew_apiserver::object::{ControllerRevision, DaemonSet, Name, Node, Object, Stored};
use strew_apiserver::selection::Selection;
use strew_apiserver::{ApiError, Tables};
use strew_model::time::Instant;

use crate::workers;
use ledger::Ledger;
use on_node::{Counts, Rules};
use steps::Sync;

use crate::api::Event;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::sets::revisions::{self, History, RevisionOwner};
use crate::sets::unseen::Unseen;
use crate::sets::{REVISION_LABEL, claim, controller_of, min_ready, to_sync, write_status};

/// The source of its events.
const SOURCE: &str = "daemonset-controller";

/// The annotation with the number of the template, which is older than revisions.
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";

/// The DaemonSet controller.
#[derive(Debug, Default)]
pub struct DaemonSetController {
    unseen: Unseen,
    ledgers: BTreeMap<Name, Ledger>,
    /// Sets whose pods may have to be adopted or released.
    claims: BTreeSet<Name>,
}

impl DaemonSetController {
    /// A controller that has seen no object.
    pub fn new() -> Self {
        Self::default()
    }

    fn sync_set(&mut self, set: &Arc<DaemonSet>, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let name = &set.meta.name;
        let Some(selection) = Selection::of(&set.spec.selector) else {
            return Ok(());
        };
        if selection.is_empty() {
            let object = DaemonSet::into_object(Arc::clone(set));
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            cx.api
                .record(Event::warning(SOURCE, &object, "SelectingAll", note));
            return Ok(());
        }
        if set.meta.is_terminating() {
            return Ok(());
        }
        if self.claim(set, &selection, cx)? {
            return Ok(());
        }
        let owner = RevisionOwner {
            set: &**set,
            selection: &selection,
            template: &set.spec.template,
            collisions: set.status.collision_count,
            hash_label: REVISION_LABEL,
        };
        let history = owner.history(&mut self.unseen, cx)?;
        let rules = rules_of(set, &history.update);
        let ledger = match self.ledgers.entry(name.clone()) {
            std::collections::btree_map::Entry::Occupied(found) => {
                let ledger = found.into_mut();
                if !ledger.is_of(set) {
                    *ledger = Ledger::new(set, cx.cache);
                }
                ledger
            }
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(Ledger::new(set, cx.cache))
            }
        };
        ledger.refresh(rules.clone(), cx.now);
        let mut sync = Sync {
            set,
            rules: &rules,
            ledger,
            unseen: &mut self.unseen,
        };
        let done = sync.run(cx);
        if done.as_ref().is_err_and(ApiError::is_no_answer) {
            return done;
        }
        if let Some(at) = ledger.next_timer() {
            cx.queue.add_at(name, at);
        }
        let status = status_of(set, &history, &ledger.counts);
        let cleaned = match done {
            Ok(()) => clean_up(set, &history, ledger, cx),
            Err(_) => Ok(()),
        };
        let written = write_status(&**set, status, &mut self.unseen, cx);
        done.and(cleaned).and(written)
    }

    /// Returns true if a pod was adopted or released: then the watch triggers the next sync.
    fn claim(
        &mut self,
        set: &Arc<DaemonSet>,
        selection: &Selection,
        cx: &mut Context<'_>,
    ) -> Result<bool, ApiError> {
        let name = &set.meta.name;
        let is_known = self.ledgers.get(name).is_some_and(|l| l.is_of(set));
        if is_known && !self.claims.contains(name) {
            return Ok(false);
        }
        let has_claimed = claim(&**set, selection, |_| true, &mut self.unseen, cx)?;
        self.claims.remove(name);
        Ok(has_claimed)
    }

    fn observe_node(&mut self, old: Option<&Node>, new: Option<&Node>, queue: &mut Queue) {
        if let (Some(old), Some(new)) = (old, new)
            && old.meta.labels == new.meta.labels
            && old.spec.taints == new.spec.taints
        {
            return;
        }
        for (name, ledger) in &mut self.ledgers {
            let changed = match (new, old) {
                (Some(node), _) => ledger.set_node(node),
                (None, Some(node)) => ledger.remove_node(&node.meta.name.name),
                (None, None) => false,
            };
            if changed {
                queue.add(name);
            }
        }
    }

    fn observe_pod(&mut self, change: &Change<'_>, cache: &Tables, queue: &mut Queue) {
        if let Some(Object::Pod(old)) = change.old
            && let Some(name) = controller_of::<DaemonSet>(&old.meta)
        {
            queue.add(&name);
            if let Some(ledger) = self.ledgers.get_mut(&name).filter(|l| l.owns(old)) {
                ledger.remove_pod(old);
            }
        }
        let Some(Object::Pod(new)) = change.new else {
            return;
        };
        let is_relabelled = change.old.is_none_or(|old| {
            let (old, new) = (old.meta(), &new.meta);
            old.labels != new.labels || old.owners != new.owners
        });
        if let Some(name) = controller_of::<DaemonSet>(&new.meta) {
            queue.add(&name);
            if let Some(ledger) = self.ledgers.get_mut(&name).filter(|l| l.owns(new)) {
                ledger.add_pod(new);
            }
            if is_relabelled {
                self.claims.insert(name);
            }
        } else if is_relabelled && new.meta.controller().is_none() {
            let sets = cache.of::<DaemonSet>();
            for set in sets.in_namespace(&new.meta.name.namespace) {
                let selection = Selection::of(&set.spec.selector);
                if selection.is_some_and(|s| s.matches(&new.meta.labels)) {
                    self.claims.insert(set.meta.name.clone());
                    queue.add(&set.meta.name);
                }
            }
        }
    }
}

impl Controller for DaemonSetController {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn n_workers(&self) -> usize {
        workers::DAEMON_SET
    }

    fn observe(&mut self, _now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.unseen.observe(&change);
        match change.object() {
            Some(Object::DaemonSet(set)) => {
                let specs = change.of::<DaemonSet>();
                let is_new_spec = !matches!(
                    specs,
                    Some((Some(old), Some(new))) if old.spec == new.spec
                );
                if is_new_spec {
                    self.claims.insert(set.meta.name.clone());
                }
                queue.add(&set.meta.name);
            }
            Some(Object::Pod(_)) => self.observe_pod(&change, cache, queue),
            Some(Object::Node(_)) => {
                if let Some((old, new)) = change.of::<Node>() {
                    self.observe_node(old, new, queue);
                }
            }
            Some(Object::ControllerRevision(revision)) => {
                if let Some(name) = controller_of::<DaemonSet>(&revision.meta) {
                    queue.add(&name);
                }
            }
            _ => {}
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        if cx.cache.get::<DaemonSet>(name).is_none() {
            self.ledgers.remove(name);
            self.claims.remove(name);
        }
        let Some(set) = to_sync(name, &mut self.unseen, cx) else {
            return Ok(());
        };
        self.sync_set(&set, cx)
    }

    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        if let Some(set) = cx.cache.get::<DaemonSet>(name).cloned() {
            steps::tell_created(&set, answer, &mut self.unseen, cx);
        }
    }
}

fn rules_of(set: &DaemonSet, update: &ControllerRevision) -> Rules {
    Rules {
        hash: update.meta.label(REVISION_LABEL).unwrap_or_default().into(),
        generation: set.meta.annotation(GENERATION_ANNOTATION).map(Into::into),
        surges: rollout::surges(&set.spec),
        min_ready: min_ready(set.spec.min_ready_seconds),
    }
}

/// The status to write. Source: spec/controllers §4.3.
fn status_of(set: &DaemonSet, history: &History, counts: &Counts) -> DaemonSetStatus {
    let unavailable = counts.desired - counts.available;
    DaemonSetStatus {
        observed_generation: Some(set.meta.generation),
        collision_count: history.collisions,
        desired_number_scheduled: counts.desired,
        current_number_scheduled: counts.current,
        number_misscheduled: counts.misscheduled,
        number_ready: counts.ready,
        updated_number_scheduled: some(counts.updated),
        number_available: some(counts.available),
        number_unavailable: some(unavailable),
        conditions: set.status.conditions.clone(),
    }
}

/// `None` for 0, which the wire leaves out.
fn some(n: i32) -> Option<i32> {
    (n != 0).then_some(n)
}

fn clean_up(
    set: &DaemonSet,
    history: &History,
    ledger: &Ledger,
    cx: &mut Context<'_>,
) -> Result<(), ApiError> {
    let limit = set.spec.revision_history_limit;
    let is_within = |limit: i32| history.others.len() <= usize::try_from(limit).unwrap_or(0);
    if is_within(limit.unwrap_or(10)) {
        return Ok(());
    }
    let labels = ledger
        .pods()
        .filter_map(|pod| pod.meta.label(REVISION_LABEL));
    let live: BTreeSet<&str> = labels.collect();
    let is_live = |revision: &ControllerRevision| {
        let hash = revision.meta.label(REVISION_LABEL);
        hash.is_some_and(|hash| live.contains(hash))
    };
    revisions::clean_up(&history.others, is_live, limit, true, cx)
}
