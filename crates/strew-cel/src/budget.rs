//! What an evaluation may cost.

use crate::error::{EvalError, EvalErrorKind};

/// Units of cost that evaluations may still spend together.
///
/// The units are cel-go's, near enough for limits to mean the same: 1 for each variable, selection, index, operator
/// and call, 10 for a list and 30 for a map that is written down, and a tenth of the bytes that a function reads or
/// makes. Functions whose work grows faster than that pay for it beforehand, regular expressions more than cel-go's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    limit: u64,
    spent: u64,
}

impl Budget {
    /// A budget of `limit` units.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit, spent: 0 }
    }

    /// The units spent so far; over the limit by the last step where the budget ended an evaluation.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// The units that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent)
    }

    pub(crate) fn add(&mut self, spent: u64) {
        self.spent = self.spent.saturating_add(spent);
    }

    pub(crate) fn spend(&mut self, units: u64) -> Result<(), EvalError> {
        self.add(units);
        if self.spent <= self.limit {
            return Ok(());
        }
        let message = format!(
            "stopped: it costs more than the {} units it may",
            self.limit
        );
        Err(EvalError::new(EvalErrorKind::Cost, message))
    }
}
