//! A queue that is fair between peers, and between the tenants (namespaces) of a peer, by what their entries cost.
//!
//! A tenant and its peer are charged the cost of the tenant's entries. The next entry comes from the peer with the
//! smallest sum, and there from the tenant with the smallest sum. What has no entries re-enters at the sum of the one
//! served last, so it neither saves credit nor keeps debts. So an entry of a quiet peer waits for one turn of each other
//! peer at most, however many tenants these name. Beyond its budget, a tenant's entries can be handled more cheaply or
//! refused.
//!
//! Source of the order: Goyal, Vin, Cheng, "Start-time Fair Queueing", 1996.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use strew_model::time::{Instant, Span};

use super::debt::Debt;
use crate::CallId;

/// Limits of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// True if its tenant is within its budget.
    pub is_within_budget: bool,
}

/// Entries by peer and tenant; a key names both.
#[derive(Debug)]
pub struct FairQueue<P, K, T> {
    limits: Limits,
    tenants: BTreeMap<(P, K), Tenant<T>>,
    peers: BTreeMap<P, Peer<K>>,
    /// Peers with an entry that can be taken.
    order: Order<P>,
    n_waiting: usize,
    /// The number of tenants at which those without debt are forgotten.
    sweep_at: usize,
}

/// Keys with an entry that can be taken, by the cost that they were charged.
#[derive(Debug)]
struct Order<K> {
    ready: BTreeSet<(u64, K)>,
    /// The charge of the key that was served last.
    paid_now: u64,
}

impl<K> Default for Order<K> {
    fn default() -> Self {
        Self {
            ready: BTreeSet::new(),
            paid_now: 0,
        }
    }
}

/// The state of a peer.
#[derive(Debug)]
struct Peer<K> {
    /// Its tenants with an entry that can be taken.
    order: Order<K>,
    /// Entries that wait or are in hand.
    n_open: usize,
    /// Charged cost in nanoseconds, comparable between peers.
    paid: u64,
}

/// The state of a tenant.
#[derive(Debug)]
struct Tenant<T> {
    waiting: VecDeque<(CallId, T)>,
    in_hand: usize,
    /// Charged cost in nanoseconds, comparable between tenants of a peer.
    paid: u64,
    /// What the budget has not covered.
    debt: Debt,
}

impl<T> Tenant<T> {
    fn n_open(&self) -> usize {
        self.waiting.len() + self.in_hand
    }

    fn is_ready(&self, limits: &Limits) -> bool {
        !self.waiting.is_empty() && self.in_hand < limits.in_hand_max
    }
}

impl<P: Ord + Clone, K: Ord + Clone, T> FairQueue<P, K, T> {
    /// An empty queue with these limits of each tenant.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            tenants: BTreeMap::new(),
            peers: BTreeMap::new(),
            order: Order::default(),
            n_waiting: 0,
            sweep_at: 64,
        }
    }

    /// The number of waiting entries.
    pub fn n_waiting(&self) -> usize {
        self.n_waiting
    }

    /// The number of waiting entries of a tenant.
    pub fn n_waiting_of(&self, key: &(P, K)) -> usize {
        let tenant = self.tenants.get(key);
        tenant.map_or(0, |tenant| tenant.waiting.len())
    }

    /// True if an entry can be taken.
    pub fn is_ready(&self) -> bool {
        !self.order.ready.is_empty()
    }

    /// Adds an entry with its id.
    ///
    /// # Errors
    /// Too many of its tenant wait; it is given back.
    pub fn put(&mut self, now: Instant, key: &(P, K), call: CallId, what: T) -> Result<(), T> {
        self.forget_those_without_debt(now);
        let peer = self.peers.entry(key.0.clone()).or_insert_with(|| Peer {
            order: Order::default(),
            n_open: 0,
            paid: 0,
        });
        let paid_now = peer.order.paid_now;
        let tenant = self.tenants.entry(key.clone());
        let tenant = tenant.or_insert_with(|| Tenant {
            waiting: VecDeque::new(),
            in_hand: 0,
            paid: paid_now,
            debt: Debt::none(now),
        });
        if tenant.waiting.len() >= self.limits.waiting_max {
            return Err(what);
        }
        if peer.n_open == 0 {
            peer.paid = peer.paid.max(self.order.paid_now);
        }
        if tenant.n_open() == 0 {
            tenant.paid = tenant.paid.max(paid_now);
        }
        self.change(key, |tenant| tenant.waiting.push_back((call, what)));
        self.n_waiting += 1;
        Ok(())
    }

    /// The next entry. Call [`done`](Self::done) when it is answered or given up.
    pub fn take(&mut self, now: Instant) -> Option<Turn<T>> {
        let (paid, peer) = self.order.ready.first()?;
        self.order.paid_now = self.order.paid_now.max(*paid);
        let of_peer = self.peers.get_mut(peer)?;
        let (paid, tenant) = of_peer.order.ready.first()?;
        of_peer.order.paid_now = of_peer.order.paid_now.max(*paid);
        let key = (peer.clone(), tenant.clone());
        let budget = self.limits.budget;
        let (over, taken) = self.change(&key, |tenant| {
            tenant.in_hand += 1;
            (tenant.debt.left(now, budget), tenant.waiting.pop_front())
        })?;
        let (call, what) = taken?;
        self.n_waiting -= 1;
        Some(Turn {
            call,
            what,
            is_within_budget: over <= self.limits.credit,
        })
    }

    /// Removes a waiting entry; `None` if it does not wait.
    pub fn remove(&mut self, key: &(P, K), call: CallId) -> Option<T> {
        let waits = |tenant: &Tenant<T>| tenant.waiting.iter().position(|(id, _)| *id == call);
        let place = self.tenants.get(key).and_then(waits)?;
        let (_, what) = self.change(key, |tenant| tenant.waiting.remove(place))??;
        self.n_waiting -= 1;
        Some(what)
    }

    /// A taken entry was answered or given up.
    pub fn done(&mut self, key: &(P, K)) {
        self.change(key, |tenant| {
            tenant.in_hand = tenant.in_hand.saturating_sub(1);
        });
    }

    /// Charges a tenant and its peer for the cost of entries. The charge of a tenant without entries is forgotten once
    /// the budget covers it.
    pub fn charge(&mut self, now: Instant, key: &(P, K), cost: Span) {
        let budget = self.limits.budget;
        self.change(key, |tenant| {
            tenant.paid = tenant.paid.saturating_add(cost.0);
            tenant.debt.add(now, budget, cost);
        });
        self.change_peer(&key.0, |peer| peer.paid = peer.paid.saturating_add(cost.0));
    }

    /// Changes the state of a tenant, and the places of it and its peer in their orders; `None` if it is not known.
    fn change<R>(&mut self, key: &(P, K), change: impl FnOnce(&mut Tenant<T>) -> R) -> Option<R> {
        let limits = self.limits;
        let tenant = self.tenants.get_mut(key)?;
        let (paid, n_open) = (tenant.paid, tenant.n_open());
        let changed = change(tenant);
        let (paid_after, n_open_after) = (tenant.paid, tenant.n_open());
        let is_ready = tenant.is_ready(&limits);
        self.change_peer(&key.0, |peer| {
            peer.order.ready.remove(&(paid, key.1.clone()));
            if is_ready {
                peer.order.ready.insert((paid_after, key.1.clone()));
            }
            peer.n_open = peer.n_open + n_open_after - n_open;
        });
        Some(changed)
    }

    /// Changes the state of a peer, and its place in the order.
    fn change_peer(&mut self, peer: &P, change: impl FnOnce(&mut Peer<K>)) {
        if let Some(of_peer) = self.peers.get_mut(peer) {
            self.order.ready.remove(&(of_peer.paid, peer.clone()));
            change(of_peer);
            if !of_peer.order.ready.is_empty() {
                self.order.ready.insert((of_peer.paid, peer.clone()));
            }
        }
    }

    /// Forgets tenants without entries and debts, and peers without tenants, when there are twice as many tenants as
    /// after the last sweep.
    fn forget_those_without_debt(&mut self, now: Instant) {
        if self.tenants.len() < self.sweep_at {
            return;
        }
        let budget = self.limits.budget;
        self.tenants
            .retain(|_, tenant| tenant.n_open() > 0 || !tenant.debt.is_paid(now, budget));
        let known: BTreeSet<&P> = self.tenants.keys().map(|(peer, _)| peer).collect();
        self.peers.retain(|peer, _| known.contains(peer));
        self.sweep_at = 64.max(2 * self.tenants.len());
    }
}

#[cfg(test)]
mod tests;
