//! NodeAffinity: node selector and affinity, required and preferred. Source: spec/scheduler §3.6.

use strew_cluster::{Cluster, NodeAffinity, NodeAffinityId, NodeFact, NodeIdx, PodSpec};
use strew_model::{Interner, NodeExpression, NodeSelectorTerm, Symbol};

use crate::profile::{AddedAffinity, PluginId};
use crate::queue::event::Hint;
use crate::status::{Reason, Refusal};

/// True if the node meets the required affinity.
pub fn allows(cluster: &Cluster, affinity: NodeAffinityId, node: &NodeFact) -> bool {
    cluster
        .tables()
        .node_affinity_matches(affinity, node, &cluster.names)
}

/// True if the node meets the affinity that the profile adds to every pod's.
pub fn added_allows(cluster: &Cluster, added: &AddedAffinity, node: &NodeFact) -> bool {
    let matches = |t: &NodeSelectorTerm| t.matches(node.name, &node.labels, &cluster.names);
    added
        .required
        .as_ref()
        .is_none_or(|terms| terms.iter().any(matches))
}

/// The parts of a required affinity that a node does not meet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gap {
    /// Pairs of `spec.nodeSelector` that the node's labels lack, each with the node's value.
    pub pairs: Vec<MissingPair>,
    /// What fails in each required term, in their order. Empty if one holds, or none is required.
    pub terms: Vec<TermGap>,
    /// True if the list of required terms exists and is empty: then no node matches.
    pub no_terms: bool,
}

/// A pair of `spec.nodeSelector` that a node's labels lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingPair {
    /// The label's key.
    pub key: Symbol,
    /// The required value.
    pub wanted: Symbol,
    /// The node's value; `None` if it lacks the label.
    pub found: Option<Symbol>,
}

/// Why one required term fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermGap {
    /// The term is empty, and so matches no node.
    NoNode,
    /// These of its expressions fail, or its test of the node's name.
    Fails {
        /// The expressions.
        expressions: Vec<NodeExpression>,
        /// True if `metadata.name` does not match.
        name: bool,
    },
}

/// The parts of the required affinity that the node does not meet; empty if [`allows`] holds.
pub fn gap(affinity: &NodeAffinity, node: &NodeFact, names: &Interner) -> Gap {
    let pairs = affinity
        .node_selector
        .iter()
        .filter_map(|(key, wanted)| {
            let found = node.labels.get(key);
            (found != Some(wanted)).then_some(MissingPair { key, wanted, found })
        })
        .collect();
    let terms = affinity.terms.as_deref().unwrap_or_default();
    let holds = |t: &NodeSelectorTerm| t.matches(node.name, &node.labels, names);
    let fails = |term: &NodeSelectorTerm| match term {
        NodeSelectorTerm::NoNode => TermGap::NoNode,
        NodeSelectorTerm::AllOf {
            expressions,
            fields,
        } => TermGap::Fails {
            expressions: expressions
                .iter()
                .filter(|e| !e.matches(&node.labels, names))
                .cloned()
                .collect(),
            name: fields.iter().any(|f| (f.name == node.name) != f.is_in),
        },
    };
    Gap {
        pairs,
        terms: match terms.iter().any(holds) {
            true => Vec::new(),
            false => terms.iter().map(fails).collect(),
        },
        no_terms: affinity.terms.as_ref().is_some_and(|t| t.is_empty()),
    }
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

/// PreFilter: the node names to which the affinity narrows the search, if every term names at least one.
///
/// # Errors
/// The terms leave no name.
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
        // All requirements of a term must hold: two different names leave none.
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

/// After a node was created or changed: worth a retry if it matches now and did not before.
pub(crate) fn hint_after_node(
    cluster: &Cluster,
    added: &AddedAffinity,
    affinity: NodeAffinityId,
    old: Option<&NodeFact>,
    new: Option<&NodeFact>,
) -> Hint {
    let matches =
        |node: &NodeFact| added_allows(cluster, added, node) && allows(cluster, affinity, node);
    Hint::queue_if(!old.is_some_and(matches) && new.is_some_and(matches))
}
