//! One node of a DaemonSet: its pending work, and how it counts in the status.
//!
//! Source: spec/controllers §4.2, §4.3; upstream `podsShouldBeOnNode`, `findUpdatedPodsOnNode`.

use std::collections::BTreeMap;
use std::ops::{AddAssign, SubAssign};
use std::sync::Arc;

use strew_apiserver::object::{Phase, Pod};
use strew_apiserver::workloads::DaemonFit;
use strew_model::time::{Instant, Span};

use crate::sets::{REVISION_LABEL, available_at};

/// The label with the number of the template, which is older than revisions.
pub(super) const GENERATION_LABEL: &str = "pod-template-generation";

/// The inputs that are the same for all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rules {
    /// The hash of the present template.
    pub(super) hash: Arc<str>,
    /// The annotated number of the present template.
    pub(super) generation: Option<Arc<str>>,
    /// True if new pods start beside old ones.
    pub(super) surges: bool,
    /// `minReadySeconds`
    pub(super) min_ready: Span,
}

/// A node with the set's pods that are there or must go there.
#[derive(Debug, Clone, Default)]
pub(super) struct OnNode {
    /// True if the node exists.
    pub(super) exists: bool,
    /// Whether a pod belongs there.
    pub(super) fit: DaemonFit,
    /// By name.
    pub(super) pods: BTreeMap<Arc<str>, Arc<Pod>>,
}

/// The pending work on a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Plan {
    /// A pod must be created.
    pub(super) creates: bool,
    /// Pods to delete.
    pub(super) deletes: Vec<Arc<Pod>>,
    /// Failed pods, which are deleted with a backoff.
    pub(super) failed: Vec<Arc<Pod>>,
    /// Succeeded pods, which are deleted.
    pub(super) succeeded: Vec<Arc<Pod>>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How a node counts in the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) desired: i32,
    pub(super) current: i32,
    pub(super) misscheduled: i32,
    pub(super) ready: i32,
    pub(super) available: i32,
    pub(super) updated: i32,
    /// Nodes with a pod of an older template.
    pub(super) outdated: i32,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.desired += other.desired;
        self.current += other.current;
        self.misscheduled += other.misscheduled;
        self.ready += other.ready;
        self.available += other.available;
        self.updated += other.updated;
        self.outdated += other.outdated;
    }
}

impl SubAssign for Counts {
    fn sub_assign(&mut self, other: Self) {
        self.desired -= other.desired;
        self.current -= other.current;
        self.misscheduled -= other.misscheduled;
        self.ready -= other.ready;
        self.available -= other.available;
        self.updated -= other.updated;
        self.outdated -= other.outdated;
    }
}

/// The state of a node in a rolling update.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Turnover {
    /// There are several pods of one sort, which must be cleaned up first.
    pub(super) is_crowded: bool,
    /// Whether the pod of the present template is available; `None` if there is none.
    pub(super) new: Option<bool>,
    /// The pod of an older template, and whether it is available.
    pub(super) old: Option<(Arc<Pod>, bool)>,
}

impl OnNode {
    /// The pods that count; finished pods that terminate do not.
    fn present(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let pods = self.pods.values();
        pods.filter(|pod| !(pod.is_finished() && pod.meta.is_terminating()))
    }

    /// True if there is nothing to remember of it.
    pub(super) fn is_nothing(&self) -> bool {
        !self.exists && self.pods.is_empty()
    }

    /// True if it takes part in a rolling update.
    pub(super) fn takes_part(&self) -> bool {
        self.present().next().is_some() || self.exists && self.fit.should_run
    }

    pub(super) fn plan(&self, rules: &Rules, now: Instant) -> Plan {
        let mut plan = Plan::default();
        if !self.exists {
            let unbound = self.present().filter(|pod| pod.node.is_none());
            plan.deletes = unbound
                .filter(|pod| !pod.meta.is_terminating())
                .cloned()
                .collect();
            return plan;
        }
        let is_empty = self.present().next().is_none();
        if self.fit.should_run && is_empty {
            plan.creates = true;
            return plan;
        }
        let staying = self.present().filter(|pod| !pod.meta.is_terminating());
        if !self.fit.should_continue {
            plan.deletes = staying.cloned().collect();
            return plan;
        }
        let mut running = Vec::new();
        for pod in staying.cloned() {
            match pod.status.phase {
                Phase::Failed => plan.failed.push(pod),
                Phase::Succeeded => plan.succeeded.push(pod),
                _ => running.push(pod),
            }
        }
        sort_oldest_first(&mut running);
        if rules.surges {
            plan.creates = running.is_empty() && self.fit.should_run;
            plan.deletes = excess_beside_surge(&running, rules, now);
        } else {
            plan.deletes = running.into_iter().skip(1).collect();
        }
        plan
    }

    pub(super) fn count(&self, rules: &Rules, now: Instant) -> Counts {
        let mut counts = Counts::default();
        let mut here: Vec<_> = self.present().cloned().collect();
        let mut staying = here.iter().filter(|pod| !pod.meta.is_terminating());
        counts.outdated = i32::from(staying.any(|pod| !rules.is_updated(pod)));
        if !self.exists {
            return counts;
        }
        sort_oldest_first(&mut here);
        let oldest = here.first();
        if !self.fit.should_run {
            counts.misscheduled = i32::from(oldest.is_some());
            return counts;
        }
        counts.desired = 1;
        if let Some(pod) = oldest {
            counts.current = 1;
            counts.ready = i32::from(pod.is_ready());
            counts.available = i32::from(rules.is_available(pod, now));
            counts.updated = i32::from(rules.is_updated(pod));
        }
        counts
    }

    pub(super) fn turnover(&self, rules: &Rules, now: Instant) -> Turnover {
        let mut turnover = Turnover::default();
        for pod in self.present().filter(|pod| !pod.meta.is_terminating()) {
            let is_available = rules.is_available(pod, now);
            let is_second = if rules.is_updated(pod) {
                turnover.new.replace(is_available).is_some()
            } else {
                let old = (Arc::clone(pod), is_available);
                turnover.old.replace(old).is_some()
            };
            turnover.is_crowded |= is_second;
        }
        turnover
    }

    /// When the next pod becomes available.
    pub(super) fn next_available(&self, rules: &Rules, now: Instant) -> Option<Instant> {
        let moments = self.pods.values();
        let moments = moments.filter_map(|pod| available_at(pod, rules.min_ready));
        moments.filter(|&at| at > now).min()
    }
}

impl Rules {
    /// True if a pod is of the present template.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        let generation = self.generation.as_deref();
        pod.meta.label(REVISION_LABEL) == Some(&*self.hash)
            || generation.is_some() && pod.meta.label(GENERATION_LABEL) == generation
    }

    fn is_available(&self, pod: &Pod, now: Instant) -> bool {
        available_at(pod, self.min_ready).is_some_and(|at| at <= now)
    }
}

/// Pods with a node first, then by creation.
fn sort_oldest_first(pods: &mut [Arc<Pod>]) {
    pods.sort_by(|a, b| {
        let key = |pod: &Pod| (pod.node.is_none(), pod.meta.created);
        key(a)
            .cmp(&key(b))
            .then_with(|| a.meta.name.cmp(&b.meta.name))
    });
}

/// The surplus pods during a surge. Of each template the oldest pod stays, until the old pod is not ready or the new
/// one is available.
fn excess_beside_surge(running: &[Arc<Pod>], rules: &Rules, now: Instant) -> Vec<Arc<Pod>> {
    let (new, old): (Vec<_>, Vec<_>) = running
        .iter()
        .cloned()
        .partition(|pod| pod.meta.label(REVISION_LABEL) == Some(&*rules.hash));
    let excess = new.iter().skip(1).chain(old.iter().skip(1));
    let mut excess: Vec<_> = excess.cloned().collect();
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!old.is_ready() || rules.is_available(new, now))
    {
        excess.push(Arc::clone(old));
    }
    excess
}
