//! NodeAffinity: node selector and affinity, required and preferred. Source: spec/scheduler §3.6.

use strew_cluster::{Cluster, NodeAffinity, NodeAffinityId, NodeFact, NodeIdx, PodSpec};
use strew_model::{NodeSelectorTerm, Symbol};

use crate::profile::{AddedAffinity, PluginId};
use crate::status::{Reason, Refusal};

/// Whether the node meets the required affinity.
pub fn allows(cluster: &Cluster, affinity: NodeAffinityId, node: &NodeFact) -> bool {
    cluster
        .tables()
        .node_affinity_matches(affinity, node, &cluster.names)
}

/// Whether the node meets the affinity that the profile adds to every pod's.
pub fn added_allows(cluster: &Cluster, added: &AddedAffinity, node: &NodeFact) -> bool {
    let matches = |t: &NodeSelectorTerm| t.matches(node.name, &node.labels, &cluster.names);
    added
        .required
        .as_ref()
        .is_none_or(|terms| terms.iter().any(matches))
}

/// The sum of the weights of preferred terms that match; more is better.
pub fn raw_score(cluster: &Cluster, node: NodeIdx, spec: &PodSpec, added: &AddedAffinity) -> i32 {
    let Some(fact) = cluster.node(node).fact() else {
        return 0;
    };
    let terms = added.preferred.iter().chain(&*spec.preferred_nodes);
    let matching = terms.filter(|(_, term)| term.matches(fact.name, &fact.labels, &cluster.names));
    matching.map(|(weight, _)| weight).sum()
}

/// PreFilter: the node names to which the affinity narrows the search, if every term names some.
///
/// # Errors
/// If the terms leave no name.
pub fn narrow(affinity: &NodeAffinity) -> Result<Option<Vec<Symbol>>, Refusal> {
    let Some(terms) = affinity.terms.as_deref().filter(|terms| !terms.is_empty()) else {
        return Ok(None);
    };
    let mut union: Vec<Symbol> = Vec::new();
    for term in terms {
        let NodeSelectorTerm::AllOf { fields, .. } = term else {
            return Ok(None);
        };
        let mut named = fields.iter().filter(|f| f.is_in).map(|f| f.name);
        let Some(first) = named.next() else {
            return Ok(None);
        };
        // Inside a term all must hold: two different names leave none.
        if named.all(|name| name == first) && !union.contains(&first) {
            union.push(first);
        }
    }
    if union.is_empty() {
        return Err(Refusal::unresolvable(
            PluginId::NodeAffinity,
            Reason::ConflictingNames,
        ));
    }
    Ok(Some(union))
}
