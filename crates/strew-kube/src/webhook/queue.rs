//! The queue of reviews: fair between namespaces, by the CPU time that they use.
//!
//! A namespace is charged the CPU time of its reviews. The next review comes from the namespace with the smallest sum.
//! A namespace without waiting reviews re-enters at the sum of the one served last, so it neither saves credit nor
//! keeps debts. So a review of a quiet namespace waits for one decision at most. Beyond its budget, a namespace's
//! reviews are decided without simulated scheduling.
//!
//! Source of the order: Goyal, Vin, Cheng, "Start-time Fair Queueing", 1996.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use strew_model::time::{Instant, Span};
use strew_runtime::CallId;

/// Limits of one namespace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// The most waiting reviews; further ones are not taken.
    pub(super) waiting_max: usize,
    /// The most reviews that the loop has and that are not answered: their costs are known only afterwards.
    pub(super) in_hand_max: usize,
    /// CPU time per second.
    pub(super) budget: Span,
    /// CPU time beyond the budget until reviews are decided without simulated scheduling.
    pub(super) credit: Span,
}

impl Shares {
    /// Settings of `strew webhook`: a quarter of a core for each namespace, and half a second at once.
    pub(super) const fn production() -> Self {
        Self {
            waiting_max: 1024,
            in_hand_max: 64,
            budget: Span::from_millis(250),
            credit: Span::from_millis(500),
        }
    }
}

/// The next review.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Turn<T> {
    pub(super) call: CallId,
    pub(super) what: T,
    /// True if the budget of its namespace allows simulated scheduling.
    pub(super) is_within_budget: bool,
}

/// Reviews by namespace.
pub(super) struct FairQueue<T> {
    shares: Shares,
    tenants: BTreeMap<Arc<str>, Tenant<T>>,
    /// Namespaces with a review that can be taken, by the CPU time that they were charged.
    order: BTreeSet<(u64, Arc<str>)>,
    /// The charge of the namespace that was served last.
    paid_now: u64,
    n_waiting: usize,
    /// The number of namespaces at which those without debt are forgotten.
    sweep_at: usize,
}

/// The state of a namespace.
struct Tenant<T> {
    waiting: VecDeque<(CallId, T)>,
    in_hand: usize,
    /// Charged CPU time in nanoseconds, comparable between namespaces.
    paid: u64,
    /// CPU time in nanoseconds that the budget had not covered at `at`.
    over: u64,
    at: Instant,
}

impl<T> Tenant<T> {
    /// The CPU time that the budget has not covered yet.
    fn over(&self, now: Instant, budget: Span) -> u64 {
        let passed = u128::from(now.since(self.at).0);
        let covered = passed * u128::from(budget.0) / u128::from(Span::from_secs(1).0);
        self.over
            .saturating_sub(u64::try_from(covered).unwrap_or(u64::MAX))
    }

    fn is_ready(&self, shares: &Shares) -> bool {
        !self.waiting.is_empty() && self.in_hand < shares.in_hand_max
    }
}

impl<T> FairQueue<T> {
    pub(super) fn new(shares: Shares) -> Self {
        Self {
            shares,
            tenants: BTreeMap::new(),
            order: BTreeSet::new(),
            paid_now: 0,
            n_waiting: 0,
            sweep_at: 64,
        }
    }

    /// The number of waiting reviews.
    pub(super) fn len(&self) -> usize {
        self.n_waiting
    }

    /// True if a review can be taken.
    pub(super) fn is_ready(&self) -> bool {
        !self.order.is_empty()
    }

    /// Adds a review. Returns it if too many of its namespace wait.
    pub(super) fn put(
        &mut self,
        now: Instant,
        namespace: &Arc<str>,
        call: CallId,
        what: T,
    ) -> Result<(), T> {
        self.forget_those_without_debt(now);
        let paid_now = self.paid_now;
        let tenant = self.tenants.entry(Arc::clone(namespace));
        let tenant = tenant.or_insert_with(|| Tenant {
            waiting: VecDeque::new(),
            in_hand: 0,
            paid: paid_now,
            over: 0,
            at: now,
        });
        if tenant.waiting.len() >= self.shares.waiting_max {
            return Err(what);
        }
        if tenant.waiting.is_empty() && tenant.in_hand == 0 {
            tenant.paid = tenant.paid.max(paid_now);
        }
        tenant.waiting.push_back((call, what));
        self.n_waiting += 1;
        if tenant.is_ready(&self.shares) {
            self.order.insert((tenant.paid, Arc::clone(namespace)));
        }
        Ok(())
    }

    /// The next review. Call [`done`](Self::done) when it is answered or given up.
    pub(super) fn take(&mut self, now: Instant) -> Option<Turn<T>> {
        let (paid, namespace) = self.order.pop_first()?;
        let tenant = self.tenants.get_mut(&namespace)?;
        let (call, what) = tenant.waiting.pop_front()?;
        self.n_waiting -= 1;
        tenant.in_hand += 1;
        self.paid_now = self.paid_now.max(paid);
        let over = tenant.over(now, self.shares.budget);
        if tenant.is_ready(&self.shares) {
            self.order.insert((paid, namespace));
        }
        Some(Turn {
            call,
            what,
            is_within_budget: over <= self.shares.credit.0,
        })
    }

    /// Removes a waiting review. Returns false if it does not wait.
    pub(super) fn remove(&mut self, namespace: &str, call: CallId) -> bool {
        let waits = |tenant: &Tenant<T>| tenant.waiting.iter().position(|(id, _)| *id == call);
        let found = self.tenants.get(namespace).and_then(waits);
        if let Some(place) = found {
            self.change(namespace, |tenant| drop(tenant.waiting.remove(place)));
            self.n_waiting -= 1;
        }
        found.is_some()
    }

    /// A taken review was answered or given up.
    pub(super) fn done(&mut self, namespace: &str) {
        self.change(namespace, |tenant| {
            tenant.in_hand = tenant.in_hand.saturating_sub(1);
        });
    }

    /// Charges a namespace for the CPU time of its reviews.
    pub(super) fn charge(&mut self, now: Instant, namespace: &str, cost: Span) {
        let budget = self.shares.budget;
        self.change(namespace, |tenant| {
            tenant.paid = tenant.paid.saturating_add(cost.0);
            tenant.over = tenant.over(now, budget).saturating_add(cost.0);
            tenant.at = now;
        });
    }

    /// Changes the state of a namespace, and its place in the order.
    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut Tenant<T>)) {
        let Some((name, _)) = self.tenants.get_key_value(namespace) else {
            return;
        };
        let name = Arc::clone(name);
        if let Some(tenant) = self.tenants.get_mut(namespace) {
            self.order.remove(&(tenant.paid, Arc::clone(&name)));
            change(tenant);
            if tenant.is_ready(&self.shares) {
                self.order.insert((tenant.paid, name));
            }
        }
    }

    /// Forgets namespaces without reviews and debts, when there are twice as many as after the last sweep.
    fn forget_those_without_debt(&mut self, now: Instant) {
        if self.tenants.len() < self.sweep_at {
            return;
        }
        let budget = self.shares.budget;
        self.tenants.retain(|_, tenant| {
            let is_busy = !tenant.waiting.is_empty() || tenant.in_hand > 0;
            is_busy || tenant.over(now, budget) > 0
        });
        self.sweep_at = 64.max(2 * self.tenants.len());
    }
}

#[cfg(test)]
mod tests;
