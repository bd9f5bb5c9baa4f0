//! How long a cluster is silent though something is still to come.

use strew_apiserver::Tables;
use strew_apiserver::object::{CloneSet, DaemonSet, Deployment, ReplicaSet, StatefulSet};
use strew_model::time::Span;

/// The longest time after which a ready pod becomes available without a write in between: the largest
/// `minReadySeconds`, and half a minute.
pub(super) fn slowest_ready(tables: &Tables) -> Span {
    let deployments = tables.of::<Deployment>().iter();
    let deployments = deployments.map(|d| d.spec.min_ready_seconds);
    let sets = tables.of::<ReplicaSet>().iter();
    let sets = sets.map(|set| set.spec.min_ready_seconds);
    let stateful = tables.of::<StatefulSet>().iter();
    let stateful = stateful.map(|set| set.spec.min_ready_seconds);
    let daemons = tables.of::<DaemonSet>().iter();
    let daemons = daemons.map(|set| set.spec.min_ready_seconds);
    let clones = tables.of::<CloneSet>().iter();
    let clones = clones.map(|set| set.spec.min_ready_seconds);
    let all = deployments.chain(sets).chain(stateful).chain(daemons);
    let slowest = all.chain(clones).flatten().max().unwrap_or(0);
    match u64::try_from(slowest) {
        Ok(seconds @ 1..) => Span::from_secs(seconds.saturating_add(30)),
        _ => Span::default(),
    }
}
