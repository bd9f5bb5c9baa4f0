//! A queue that is fair between keys (peers, namespaces), by what their entries cost.
//!
//! A key is charged the cost of its entries. The next entry comes from the key with the smallest sum. A key without
//! waiting entries re-enters at the sum of the one served last, so it neither saves credit nor keeps debts. So an entry
//! of a quiet key waits for one turn of each other key at most. Beyond its budget, a key's entries can be handled more
//! cheaply or refused.
//!
//! Source of the order: Goyal, Vin, Cheng, "Start-time Fair Queueing", 1996.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use strew_model::time::{Instant, Span};

use crate::CallId;

/// Limits of one key.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most waiting entries; further ones are not taken.
    pub waiting_max: usize,
    /// The most entries that are taken and not done: their costs are known only afterwards.
    pub in_hand_max: usize,
    /// The cost that is covered per second.
    pub budget: Span,
    /// The cost beyond the budget until entries are no longer within it.
    pub credit: Span,
}

/// The next entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Turn<T> {
    /// Its id.
    pub call: CallId,
    /// The entry.
    pub what: T,
    /// True if its key is within its budget.
    pub is_within_budget: bool,
}

/// Entries by key.
#[derive(Debug)]
pub struct FairQueue<K, T> {
    limits: Limits,
    tenants: BTreeMap<K, Tenant<T>>,
    /// Keys with an entry that can be taken, by the cost that they were charged.
    order: BTreeSet<(u64, K)>,
    /// The charge of the key that was served last.
    paid_now: u64,
    n_waiting: usize,
    /// The number of keys at which those without debt are forgotten.
    sweep_at: usize,
}

/// The state of a key.
#[derive(Debug)]
struct Tenant<T> {
    waiting: VecDeque<(CallId, T)>,
    in_hand: usize,
    /// Charged cost in nanoseconds, comparable between keys.
    paid: u64,
    /// Cost in nanoseconds that the budget had not covered at `at`.
    over: u64,
    at: Instant,
}

impl<T> Tenant<T> {
    /// The cost that the budget has not covered yet.
    fn over(&self, now: Instant, budget: Span) -> u64 {
        let passed = u128::from(now.since(self.at).0);
        let covered = passed * u128::from(budget.0) / u128::from(Span::from_secs(1).0);
        self.over
            .saturating_sub(u64::try_from(covered).unwrap_or(u64::MAX))
    }

    fn is_ready(&self, limits: &Limits) -> bool {
        !self.waiting.is_empty() && self.in_hand < limits.in_hand_max
    }
}

impl<K: Ord + Clone, T> FairQueue<K, T> {
    /// An empty queue with these limits of each key.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            tenants: BTreeMap::new(),
            order: BTreeSet::new(),
            paid_now: 0,
            n_waiting: 0,
            sweep_at: 64,
        }
    }

    /// The number of waiting entries.
    pub fn n_waiting(&self) -> usize {
        self.n_waiting
    }

    /// True if an entry can be taken.
    pub fn is_ready(&self) -> bool {
        !self.order.is_empty()
    }

    /// Adds an entry with its id.
    ///
    /// # Errors
    /// Too many of its key wait; it is given back.
    pub fn put(&mut self, now: Instant, key: &K, call: CallId, what: T) -> Result<(), T> {
        self.forget_those_without_debt(now);
        let paid_now = self.paid_now;
        let tenant = self.tenants.entry(key.clone());
        let tenant = tenant.or_insert_with(|| Tenant {
            waiting: VecDeque::new(),
            in_hand: 0,
            paid: paid_now,
            over: 0,
            at: now,
        });
        if tenant.waiting.len() >= self.limits.waiting_max {
            return Err(what);
        }
        if tenant.waiting.is_empty() && tenant.in_hand == 0 {
            tenant.paid = tenant.paid.max(paid_now);
        }
        tenant.waiting.push_back((call, what));
        self.n_waiting += 1;
        if tenant.is_ready(&self.limits) {
            self.order.insert((tenant.paid, key.clone()));
        }
        Ok(())
    }

    /// The next entry. Call [`done`](Self::done) when it is answered or given up.
    pub fn take(&mut self, now: Instant) -> Option<Turn<T>> {
        let (paid, key) = self.order.pop_first()?;
        let tenant = self.tenants.get_mut(&key)?;
        let (call, what) = tenant.waiting.pop_front()?;
        self.n_waiting -= 1;
        tenant.in_hand += 1;
        self.paid_now = self.paid_now.max(paid);
        let over = tenant.over(now, self.limits.budget);
        if tenant.is_ready(&self.limits) {
            self.order.insert((paid, key));
        }
        Some(Turn {
            call,
            what,
            is_within_budget: over <= self.limits.credit.0,
        })
    }

    /// Removes a waiting entry. Returns false if it does not wait.
    pub fn remove(&mut self, key: &K, call: CallId) -> bool {
        let waits = |tenant: &Tenant<T>| tenant.waiting.iter().position(|(id, _)| *id == call);
        let found = self.tenants.get(key).and_then(waits);
        if let Some(place) = found {
            self.change(key, |tenant| drop(tenant.waiting.remove(place)));
            self.n_waiting -= 1;
        }
        found.is_some()
    }

    /// A taken entry was answered or given up.
    pub fn done(&mut self, key: &K) {
        self.change(key, |tenant| {
            tenant.in_hand = tenant.in_hand.saturating_sub(1);
        });
    }

    /// Charges a key for the cost of its entries. The charge of a key without entries is forgotten once the budget covers it.
    pub fn charge(&mut self, now: Instant, key: &K, cost: Span) {
        let budget = self.limits.budget;
        self.change(key, |tenant| {
            tenant.paid = tenant.paid.saturating_add(cost.0);
            tenant.over = tenant.over(now, budget).saturating_add(cost.0);
            tenant.at = now;
        });
    }

    /// Changes the state of a key, and its place in the order.
    fn change(&mut self, key: &K, change: impl FnOnce(&mut Tenant<T>)) {
        if let Some(tenant) = self.tenants.get_mut(key) {
            self.order.remove(&(tenant.paid, key.clone()));
            change(tenant);
            if tenant.is_ready(&self.limits) {
                self.order.insert((tenant.paid, key.clone()));
            }
        }
    }

    /// Forgets keys without entries and debts, when there are twice as many as after the last sweep.
    fn forget_those_without_debt(&mut self, now: Instant) {
        if self.tenants.len() < self.sweep_at {
            return;
        }
        let budget = self.limits.budget;
        self.tenants.retain(|_, tenant| {
            let is_busy = !tenant.waiting.is_empty() || tenant.in_hand > 0;
            is_busy || tenant.over(now, budget) > 0
        });
        self.sweep_at = 64.max(2 * self.tenants.len());
    }
}

#[cfg(test)]
mod tests;
