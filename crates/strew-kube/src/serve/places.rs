//! Places for connections and requests, shared between peers.
//!
//! If all places are in use, the peer with most connections loses the one that got least far: first one without any
//! data, then one without a complete request, then an idle one, and last one whose request is complete and not answered
//! yet. So a client that only holds connections open, or never completes a request, loses its own, and never displaces
//! an API server or a kubelet. Whether there are data is looked at before a connection is closed: in a burst of
//! connections, more are accepted than a peer has places before the first of them is read.
//!
//! A trusted connection has a place of another kind: other clients do not compete for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use strew_model::time::Span;
use strew_runtime::fair::{HoldingId, NoShare, Shares, Strangers};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::own::OwnConnections;
use super::room::{Held, Room};
use crate::clock::Clock;

/// How long a peer counts as a client with rights after it was permitted something.
const RIGHTS_COUNT_FOR: Span = Span::from_secs(24 * 3600);

/// How far a connection has got, and the milliseconds after the start of the server at which it was last used.
type Rank = (Progress, u64);

type Seats = Shares<IpAddr, Rank, CancellationToken>;

/// The places of a server.
#[derive(Debug)]
pub(super) struct Places {
    began: Instant,
    /// The connections of any client.
    open: Mutex<Seats>,
    /// The connections of clients that are known to be API servers.
    trusted: Mutex<Seats>,
    requests: Room,
    /// `None`: no peer is turned away.
    strangers: Option<Mutex<Strangers<IpAddr>>>,
    clock: Clock,
    own: OwnConnections,
    /// Notified when a connection was looked at, or is gone.
    looked: Notify,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// The peer has its share, and all of its connections are answering a request.
    AllBusy,
    /// The peer has no rights, and was refused too often.
    TurnedAway,
    /// The connection to close has not been looked at yet; [`Places::looked`] returns when one was.
    NotLookedAt,
}

/// How far a client has got; the connections that got least far are closed first.
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
    /// There was a complete request.
    Asked,
    /// A complete request is not answered yet.
    UnderWay,
}

/// A connection's place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place(pub(super) Arc<Seat>);

/// The place and the requests of a connection.
#[derive(Debug)]
pub(super) struct Seat {
    places: Arc<Places>,
    peer: IpAddr,
    at: Mutex<At>,
    begun: AtomicU64,
    under_way: AtomicU64,
    /// Cancelled when another connection needs the place.
    pub(super) closed: CancellationToken,
}

#[derive(Debug)]
struct At {
    kind: Kind,
    progress: Progress,
    n_complete: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Open(HoldingId),
    Trusted(HoldingId),
    /// The process itself is the client.
    Own,
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(super) struct UnderWay {
    seat: Arc<Seat>,
    is_complete: AtomicBool,
    /// `None` for the process's own requests.
    held: Option<Held>,
}

/// The client of a request, in the request's extensions.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The address that its shares are counted by: for IPv6 its network, a /64, since a host may use each address of it.
    /// Unspecified for the process itself, and where no server has set it: no client has this address.
    pub address: IpAddr,
    seat: Option<Arc<Seat>>,
}

/// The address of no client.
const NO_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The address that the shares of a client are counted by.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => {
            let network = u128::from(ip) & (u128::MAX << 64);
            Ipv6Addr::from(network).into()
        }
        ip => ip,
    }
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            address: NO_CLIENT,
            seat: None,
        }
    }
}

impl Peer {
    /// A client at this address, without a connection.
    #[cfg(test)]
    pub(crate) fn at(address: IpAddr) -> Self {
        Self {
            address,
            ..Self::default()
        }
    }

    /// The client has shown that it is an API server: its connection gets a place that others cannot take, and its
    /// address is not turned away.
    pub(crate) fn trust(&self) {
        if let Some(seat) = &self.seat {
            seat.trust();
        }
    }

    /// The client itself is the reason of a refusal. Too many of these, and it is turned away for a while.
    pub(crate) fn refused(&self) {
        if let Some(seat) = &self.seat {
            seat.refused();
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves the table consistent.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Places {
    /// Places for `connections_max` connections and `requests_max` requests. One peer gets at most a quarter of each.
    /// `refusals_max`: how often a peer without rights may be refused at once; `None`: without bound.
    pub(super) fn new(
        connections_max: usize,
        requests_max: usize,
        refusals_max: Option<u32>,
        own: OwnConnections,
    ) -> Self {
        let trusted = connections_max as u64 / 8;
        let open = (connections_max as u64 - trusted).max(1);
        let of_peer_max = (connections_max as u64 / 4).max(1);
        let trusted = trusted.max(1);
        Self {
            began: Instant::now(),
            open: Mutex::new(Shares::new(open, of_peer_max, |held, _| {
                held < (Progress::UnderWay, 0)
            })),
            // A trusted connection takes no place of another one of its peer.
            trusted: Mutex::new(Shares::new(trusted, (trusted / 4).max(1), |_, _| false)),
            requests: Room::new(requests_max as u64, requests_max as u64 / 4),
            strangers: refusals_max
                .map(|at_once| Mutex::new(Strangers::new(at_once, RIGHTS_COUNT_FOR))),
            clock: Clock::of_timers(),
            own,
            looked: Notify::new(),
        }
    }

    /// Returns after a connection was looked at, or is gone.
    pub(super) async fn looked(&self) {
        self.looked.notified().await;
    }

    /// True if the peer is turned away for now.
    fn is_turned_away(&self, peer: &IpAddr) -> bool {
        let strangers = self.strangers.as_ref();
        strangers.is_some_and(|strangers| lock(strangers).is_beyond(self.clock.now(), peer))
    }

    fn rank(&self, progress: Progress) -> Rank {
        let millis = self.began.elapsed().as_millis();
        (progress, u64::try_from(millis).unwrap_or(u64::MAX))
    }

    /// A place for a connection of this peer.
    ///
    /// # Errors
    /// There is none, and none can be made (now).
    pub(super) fn take(self: &Arc<Self>, peer: SocketAddr) -> Result<Place, NoPlace> {
        let closed = CancellationToken::new();
        let is_own = self.own.has(peer);
        let ip = match is_own {
            true => NO_CLIENT,
            false => counted(peer.ip()),
        };
        let kind = match is_own {
            true => Kind::Own,
            false if self.is_turned_away(&ip) => return Err(NoPlace::TurnedAway),
            false => {
                let mut open = lock(&self.open);
                let rank = self.rank(Progress::NotLookedAt);
                if let Some((Progress::NotLookedAt, _)) = open.next_given_up(&ip, 1, rank) {
                    return Err(NoPlace::NotLookedAt);
                }
                let taken = open.take(&ip, 1, rank, closed.clone());
                let taken = taken.map_err(|NoShare| NoPlace::AllBusy)?;
                taken.given_up.iter().for_each(CancellationToken::cancel);
                Kind::Open(taken.id)
            }
        };
        Ok(Place(Arc::new(Seat {
            places: Arc::clone(self),
            peer: ip,
            at: Mutex::new(At {
                kind,
                progress: Progress::NotLookedAt,
                n_complete: 0,
            }),
            begun: AtomicU64::new(0),
            under_way: AtomicU64::new(0),
            closed,
        })))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let seat = &self.0;
        match lock(&seat.at).kind {
            Kind::Open(id) => drop(lock(&seat.places.open).release(id)),
            Kind::Trusted(id) => drop(lock(&seat.places.trusted).release(id)),
            Kind::Own => {}
        }
        seat.places.looked.notify_one();
    }
}

impl Seat {
    /// Records that the connection was looked at, and whether the client had sent anything.
    pub(super) fn look(&self, has_data: bool) {
        self.reach(match has_data {
            true => Progress::Speaking,
            false => Progress::Silent,
        });
        self.places.looked.notify_one();
    }

    /// Records that the client has begun its TLS handshake.
    pub(super) fn greet(&self) {
        self.reach(Progress::Greeted);
    }

    fn reach(&self, progress: Progress) {
        lock(&self.at).reach(&self.places, progress);
    }

    /// Begins a request, which ends when the value is dropped.
    ///
    /// # Errors
    /// The peer has its share of requests, or is turned away.
    pub(super) fn begin(self: &Arc<Self>) -> Result<UnderWay, NoShare> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let kind = lock(&self.at).kind;
        if matches!(kind, Kind::Open(_)) && self.places.is_turned_away(&self.peer) {
            self.closed.cancel();
            return Err(NoShare);
        }
        let take = || self.places.requests.take(self.peer, 1);
        let held = match kind {
            Kind::Own => None,
            _ => Some(take().inspect_err(|NoShare| self.refused())?),
        };
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Ok(UnderWay {
            seat: Arc::clone(self),
            is_complete: AtomicBool::new(false),
            held,
        })
    }

    /// The number of requests begun.
    pub(super) fn n_begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// True if a request, complete or not, is not answered yet.
    pub(super) fn any(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }

    /// The client, for a request's extensions.
    pub(super) fn peer(self: &Arc<Self>) -> Peer {
        Peer {
            address: self.peer,
            seat: Some(Arc::clone(self)),
        }
    }

    /// A request was refused, and its client is the reason. The connection ends if its peer is turned away.
    pub(super) fn refused(&self) {
        let Some(strangers) = &self.places.strangers else {
            return;
        };
        if let Kind::Open(_) = lock(&self.at).kind {
            let (mut strangers, now) = (lock(strangers), self.places.clock.now());
            strangers.refused(now, &self.peer);
            if strangers.is_beyond(now, &self.peer) {
                self.closed.cancel();
            }
        }
    }

    fn trust(&self) {
        if let Some(strangers) = &self.places.strangers {
            lock(strangers).permitted(self.places.clock.now(), &self.peer);
        }
        let mut at = lock(&self.at);
        let Kind::Open(id) = at.kind else {
            return;
        };
        let rank = self.places.rank(at.progress);
        let mut trusted = lock(&self.places.trusted);
        let Ok(taken) = trusted.take(&self.peer, 1, rank, self.closed.clone()) else {
            return;
        };
        taken.given_up.iter().for_each(CancellationToken::cancel);
        lock(&self.places.open).release(id);
        at.kind = Kind::Trusted(taken.id);
    }
}

impl At {
    fn reach(&mut self, places: &Places, progress: Progress) {
        self.progress = progress;
        let rank = places.rank(progress);
        match self.kind {
            Kind::Open(id) => lock(&places.open).set_rank(id, rank),
            Kind::Trusted(id) => lock(&places.trusted).set_rank(id, rank),
            Kind::Own => {}
        }
    }
}

impl UnderWay {
    /// The request has arrived with its body.
    pub(super) fn complete(&self) {
        if self.is_complete.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(held) = &self.held {
            held.complete();
        }
        let mut at = lock(&self.seat.at);
        at.n_complete += 1;
        at.reach(&self.seat.places, Progress::UnderWay);
    }

    /// Returns when a peer with fewer requests needs the place.
    pub(super) async fn given_up(&self) {
        match &self.held {
            Some(held) => held.given_up.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.seat.under_way.fetch_sub(1, Ordering::Relaxed);
        if self.is_complete.load(Ordering::Relaxed) {
            let mut at = lock(&self.seat.at);
            at.n_complete -= 1;
            if at.n_complete == 0 {
                at.reach(&self.seat.places, Progress::Asked);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn places(connections_max: usize) -> Arc<Places> {
        Arc::new(Places::new(
            connections_max,
            100,
            Some(8),
            OwnConnections::default(),
        ))
    }

    fn peer(n: u8) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::new(10, 0, 0, n).into(), 1000)
    }

    /// A connection that has said nothing.
    fn silent(places: &Arc<Places>, of: u8) -> Place {
        let place = places.take(peer(of)).unwrap();
        place.0.look(false);
        place
    }

    fn complete(place: &Place) -> UnderWay {
        let request = place.0.begin().unwrap();
        request.complete();
        request
    }

    fn is_closed(place: &Place) -> bool {
        place.0.closed.is_cancelled()
    }

    #[tokio::test(start_paused = true)]
    async fn the_connection_that_was_unused_for_longest_makes_room() {
        let places = places(4);
        let mut held = Vec::new();
        for n in 0..4 {
            held.push(silent(&places, n));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // The oldest connection has had a request, the next one is answering one.
        drop(complete(&held[0]));
        let under_way = complete(&held[1]);
        let closed = |held: &[Place]| -> Vec<bool> { held.iter().map(is_closed).collect() };
        held.push(silent(&places, 9));
        assert_eq!(closed(&held), [false, false, true, false, false]);
        held.push(silent(&places, 8));
        assert_eq!(closed(&held), [false, false, true, true, false, false]);
        // A place that was taken away is not given back a second time.
        held.truncate(2);
        assert_eq!(lock(&places.open).held(), 2);
        drop(under_way);
    }

    /// A burst of sockets must not close the connection of a probe of the same peer in the middle of its handshake.
    #[tokio::test(start_paused = true)]
    async fn sockets_that_say_nothing_go_before_connections_that_have_begun() {
        let places = places(8);
        let probe = places.take(peer(1)).unwrap();
        probe.0.greet();
        let sockets: Vec<Place> = (0..100).map(|_| silent(&places, 1)).collect();
        assert!(!is_closed(&probe));
        drop(sockets);
        // Of connections that have begun, the oldest is closed.
        tokio::time::advance(Duration::from_secs(1)).await;
        let begin = |_| {
            let place = places.take(peer(1)).unwrap();
            place.0.greet();
            place
        };
        let begun: Vec<Place> = (0..2).map(begin).collect();
        assert!(is_closed(&probe) && !is_closed(&begun[0]));
    }

    /// Before, a burst closed connections that were accepted within it, whatever they had sent.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_closed_before_it_was_looked_at() {
        let places = places(8);
        let probe = places.take(peer(1)).unwrap();
        let socket = places.take(peer(1)).unwrap();
        assert_eq!(places.take(peer(1)).unwrap_err(), NoPlace::NotLookedAt);
        // A client that has spoken goes after one that may not have.
        probe.0.look(true);
        places.looked().await;
        assert_eq!(places.take(peer(1)).unwrap_err(), NoPlace::NotLookedAt);
        socket.0.look(false);
        places.looked().await;
        assert!(places.take(peer(1)).is_ok());
        assert!(!is_closed(&probe) && is_closed(&socket));
    }

    /// Before, a host with IPv6 had as many shares as addresses.
    #[tokio::test(start_paused = true)]
    async fn all_addresses_of_a_network_have_one_share() {
        let places = places(8);
        let of = |address: &str, n: u16| {
            let place = places.take(SocketAddr::new(address.parse().unwrap(), n));
            let place = place.unwrap();
            place.0.look(false);
            place
        };
        let other = [of("2001:db8:0:2::1", 1), of("2001:db8:0:2::1", 2)];
        let many = (1..100).map(|n| of(&format!("2001:db8:0:1::{n:x}"), n));
        let many: Vec<Place> = many.collect();
        assert_eq!(many.iter().filter(|place| !is_closed(place)).count(), 2);
        assert!(!other.iter().any(is_closed));
        let same = [of("::ffff:10.0.0.7", 1), of("10.0.0.7", 2)].map(|place| place.0.peer);
        assert_eq!(same, [IpAddr::from([10, 0, 0, 7]); 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_takes_places_from_itself_alone() {
        let places = places(8);
        let kubelet = silent(&places, 1);
        let held: Vec<Place> = (0..100).map(|_| silent(&places, 2)).collect();
        assert_eq!(held.iter().filter(|place| !is_closed(place)).count(), 2);
        assert!(!is_closed(&kubelet));
        // If all connections of a peer are in use, no further one is accepted.
        let busy: Vec<_> = (0..2)
            .map(|_| {
                let place = places.take(peer(3)).unwrap();
                let request = complete(&place);
                (place, request)
            })
            .collect();
        assert_eq!(places.take(peer(3)).unwrap_err(), NoPlace::AllBusy);
        drop(busy);
        assert!(places.take(peer(3)).is_ok());
    }

    /// Before, four peers that kept one unfinished body on each of their connections had all places, and every other
    /// client was refused.
    #[tokio::test(start_paused = true)]
    async fn peers_that_complete_no_request_keep_no_other_out() {
        let places = places(32);
        let mut held = Vec::new();
        for n in 0..64 {
            let place = places.take(peer(2 + n % 4)).unwrap();
            place.0.greet();
            let request = place.0.begin().unwrap();
            held.push((place, request));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        let api_server = places.take(peer(1)).unwrap();
        api_server.0.greet();
        let review = complete(&api_server);
        for n in 0..64 {
            let place = places.take(peer(2 + n % 4)).unwrap();
            place.0.greet();
            held.push((place, api_server.0.begin().unwrap()));
        }
        drop(review);
        assert!(!is_closed(&api_server));
        // Nor do peers that complete requests without end: the fullest gives up one of these.
        let places = self::places(32);
        let mut busy = Vec::new();
        for n in 0..28 {
            let place = places.take(peer(2 + n % 4)).unwrap();
            place.0.greet();
            let request = complete(&place);
            busy.push((place, request));
        }
        let api_server = places.take(peer(1)).unwrap();
        api_server.0.greet();
        drop(complete(&api_server));
        assert!(busy.iter().any(|(place, _)| is_closed(place)));
        assert!(!is_closed(&api_server));
    }

    /// An API server may share its address with other clients.
    #[tokio::test(start_paused = true)]
    async fn a_trusted_connection_is_not_closed_for_others_of_its_peer() {
        let places = places(32);
        let api_server = places.take(peer(1)).unwrap();
        api_server.0.greet();
        drop(complete(&api_server));
        api_server.0.peer().trust();
        let held: Vec<_> = (0..100)
            .map(|_| {
                let place = places.take(peer(1)).unwrap();
                place.0.greet();
                drop(complete(&place));
                place
            })
            .collect();
        assert!(!is_closed(&api_server) && is_closed(&held[0]));
        drop(api_server);
        assert_eq!(lock(&places.trusted).held(), 0);
    }

    /// Before, 5,000 refusals a second of one peer took the CPU time of all others.
    #[tokio::test(start_paused = true)]
    async fn a_stranger_is_turned_away_and_a_client_with_rights_is_not() {
        let places = places(32);
        let (stranger, api_server) = (silent(&places, 2), silent(&places, 1));
        drop(complete(&api_server));
        api_server.0.peer().trust();
        let beside = silent(&places, 1);
        for place in [&stranger, &beside] {
            for _ in 0..100 {
                place.0.peer().refused();
            }
        }
        assert!(is_closed(&stranger) && stranger.0.begin().is_err());
        assert_eq!(places.take(peer(2)).unwrap_err(), NoPlace::TurnedAway);
        assert!(places.take(peer(3)).is_ok());
        // The address of a client with rights is not turned away, although a stranger may share it.
        assert!(!is_closed(&api_server) && api_server.0.begin().is_ok());
        assert!(!is_closed(&beside) && places.take(peer(1)).is_ok());
        // 20 refusals a second are covered.
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(places.take(peer(2)).is_ok());
    }
}
