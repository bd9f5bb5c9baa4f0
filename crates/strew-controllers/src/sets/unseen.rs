//! Writes of a controller that its watches have not shown yet; until then it does not sync that object.
//!
//! Source: spec/controllers §0, "Expectations" and "Own writes first".

use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_apiserver::object::{Key, Name, Object};
use strew_model::time::{Instant, Span};

use crate::controller::Change;

/// The wait ends after this long. Source: spec/controllers §12, "expectations expire".
const WAIT_MAX: Span = Span::from_secs(300);

/// The unseen writes of each object.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    writes: FxHashMap<Key, Write>,
    waiting: FxHashMap<Name, Waiting>,
}

#[derive(Debug)]
struct Write {
    owner: Name,
    awaited: Awaited,
}

#[derive(Debug)]
enum Awaited {
    /// The object has this version or a later one.
    Version(u64),
    /// The object with this uid terminates, or is gone.
    Deletion(Arc<str>),
}

#[derive(Debug)]
struct Waiting {
    n_writes: usize,
    /// The time of the last write.
    since: Instant,
}

impl Unseen {
    /// Records a write for `owner` with its result.
    pub(crate) fn wrote(&mut self, owner: &Name, stored: &Object, now: Instant) {
        let awaited = Awaited::Version(stored.meta().version);
        self.await_write(owner, stored.key(), awaited, now);
    }

    /// Records the request to delete an object for `owner`.
    pub(crate) fn deleted(&mut self, owner: &Name, key: Key, uid: &Arc<str>, now: Instant) {
        self.await_write(owner, key, Awaited::Deletion(Arc::clone(uid)), now);
    }

    fn await_write(&mut self, owner: &Name, key: Key, awaited: Awaited, now: Instant) {
        self.seen(&key);
        let owner = owner.clone();
        let waiting = self.waiting.entry(owner.clone()).or_insert(Waiting {
            n_writes: 0,
            since: now,
        });
        waiting.n_writes += 1;
        waiting.since = now;
        self.writes.insert(key, Write { owner, awaited });
    }

    /// Takes in a change from the watch.
    pub(crate) fn observe(&mut self, change: &Change<'_>) {
        let Some(object) = change.object() else {
            return;
        };
        let key = object.key();
        let Some(write) = self.writes.get(&key) else {
            return;
        };
        let is_seen = match (&write.awaited, change.new) {
            (_, None) => true,
            (Awaited::Version(version), Some(new)) => new.meta().version >= *version,
            (Awaited::Deletion(uid), Some(new)) => {
                new.meta().is_terminating() || new.meta().uid != *uid
            }
        };
        if is_seen {
            self.seen(&key);
        }
    }

    fn seen(&mut self, key: &Key) {
        let Some(write) = self.writes.remove(key) else {
            return;
        };
        if let Some(waiting) = self.waiting.get_mut(&write.owner) {
            waiting.n_writes -= 1;
            if waiting.n_writes == 0 {
                self.waiting.remove(&write.owner);
            }
        }
    }

    /// Until when an object waits for its writes; `None` if all were seen, or the wait is over.
    pub(crate) fn wait_until(&mut self, owner: &Name, now: Instant) -> Option<Instant> {
        let until = self.waiting.get(owner)?.since + WAIT_MAX;
        if now >= until {
            self.forget(owner);
            return None;
        }
        Some(until)
    }

    /// Ends the wait for this object's writes.
    pub(crate) fn forget(&mut self, owner: &Name) {
        if self.waiting.remove(owner).is_some() {
            self.writes.retain(|_, write| write.owner != *owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use strew_apiserver::object::{Deletion, Meta, PodStatus};

    use super::*;

    fn pod(uid: &str, version: u64) -> Object {
        let mut meta = Meta::new(Name::new("default", "web-0"));
        meta.uid = uid.into();
        meta.version = version;
        Object::Pod(Arc::new(strew_apiserver::object::Pod {
            meta,
            spec: Arc::default(),
            node: None,
            status: PodStatus::default(),
        }))
    }

    fn set() -> Name {
        Name::new("default", "web")
    }

    const NOW: Instant = Instant::from_secs(50);

    fn waits(unseen: &mut Unseen) -> bool {
        unseen.wait_until(&set(), NOW).is_some()
    }

    #[test]
    fn a_write_is_seen_with_its_version_or_with_the_end_of_the_object() {
        for (new, expected) in [
            (Some(pod("a", 6)), true),
            (Some(pod("a", 7)), false),
            (Some(pod("a", 8)), false),
            (None, false),
        ] {
            let mut unseen = Unseen::default();
            unseen.wrote(&set(), &pod("a", 7), NOW);
            let old = pod("a", 5);
            unseen.observe(&Change {
                old: Some(&old),
                new: new.as_ref(),
            });
            assert_eq!(waits(&mut unseen), expected, "{new:?}");
        }
    }

    #[test]
    fn a_deletion_is_seen_when_the_pod_terminates() {
        let mut ending = pod("a", 8);
        ending.meta_mut().deletion = Some(Deletion {
            at: NOW,
            grace: Span(0),
        });
        for (new, expected) in [(pod("a", 9), true), (ending, false), (pod("b", 10), false)] {
            let mut unseen = Unseen::default();
            let old = pod("a", 7);
            unseen.deleted(&set(), old.key(), &"a".into(), NOW);
            unseen.observe(&Change {
                old: Some(&old),
                new: Some(&new),
            });
            assert_eq!(waits(&mut unseen), expected);
        }
    }

    #[test]
    fn after_five_minutes_nobody_waits() {
        let mut unseen = Unseen::default();
        unseen.wrote(&set(), &pod("a", 7), NOW);
        let end = NOW + WAIT_MAX;
        assert_eq!(unseen.wait_until(&set(), NOW), Some(end));
        assert_eq!(unseen.wait_until(&set(), end), None);
        assert!(!waits(&mut unseen));
    }
}
