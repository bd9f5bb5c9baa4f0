//! The fields of a cluster that a placement reads. With equal fields, the decision is equal.

use smallvec::SmallVec;
use strew_model::{Instant, Symbol};

use super::placement_machine::Row;
use crate::decisions::replicas;
use crate::facts::cluster::{Amounts, ClusterFact, TaintEffect};
use crate::filter::predicate::{NoCel, passes};
use crate::filter::taint::{Tolerance, tolerance};
use crate::hub::{Hub, SetNames};
use crate::plan::Selection;
use crate::prioritize::prioritizer::Prioritizer;

/// All that a run reads of a cluster that passes the filters, except its name, scores and decisions.
#[derive(Debug, PartialEq, Eq)]
struct View {
    tolerated: Option<Instant>,
    topology: SmallVec<[Option<Symbol>; 4]>,
    cpu: Amounts,
    memory: Amounts,
    groups: SmallVec<[bool; 4]>,
    /// The number that its part of divided replicas is computed from.
    weight: i64,
}

/// A cluster before or after a change, with its sets.
pub(super) type KnownCluster<'a> = Option<(&'a ClusterFact, &'a SetNames)>;

/// True if a change of a cluster can change the result of a placement.
pub(super) fn touched(
    hub: &Hub,
    row: &Row,
    before: KnownCluster,
    after: KnownCluster,
    now: Instant,
) -> bool {
    let (before, after) = (candidate(row, before), candidate(row, after));
    if before.is_none() && after.is_none() {
        return false;
    }
    let (Some(selection), Ok(predicates)) = (row.plan.sound(), &row.fact.spec.predicates) else {
        return true;
    };
    let raw = |cluster: Option<&ClusterFact>| cluster.map(|cluster| cluster.raw);
    if raw(before) != raw(after) && predicates.iter().any(|p| p.cel.is_some()) {
        return true;
    }
    let view = |cluster: Option<&ClusterFact>| view(hub, row, selection, cluster?, now);
    // A cluster that is filtered out before and after has no effect.
    view(before) != view(after)
}

fn candidate<'a>(row: &Row, seen: KnownCluster<'a>) -> Option<&'a ClusterFact> {
    let (fact, sets) = seen.filter(|(fact, _)| !fact.deleting)?;
    let member = sets.iter().any(|set| row.sets.1.contains(set));
    member.then_some(fact)
}

/// `None` if the cluster does not pass.
fn view(
    hub: &Hub,
    row: &Row,
    selection: &Selection,
    cluster: &ClusterFact,
    now: Instant,
) -> Option<View> {
    let spec = &row.fact.spec;
    let predicates = spec.predicates.as_deref().unwrap_or_default();
    // With CEL, an equal object gives equal answers: only the other fields can differ.
    let cel = predicates.iter().any(|p| p.cel.is_some());
    if !cel && !passes(predicates, cluster, &NoCel) {
        return None;
    }
    let if_new = |t: &crate::facts::cluster::ClusterTaint| t.effect == TaintEffect::NoSelectIfNew;
    let held = cluster.taints.iter().any(if_new) && holds(hub, row, cluster.name);
    let Tolerance::Until(tolerated) = tolerance(cluster, &spec.tolerations, held, now) else {
        return None;
    };
    let counts = |prioritizer, amounts| match selection.weights.weight(prioritizer) {
        0 => Amounts::default(),
        _ => amounts,
    };
    let groups = spec.groups.groups.as_deref().unwrap_or_default().iter();
    Some(View {
        tolerated,
        topology: selection
            .levels
            .iter()
            .map(|level| level.value(cluster))
            .collect(),
        cpu: counts(Prioritizer::AllocatableCpu, cluster.cpu),
        memory: counts(Prioritizer::AllocatableMemory, cluster.memory),
        groups: groups
            .map(|g| g.labels.matches(&cluster.labels) && g.claims.matches(&cluster.claims))
            .collect(),
        weight: match &spec.replicas {
            Ok(Some(division)) => replicas::weight(division, cluster),
            _ => 0,
        },
    })
}

fn holds(hub: &Hub, row: &Row, cluster: Symbol) -> bool {
    let mut objects = hub.ledger.of(row.fact.namespace, row.fact.name);
    objects.any(|object| object.decisions.iter().any(|d| d.cluster == cluster))
}
