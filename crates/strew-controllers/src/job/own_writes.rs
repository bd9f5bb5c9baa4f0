//! A controller's own writes that its watch has not shown yet.
//!
//! Source: spec/controllers §0, "Expectations" and "Own writes first".

use std::collections::{BTreeMap, btree_map::Entry};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_apiserver::object::{Key, Object};
use strew_model::time::{Instant, Span};

use crate::controller::Change;

/// After this time the wait ends: an event may have been lost.
const EXPIRY: Span = Span::from_secs(300);

#[derive(Debug, Clone, Copy)]
enum Awaited {
    Version(u64),
    Deletion,
}

/// For each owner, the writes that its watch has not shown.
#[derive(Debug, Default)]
pub(super) struct OwnWrites {
    by_owner: FxHashMap<Arc<str>, Unseen>,
    owner_of: FxHashMap<Key, Arc<str>>,
}

#[derive(Debug)]
struct Unseen {
    awaited: BTreeMap<Key, Awaited>,
    until: Instant,
}

impl OwnWrites {
    /// Records a write and its answer.
    pub(super) fn wrote(&mut self, owner: &Arc<str>, now: Instant, stored: &Object) {
        let awaited = Awaited::Version(stored.meta().version);
        self.wait(owner, now, stored.key(), awaited);
    }

    /// Records the request to delete an object.
    pub(super) fn deleted(&mut self, owner: &Arc<str>, now: Instant, key: Key) {
        self.wait(owner, now, key, Awaited::Deletion);
    }

    fn wait(&mut self, owner: &Arc<str>, now: Instant, key: Key, awaited: Awaited) {
        if self.by_owner.get(owner).is_some_and(|u| u.until <= now) {
            self.forget(owner);
        }
        let unseen = self.by_owner.entry(Arc::clone(owner));
        let unseen = unseen.or_insert_with(|| Unseen {
            awaited: BTreeMap::new(),
            until: now,
        });
        unseen.awaited.insert(key.clone(), awaited);
        unseen.until = now + EXPIRY;
        self.owner_of.insert(key, Arc::clone(owner));
    }

    /// Takes in a change from the watch.
    pub(super) fn observe(&mut self, change: Change<'_>) {
        let Some(key) = change.object().map(Object::key) else {
            return;
        };
        let Some(owner) = self.owner_of.get(&key) else {
            return;
        };
        let Entry::Occupied(awaited) = (match self.by_owner.get_mut(owner) {
            Some(unseen) => unseen.awaited.entry(key.clone()),
            None => return,
        }) else {
            return;
        };
        let is_seen = change.new.is_none_or(|new| match awaited.get() {
            Awaited::Version(version) => new.meta().version >= *version,
            Awaited::Deletion => new.meta().is_terminating(),
        });
        if is_seen {
            awaited.remove();
            self.owner_of.remove(&key);
        }
    }

    /// Until when the owner waits; `None` if it has seen all its writes.
    pub(super) fn awaited_until(&self, owner: &str, now: Instant) -> Option<Instant> {
        let unseen = self.by_owner.get(owner)?;
        (!unseen.awaited.is_empty() && unseen.until > now).then_some(unseen.until)
    }

    /// The owner is gone.
    pub(super) fn forget(&mut self, owner: &str) {
        let unseen = self.by_owner.remove(owner);
        for key in unseen.into_iter().flat_map(|u| u.awaited.into_keys()) {
            self.owner_of.remove(&key);
        }
    }
}
