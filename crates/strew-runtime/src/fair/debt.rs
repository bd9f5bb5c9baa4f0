//! A cost that a budget covers as time passes.

use strew_model::time::{Instant, Span};

/// The cost that a budget had not covered at an instant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Debt {
    cost: Span,
    at: Instant,
}

impl Debt {
    /// No debt.
    pub(super) fn none(now: Instant) -> Self {
        Self {
            cost: Span(0),
            at: now,
        }
    }

    /// What is left of it under a budget for each second.
    pub(super) fn left(&self, now: Instant, budget: Span) -> Span {
        let passed = u128::from(now.since(self.at).0);
        let covered = passed * u128::from(budget.0) / u128::from(Span::from_secs(1).0);
        let covered = u64::try_from(covered).unwrap_or(u64::MAX);
        Span(self.cost.0.saturating_sub(covered))
    }

    /// True if nothing is left of it.
    pub(super) fn is_paid(&self, now: Instant, budget: Span) -> bool {
        self.left(now, budget) == Span(0)
    }

    /// Adds a cost.
    pub(super) fn add(&mut self, now: Instant, budget: Span, cost: Span) {
        let left = self.left(now, budget);
        *self = Self {
            cost: Span(left.0.saturating_add(cost.0)),
            at: now,
        };
    }
}
