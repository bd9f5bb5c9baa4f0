//! A bounded amount (requests, memory of bodies) that peers share: [`Shares`] with a lock, and tasks that wait.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strew_runtime::fair::{HoldingId, NoShare, Shares};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What is complete goes last, the newest first; of what is incomplete, the oldest goes first, since an honest request
/// is complete within milliseconds.
type Rank = (bool, u64);

/// The amount, and its holders.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    shares: Shares<IpAddr, Rank, CancellationToken>,
    n_taken: u64,
    /// Tasks of peers that wait for their own share to get free.
    waiting: BTreeMap<IpAddr, (usize, Arc<Notify>)>,
}

/// A part of the amount; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    room: Room,
    peer: IpAddr,
    id: HoldingId,
    number: u64,
    /// Cancelled when a peer with less needs it.
    pub(crate) given_up: CancellationToken,
}

impl Room {
    /// Room for this amount, of which one peer gets at most `of_peer_max`.
    pub(crate) fn new(amount: u64, of_peer_max: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            shares: Shares::new(amount, of_peer_max.max(1), |held, _| held < (true, 0)),
            n_taken: 0,
            waiting: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the table consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part for a request that is incomplete, at once.
    ///
    /// # Errors
    /// The peer has its share.
    pub(crate) fn take(&self, peer: IpAddr, amount: u64) -> Result<Held, NoShare> {
        let mut state = self.state();
        let number = state.n_taken;
        let given_up = CancellationToken::new();
        let rank = (false, number);
        let taken = state.shares.take(&peer, amount, rank, given_up.clone())?;
        state.n_taken += 1;
        taken.given_up.iter().for_each(CancellationToken::cancel);
        Ok(Held {
            room: self.clone(),
            peer,
            id: taken.id,
            number,
            given_up,
        })
    }

    /// As [`take`](Self::take); waits for a part of the peer's share to get free.
    pub(crate) async fn take_in_turn(&self, peer: IpAddr, amount: u64) -> Held {
        self.in_turn(peer, || self.take(peer, amount)).await
    }

    async fn in_turn<T>(&self, peer: IpAddr, take: impl Fn() -> Result<T, NoShare>) -> T {
        if let Ok(taken) = take() {
            return taken;
        }
        let waits = Waits::new(self, peer);
        loop {
            let freed = waits.freed.notified();
            if let Ok(taken) = take() {
                return taken;
            }
            freed.await;
        }
    }

    /// The amount that is held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> u64 {
        self.state().shares.held()
    }
}

impl State {
    /// Wakes waiting tasks: something was given back.
    fn notify(&self) {
        let all = self.waiting.values();
        all.for_each(|(_, freed)| freed.notify_one());
    }
}

impl Held {
    /// The request is complete: it is given up last.
    pub(crate) fn complete(&self) {
        let rank = (true, u64::MAX - self.number);
        self.room.state().shares.set_rank(self.id, rank);
    }

    /// Gives back all beyond this amount.
    pub(crate) fn shrink(&self, to: u64) {
        let mut state = self.room.state();
        state.shares.shrink(self.id, to);
        state.notify();
    }

    /// Adds to the part; waits for a part of the peer's share to get free.
    pub(crate) async fn grow(&self, by: u64) {
        let grow = || self.room.state().shares.grow(self.id, by);
        let given_up = self.room.in_turn(self.peer, grow).await;
        given_up.iter().for_each(CancellationToken::cancel);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.room.state();
        state.shares.release(self.id);
        state.notify();
    }
}

/// A waiting task.
struct Waits<'a> {
    room: &'a Room,
    peer: IpAddr,
    freed: Arc<Notify>,
}

impl<'a> Waits<'a> {
    fn new(room: &'a Room, peer: IpAddr) -> Self {
        let mut state = room.state();
        let waiting = state.waiting.entry(peer).or_default();
        waiting.0 += 1;
        let freed = Arc::clone(&waiting.1);
        drop(state);
        Self { room, peer, freed }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.room.state();
        if let Some((n, _)) = state.waiting.get_mut(&self.peer) {
            *n -= 1;
            if *n == 0 {
                state.waiting.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use futures::FutureExt;

    use super::*;

    fn peer(n: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, n).into()
    }

    #[tokio::test]
    async fn a_peer_waits_for_itself_and_for_no_other() {
        let room = Room::new(8, 2);
        let held = [1, 1, 2, 2, 3, 3, 4, 4].map(|n| room.take(peer(n), 1).unwrap());
        held.iter().for_each(Held::complete);
        // Of those with most, a newest part goes.
        assert!(room.take(peer(9), 1).is_ok());
        assert_eq!(
            held.iter()
                .filter(|held| held.given_up.is_cancelled())
                .count(),
            1
        );
        let mut waits = std::pin::pin!(room.take_in_turn(peer(2), 1));
        assert!(waits.as_mut().now_or_never().is_none());
        let [_, _, of_2, ..] = held;
        drop(of_2);
        let got = waits.await;
        got.complete();
        assert!(room.take(peer(2), 1).is_err() && !got.given_up.is_cancelled());
        assert_eq!(room.state().waiting.len(), 0);
    }
}
