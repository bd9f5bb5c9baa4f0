//! Queueing hints: whether an event makes a pod that this plugin refused worth a retry.
//!
//! Source: spec/scheduler §1.13.

use strew_cluster::{NodeFact, Policy, SpreadConstraint};
use strew_model::{Labels, Symbol, Toleration};

pub use crate::queue::event::Hint;

/// The waiting pod.
#[derive(Debug, Clone, Copy)]
pub struct Waiting<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its namespace.
    pub namespace: Symbol,
    /// Its hard constraints, with complete selectors.
    pub hard: &'a [SpreadConstraint],
}

/// Another pod in an event.
#[derive(Debug, Clone, Copy)]
pub struct Other<'a> {
    /// Its uid.
    pub uid: &'a str,
    /// Its namespace.
    pub namespace: Symbol,
    /// Its labels.
    pub labels: &'a Labels,
    /// Its tolerations.
    pub tolerations: &'a [Toleration],
    /// True if it is bound to a node, or nominated to one.
    pub placed: bool,
}

/// After a pod event: `old` absent means created, `new` absent means deleted.
pub fn after_pod(waiting: Waiting<'_>, old: Option<Other<'_>>, new: Option<Other<'_>>) -> Hint {
    let foreign = |other: &Other<'_>| {
        other.uid != waiting.uid && (!other.placed || other.namespace != waiting.namespace)
    };
    if old.iter().chain(&new).any(foreign) {
        return Hint::Skip;
    }
    let matches = |constraint: &SpreadConstraint, other: &Other<'_>| {
        constraint.selector.matches(other.labels)
    };
    match (old, new) {
        (Some(old), Some(new)) => {
            let honors_taints = waiting
                .hard
                .iter()
                .any(|c| c.node_taints_policy == Policy::Honor);
            if new.uid == waiting.uid && old.tolerations != new.tolerations && honors_taints {
                return Hint::Queue;
            }
            Hint::queue_if(
                waiting
                    .hard
                    .iter()
                    .any(|c| matches(c, &old) != matches(c, &new)),
            )
        }
        (None, Some(one)) | (Some(one), None) => {
            Hint::queue_if(waiting.hard.iter().any(|c| matches(c, &one)))
        }
        (None, None) => Hint::Skip,
    }
}

/// After a node event: `old` absent means created, `new` absent means deleted.
pub fn after_node(
    hard: &[SpreadConstraint],
    old: Option<&NodeFact>,
    new: Option<&NodeFact>,
) -> Hint {
    let has_all = |node: &NodeFact| hard.iter().all(|c| node.labels.get(c.key).is_some());
    let changed = |old: &NodeFact, new: &NodeFact| {
        old.taints != new.taints
            || hard
                .iter()
                .any(|c| old.labels.get(c.key) != new.labels.get(c.key))
    };
    match (old, new) {
        (Some(old), Some(new)) => {
            let (before, after) = (has_all(old), has_all(new));
            Hint::queue_if(before != after || (after && changed(old, new)))
        }
        (None, Some(one)) | (Some(one), None) => Hint::queue_if(has_all(one)),
        (None, None) => Hint::Skip,
    }
}
