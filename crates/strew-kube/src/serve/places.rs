//! A bounded number of connections, in all and per peer, that never locks out a new one.
//!
//! If all are in use, the connection that was idle for longest is closed: first one without any data, then one without
//! any request. So a client that only holds connections open loses its own, and never displaces a kubelet that probes.
//! Whether there are data is looked at before a connection is closed: in a burst of connections, more are accepted than
//! a peer has places before the first of them is read.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The connections of a server, with their limit.
#[derive(Debug)]
pub(super) struct Places {
    places_max: usize,
    of_peer_max: usize,
    taken: Mutex<Taken>,
    /// Told when a connection was looked at, or is gone.
    looked: Notify,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// All connections that could be closed are answering a request.
    AllBusy,
    /// The connection to close has not been looked at yet; [`Places::looked`] returns when one was.
    NotLookedAt,
}

#[derive(Debug, Default)]
struct Taken {
    next_id: u64,
    holders: BTreeMap<u64, Holder>,
}

#[derive(Debug)]
struct Holder {
    peer: IpAddr,
    requests: Arc<Requests>,
    closed: CancellationToken,
}

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
    /// The requests of the connection.
    pub(super) requests: Arc<Requests>,
    /// Cancelled when another connection needs the place.
    pub(super) closed: CancellationToken,
}

impl Places {
    /// A table of this size; one peer gets at most a quarter of it.
    pub(super) fn new(places_max: usize) -> Self {
        Self {
            places_max: places_max.max(1),
            of_peer_max: (places_max / 4).max(1),
            taken: Mutex::default(),
            looked: Notify::new(),
        }
    }

    /// Returns after a connection was looked at, or is gone.
    pub(super) async fn looked(&self) {
        self.looked.notified().await;
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // A panic elsewhere leaves the table consistent.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection of this peer.
    ///
    /// # Errors
    /// There is none, and none can be made (now).
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<Place, NoPlace> {
        let mut taken = self.taken();
        let n_of_peer = taken.holders.values().filter(|h| h.peer == peer).count();
        if n_of_peer >= self.of_peer_max {
            taken.close_one(|holder| holder.peer == peer)?;
        } else if taken.holders.len() >= self.places_max {
            taken.close_one(|_| true)?;
        }
        let id = taken.next_id;
        taken.next_id += 1;
        let requests = Arc::new(Requests::default());
        let closed = CancellationToken::new();
        let holder = Holder {
            peer,
            requests: Arc::clone(&requests),
            closed: closed.clone(),
        };
        taken.holders.insert(id, holder);
        Ok(Place {
            places: Arc::clone(self),
            id,
            requests,
            closed,
        })
    }
}

impl Taken {
    /// Closes the connection that was unused for longest.
    fn close_one(&mut self, may_go: impl Fn(&Holder) -> bool) -> Result<(), NoPlace> {
        let holders = self.holders.iter();
        let unused = holders.filter(|(_, holder)| may_go(holder) && !holder.requests.any());
        let unused = unused.map(|(&id, holder)| (holder.requests.last(), id));
        let ((progress, _), id) = unused.min().ok_or(NoPlace::AllBusy)?;
        if progress == Progress::NotLookedAt {
            return Err(NoPlace::NotLookedAt);
        }
        if let Some(holder) = self.holders.remove(&id) {
            holder.closed.cancel();
        }
        Ok(())
    }
}

impl Place {
    /// Records that the connection was looked at, and whether the client had sent anything.
    pub(super) fn look(&self, has_data: bool) {
        self.requests.reach(match has_data {
            true => Progress::Speaking,
            false => Progress::Silent,
        });
        self.places.looked.notify_one();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().holders.remove(&self.id);
        self.places.looked.notify_one();
    }
}

/// How far a client has got; those that got least far are closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Nothing was sent.
    Silent,
    /// Not known yet.
    NotLookedAt,
    /// Something was sent.
    Speaking,
    /// The TLS handshake has begun.
    Greeted,
    /// There was a request.
    Asked,
}

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Requests {
    since: Instant,
    progress: Mutex<Progress>,
    begun: AtomicU64,
    under_way: AtomicU64,
    /// Milliseconds after `since` at which the last request ended.
    ended: AtomicU64,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            progress: Mutex::new(Progress::NotLookedAt),
            begun: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Requests>);

impl Requests {
    /// Records that the client has begun its TLS handshake.
    pub(super) fn greet(&self) {
        self.reach(Progress::Greeted);
    }

    fn reach(&self, progress: Progress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    /// Begins a request, which ends when the value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.reach(Progress::Asked);
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// The number of requests begun.
    pub(super) fn n_begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// True if a request is being answered.
    pub(super) fn any(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    /// How far the client has got, and when the last request ended (or the connection began).
    fn last(&self) -> (Progress, Instant) {
        let ended = Duration::from_millis(self.ended.load(Ordering::Relaxed));
        let progress = *self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        (progress, self.since + ended)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let after = self.0.since.elapsed().as_millis();
        let after = u64::try_from(after).unwrap_or(u64::MAX);
        self.0.ended.store(after, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn peer(n: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, n))
    }

    /// A connection that has said nothing.
    fn silent(places: &Arc<Places>, of: u8) -> Place {
        let place = places.take(peer(of)).unwrap();
        place.look(false);
        place
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_was_unused_for_longest_makes_room() {
        let places = Arc::new(Places::new(4));
        let mut held = Vec::new();
        for n in 0..4 {
            held.push(silent(&places, n));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // The oldest connection has had a request, the next one is answering one.
        drop(held[0].requests.begin());
        let under_way = held[1].requests.begin();
        let closed = |held: &[Place]| -> Vec<bool> {
            held.iter()
                .map(|place| place.closed.is_cancelled())
                .collect()
        };
        held.push(silent(&places, 9));
        assert_eq!(closed(&held), [false, false, true, false, false]);
        held.push(silent(&places, 8));
        assert_eq!(closed(&held), [false, false, true, true, false, false]);
        // A place that was taken away is not given back a second time.
        held.truncate(2);
        assert_eq!(places.taken().holders.len(), 2);
        drop(under_way);
    }

    /// A burst of sockets must not close the connection of a probe of the same peer in the middle of its handshake.
    #[tokio::test(start_paused = true)]
    async fn sockets_that_say_nothing_go_before_connections_that_have_begun() {
        let places = Arc::new(Places::new(8));
        let probe = places.take(peer(1)).unwrap();
        probe.requests.greet();
        let sockets: Vec<Place> = (0..100).map(|_| silent(&places, 1)).collect();
        assert!(!probe.closed.is_cancelled());
        drop(sockets);
        // Of connections that have begun, the oldest is closed.
        tokio::time::advance(Duration::from_secs(1)).await;
        let begin = |_| {
            let place = places.take(peer(1)).unwrap();
            place.requests.greet();
            place
        };
        let begun: Vec<Place> = (0..2).map(begin).collect();
        assert!(probe.closed.is_cancelled() && !begun[0].closed.is_cancelled());
    }

    /// Before, a burst closed connections that were accepted within it, whatever they had sent.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_closed_before_it_was_looked_at() {
        let places = Arc::new(Places::new(8));
        let probe = places.take(peer(1)).unwrap();
        let socket = places.take(peer(1)).unwrap();
        assert_eq!(places.take(peer(1)).unwrap_err(), NoPlace::NotLookedAt);
        // A client that has spoken goes after one that may not have.
        probe.look(true);
        places.looked().await;
        assert_eq!(places.take(peer(1)).unwrap_err(), NoPlace::NotLookedAt);
        socket.look(false);
        places.looked().await;
        assert!(places.take(peer(1)).is_ok());
        assert!(!probe.closed.is_cancelled() && socket.closed.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_takes_places_from_itself_alone() {
        let places = Arc::new(Places::new(8));
        let kubelet = silent(&places, 1);
        let held: Vec<Place> = (0..100).map(|_| silent(&places, 2)).collect();
        assert_eq!(
            held.iter()
                .filter(|place| !place.closed.is_cancelled())
                .count(),
            2
        );
        assert!(!kubelet.closed.is_cancelled());
        // If all connections of a peer are in use, no further one is accepted.
        let busy: Vec<_> = (0..2)
            .map(|_| {
                let place = places.take(peer(3)).unwrap();
                let request = place.requests.begin();
                (place, request)
            })
            .collect();
        assert_eq!(places.take(peer(3)).unwrap_err(), NoPlace::AllBusy);
        drop(busy);
        assert!(places.take(peer(3)).is_ok());
    }
}
