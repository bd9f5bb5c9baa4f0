//! Peers whose requests are refused, and how much of that they may ask for.
//!
//! A refusal costs time, too. So a peer has a budget of refusals; beyond it, it is turned away until the budget covers
//! what it has had. A peer that was permitted something is never turned away for a while, whatever others at its address
//! ask for: it is a client with rights, perhaps among strangers.

use std::collections::BTreeMap;

use strew_model::time::{Instant, Span};

use super::debt::Debt;

/// The charge of a refusal, of a budget of one second per second.
const REFUSAL: Span = Span::from_millis(50);

/// What a budget covers in a second.
const BUDGET: Span = Span::from_secs(1);

/// Peers with rights, and debts of others.
#[derive(Debug)]
pub struct Strangers<P> {
    /// The number of refusals at once.
    at_once: u32,
    /// How long a permission counts.
    trusted_for: Span,
    peers: BTreeMap<P, PeerState>,
    /// The number of peers at which those without debts and rights are forgotten.
    sweep_at: usize,
}

#[derive(Debug, Clone, Copy)]
enum PeerState {
    /// Refused.
    Stranger(Debt),
    /// Permitted something at this instant.
    HasRights(Instant),
}

impl<P: Ord + Clone> Strangers<P> {
    /// No peer is known. A peer may be refused this often at once, and 20 times per second beyond it.
    pub fn new(at_once: u32, trusted_for: Span) -> Self {
        Self {
            at_once,
            trusted_for,
            peers: BTreeMap::new(),
            sweep_at: 64,
        }
    }

    /// A request of the peer was permitted.
    pub fn permitted(&mut self, now: Instant, peer: &P) {
        self.put(now, peer, PeerState::HasRights(now));
    }

    /// A request of the peer was refused.
    pub fn refused(&mut self, now: Instant, peer: &P) {
        let mut debt = match self.peers.get(peer) {
            Some(PeerState::HasRights(since)) if now.since(*since) < self.trusted_for => return,
            Some(PeerState::Stranger(debt)) => *debt,
            Some(PeerState::HasRights(_)) | None => Debt::none(now),
        };
        debt.add(now, BUDGET, REFUSAL);
        self.put(now, peer, PeerState::Stranger(debt));
    }

    /// True if the peer has had more refusals than it may.
    pub fn is_beyond(&self, now: Instant, peer: &P) -> bool {
        match self.peers.get(peer) {
            Some(PeerState::Stranger(debt)) => {
                debt.left(now, BUDGET).0 > REFUSAL.0.saturating_mul(self.at_once.into())
            }
            Some(PeerState::HasRights(_)) | None => false,
        }
    }

    fn put(&mut self, now: Instant, peer: &P, standing: PeerState) {
        if self.peers.len() >= self.sweep_at {
            let trusted_for = self.trusted_for;
            self.peers.retain(|_, standing| match standing {
                PeerState::Stranger(debt) => !debt.is_paid(now, BUDGET),
                PeerState::HasRights(since) => now.since(*since) < trusted_for,
            });
            self.sweep_at = 64.max(2 * self.peers.len());
        }
        self.peers.insert(peer.clone(), standing);
    }
}

#[cfg(test)]
mod tests {
    use strew_model::Prng;

    use super::*;

    /// The rule, whatever happens: a peer is turned away only after more refusals than it may have, and never while it
    /// has rights; and a flood of refusals is one of 20 per second.
    #[test]
    fn refusals_have_a_rate_and_rights_are_never_turned_away() {
        for seed in 0..200 {
            let mut rng = Prng::new(seed);
            let at_once = u32::try_from(rng.between(1, 300)).unwrap();
            let trusted_for = Span::from_secs(rng.between(1, 100));
            let mut strangers = Strangers::new(at_once, trusted_for);
            let mut now = Instant::default();
            let begin = now;
            let mut refused = BTreeMap::<u64, u64>::new();
            let mut permitted = BTreeMap::<u64, Instant>::new();
            for _ in 0..3_000 {
                now = now + Span::from_millis(rng.between(0, 20));
                let peer = rng.between(0, 5);
                if peer == 0 && rng.chance(1, 20) {
                    strangers.permitted(now, &peer);
                    permitted.insert(peer, now);
                }
                let is_trusted = permitted
                    .get(&peer)
                    .is_some_and(|at| now.since(*at) < trusted_for);
                if strangers.is_beyond(now, &peer) {
                    assert!(!is_trusted, "seed {seed}");
                    let had = refused.get(&peer).copied().unwrap_or_default();
                    assert!(
                        had > u64::from(at_once),
                        "seed {seed}: after {had} refusals"
                    );
                    continue;
                }
                strangers.refused(now, &peer);
                *refused.entry(peer).or_default() += 1;
            }
            let most = u64::from(at_once) + 2 + now.since(begin).0 / REFUSAL.0;
            for (peer, n) in refused.iter().filter(|(peer, _)| **peer != 0) {
                assert!(*n <= most, "seed {seed}: {n} of peer {peer}, not {most}");
            }
        }
    }

    #[test]
    fn peers_without_debts_are_forgotten() {
        let mut strangers = Strangers::new(3, Span::from_secs(10));
        let at = |s| Instant::default() + Span::from_secs(s);
        for n in 0..10_000_u32 {
            strangers.refused(at(u64::from(n / 10)), &n);
            strangers.permitted(at(u64::from(n / 10)), &(1_000_000 + n));
        }
        assert!(strangers.peers.len() < 500, "{}", strangers.peers.len());
        // It is asked for again once the budget covers what it had.
        (0..100).for_each(|_| strangers.refused(at(2_000), &1));
        assert!(strangers.is_beyond(at(2_004), &1) && !strangers.is_beyond(at(2_005), &1));
    }
}
