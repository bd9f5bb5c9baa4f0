//! Judges every write of a PlacementDecision: a cluster that a placement keeps stays in its decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::Plain;
use strew_manifest::ocm::{PLACEMENT_LABEL, REPLICAS_ANNOTATION};
use strew_manifest::read::KubeObject;

use super::{Rule, Witness};

/// The PlacementDecisions of a placement.
fn decisions<'t>(
    tables: &'t Tables,
    namespace: &'t str,
    placement: &'t str,
) -> impl Iterator<Item = &'t Arc<Plain>> {
    tables.all_plain().filter(move |plain| {
        *plain.meta.name.namespace == *namespace
            && matches!(plain.object, KubeObject::PlacementDecision(_))
            && plain.meta.label(PLACEMENT_LABEL) == Some(placement)
    })
}

/// The replicas that the PlacementDecisions of a placement give to clusters; what cannot be read gives none.
pub(crate) fn replicas(
    tables: &Tables,
    namespace: &str,
    placement: &str,
) -> BTreeMap<Arc<str>, u64> {
    let all = decisions(tables, namespace, placement);
    let texts = all.filter_map(|plain| plain.meta.annotations.get(REPLICAS_ANNOTATION));
    let parts = texts.filter_map(|text| {
        let parts: Option<BTreeMap<String, u64>> = serde_json::from_str(text).ok();
        parts
    });
    let parts = parts.flatten();
    parts.map(|(cluster, n)| (cluster.into(), n)).collect()
}

/// All clusters that the PlacementDecisions of a placement name together: what a consumer sees.
pub(crate) fn union(tables: &Tables, namespace: &str, placement: &str) -> BTreeSet<Arc<str>> {
    let all = decisions(tables, namespace, placement);
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
