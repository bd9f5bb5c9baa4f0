//! Zones: how many of their nodes are not ready, and at which rate their lost nodes are tainted.
//!
//! Source: spec/controllers §7.3, §7.4.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strew_apiserver::object::{Node, Truth};
use strew_model::time::{Instant, Span};

use super::Settings;
use super::condition::ready;

/// Region and zone from a node's labels; empty if there are none.
pub(super) type ZoneKey = (String, String);

/// Which zone a node is in.
pub(super) fn zone_of(node: &Node) -> ZoneKey {
    let label = |key| node.meta.label(key).unwrap_or_default().to_owned();
    (
        label("topology.kubernetes.io/region"),
        label("topology.kubernetes.io/zone"),
    )
}

/// Nodes with this label do not count.
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

/// The disruption of a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZoneState {
    Normal,
    PartialDisruption,
    FullDisruption,
}

/// The state of a zone with `n_nodes` counting nodes.
pub(super) fn state(settings: &Settings, n_nodes: usize, n_not_ready: usize) -> ZoneState {
    let percent = settings.unhealthy_zone_percent as usize;
    if n_not_ready > 0 && n_not_ready >= n_nodes {
        ZoneState::FullDisruption
    } else if n_not_ready > 2 && n_not_ready * 100 >= percent * n_nodes {
        ZoneState::PartialDisruption
    } else {
        ZoneState::Normal
    }
}

/// The time between two nodes that a queue hands out; `None`: it hands out none.
pub(super) fn interval(settings: &Settings, state: ZoneState, n_nodes: usize) -> Option<Span> {
    match state {
        ZoneState::Normal | ZoneState::FullDisruption => settings.eviction_interval,
        ZoneState::PartialDisruption if n_nodes > settings.large_zone_nodes => {
            settings.secondary_eviction_interval
        }
        ZoneState::PartialDisruption => None,
    }
}

/// A token bucket with a burst of 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    interval: Option<Span>,
    next: Instant,
}

impl Bucket {
    fn new(interval: Option<Span>) -> Self {
        Self {
            interval,
            next: Instant::default(),
        }
    }

    /// Takes the token; returns false if there is none.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        match self.interval {
            Some(interval) if now >= self.next => {
                self.next = now + interval;
                true
            }
            _ => false,
        }
    }

    /// When the next token is available; `None`: never.
    pub(super) fn next(&self) -> Option<Instant> {
        self.interval.map(|_| self.next)
    }

    /// Sets the rate. A bucket that is empty, or had rate 0, starts empty, so that waiting nodes continue to wait.
    pub(super) fn set_interval(&mut self, interval: Option<Span>, now: Instant) {
        if self.interval == interval {
            return;
        }
        let was_empty = !self.take(now);
        self.next = match interval {
            Some(interval) if was_empty => now + interval,
            _ => now,
        };
        self.interval = interval;
    }

    pub(super) fn interval(&self) -> Option<Span> {
        self.interval
    }
}

/// The nodes of a zone.
#[derive(Debug)]
pub(super) struct Zone {
    /// Nodes that count.
    pub(super) n_nodes: usize,
    /// Nodes that count and are not ready, by the cache.
    pub(super) n_not_ready: usize,
    /// The state after the last pass; `None` if no pass has seen the zone.
    pub(super) state: Option<ZoneState>,
    pub(super) bucket: Bucket,
    queue: VecDeque<Arc<str>>,
    /// Nodes in the queue, and those handed out.
    known: BTreeMap<Arc<str>, Turn>,
}

/// What a zone has done with a lost node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Queued,
    HandedOut,
}

impl Zone {
    /// Queues a node, unless it is queued, or was handed out and not released since.
    pub(super) fn add(&mut self, node: &Arc<str>) {
        if !self.known.contains_key(node) {
            self.known.insert(Arc::clone(node), Turn::Queued);
            self.queue.push_back(Arc::clone(node));
        }
    }

    /// Releases a node that was handed out; a queued one stays queued.
    pub(super) fn let_go(&mut self, node: &str) {
        if self.known.get(node) == Some(&Turn::HandedOut) {
            self.known.remove(node);
        }
    }

    /// Removes a node.
    pub(super) fn remove(&mut self, node: &str) {
        if self.known.remove(node) == Some(Turn::Queued) {
            self.queue.retain(|queued| **queued != *node);
        }
    }

    /// Hands out the next node if a token is available.
    pub(super) fn hand_out(&mut self, now: Instant) -> Option<Arc<str>> {
        if self.queue.is_empty() || !self.bucket.take(now) {
            return None;
        }
        let node = self.queue.pop_front()?;
        self.known.insert(Arc::clone(&node), Turn::HandedOut);
        Some(node)
    }

    /// Puts a node back to the front, because it could not be tainted.
    pub(super) fn take_back(&mut self, node: Arc<str>) {
        self.known.insert(Arc::clone(&node), Turn::Queued);
        self.queue.push_front(node);
    }

    /// True if a node is queued.
    pub(super) fn has_queue(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// All zones.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<ZoneKey, Zone>);

impl Zones {
    /// A zone; a new one has a full bucket.
    pub(super) fn of(&mut self, key: ZoneKey, settings: &Settings) -> &mut Zone {
        self.0.entry(key).or_insert_with(|| Zone {
            n_nodes: 0,
            n_not_ready: 0,
            state: None,
            bucket: Bucket::new(settings.eviction_interval),
            queue: VecDeque::new(),
            known: BTreeMap::new(),
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ZoneKey, &Zone)> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&ZoneKey, &mut Zone)> {
        self.0.iter_mut()
    }

    /// Updates the counts after a change of a node.
    pub(super) fn recount(&mut self, settings: &Settings, old: Option<&Node>, new: Option<&Node>) {
        let is_not_ready = |node: &Node| usize::from(ready(&node.status) != Some(Truth::True));
        if let Some(node) = old.filter(|node| counts(node)) {
            let zone = self.of(zone_of(node), settings);
            zone.n_nodes -= 1;
            zone.n_not_ready -= is_not_ready(node);
        }
        if let Some(node) = new.filter(|node| counts(node)) {
            let zone = self.of(zone_of(node), settings);
            zone.n_nodes += 1;
            zone.n_not_ready += is_not_ready(node);
        }
    }
}

/// True if a node counts.
pub(super) fn counts(node: &Node) -> bool {
    node.meta.label(EXCLUDED).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ZoneState::{FullDisruption, Normal, PartialDisruption};

    const SETTINGS: Settings = Settings::KUBERNETES_1_36;

    #[test]
    fn states_and_rates() {
        for (n_nodes, n_not_ready, expected, seconds) in [
            (3, 0, Normal, Some(10)),
            (3, 2, Normal, Some(10)),
            (5, 3, PartialDisruption, None),
            (20, 11, PartialDisruption, None),
            (20, 10, Normal, Some(10)),
            (50, 40, PartialDisruption, None),
            (51, 40, PartialDisruption, Some(100)),
            (3, 3, FullDisruption, Some(10)),
            (1, 1, FullDisruption, Some(10)),
        ] {
            let state = state(&SETTINGS, n_nodes, n_not_ready);
            assert_eq!(state, expected, "{n_not_ready} of {n_nodes}");
            let interval = interval(&SETTINGS, state, n_nodes);
            assert_eq!(
                interval,
                seconds.map(Span::from_secs),
                "{n_not_ready} of {n_nodes}"
            );
        }
    }

    #[test]
    fn after_a_rate_of_zero_the_bucket_is_empty() {
        let at = Instant::from_secs;
        let ten = Some(Span::from_secs(10));
        let mut bucket = Bucket::new(ten);
        assert!(bucket.take(at(100)));
        assert!(!bucket.take(at(109)));
        assert!(bucket.take(at(110)));
        bucket.set_interval(None, at(150));
        assert!(!bucket.take(at(500)));
        bucket.set_interval(ten, at(500));
        assert_eq!(bucket.next(), Some(at(510)));
        let mut full = Bucket::new(ten);
        full.set_interval(Some(Span::from_secs(100)), at(500));
        assert!(full.take(at(500)));
    }
}
