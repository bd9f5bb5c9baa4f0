//! The changes that a subset makes to a pod, as far as decisions read them.
//!
//! Source: spec/workloadspread §4.6, steps 1 to 4. The patch of step 5 is JSON, so it is applied outside this crate.

use strew_cluster::{PodFact, PodSpec};
use strew_model::{Interner, NodeSelectorTerm, Toleration};

use crate::admission::RequestId;
use crate::facts::spec::{PatchId, Subset};

/// Applies patches of subsets: work on JSON that a decision needs.
pub trait PodPatcher {
    /// The pod of a create request with a subset injected, patch included; labels and spec decide. `None` if the patch
    /// cannot be merged. Called only for subsets with a patch.
    fn candidate(
        &mut self,
        names: &mut Interner,
        request: RequestId,
        pod: &PodFact,
        subset: &Subset,
    ) -> Option<PodFact>;

    /// True if a patch changes nothing in an existing pod except annotations.
    fn is_in_effect(&mut self, pod_uid: &str, patch: PatchId) -> bool;
}

/// For worlds without patches: a patch cannot be merged, and is applied to no pod.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPatches;

impl PodPatcher for NoPatches {
    fn candidate(
        &mut self,
        _: &mut Interner,
        _: RequestId,
        _: &PodFact,
        _: &Subset,
    ) -> Option<PodFact> {
        None
    }

    fn is_in_effect(&mut self, _: &str, _: PatchId) -> bool {
        false
    }
}

/// Steps 1 to 4: tolerations and preferred terms are appended, the required term is added to every term.
pub fn inject(spec: &mut PodSpec, subset: &Subset) {
    spec.tolerations = tolerations(&spec.tolerations, subset);
    let preferred = spec.preferred_nodes.iter().chain(&subset.preferred);
    spec.preferred_nodes = preferred.cloned().collect();
    if let Some(required) = &subset.required {
        spec.node_affinity.terms = Some(required_terms(
            spec.node_affinity.terms.as_deref(),
            required,
        ));
    }
}

/// A pod's tolerations, followed by those of its subset.
pub fn tolerations(own: &[Toleration], subset: &Subset) -> Box<[Toleration]> {
    own.iter().chain(&subset.tolerations).cloned().collect()
}

/// A pod's required terms combined with the subset's term: only that term if the pod has none, else each term with its
/// expressions and fields added. Terms are ORed, so this ANDs the subset.
pub fn required_terms(
    own: Option<&[NodeSelectorTerm]>,
    subset: &NodeSelectorTerm,
) -> Box<[NodeSelectorTerm]> {
    match own {
        None | Some([]) => [subset.clone()].into(),
        Some(own) => own.iter().map(|term| and(term, subset)).collect(),
    }
}

fn and(term: &NodeSelectorTerm, other: &NodeSelectorTerm) -> NodeSelectorTerm {
    use NodeSelectorTerm::{AllOf, NoNode};
    let (
        AllOf {
            expressions,
            fields,
        },
        AllOf {
            expressions: more,
            fields: more_fields,
        },
    ) = (term, other)
    else {
        return NoNode;
    };
    AllOf {
        expressions: expressions.iter().chain(more).cloned().collect(),
        fields: fields.iter().chain(more_fields).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use strew_model::{NodeExpression, NodeOperator, Operator, Symbol, TolerationOperator};

    use super::*;

    fn term(keys: &[Symbol]) -> NodeSelectorTerm {
        let expression = |&key: &Symbol| NodeExpression {
            key,
            operator: NodeOperator::Label(Operator::Exists),
        };
        NodeSelectorTerm::AllOf {
            expressions: keys.iter().map(expression).collect(),
            fields: Box::default(),
        }
    }

    #[test]
    fn a_subset_is_added_to_every_term_and_after_what_the_pod_has() {
        let mut names = Interner::new();
        let [a, b, s] = ["a", "b", "s"].map(|t| names.intern(t));
        let toleration = |key| Toleration {
            key: Some(key),
            operator: TolerationOperator::Exists,
            value: Symbol::default(),
            effect: None,
        };
        let subset = Subset {
            name: Arc::from("x"),
            max_replicas: None,
            min_replicas: 0,
            required: Some(term(&[s])),
            preferred: [(5, term(&[b]))].into(),
            tolerations: [toleration(s)].into(),
            patch: None,
            labels: None,
            form: Default::default(),
        };
        let mut spec = PodSpec::default();
        inject(&mut spec, &subset);
        assert_eq!(spec.node_affinity.terms, Some([term(&[s])].into()));
        spec.node_affinity.terms = Some([term(&[a]), term(&[b]), NodeSelectorTerm::NoNode].into());
        spec.tolerations = [toleration(a)].into();
        inject(&mut spec, &subset);
        let expected = [term(&[a, s]), term(&[b, s]), NodeSelectorTerm::NoNode];
        assert_eq!(spec.node_affinity.terms, Some(expected.into()));
        assert_eq!(*spec.tolerations, [toleration(a), toleration(s)]);
        assert_eq!(*spec.preferred_nodes, [(5, term(&[b])), (5, term(&[b]))]);
    }
}
