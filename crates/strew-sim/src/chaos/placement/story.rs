//! The type of a hub's story: clusters, placements, and a list of actions and faults.

use strew_model::time::Span;

use crate::chaos::story::Event;
use crate::fault::{Crash, Fault};
use crate::limits::MachineLimits;

/// A hub and its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubStory {
    /// The seed of the run; the story was generated from it too.
    pub seed: u64,
    /// The settings of the machines.
    pub limits: MachineLimits,
    /// The clusters.
    pub clusters: Vec<ClusterPlan>,
    /// The placements.
    pub placements: Vec<PlacementPlan>,
    /// The events, in the order of time.
    pub events: Vec<Event<HubAction>>,
    /// When faults are over.
    pub calm: Span,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPlan {
    /// Its name.
    pub name: String,
    /// Label `region`; `None`: without it.
    pub region: Option<u8>,
    /// Label `zone`; `None`: without it.
    pub zone: Option<u8>,
    /// Claim `provider`; `None`: without it.
    pub provider: Option<u8>,
    /// Label `tier: canary`.
    pub is_canary: bool,
    /// Allocatable CPUs, of ten.
    pub cpu: u8,
    /// The score that the add-on gives it.
    pub score: Option<i8>,
    /// True if an event creates it.
    pub is_late: bool,
}

/// A placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementPlan {
    /// Its name.
    pub name: String,
    /// `numberOfClusters`
    pub number: Option<u8>,
    /// Its spread terms.
    pub terms: Vec<Term>,
    /// The clusters that it selects.
    pub only: Only,
    /// `clustersPerDecisionGroup`; 0: none.
    pub group_size: u8,
    /// True if canaries form a decision group of their own.
    pub has_canaries: bool,
    /// `tolerationSeconds` for the taint `storm`; `None`: not tolerated.
    pub tolerates: Option<u16>,
    /// The weight of Steady; the default is 1.
    pub steady: i8,
    /// True if the add-on's score counts.
    pub has_add_on: bool,
    /// True if allocatable CPU counts.
    pub has_cpu: bool,
    /// `sortBy: Score`
    pub is_by_score: bool,
    /// True if an event creates it.
    pub is_late: bool,
    /// `minGroups` and `maxGroups` of its first term; 0: none.
    pub groups: (u8, u8),
    /// Replicas that are divided, and by what.
    pub replicas: Option<(u8, DividedBy)>,
}

/// What replicas are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is what its name says")]
pub enum DividedBy {
    Weights,
    Cpu,
    AddOn,
}

/// The clusters that a placement selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// All.
    All,
    /// The clusters of a region, by label.
    Region(u8),
    /// Canaries, by CEL.
    CanaryByCel,
    /// The clusters of a provider, by claim.
    Provider(u8),
}

/// The key of a spread term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the key of its name")]
pub enum TermKey {
    Provider,
    Region,
    Zone,
}

/// A spread term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The key.
    pub key: TermKey,
    /// `maxSkew`
    pub max_skew: u8,
    /// `DoNotSchedule`
    pub is_hard: bool,
}

/// Actions of users and clusters, and faults. An action on an object that does not exist does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubAction {
    /// A cluster of the plan joins.
    Join(String),
    /// A cluster is deleted.
    Leave(String),
    /// A cluster gets another region and zone.
    Relabel(String, u8, u8),
    /// A cluster becomes a canary, or stops being one.
    Canary(String, bool),
    /// A cluster gets the taint `storm` with this effect.
    Taint(String, &'static str),
    /// The taint `storm` is removed.
    Untaint(String),
    /// The add-on changes its score; it is valid for this many seconds, 0: without end.
    Score(String, i8, u8),
    /// A placement of the plan is created.
    Create(String),
    /// A placement is deleted.
    Delete(String),
    /// Sets `numberOfClusters` of a placement.
    Number(String, Option<u8>),
    /// Sets `clustersPerDecisionGroup` of a placement.
    GroupSize(String, u8),
    /// Makes all terms of a placement hard, or soft.
    Hard(String, bool),
    /// A fault begins, and lasts this long.
    Fault(Fault, Span),
    /// A component crashes.
    Crash(Crash),
}

impl HubAction {
    /// The cluster or placement that the action is about.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Join(name)
            | Self::Leave(name)
            | Self::Relabel(name, ..)
            | Self::Canary(name, _)
            | Self::Taint(name, _)
            | Self::Untaint(name)
            | Self::Score(name, ..)
            | Self::Create(name)
            | Self::Delete(name)
            | Self::Number(name, _)
            | Self::GroupSize(name, _)
            | Self::Hard(name, _) => Some(name),
            Self::Fault(..) | Self::Crash(_) => None,
        }
    }

    /// The kind under which the action counts as a fault; `None` if it is none.
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Fault(Fault::Watch(fault), _) if fault.cut_ppm > 0 => Some("watch cut"),
            Self::Fault(Fault::Watch(_), _) => Some("watch late"),
            Self::Fault(Fault::Write(fault), _) if fault.lost_ppm > 0 => Some("answers lost"),
            Self::Fault(..) => Some("write conflicts"),
            Self::Crash(crash) if crash.after_writes > 0 => Some("controller dies between writes"),
            Self::Crash(_) => Some("controller dies"),
            Self::Leave(_) => Some("cluster deleted"),
            Self::Taint(..) => Some("cluster tainted"),
            _ => None,
        }
    }
}
