//! PlacementDecisions. Source: spec/placement §1.2.

use strew_model::{Holds, Marks, Symbol};

/// A cluster in a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// Its name.
    pub cluster: Symbol,
    /// Its score, where the placement sorts by score.
    pub score: Option<i64>,
}

/// The group that a PlacementDecision is labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupLabels {
    /// `decision-group-index`; `None` where the label is missing or no number.
    pub index: Option<u32>,
    /// `decision-group-name`; `None` where the label is missing.
    pub name: Option<Symbol>,
}

/// The replicas of the clusters in a PlacementDecision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Replicas {
    /// There is no annotation.
    #[default]
    Absent,
    /// The annotation: clusters with their replicas, by name.
    Parts(Box<[(Symbol, u32)]>),
    /// An annotation that cannot be read: it is written anew, or removed.
    Unreadable,
}

/// A PlacementDecision on the hub, of whatever placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFact {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// The placement that it is labelled with.
    pub placement: Option<Symbol>,
    /// The group that it is labelled with.
    pub group: GroupLabels,
    /// `status.decisions`.
    pub decisions: Box<[Decision]>,
    /// Annotation `strew.dev/replicas`.
    pub replicas: Replicas,
    /// Whether a decision has a `reason`. Placement writes none: the object is written anew, as upstream does.
    pub has_reason: bool,
    /// The resourceVersion, as a number that grows: older facts than a write of ours are passed over.
    pub revision: u64,
}

// === the symbols in it ===

impl Holds for Decision {
    fn mark(&self, marks: &mut Marks) {
        self.cluster.mark(marks);
    }
}

impl Holds for GroupLabels {
    fn mark(&self, marks: &mut Marks) {
        self.name.mark(marks);
    }
}

impl Holds for DecisionFact {
    fn mark(&self, marks: &mut Marks) {
        let Self {
            namespace,
            name,
            placement,
            group,
            decisions,
            replicas,
            has_reason: _,
            revision: _,
        } = self;
        (*namespace, *name).mark(marks);
        placement.mark(marks);
        group.mark(marks);
        decisions.mark(marks);
        replicas.mark(marks);
    }
}

impl Holds for Replicas {
    fn mark(&self, marks: &mut Marks) {
        if let Self::Parts(parts) = self {
            parts.iter().for_each(|(cluster, _)| cluster.mark(marks));
        }
    }
}
