//! The type of a hub's story: a fleet, placements, and a list of actions and faults.

use strew_model::time::Span;

use crate::fault::{Crash, Fault};
use crate::limits::MachineLimits;

/// A hub and what befalls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubStory {
    /// Dice of the life; the story was made from it too.
    pub seed: u64,
    /// What the machines run with.
    pub limits: MachineLimits,
    /// The fleet.
    pub clusters: Vec<ClusterPlan>,
    /// The placements.
    pub placements: Vec<PlacementPlan>,
    /// What happens, in the order of time.
    pub events: Vec<HubEvent>,
    /// When faults are over.
    pub calm: Span,
}

/// A cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPlan {
    /// Its name.
    pub name: String,
    /// Label `region`; `None`: it lacks it.
    pub region: Option<u8>,
    /// Label `zone`; `None`: it lacks it.
    pub zone: Option<u8>,
    /// Claim `provider`; `None`: it makes none.
    pub provider: Option<u8>,
    /// Label `tier: canary`.
    pub is_canary: bool,
    /// CPUs of ten that pods may have.
    pub cpu: u8,
    /// What the add-on thinks of it.
    pub score: Option<i8>,
    /// It joins by an event.
    pub is_late: bool,
}

/// A placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementPlan {
    /// Its name.
    pub name: String,
    /// `numberOfClusters`
    pub number: Option<u8>,
    /// How it spreads.
    pub terms: Vec<Term>,
    /// Only clusters of this kind come into question.
    pub only: Only,
    /// `clustersPerDecisionGroup`; 0: none.
    pub group_size: u8,
    /// Whether canaries are a group of their own.
    pub has_canaries: bool,
    /// `tolerationSeconds` for the taint `storm`; `None`: it is not tolerated.
    pub tolerates: Option<u16>,
    /// The weight of Steady; 1: as by default.
    pub steady: i8,
    /// Whether the add-on's score counts.
    pub has_add_on: bool,
    /// Whether allocatable CPU counts.
    pub has_cpu: bool,
    /// `sortBy: Score`
    pub is_by_score: bool,
    /// It is created by an event.
    pub is_late: bool,
}

/// Which clusters come into question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// All.
    All,
    /// Those of a region, by label.
    Region(u8),
    /// Canaries, by CEL.
    CanaryByCel,
    /// Those of a provider, by claim.
    Provider(u8),
}

/// What a term spreads over.
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

/// Something that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubEvent {
    /// When, from the start.
    pub at: Span,
    /// What.
    pub action: HubAction,
}

/// What people and clusters do, and what goes wrong. Objects that are not there are left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubAction {
    /// A cluster joins, as planned.
    Join(String),
    /// A cluster is deleted.
    Leave(String),
    /// A cluster gets another region and zone.
    Relabel(String, u8, u8),
    /// A cluster becomes a canary, or ceases to be one.
    Canary(String, bool),
    /// A cluster gets the taint `storm` of this effect.
    Taint(String, &'static str),
    /// The taint `storm` goes.
    Untaint(String),
    /// The add-on changes its mind; for so many seconds, 0: for good.
    Score(String, i8, u8),
    /// A placement is created, as planned.
    Create(String),
    /// A placement is deleted.
    Delete(String),
    /// `numberOfClusters` of a placement.
    Number(String, Option<u8>),
    /// `clustersPerDecisionGroup` of a placement.
    GroupSize(String, u8),
    /// Whether all terms of a placement are hard.
    Hard(String, bool),
    /// Something goes wrong for a while.
    Fault(Fault, Span),
    /// A component dies.
    Crash(Crash),
}

impl HubAction {
    /// The cluster or placement that it is about.
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

    /// What is counted as a fault, by its kind.
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
