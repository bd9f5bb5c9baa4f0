//! Queueing hints: whether an event makes a pod that this plugin refused worth a retry.
//!
//! Source: spec/scheduler §3.10, Events.

use strew_cluster::{AffinityTerm, ClassId, Cluster, NodeFact};
use strew_model::{Labels, Symbol};

use crate::queue::event::Hint;

/// After another pod was created (`old` absent), deleted (`new` absent) or changed its labels; pods are given by class.
///
/// As upstream, "matches" means that a pod matches *all* terms of a list; an empty list never matches.
pub fn after_pod(
    cluster: &Cluster,
    waiting: ClassId,
    old: Option<ClassId>,
    new: Option<ClassId>,
) -> Hint {
    let affinity = cluster.tables().affinity_of(spec_of(cluster, waiting));
    let (terms, anti) = (&affinity.required, &affinity.required_anti);
    let wanted = |other| matches_all(cluster, terms, waiting, other);
    let unwanted = |other| matches_all(cluster, anti, waiting, other);
    Hint::queue_if(match (old, new) {
        (Some(old), Some(new)) => {
            (!wanted(old) && wanted(new)) || (unwanted(old) && !unwanted(new))
        }
        (None, Some(new)) => wanted(new),
        (Some(old), None) => unwanted(old) || refuses(cluster, old, waiting),
        (None, None) => false,
    })
}

/// After a node was created or changed its labels.
pub fn after_node(
    cluster: &Cluster,
    waiting: ClassId,
    old: Option<&NodeFact>,
    new: Option<&NodeFact>,
) -> Hint {
    let Some(new) = new else {
        return Hint::Skip;
    };
    let affinity = cluster.tables().affinity_of(spec_of(cluster, waiting));
    let before = |key: Symbol| old.and_then(|node| node.labels.get(key));
    let gained = |term: &AffinityTerm| {
        let now = new.labels.get(term.key);
        now.is_some() && now != before(term.key)
    };
    let lost = |term: &AffinityTerm| {
        before(term.key).is_some_and(|value| new.labels.get(term.key) != Some(value))
    };
    // A pod that only anti-affinity refuses may go to any new node.
    let others_object = affinity.required.is_empty();
    let is_new = old.is_none() && (others_object || !affinity.required_anti.is_empty());
    Hint::queue_if(
        is_new || affinity.required.iter().any(gained) || affinity.required_anti.iter().any(lost),
    )
}

fn spec_of(cluster: &Cluster, class: ClassId) -> strew_cluster::SpecId {
    cluster.tables().class(class).key.spec
}

/// True if a pod of class `other` matches all terms of `holder`, and there is at least one.
fn matches_all(cluster: &Cluster, terms: &[AffinityTerm], holder: ClassId, other: ClassId) -> bool {
    !terms.is_empty() && terms.iter().all(|t| matches(cluster, t, holder, other))
}

/// True if a required anti-affinity term of `holder` matches a pod of class `other`.
fn refuses(cluster: &Cluster, holder: ClassId, other: ClassId) -> bool {
    let affinity = cluster.tables().affinity_of(spec_of(cluster, holder));
    let anti = &affinity.required_anti;
    anti.iter().any(|t| matches(cluster, t, holder, other))
}

fn matches(cluster: &Cluster, term: &AffinityTerm, holder: ClassId, other: ClassId) -> bool {
    let tables = cluster.tables();
    let (holder, other) = (&tables.class(holder).key, &tables.class(other).key);
    let unlabelled = Labels::default();
    let of_namespace = cluster
        .namespace_labels(other.namespace)
        .unwrap_or(&unlabelled);
    let by_name = match term.is_own_namespace() {
        true => holder.namespace == other.namespace,
        false => term.namespaces.contains(&other.namespace),
    };
    (by_name || term.namespace_selector.matches(of_namespace))
        && term.selector.matches(tables.labels(other.labels))
}
