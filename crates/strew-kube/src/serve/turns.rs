//! Turns at what only a few tasks may do at once: a fair queue between peers, in which tasks wait.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strew_model::time::Span;
use strew_runtime::CallId;
use strew_runtime::fair::{FairQueue, HoldingId, Limits, NoShare, Shares};
use tokio::sync::oneshot;

use crate::clock::Clock;

/// The charge of a turn.
const COST: Span = Span::from_millis(1);

/// What turns of a peer's tenant may cost per second, and at once beyond it, until they are no longer within budget.
const BUDGET: Span = Span::from_secs(1);
const CREDIT: Span = Span::from_secs(20);

/// A bounded number of turns at once; `K` names the tenants of a peer, such as namespaces.
pub(crate) struct Turns<K: Ord + Clone>(Arc<Mutex<State<K>>>);

type Key<K> = (IpAddr, K);

/// How many tasks of the tenant came before, and the number of the call; the largest goes first.
type Rank = Reverse<(usize, CallId)>;

struct State<K: Ord + Clone> {
    clock: Clock,
    queue: FairQueue<IpAddr, K, Waiting<K>>,
    /// The places of waiting tasks: a peer that has fewer takes one of the fullest peer. There the tenant with most of
    /// them loses its newest one, also for another tenant of the same peer.
    places: Shares<IpAddr, Rank, (Key<K>, CallId)>,
    n_calls: u64,
    n_under_way: usize,
    at_once: usize,
}

/// A waiting task.
struct Waiting<K: Ord + Clone> {
    key: Key<K>,
    place: HoldingId,
    granted: oneshot::Sender<Turn<K>>,
}

/// A turn; the next one begins when it is dropped.
pub(crate) struct Turn<K: Ord + Clone> {
    turns: Turns<K>,
    key: Key<K>,
    /// True if the charges of its tenant are within the budget.
    pub(crate) is_within_budget: bool,
}

/// As many tasks wait as may, and the peer has no fewer of them than any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowded;

impl<K: Ord + Clone> Clone for Turns<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Ord + Clone> Turns<K> {
    /// Turns of which `at_once` are taken at once, and for which `waiting_max` tasks wait at most.
    pub(crate) fn new(at_once: usize, waiting_max: usize) -> Self {
        let waiting_max = waiting_max as u64;
        Self(Arc::new(Mutex::new(State {
            clock: Clock::of_timers(),
            queue: FairQueue::new(Limits {
                waiting_max: usize::MAX,
                in_hand_max: at_once,
                budget: BUDGET,
                credit: CREDIT,
            }),
            places: Shares::new(waiting_max, waiting_max, |held, demand| held < demand),
            n_calls: 0,
            n_under_way: 0,
            at_once,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        // A panic elsewhere leaves the tables consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// Too many wait, at once or when a peer comes that has fewer.
    pub(crate) async fn take(&self, peer: IpAddr, tenant: K) -> Result<Turn<K>, Crowded> {
        let key = (peer, tenant);
        let (granted, turn) = oneshot::channel();
        let call = self.state().wait(&key, granted)?;
        let _waits = Waits {
            turns: self,
            key: &key,
            call,
        };
        self.grant();
        turn.await.map_err(|_| Crowded)
    }

    /// Grants free turns to those that wait.
    fn grant(&self) {
        loop {
            let mut state = self.state();
            let Some((waiting, is_within_budget)) = state.next() else {
                return;
            };
            drop(state);
            let turn = Turn {
                turns: self.clone(),
                key: waiting.key,
                is_within_budget,
            };
            // A turn of a task that waits no longer ends at once.
            drop(waiting.granted.send(turn));
        }
    }
}

impl<K: Ord + Clone> State<K> {
    fn wait(&mut self, key: &Key<K>, granted: oneshot::Sender<Turn<K>>) -> Result<CallId, Crowded> {
        let (call, now) = (CallId(self.n_calls), self.clock.now());
        self.n_calls += 1;
        let rank = Reverse((self.queue.n_waiting_of(key), call));
        let place = self.places.take(&key.0, 1, rank, (key.clone(), call));
        let place = place.map_err(|NoShare| Crowded)?;
        for (key, call) in place.given_up {
            self.queue.remove(&key, call);
        }
        let waiting = Waiting {
            key: key.clone(),
            place: place.id,
            granted,
        };
        let put = self.queue.put(now, key, call, waiting);
        put.map_err(|_| Crowded)?;
        Ok(call)
    }

    /// The next task that waits, with its turn, and whether its tenant is within the budget.
    fn next(&mut self) -> Option<(Waiting<K>, bool)> {
        if self.n_under_way >= self.at_once {
            return None;
        }
        let now = self.clock.now();
        let turn = self.queue.take(now)?;
        self.n_under_way += 1;
        self.places.release(turn.what.place);
        self.queue.charge(now, &turn.what.key, COST);
        Some((turn.what, turn.is_within_budget))
    }
}

impl<K: Ord + Clone> Turn<K> {
    /// Charges the tenant and its peer beyond what each turn costs.
    pub(crate) fn charge(&self, cost: Span) {
        let mut state = self.turns.state();
        let now = state.clock.now();
        state.queue.charge(now, &self.key, cost);
    }
}

impl<K: Ord + Clone> Drop for Turn<K> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        state.n_under_way -= 1;
        state.queue.done(&self.key);
        drop(state);
        self.turns.grant();
    }
}

/// A task that waits; it may stop to.
struct Waits<'a, K: Ord + Clone> {
    turns: &'a Turns<K>,
    key: &'a Key<K>,
    call: CallId,
}

impl<K: Ord + Clone> Drop for Waits<'_, K> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        if let Some(waiting) = state.queue.remove(self.key, self.call) {
            state.places.release(waiting.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::pin::Pin;

    use futures::FutureExt;
    use strew_model::Prng;

    use super::*;

    type Asked<'a> = Pin<Box<dyn Future<Output = Result<Turn<u64>, Crowded>> + 'a>>;

    fn peer(n: u64) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, u8::try_from(n).unwrap()).into()
    }

    fn ask(turns: &Turns<u64>, of: u64, tenant: u64) -> Asked<'_> {
        Box::pin(turns.take(peer(of), tenant))
    }

    fn granted(asked: &mut Asked<'_>) -> Option<Result<Turn<u64>, Crowded>> {
        asked.as_mut().now_or_never()
    }

    /// The rule, whatever others do, however many tenants they name and however many of them go away: what a quiet peer
    /// asks for is never refused, and comes after one turn of each other peer at most.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_peer_is_never_refused_and_waits_for_one_turn_of_each_other() {
        for seed in 0..200 {
            let mut rng = Prng::new(seed);
            let (n_others, at_once) = (rng.between(1, 6), rng.between(1, 4) as usize);
            let turns = Turns::new(at_once, 16);
            let mut taken = Vec::new();
            let mut flood: Vec<Asked<'_>> = Vec::new();
            let mut quiet: Option<(Asked<'_>, u64)> = None;
            for _ in 0..300 {
                for _ in 0..rng.between(1, 4) {
                    let asked = ask(&turns, rng.between(1, n_others), rng.between(1, 50));
                    flood.push(asked);
                }
                if rng.chance(1, 3) {
                    drop(flood.swap_remove(rng.index(flood.len())));
                }
                let mut left = Vec::new();
                for mut asked in flood {
                    match granted(&mut asked) {
                        Some(Ok(turn)) => taken.push(turn),
                        Some(Err(Crowded)) => {}
                        None => left.push(asked),
                    }
                }
                flood = left;
                if quiet.is_none() && rng.chance(1, 4) {
                    quiet = Some((ask(&turns, 0, 0), 0));
                }
                if let Some((mut asked, n_ended)) = quiet.take() {
                    match granted(&mut asked) {
                        Some(Ok(turn)) => drop(turn),
                        Some(Err(Crowded)) => panic!("seed {seed}: refused"),
                        None => quiet = Some((asked, n_ended)),
                    }
                    assert!(n_ended <= n_others, "seed {seed}: {n_ended} turns");
                }
                assert!(taken.len() <= at_once, "seed {seed}: {}", taken.len());
                if !taken.is_empty() {
                    drop(taken.swap_remove(rng.index(taken.len())));
                    // The turn that ends gives one to a task that waits.
                    quiet.iter_mut().for_each(|(_, n_ended)| *n_ended += 1);
                }
            }
            drop((flood, quiet, taken));
            let state = turns.state();
            assert_eq!((state.n_under_way, state.queue.n_waiting()), (0, 0));
            assert_eq!(state.places.held(), 0, "seed {seed}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_tenant_is_within_its_budget_again_after_a_while() {
        let turns = Turns::new(1, 1);
        let is_within = async |of: u64| {
            let turn = turns.take(peer(of), 0).await;
            turn.is_ok_and(|turn| turn.is_within_budget)
        };
        let turn = turns.take(peer(1), 0).await;
        turn.unwrap_or_else(|_| panic!("it is free"))
            .charge(Span::from_secs(22));
        assert!(!is_within(1).await && is_within(2).await);
        tokio::time::advance(std::time::Duration::from_secs(3)).await;
        assert!(is_within(1).await);
    }

    /// Before, what waited for a namespace was refused as the newest, where a flood for another one came from the same
    /// address.
    #[tokio::test(start_paused = true)]
    async fn a_flood_costs_another_tenant_of_its_peer_no_turn() {
        let turns = Turns::new(1, 8);
        let under_way = ask(&turns, 1, 7).await;
        let mut flood: Vec<_> = (0..20).map(|_| ask(&turns, 1, 7)).collect();
        let n_refused = |flood: &mut Vec<Asked<'_>>| {
            let ended = flood.iter_mut().map(granted);
            ended
                .filter(|ended| matches!(ended, Some(Err(Crowded))))
                .count()
        };
        assert_eq!(n_refused(&mut flood), 12);
        flood.truncate(8);
        let mut quiet = ask(&turns, 1, 8);
        assert!(granted(&mut quiet).is_none());
        assert_eq!(n_refused(&mut flood), 1);
        drop(under_way);
        assert!(matches!(granted(&mut quiet), Some(Ok(_))));
    }
}
