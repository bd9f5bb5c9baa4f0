//! Judges every write of a PlacementDecision: a cluster that a placement keeps stays in its decisions.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_api::placement::wire::PLACEMENT_LABEL;
use strew_api::read::KubeObject;
use strew_apiserver::Tables;

use super::{Rule, Witness};

/// All clusters that the PlacementDecisions of a placement name together, which is what a consumer sees.
pub fn union(tables: &Tables, namespace: &str, placement: &str) -> BTreeSet<Arc<str>> {
    let all = tables.all_plain().filter(|plain| {
        *plain.meta.name.namespace == *namespace
            && plain.meta.label(PLACEMENT_LABEL) == Some(placement)
    });
    let statuses = all.filter_map(|plain| match &plain.object {
        KubeObject::PlacementDecision(decision) => decision.status.as_ref(),
        _ => None,
    });
    let clusters = statuses.flat_map(|status| &status.decisions);
    clusters.map(|d| d.cluster_name.as_str().into()).collect()
}

/// Judges one write: every cluster that was named before it, and that the decision wants, must be named after it.
pub(crate) fn judge(
    (namespace, placement): (&str, &str),
    object: &str,
    wanted: &[Arc<str>],
    before: &BTreeSet<Arc<str>>,
    after: &BTreeSet<Arc<str>>,
    witness: &mut Witness,
) {
    witness.n_decisions += 1;
    let missing: Vec<&str> = wanted
        .iter()
        .filter(|cluster| before.contains(*cluster) && !after.contains(*cluster))
        .map(|cluster| &**cluster)
        .collect();
    if !missing.is_empty() {
        let text = format!(
            "after the write of {object} no decision names {}, which stays",
            missing.join(", ")
        );
        witness.blame(Rule::KeptCluster, format!("{namespace}/{placement}"), text);
    }
}
