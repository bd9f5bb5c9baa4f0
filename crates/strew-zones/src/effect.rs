//! The output of the machine.

use std::sync::Arc;

use strew_model::{Holds, Marks};

use crate::claim::Claim;
use crate::facts::{BudgetFact, BudgetKey, RequestId};

/// The id of an effect with an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// An effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer a review.
    Answer(RequestId, Answer),
    /// Write the claim, or take it out, if the budget has this uid and version still.
    WriteClaim {
        /// For the outcome.
        id: EffectId,
        /// The budget.
        key: BudgetKey,
        /// Its uid.
        uid: Arc<str>,
        /// The version on which the decision is based.
        version: u64,
        /// The claim; `None`: the domain is whole again.
        claim: Option<Claim>,
    },
    /// Read the budget.
    Read {
        /// For the outcome.
        id: EffectId,
        /// The budget.
        key: BudgetKey,
    },
}

impl Holds for Effect {
    fn mark(&self, marks: &mut Marks) {
        match self {
            Self::Answer(..) => {}
            Self::WriteClaim { key, .. } | Self::Read { key, .. } => key.namespace.mark(marks),
        }
    }
}

/// The answer to a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The plain budget decides.
    Pass,
    /// The domain is claimed; the plain budget decides.
    Granted,
    /// The claim could not be written, for a reason that trying again does not change: the plain budget decides.
    Open,
    /// The eviction is refused, and why. The client may try again.
    Refused(Box<str>),
}

/// The outcome of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The claim is written; the budget has this version.
    Written(u64),
    /// The budget has another version.
    Conflict,
    /// The budget as it is; `None` if it has no annotation any more.
    Read(Option<Box<BudgetFact>>),
    /// The budget is gone.
    Gone,
    /// The API server refuses it.
    Failed,
    /// It is not known whether it was carried out.
    Lost,
}
