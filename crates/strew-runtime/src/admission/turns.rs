//! Turns of reviews: which one the machine gets next, and whether its peer's namespace is within its budget.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_model::time::{Instant, Span};

use super::Call;
use crate::fair::{FairQueue, Limits};
use crate::machine::CallId;

/// The limits of a peer's namespace in a real cluster: a quarter of a core, and half a second at once. Beyond that, reviews
/// are decided without simulated scheduling.
pub const LIMITS: Limits = Limits {
    waiting_max: 1024,
    in_hand_max: 64,
    budget: Span::from_millis(250),
    credit: Span::from_millis(500),
};

/// The peer and the namespace of a review.
type Tenant<P> = (P, Arc<str>);

/// Too many reviews of the peer and the namespace wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crowded;

/// Whom a cost is charged to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payer {
    /// The peer and the namespace of this review.
    Call(CallId),
    /// The oldest open review of this namespace: a status was read or written for several of its reviews.
    Namespace(Arc<str>),
}

/// Reviews without an answer: those that wait for the machine, and those that it has.
pub struct Turns<P> {
    queue: FairQueue<P, Arc<str>, Box<Call>>,
    open: BTreeMap<CallId, Tenant<P>>,
    by_namespace: BTreeSet<(Arc<str>, CallId)>,
    n_beyond_budget: u64,
}

impl<P: Ord + Clone> Turns<P> {
    /// No reviews, with these limits of each peer's namespace.
    pub fn new(limits: Limits) -> Self {
        Self {
            queue: FairQueue::new(limits),
            open: BTreeMap::new(),
            by_namespace: BTreeSet::new(),
            n_beyond_budget: 0,
        }
    }

    /// Adds a review of a peer.
    ///
    /// # Errors
    /// Too many wait; the review is dropped.
    pub fn put(
        &mut self,
        now: Instant,
        peer: P,
        id: CallId,
        call: Box<Call>,
    ) -> Result<(), Crowded> {
        let namespace: Arc<str> = call.review.namespace.as_str().into();
        let tenant = (peer, Arc::clone(&namespace));
        let put = self.queue.put(now, &tenant, id, call);
        put.map_err(|_| Crowded)?;
        self.by_namespace.insert((namespace, id));
        self.open.insert(id, tenant);
        Ok(())
    }

    /// The review that the machine gets next. Beyond the budget of its peer's namespace it is decided without simulated
    /// scheduling.
    pub fn next(&mut self, now: Instant) -> Option<(CallId, Box<Call>)> {
        let turn = self.queue.take(now)?;
        let mut call = turn.what;
        if call.is_simulated && !turn.is_within_budget {
            call.is_simulated = false;
            self.n_beyond_budget += 1;
        }
        Some((turn.call, call))
    }

    /// The API server has stopped waiting for an answer. Returns true if the machine has the review, and must hear it.
    pub fn give_up(&mut self, id: CallId) -> bool {
        let Some(tenant) = self.remove(id) else {
            return false;
        };
        if self.queue.remove(&tenant, id).is_some() {
            return false;
        }
        self.queue.done(&tenant);
        true
    }

    /// The machine has answered a review.
    pub fn answered(&mut self, id: CallId) {
        if let Some(tenant) = self.remove(id) {
            self.queue.done(&tenant);
        }
    }

    /// Charges for a cost, if the payer has an open review.
    pub fn charge(&mut self, now: Instant, payer: Payer, cost: Span) {
        let call = match payer {
            Payer::Call(call) => Some(call),
            Payer::Namespace(namespace) => self.oldest_of(namespace),
        };
        if let Some(tenant) = call.and_then(|call| self.open.get(&call)) {
            self.queue.charge(now, tenant, cost);
        }
    }

    /// True if a review can be taken.
    pub fn is_ready(&self) -> bool {
        self.queue.is_ready()
    }

    /// The number of reviews that the machine has not seen.
    pub fn n_waiting(&self) -> usize {
        self.queue.n_waiting()
    }

    /// The number of creations that were decided without simulated scheduling, because a budget was used up.
    pub fn n_beyond_budget(&self) -> u64 {
        self.n_beyond_budget
    }

    /// The oldest open review of a namespace.
    fn oldest_of(&self, namespace: Arc<str>) -> Option<CallId> {
        let from = (namespace, CallId(0));
        let (found, call) = self.by_namespace.range(&from..).next()?;
        (*found == from.0).then_some(*call)
    }

    fn remove(&mut self, id: CallId) -> Option<Tenant<P>> {
        let tenant = self.open.remove(&id)?;
        self.by_namespace.remove(&(Arc::clone(&tenant.1), id));
        Some(tenant)
    }
}
