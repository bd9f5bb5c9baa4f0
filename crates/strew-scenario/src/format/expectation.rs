//! What must be true.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value;
use strew_api::field::FieldPath;
use strew_api::read::Place;
use strew_model::Span;

use super::target::ObjectTarget;

/// A claim, and when it must hold.
#[derive(Debug, Clone)]
pub struct Expectation {
    /// What is claimed.
    pub claim: Claim,
    /// It must come true by then; none: at once.
    pub within: Option<Span>,
    /// It must hold so long; none: at one moment.
    pub lasts: Option<Span>,
    /// It must hold when the cluster has come to rest after its step.
    pub at_rest: bool,
    /// The opposite must be true.
    pub is_negated: bool,
    /// Its text for reports: one line of YAML, as written.
    pub text: String,
    /// The field that says so.
    pub path: FieldPath,
    /// Its place in its file; `None` until the scenario is found to be good.
    pub place: Option<Place>,
}

/// What is claimed.
#[derive(Debug, Clone)]
pub enum Claim {
    /// Counts and skew by domain.
    Spread(SpreadClaim),
    /// Pods by phase and number.
    Pods(PodsClaim),
    /// A part of an object; without a name, of some object of that kind and labels.
    Object(Value),
    /// Events of an object.
    Events(EventsClaim),
    /// Pods gone since the last step.
    Removed(RemovedClaim),
    /// Clusters chosen by a Placement.
    Placement(PlacementClaim),
    /// Workloads have every pod that they ask for; `None`: all workloads.
    RolledOut(Option<ObjectTarget>),
    /// Workloads keep the pods that their budgets ask for; `None`: all.
    WithinBudget(Option<ObjectTarget>),
    /// The text of a CEL expression.
    Cel(String),
}

/// Whose spread is looked at.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// The pods of a workload.
    Workload(ObjectTarget),
    /// The pods of a namespace that a selector matches.
    Selector {
        /// Which pods.
        selector: LabelSelector,
        /// Of which namespace.
        namespace: String,
    },
}

/// Counts and skew by domain; at least one of the four claims is made.
#[derive(Debug, Clone)]
pub struct SpreadClaim {
    /// Whose.
    pub of: Subject,
    /// The topology key.
    pub by: String,
    /// Pods per domain.
    pub counts: Option<Counts>,
    /// The skew, exactly.
    pub skew: Option<u32>,
    /// The skew at most.
    pub skew_max: Option<u32>,
    /// Which revisions count.
    pub revision: Revision,
}

/// Which pods of a workload count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Revision {
    /// Those of the newest template.
    Latest,
    /// All.
    #[default]
    All,
}

/// Numbers per domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Counts {
    /// In ascending order; which domain has which does not matter.
    Multiset(Vec<u32>),
    /// By domain, and no others.
    Exact(BTreeMap<String, u32>),
}

impl Counts {
    /// The largest number less the smallest.
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

    /// The largest number: the skew where a domain is missing that must be there (minDomains).
    pub fn max(&self) -> u32 {
        let max = match self {
            Self::Multiset(numbers) => numbers.iter().max(),
            Self::Exact(numbers) => numbers.values().max(),
        };
        max.copied().unwrap_or(0)
    }
}

/// A number between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountRange {
    /// No less.
    pub min: u32,
    /// No more.
    pub max: u32,
}

impl CountRange {
    /// Where no number is given: there is one.
    pub const AT_LEAST_ONE: Self = Self {
        min: 1,
        max: u32::MAX,
    };

    /// Whether the number is one of these.
    pub fn contains(self, count: u32) -> bool {
        (self.min..=self.max).contains(&count)
    }
}

/// How many pods are so.
#[derive(Debug, Clone)]
pub struct PodsClaim {
    /// Which pods are looked at.
    pub of: PodSubject,
    /// Only those in this phase count.
    pub phase: Option<Phase>,
    /// How many.
    pub count: CountRange,
    /// Only those that wait for the scheduler count: on no node, and of one of its profiles.
    pub waiting: bool,
    /// Only those that this plugin keeps Pending count.
    pub blocked_by: Option<&'static str>,
    /// Only those whose message holds this text count.
    pub message: Option<String>,
}

/// Which pods are looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodSubject {
    /// All.
    All,
    /// A pod, or the pods of a workload.
    Object(ObjectTarget),
    /// Those with these labels, in all namespaces.
    Labels(BTreeMap<String, String>),
}

/// `status.phase`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Not started.
    Pending,
    /// Started.
    Running,
    /// Done.
    Succeeded,
    /// Given up.
    Failed,
    /// Its node is silent.
    Unknown,
}

/// How many events are so.
#[derive(Debug, Clone)]
pub struct EventsClaim {
    /// Of which object; none: of any.
    pub of: Option<ObjectTarget>,
    /// Only those with this reason count.
    pub reason: Option<String>,
    /// Only those with this text count.
    pub contains: Option<String>,
    /// How many.
    pub count: CountRange,
}

/// Pods gone since the last step.
#[derive(Debug, Clone)]
pub struct RemovedClaim {
    /// Of which workload.
    pub of: ObjectTarget,
    /// The topology key.
    pub by: String,
    /// Per domain.
    pub counts: Counts,
}

/// Clusters chosen by a Placement; at least one claim is made.
#[derive(Debug, Clone)]
pub struct PlacementClaim {
    /// Which.
    pub of: ObjectTarget,
    /// How many, or which.
    pub clusters: Option<Clusters>,
    /// Clusters per domain, by topology key.
    pub counts: BTreeMap<String, Counts>,
    /// The skew, by topology key.
    pub skew: BTreeMap<String, u32>,
    /// Given up since the last step, at most.
    pub moved_max: Option<u32>,
}

/// Chosen clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Clusters {
    /// So many.
    Count(CountRange),
    /// Exactly these, in the order of their names.
    Exact(Vec<String>),
}
