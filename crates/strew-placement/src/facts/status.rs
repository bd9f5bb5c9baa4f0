//! A Placement's status. Source: spec/placement §1.1, §2.7, §3.7.

use std::sync::Arc;

use strew_model::{Holds, Instant, Marks, Symbol};

/// `status` of a Placement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlacementStatus {
    /// `numberOfSelectedClusters`.
    pub selected: i32,
    /// `decisionGroups`.
    pub groups: Vec<GroupStatus>,
    /// `conditions`, in the order of [`ConditionType`].
    pub conditions: Vec<Condition>,
    /// `lastScoreUpdateTime`.
    pub last_score_update: Option<Instant>,
    /// Conditions of other writers, each as the wire has it: they are carried along and never read.
    pub others: Vec<Arc<str>>,
}

impl PlacementStatus {
    /// The condition of this type.
    pub fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        self.conditions.iter().find(|c| c.kind == kind)
    }
}

/// One entry of `decisionGroups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// `decisionGroupIndex`.
    pub index: u32,
    /// `decisionGroupName`.
    pub name: Symbol,
    /// `decisions`: the names of its PlacementDecisions.
    pub decisions: Vec<Symbol>,
    /// `clusterCount`.
    pub clusters: u32,
}

/// A condition of a Placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: ConditionType,
    /// True or False.
    pub status: bool,
    /// Why.
    pub reason: ConditionReason,
    /// In words.
    pub message: Arc<str>,
    /// `lastTransitionTime`: moves only when the status changes.
    pub since: Instant,
}

/// The types of conditions that placement writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionType {
    /// Whether the specification makes no sense.
    Misconfigured,
    /// Whether all clusters asked for were found.
    Satisfied,
    /// Whether they are spread as asked for; only with spread constraints.
    SpreadSatisfied,
}

impl ConditionType {
    /// As the wire has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Misconfigured => "PlacementMisconfigured",
            Self::Satisfied => "PlacementSatisfied",
            Self::SpreadSatisfied => "PlacementSpreadSatisfied",
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The reasons of conditions.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ConditionReason { $($(#[$doc])* $name,)* }

        impl ConditionReason {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// As the wire has it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The specification makes sense.
    Succeedconfigured = "Succeedconfigured";
    /// It makes none.
    Misconfigured = "Misconfigured";
    /// No set is bound to the namespace.
    NoManagedClusterSetBindings = "NoManagedClusterSetBindings";
    /// None of the sets that are named is bound.
    NoIntersection = "NoIntersection";
    /// The sets hold no cluster.
    AllManagedClusterSetsEmpty = "AllManagedClusterSetsEmpty";
    /// Nothing was selected.
    NoManagedClusterMatched = "NoManagedClusterMatched";
    /// As many as asked for.
    AllDecisionsScheduled = "AllDecisionsScheduled";
    /// Fewer than asked for, or an error.
    NotAllDecisionsScheduled = "NotAllDecisionsScheduled";
    /// Spread as asked for.
    SpreadSatisfied = "SpreadSatisfied";
    /// A hard term left clusters out.
    SpreadLimited = "SpreadLimited";
    /// No cluster has the key of a term.
    SpreadKeyMissing = "SpreadKeyMissing";
    /// Fewer topologies of a term are in use than its `minGroups`.
    SpreadTooFewGroups = "SpreadTooFewGroups";
    /// A term's skew is larger than it should be.
    SpreadSkewExceeded = "SpreadSkewExceeded";
}

impl Holds for PlacementStatus {
    fn mark(&self, marks: &mut Marks) {
        for group in &self.groups {
            group.name.mark(marks);
            group.decisions.as_slice().mark(marks);
        }
    }
}
