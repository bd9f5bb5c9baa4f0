//! The nodes that count for a constraint.
//!
//! Source: spec/scheduler §1.4 (node inclusion), §1.6 and §1.9 (nodes that lack a key).

use fixedbitset::FixedBitSet;
use strew_model::{Holds, Marks, Symbol, index_type, tolerates_all};

use crate::class::{ClassId, ClassTables, NodeAffinityId, TolerationsId};
use crate::cluster::NodeRow;
use crate::index::NodeIdx;
use crate::pod_spec::Policy;

index_type! {
    /// The id of a rule; its nodes are stored as a set.
    pub struct EligibilityId;
}

/// A rule that says which nodes count. The default: all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Eligibility {
    /// The node must have all of these labels (sorted).
    pub required_keys: Box<[Symbol]>,
    /// `nodeAffinityPolicy: Honor`: this node affinity must match.
    pub node_affinity: Option<NodeAffinityId>,
    /// `nodeTaintsPolicy: Honor`: these tolerations must suffice.
    pub tolerations: Option<TolerationsId>,
}

impl Eligibility {
    /// The rule for pods of a class under a constraint's `nodeAffinityPolicy` and `nodeTaintsPolicy`.
    pub fn of(
        tables: &ClassTables,
        class: ClassId,
        required_keys: Box<[Symbol]>,
        (node_affinity_policy, node_taints_policy): (Policy, Policy),
    ) -> Self {
        let parts = tables.parts(tables.class(class).key.spec);
        let honors_affinity = node_affinity_policy == Policy::Honor
            && !tables.node_affinity(parts.node_affinity).is_none();
        Self {
            required_keys,
            node_affinity: honors_affinity.then_some(parts.node_affinity),
            tolerations: (node_taints_policy == Policy::Honor).then_some(parts.tolerations),
        }
    }

    /// True if the node counts.
    pub fn admits(
        &self,
        node: &NodeRow,
        tables: &ClassTables,
        names: &strew_model::Interner,
    ) -> bool {
        let Some(fact) = node.fact() else {
            return false;
        };
        self.required_keys
            .iter()
            .all(|&key| fact.labels.get(key).is_some())
            && self
                .node_affinity
                .is_none_or(|id| tables.node_affinity_matches(id, fact, names))
            && self
                .tolerations
                .is_none_or(|id| tolerates_all(tables.tolerations(id), &fact.taints))
    }
}

/// The nodes that each rule in use admits.
#[derive(Debug, Clone, Default)]
pub(crate) struct EligibleNodes {
    /// `None` if the row is free.
    rules: Vec<(Option<Eligibility>, FixedBitSet)>,
}

impl EligibleNodes {
    pub(crate) fn find(&self, rule: &Eligibility) -> Option<EligibilityId> {
        self.rules
            .iter()
            .position(|(r, _)| r.as_ref() == Some(rule))
            .map(EligibilityId::from)
    }

    pub(crate) fn add(&mut self, rule: Eligibility, nodes: FixedBitSet) -> EligibilityId {
        let row = (Some(rule), nodes);
        match self.rules.iter().position(|(r, _)| r.is_none()) {
            Some(free) => {
                self.rules[free] = row;
                EligibilityId::from(free)
            }
            None => {
                self.rules.push(row);
                EligibilityId::from(self.rules.len() - 1)
            }
        }
    }

    #[inline]
    pub(crate) fn contains(&self, id: EligibilityId, node: NodeIdx) -> bool {
        self.rules[id.index()].1.contains(node.index())
    }

    pub(crate) fn nodes(&self, id: EligibilityId) -> &FixedBitSet {
        &self.rules[id.index()].1
    }

    /// Evaluates every rule for a node again.
    pub(crate) fn refresh(
        &mut self,
        node: NodeIdx,
        row: &NodeRow,
        tables: &ClassTables,
        names: &strew_model::Interner,
    ) {
        for (rule, nodes) in &mut self.rules {
            if let Some(rule) = rule {
                nodes.grow(node.index() + 1);
                nodes.set(node.index(), rule.admits(row, tables, names));
            }
        }
    }

    /// The number of rules in use.
    pub(crate) fn len(&self) -> usize {
        self.rules.iter().filter(|(rule, _)| rule.is_some()).count()
    }

    /// Frees the rules for which `keep` returns false.
    pub(crate) fn retain(&mut self, keep: impl Fn(EligibilityId) -> bool) {
        for (i, row) in self.rules.iter_mut().enumerate() {
            if !keep(EligibilityId::from(i)) {
                *row = (None, FixedBitSet::new());
            }
        }
    }
}

impl Holds for EligibleNodes {
    fn mark(&self, marks: &mut Marks) {
        for rule in self.rules.iter().filter_map(|(rule, _)| rule.as_ref()) {
            rule.required_keys.mark(marks);
        }
    }
}
