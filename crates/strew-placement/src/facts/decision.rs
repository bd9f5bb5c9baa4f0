//! PlacementDecisions. Source: spec/placement §1.2.

use strew_model::{Holds, Marks, Symbol};

/// A cluster in a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// Its name.
    pub cluster: Symbol,
    /// Its score; `None` unless the placement sorts by score.
    pub score: Option<i64>,
}

/// The labels of a PlacementDecision that name its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupLabels {
    /// `decision-group-index`; `None` if the label is missing or is not a number.
    pub index: Option<u32>,
    /// `decision-group-name`; `None` if the label is missing.
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
    /// The annotation cannot be read: it is replaced or removed.
    Unreadable,
}

/// A PlacementDecision on the hub, of any placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFact {
    /// Its namespace.
    pub namespace: Symbol,
    /// Its name.
    pub name: Symbol,
    /// The placement that its label names.
    pub placement: Option<Symbol>,
    /// The group that its labels name.
    pub group: GroupLabels,
    /// `status.decisions`.
    pub decisions: Box<[Decision]>,
    /// Annotation `strew.dev/replicas`.
    pub replicas: Replicas,
    /// True if a decision has a `reason`. Placement writes none: the object is written again, as upstream does.
    pub has_reason: bool,
    /// The resourceVersion as a number that grows. Facts older than an own write are ignored.
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
