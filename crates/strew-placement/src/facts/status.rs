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
    /// Conditions of other writers in their wire format. They are kept and never read.
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
    /// Its reason.
    pub reason: ConditionReason,
    /// Its message.
    pub message: Arc<str>,
    /// `lastTransitionTime`: moves only when the status changes.
    pub since: Instant,
}

/// The types of conditions that placement writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionType {
    /// Whether the specification is invalid.
    Misconfigured,
    /// Whether as many clusters were found as asked for.
    Satisfied,
    /// Whether the clusters are spread as asked for. Present only with spread constraints.
    SpreadSatisfied,
}

impl ConditionType {
    /// Its name in the API.
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

            /// Its name in the API.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The specification is valid.
    Succeedconfigured = "Succeedconfigured";
    /// The specification is invalid.
    Misconfigured = "Misconfigured";
    /// No set is bound to the namespace.
    NoManagedClusterSetBindings = "NoManagedClusterSetBindings";
    /// None of the named sets is bound.
    NoIntersection = "NoIntersection";
    /// The sets hold no cluster.
    AllManagedClusterSetsEmpty = "AllManagedClusterSetsEmpty";
    /// No cluster was selected.
    NoManagedClusterMatched = "NoManagedClusterMatched";
    /// As many clusters as asked for were selected.
    AllDecisionsScheduled = "AllDecisionsScheduled";
    /// Fewer clusters than asked for were selected, or a run failed.
    NotAllDecisionsScheduled = "NotAllDecisionsScheduled";
    /// The clusters are spread as asked for.
    SpreadSatisfied = "SpreadSatisfied";
    /// A hard term left clusters out.
    SpreadLimited = "SpreadLimited";
    /// No cluster has the key of a term.
    SpreadKeyMissing = "SpreadKeyMissing";
    /// Fewer topologies of a term are used than its `minGroups`.
    SpreadTooFewGroups = "SpreadTooFewGroups";
    /// A term's skew is larger than its `maxSkew`.
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
