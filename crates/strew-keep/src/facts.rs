//! The input of the machine.

use std::sync::Arc;

use strew_cluster::scale_down::Stage;
use strew_cluster::{NodeFact, PodFact};
use strew_model::{Selector, Span, Symbol};

use crate::effect::{EffectId, Outcome};

/// A ReplicaSet: its namespace and name.
pub type SetKey = (Symbol, Symbol);

/// What the label [`LABEL`](crate::LABEL) of an object asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Costs are written.
    Keep,
    /// No costs are written.
    Leave,
}

impl Wish {
    /// From the value of the label; `None` without one, or if it is neither `true` nor `false`.
    pub fn of(label: Option<&str>) -> Option<Self> {
        match label? {
            "true" => Some(Self::Keep),
            "false" => Some(Self::Leave),
            _ => None,
        }
    }
}

/// The deletion cost of a pod, by its annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// None.
    Absent,
    /// strew wrote it.
    Own(i32),
    /// Another client wrote it.
    Foreign,
}

impl Cost {
    /// From the cost, and from the annotation [`OWN_COST`](crate::OWN_COST).
    pub fn of(cost: Option<&str>, own: Option<&str>) -> Self {
        match (cost, cost.map(str::parse)) {
            (None, _) => Self::Absent,
            (Some(_), Some(Ok(value))) if cost == own => Self::Own(value),
            (Some(_), _) => Self::Foreign,
        }
    }

    /// The value, if strew wrote it.
    pub fn own(self) -> Option<i32> {
        match self {
            Self::Own(value) => Some(value),
            Self::Absent | Self::Foreign => None,
        }
    }
}

/// A pod that is neither finished nor deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// What decisions read.
    pub fact: PodFact,
    /// What decides before its cost.
    pub stage: Stage,
    /// Its cost.
    pub cost: Cost,
    /// True if it is a pod of a WorkloadSpread.
    pub is_of_spread: bool,
    /// Its resourceVersion.
    pub version: u64,
}

/// A ReplicaSet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Its namespace and name.
    pub key: SetKey,
    /// The name of the Deployment that controls it.
    pub deployment: Option<Symbol>,
    /// Its own label.
    pub wish: Option<Wish>,
    /// Its selector; `None` if it is invalid.
    pub selector: Option<Selector>,
}

/// An input. Facts are complete and idempotent, and come in any order.
#[derive(Debug, Clone)]
pub enum Input {
    /// A node was added or changed.
    NodeSet(Box<NodeFact>),
    /// A node was deleted.
    NodeGone(Symbol),
    /// A pod was added or changed.
    PodSet(Box<Pod>),
    /// The pod of this uid was deleted, or has finished.
    PodGone(Arc<str>),
    /// A ReplicaSet was added or changed.
    SetSet(Box<ReplicaSet>),
    /// A ReplicaSet was deleted.
    SetGone(SetKey),
    /// The label of the Deployment of this namespace and name; `None` also if it was deleted.
    DeploymentSet((Symbol, Symbol), Option<Wish>),
    /// The label of a namespace; `None` also if it was deleted.
    NamespaceSet(Symbol, Option<Wish>),
    /// The outcome of an effect.
    Outcome(EffectId, Outcome),
    /// Only time has passed.
    Tick,
}

/// Why a ReplicaSet that asks for costs gets none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leaves {
    /// A WorkloadSpread has pods of it, and writes costs itself.
    WorkloadSpread,
    /// A pod has a cost that strew did not write.
    CostsOfOthers,
    /// Its pods have no constraint.
    NoConstraint,
}

impl Leaves {
    /// All of them.
    pub const ALL: [Self; 3] = [
        Self::WorkloadSpread,
        Self::CostsOfOthers,
        Self::NoConstraint,
    ];

    /// The reason as a label of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::WorkloadSpread => "workloadspread",
            Self::CostsOfOthers => "costs-of-others",
            Self::NoConstraint => "no-constraint",
        }
    }

    /// The reason as a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::WorkloadSpread => "a WorkloadSpread writes the deletion costs of its pods",
            Self::CostsOfOthers => "a pod has a deletion cost that strew did not write",
            Self::NoConstraint => "its pods have no topology spread constraint",
        }
    }
}

/// What was decided for a ReplicaSet that asks for costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostsDecision {
    /// Its costs are kept.
    Kept,
    /// It gets none.
    Left(Leaves),
}

/// Settings of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A ReplicaSet is decided this long after the last change.
    pub settle: Span,
    /// It is decided at the latest this long after the first change, although changes go on.
    pub settle_max: Span,
    /// A pod on a node counts as ready for this long after it was, or since it came: pods start and stumble, and the
    /// order need not follow.
    pub unready_after: Span,
    /// The first wait after a failed write; each further one is twice as long.
    pub backoff: Span,
    /// The longest wait.
    pub backoff_max: Span,
    /// The number of new classes of pods after which unused ones are freed.
    pub sweep_min: usize,
}

impl Limits {
    /// The settings of `strew controller`, and of simulations.
    pub const fn production() -> Self {
        Self {
            settle: Span::from_secs(1),
            settle_max: Span::from_secs(10),
            unready_after: Span::from_secs(60),
            backoff: Span::from_secs(1),
            backoff_max: Span::from_secs(300),
            sweep_min: 512,
        }
    }
}
