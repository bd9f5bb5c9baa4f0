//! The input of the machine.

use std::sync::Arc;

use strew_model::{Labels, Selector, Symbol};

use crate::claim::Claim;
use crate::effect::{EffectId, Outcome};
use crate::rule::Away;

/// A review of an eviction. The caller chooses it and never reuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Namespace and name of a budget.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetKey {
    /// The namespace.
    pub namespace: Symbol,
    /// The name.
    pub name: Box<str>,
}

/// A PodDisruptionBudget with the annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetFact {
    /// Its uid.
    pub uid: Arc<str>,
    /// `resourceVersion`.
    pub version: u64,
    /// The topology key of the annotation.
    pub topology_key: Symbol,
    /// The pods that it selects.
    pub selector: Selector,
    /// The claim; `None` if there is none, or none that can be read.
    pub claim: Option<Claim>,
    /// `status.disruptionsAllowed`; 0 if the status is not that of this generation.
    pub allowed: i32,
    /// `status.expectedPods`.
    pub expected: u32,
}

/// A pod that has not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodRow {
    /// Its uid.
    pub uid: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// The name of its node.
    pub node: Option<Symbol>,
    /// Why it is not available, by the pod alone: [`Away::Deleted`], [`Away::Pending`] or [`Away::NotReady`].
    pub away: Option<Away>,
}

/// An eviction that an API server asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its id.
    pub id: RequestId,
    /// The namespace of the pod.
    pub namespace: Symbol,
    /// The name of the pod.
    pub pod: Box<str>,
    /// True if it changes nothing: then nothing is claimed.
    pub is_dry_run: bool,
}

/// An input of the machine.
#[derive(Debug, Clone)]
pub enum Input {
    /// A review.
    Asked(Ask),
    /// The API server waits no longer for the answer.
    GivenUp(RequestId),
    /// The current state of a budget; `None` if it is gone, or has no annotation.
    Budget(BudgetKey, Option<Box<BudgetFact>>),
    /// The current state of a pod, by namespace and name; `None` if it is gone or has finished.
    Pod(Symbol, Box<str>, Option<Box<PodRow>>),
    /// The labels of a node, and whether it is Ready; `None` if it is gone.
    Node(Symbol, Option<(Labels, bool)>),
    /// The outcome of an effect.
    Outcome(EffectId, Outcome),
    /// Time has passed.
    Tick,
}
