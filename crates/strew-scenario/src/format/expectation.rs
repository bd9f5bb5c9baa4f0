//! The types of expectations.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::read::Place;
use strew_model::Span;

use super::target::ObjectTarget;

/// A claim, and when it must hold.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// What is claimed.
    pub claim: Claim,
    /// The claim must become true within this time; `None`: it must be true at once.
    pub within: Option<Span>,
    /// The claim must stay true for this long; `None`: for a moment.
    pub lasts: Option<Span>,
    /// The claim is judged when the cluster has come to rest after the step.
    pub at_rest: bool,
    /// The claim must be false.
    pub is_negated: bool,
    /// A breach is a warning, and does not fail the run.
    pub warns: bool,
    /// Its text in reports: one line of YAML, as written.
    pub text: String,
    /// The field that it was read from.
    pub path: FieldPath,
    /// Its place in its file; `None` until the whole scenario was read without errors.
    pub place: Option<Place>,
}

/// What is claimed.
#[derive(Debug, Clone)]
pub enum Claim {
    /// Counts and skew by domain.
    Spread(SpreadClaim),
    /// Pods by phase and number.
    Pods(PodsClaim),
    /// A part of an object; without a name, at least one object of that kind and those labels matches.
    Object(Value),
    /// Events of an object.
    Events(EventsClaim),
    /// Pods removed since the last step.
    Removed(RemovedClaim),
    /// Clusters chosen by a Placement.
    Placement(PlacementClaim),
    /// Workloads have all the pods that they ask for; `None`: all workloads.
    RolledOut(Option<ObjectTarget>),
    /// Workloads keep the pods that their budgets ask for; `None`: all workloads.
    WithinBudget(Option<ObjectTarget>),
    /// What the loss at the begin of the step does to workloads: each keeps a ready pod and its budgets, or gets them
    /// back; `None`: all workloads.
    Survives(Option<ObjectTarget>),
    /// The pods of workloads keep their hard spread constraints; `None`: all workloads.
    WithinConstraints(Option<ObjectTarget>),
    /// The text of a CEL expression.
    Cel(String),
}

/// The pods of a spread claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// The pods of a workload.
    Workload(ObjectTarget),
    /// The pods of a namespace that match a selector.
    Selector {
        /// Which pods.
        selector: LabelSelector,
        /// Of which namespace.
        namespace: String,
    },
}

/// Counts and skew by domain; at least one of the four claims is present.
#[derive(Debug, Clone)]
pub struct SpreadClaim {
    /// The pods.
    pub of: Subject,
    /// The topology key.
    pub by: String,
    /// Pods per domain.
    pub counts: Option<Counts>,
    /// The skew must be exactly this.
    pub skew: Option<u32>,
    /// The skew must be at most this.
    pub skew_max: Option<u32>,
    /// Which revisions count.
    pub revision: Revision,
}

/// Which pods of a workload count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Revision {
    /// The pods of the newest template.
    Latest,
    /// All.
    #[default]
    All,
}

/// Counts per domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counts {
    /// The counts in ascending order, in whichever domains.
    Multiset(Vec<u32>),
    /// The count of each domain; other domains must hold none.
    Exact(BTreeMap<String, u32>),
}

impl Counts {
    /// The largest count less the smallest.
    pub fn skew(&self) -> u32 {
        let numbers = || -> Box<dyn Iterator<Item = u32> + '_> {
            match self {
                Self::Multiset(numbers) => Box::new(numbers.iter().copied()),
                Self::Exact(numbers) => Box::new(numbers.values().copied()),
            }
        };
        let max = numbers().max().unwrap_or(0);
        max - numbers().min().unwrap_or(0)
    }

    /// The largest count: the skew if a required domain is missing (minDomains).
    pub fn max(&self) -> u32 {
        let max = match self {
            Self::Multiset(numbers) => numbers.iter().max(),
            Self::Exact(numbers) => numbers.values().max(),
        };
        max.copied().unwrap_or(0)
    }
}

/// A range of counts, bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountRange {
    /// The lower bound.
    pub min: u32,
    /// The upper bound.
    pub max: u32,
}

impl CountRange {
    /// The range of a claim without a count: at least 1.
    pub const AT_LEAST_ONE: Self = Self {
        min: 1,
        max: u32::MAX,
    };

    /// True if the count is in the range.
    pub fn contains(self, count: u32) -> bool {
        (self.min..=self.max).contains(&count)
    }
}

/// The number of pods that match.
#[derive(Debug, Clone)]
pub struct PodsClaim {
    /// The pods to look at.
    pub of: PodSubject,
    /// Count only pods in this phase.
    pub phase: Option<Phase>,
    /// The expected number.
    pub count: CountRange,
    /// Count only pods that wait for the scheduler: on no node, and of one of its profiles.
    pub waiting: bool,
    /// Count only pods that this plugin keeps Pending.
    pub blocked_by: Option<&'static str>,
    /// Count only pods whose message contains this text.
    pub message: Option<String>,
}

/// The pods of a claim about pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodSubject {
    /// All.
    All,
    /// A pod, or the pods of a workload.
    Object(ObjectTarget),
    /// Pods with these labels, in all namespaces.
    Labels(BTreeMap<String, String>),
}

/// `status.phase`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its containers have not started.
    Pending,
    /// Its containers run.
    Running,
    /// All its containers ended with success.
    Succeeded,
    /// A container failed and is not restarted.
    Failed,
    /// Its node does not report.
    Unknown,
}

/// The number of events that match.
#[derive(Debug, Clone)]
pub struct EventsClaim {
    /// The object of the events; `None`: any object.
    pub of: Option<ObjectTarget>,
    /// Count only events with this reason.
    pub reason: Option<String>,
    /// Count only events whose note contains this text.
    pub contains: Option<String>,
    /// The expected number.
    pub count: CountRange,
}

/// Pods removed since the last step.
#[derive(Debug, Clone)]
pub struct RemovedClaim {
    /// Their workload.
    pub of: ObjectTarget,
    /// The topology key.
    pub by: String,
    /// Removed pods per domain.
    pub counts: Counts,
}

/// The clusters that a Placement chose; at least one claim is present.
#[derive(Debug, Clone)]
pub struct PlacementClaim {
    /// The Placement.
    pub of: ObjectTarget,
    /// How many clusters, or which.
    pub clusters: Option<Clusters>,
    /// Clusters per domain, by topology key.
    pub counts: BTreeMap<String, Counts>,
    /// The skew, by topology key.
    pub skew: BTreeMap<String, u32>,
    /// The largest number of clusters given up since the last step.
    pub moved_max: Option<u32>,
}

/// Chosen clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clusters {
    /// Their number.
    Count(CountRange),
    /// Exactly these, in the order of their names.
    Exact(Vec<String>),
}
