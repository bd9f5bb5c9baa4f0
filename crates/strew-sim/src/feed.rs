//! A simulated watch: which changes a component sees, and when.
//!
//! Without faults a change is delivered in the instant in which it was written. A fault delays events, repeats them, or
//! cuts the watch; then the component lists again and finds what it missed. Events of one kind arrive in order, as in a
//! watch of a real server.

use std::collections::{BTreeMap, VecDeque};

use strew_apiserver::Tables;
use strew_apiserver::object::Kind;
use strew_apiserver::server::{Change, Cursor, Server};
use strew_model::Prng;
use strew_model::time::{Instant, Span};

/// A fault of watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WatchFault {
    /// The longest delay; the delay of each event is drawn.
    pub delay: Span,
    /// Of a million events, the number that are repeated.
    pub repeat_ppm: u32,
    /// Of a million events, the number that cut the watch.
    pub cut_ppm: u32,
}

const MILLION: u64 = 1_000_000;

/// A component's watch.
#[derive(Debug)]
pub struct Feed {
    cursor: Cursor,
    /// Delayed events, by the time when they are due.
    held: BTreeMap<(Instant, u64), Change>,
    /// When the last event of each kind is due.
    latest: BTreeMap<Kind, Instant>,
    n_held: u64,
    /// After a cut: the result of the list, delivered at once.
    listed: VecDeque<Change>,
}

/// What a watch delivers.
#[derive(Debug)]
pub(crate) enum Brought {
    /// A write.
    Change(Change),
    /// The watch of this kind was cut: list again.
    Cut(Kind),
}

impl Feed {
    /// A watch of changes from now on.
    pub(crate) fn from_now_on(server: &Server) -> Self {
        Self {
            cursor: server.listen(),
            held: BTreeMap::new(),
            latest: BTreeMap::new(),
            n_held: 0,
            listed: VecDeque::new(),
        }
    }

    /// A watch that lists the store first.
    pub fn new(server: &Server) -> Self {
        let mut feed = Self::from_now_on(server);
        feed.relist(server, &Tables::default());
        feed
    }

    /// Lists everything again; `seen` is what the component knows.
    pub fn relist(&mut self, server: &Server, seen: &Tables) {
        server.catch_up(&mut self.cursor);
        self.held.clear();
        self.latest.clear();
        self.listed.clear();
        let now_there = server.tables();
        for object in seen.all() {
            let key = object.key();
            let is_there = now_there
                .find(&key)
                .is_some_and(|found| found.meta().uid == object.meta().uid);
            if !is_there {
                self.listed.push_back(Change {
                    key,
                    old: Some(object),
                    new: None,
                });
            }
        }
        for object in now_there.all() {
            let known = seen.find(&object.key());
            if known
                .as_ref()
                .is_none_or(|known| known.meta().version != object.meta().version)
            {
                self.listed.push_back(Change {
                    key: object.key(),
                    old: known,
                    new: Some(object),
                });
            }
        }
    }

    /// The next event, if one is due.
    pub fn next(
        &mut self,
        now: Instant,
        server: &Server,
        seen: &Tables,
        fault: Option<&WatchFault>,
        dice: &mut Prng,
    ) -> Option<Change> {
        let Some(fault) = fault else {
            return self.next_plain(server);
        };
        if let Some(change) = self.listed.pop_front() {
            return Some(change);
        }
        match self.bring(now, server, Some(fault), dice)? {
            Brought::Change(change) => Some(change),
            Brought::Cut(_) => {
                self.relist(server, seen);
                self.listed.pop_front()
            }
        }
    }

    /// The next event that is due, except the results of a list.
    pub(crate) fn bring(
        &mut self,
        now: Instant,
        server: &Server,
        fault: Option<&WatchFault>,
        dice: &mut Prng,
    ) -> Option<Brought> {
        let Some(fault) = fault else {
            return self.bring_plain(server).map(Brought::Change);
        };
        self.hold(now, server, fault, dice);
        let due = self
            .held
            .first_key_value()
            .filter(|((at, _), _)| *at <= now);
        let (_, first) = due?;
        if fault.cut_ppm > 0 && dice.chance(u64::from(fault.cut_ppm), MILLION) {
            return Some(Brought::Cut(first.key.kind.clone()));
        }
        self.held
            .pop_first()
            .map(|(_, change)| Brought::Change(change))
    }

    /// Skips the changes of a kind that are older than a list made now.
    pub(crate) fn skip(&mut self, now: Instant, server: &Server, kind: &Kind) {
        while let Some(change) = server.next_change(&mut self.cursor) {
            let latest = self.latest.entry(change.key.kind.clone()).or_default();
            *latest = (*latest).max(now);
            let at = *latest;
            self.held.insert((at, self.n_held), change.clone());
            self.n_held += 1;
        }
        self.held.retain(|_, change| change.key.kind != *kind);
    }

    /// The next event, without faults.
    pub(crate) fn next_plain(&mut self, server: &Server) -> Option<Change> {
        if let Some(change) = self.listed.pop_front() {
            return Some(change);
        }
        self.bring_plain(server)
    }

    fn bring_plain(&mut self, server: &Server) -> Option<Change> {
        // The fault is over: delayed events come first. Otherwise events of present writes would overtake them, again
        // and again within one instant.
        if let Some((_, change)) = self.held.pop_first() {
            return Some(change);
        }
        server.next_change(&mut self.cursor).cloned()
    }

    /// True if an event is due.
    pub fn is_due(&self, now: Instant) -> bool {
        !self.listed.is_empty()
            || self
                .held
                .first_key_value()
                .is_some_and(|((at, _), _)| *at <= now)
    }

    /// True if the server has changes that this watch has not read.
    pub fn is_behind(&self, server: &Server) -> bool {
        server.is_behind(&self.cursor)
    }

    /// When the next delayed event is due.
    pub fn next_wake(&self) -> Option<Instant> {
        self.held.first_key_value().map(|((at, _), _)| *at)
    }

    fn hold(&mut self, now: Instant, server: &Server, fault: &WatchFault, dice: &mut Prng) {
        while let Some(change) = server.next_change(&mut self.cursor) {
            let delay = Span(dice.between(0, fault.delay.0));
            let latest = self.latest.entry(change.key.kind.clone()).or_default();
            *latest = (*latest).max(now + delay);
            let at = *latest;
            let n_times = 1 + u64::from(dice.chance(u64::from(fault.repeat_ppm), MILLION));
            for _ in 0..n_times {
                self.held.insert((at, self.n_held), change.clone());
                self.n_held += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use strew_apiserver::object::Object;
    use strew_wire::config::AdmissionOptions;

    use super::*;

    #[test]
    fn what_a_fault_held_back_is_told_at_once_when_it_is_over_and_in_order() {
        let now = Instant::from_secs(100);
        let node = |name: &str| {
            let mut node = Node::default();
            node.metadata.name = Some(name.to_owned());
            Object::of_wire(node.into())
        };
        let (mut dice, nothing) = (Prng::new(1), Tables::default());
        let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(2));
        let mut feed = Feed::new(&server);
        let late = WatchFault {
            delay: Span::from_secs(60),
            ..WatchFault::default()
        };
        server.preload(now, node("old"));
        let told = feed.next(now, &server, &nothing, Some(&late), &mut dice);
        assert!(told.is_none());
        server.preload(now, node("new"));
        let mut names = Vec::new();
        while let Some(change) = feed.next(now, &server, &nothing, None, &mut dice) {
            names.push(change.key.name.name.to_string());
        }
        assert_eq!(names, ["old", "new"]);
    }
}
