//! Creations and deletions that a controller has requested and that its watch has not shown, so that it does not
//! request them twice.
//!
//! Source: spec/controllers §0, "Expectations" and "Own writes first".

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Object, Pod};
use strew_model::time::{Instant, Span};

use crate::controller::Change;

/// The wait ends after this long.
const PATIENCE: Span = Span::from_secs(5 * 60);

/// The requested creations and deletions of pods, by owner, that no watch has shown yet.
///
/// A request is recorded after the write was answered; a failed write is not.
#[derive(Debug, Clone, Default)]
pub struct Expectations(FxHashMap<Arc<str>, Expected>);

#[derive(Debug, Clone, Default)]
struct Expected {
    /// Names of pods that must appear.
    creations: FxHashSet<Arc<str>>,
    /// Uids of pods that must begin to terminate.
    deletions: FxHashSet<Arc<str>>,
    /// When the last request was made.
    ordered: Instant,
}

impl Expectations {
    /// Records that pods of these names will appear, controlled by the owner with this uid.
    pub fn expect_creation(
        &mut self,
        owner_uid: &Arc<str>,
        names: impl IntoIterator<Item = Arc<str>>,
        now: Instant,
    ) {
        let expected = self.of(owner_uid, now);
        expected.creations.extend(names);
    }

    /// Records that pods with these uids will begin to terminate, or disappear.
    pub fn expect_deletion(
        &mut self,
        owner_uid: &Arc<str>,
        uids: impl IntoIterator<Item = Arc<str>>,
        now: Instant,
    ) {
        let expected = self.of(owner_uid, now);
        expected.deletions.extend(uids);
    }

    /// Takes in a change. Call it with every change, before the owner is synced.
    pub fn observe(&mut self, change: &Change<'_>) {
        let Some((old, new)) = change.of::<Pod>() else {
            return;
        };
        if let Some(old) = old {
            let is_going = new.is_none_or(|new| new.meta.is_terminating());
            self.see(old, is_going);
        }
        if let Some(new) = new {
            self.see(new, new.meta.is_terminating());
        }
    }

    /// True if everything that the owner requested was seen, or it has waited for five minutes.
    pub fn are_met(&self, owner_uid: &str, now: Instant) -> bool {
        self.waits_until(owner_uid).is_none_or(|until| now >= until)
    }

    /// Until when the owner waits for its requests; `None` if all were seen.
    pub fn waits_until(&self, owner_uid: &str) -> Option<Instant> {
        let expected = self.0.get(owner_uid)?;
        Some(expected.ordered + PATIENCE)
    }

    /// The owner is gone.
    pub fn forget(&mut self, owner_uid: &str) {
        self.0.remove(owner_uid);
    }

    fn of(&mut self, owner_uid: &Arc<str>, now: Instant) -> &mut Expected {
        let expected = self.0.entry(Arc::clone(owner_uid)).or_default();
        if now >= expected.ordered + PATIENCE {
            *expected = Expected::default();
        }
        expected.ordered = now;
        expected
    }

    fn see(&mut self, pod: &Pod, is_going: bool) {
        let Some(owner) = pod.meta.controller() else {
            return;
        };
        let Some(expected) = self.0.get_mut(&owner.uid) else {
            return;
        };
        expected.creations.remove(&pod.meta.name.name);
        if is_going {
            expected.deletions.remove(&pod.meta.uid);
        }
        if expected.creations.is_empty() && expected.deletions.is_empty() {
            self.0.remove(&owner.uid);
        }
    }
}

/// For each object that a controller has updated, the version that its cache must show before the next sync.
///
/// Only for objects that the cache had when they were written: if they are missing later, they are gone.
#[derive(Debug, Clone, Default)]
pub struct OwnWrites(FxHashMap<Arc<str>, BTreeMap<Key, u64>>);

impl OwnWrites {
    /// Records a write for the owner with this uid; `object` is the server's answer.
    pub fn wrote(&mut self, owner_uid: &Arc<str>, object: &Object) {
        let written = self.0.entry(Arc::clone(owner_uid)).or_default();
        written.insert(object.key(), object.meta().version);
    }

    /// True if the cache shows all writes for the owner. If not, a change will follow.
    pub fn are_seen(&mut self, owner_uid: &str, cache: &Tables) -> bool {
        let Some(written) = self.0.get_mut(owner_uid) else {
            return true;
        };
        while let Some(first) = written.first_entry() {
            let seen = cache.find(first.key());
            if seen.is_some_and(|seen| seen.meta().version < *first.get()) {
                return false;
            }
            first.remove();
        }
        self.0.remove(owner_uid);
        true
    }

    /// The owner is gone.
    pub fn forget(&mut self, owner_uid: &str) {
        self.0.remove(owner_uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pod_of;

    const START: Instant = Instant::from_secs(100);

    fn seen(expectations: &mut Expectations, old: Option<&Object>, new: Option<&Object>) -> bool {
        expectations.observe(&Change { old, new });
        expectations.are_met("owner", START)
    }

    #[test]
    fn every_creation_must_appear_and_repetition_does_not_count_twice() {
        let mut expectations = Expectations::default();
        let owner: Arc<str> = "owner".into();
        assert!(expectations.are_met("owner", START));
        expectations.expect_creation(&owner, ["a".into(), "b".into()], START);
        let (a, b) = (
            Object::from(pod_of("owner", "a")),
            Object::from(pod_of("owner", "b")),
        );
        let other = Object::from(pod_of("other", "b"));
        assert!(!seen(&mut expectations, None, Some(&a)));
        assert!(!seen(&mut expectations, None, Some(&a)));
        assert!(!seen(&mut expectations, None, Some(&other)));
        assert!(seen(&mut expectations, None, Some(&b)));
    }

    #[test]
    fn a_deletion_is_seen_when_the_pod_begins_to_terminate_or_is_gone() {
        let running = Object::from(pod_of("owner", "a"));
        let mut going = pod_of("owner", "a");
        going.meta.deletion = Some(strew_apiserver::object::Deletion {
            at: START,
            grace: Span::default(),
        });
        let going = Object::from(going);
        for (new, is_met) in [(Some(&running), false), (Some(&going), true), (None, true)] {
            let mut expectations = Expectations::default();
            let uid = Arc::clone(&running.meta().uid);
            expectations.expect_deletion(&"owner".into(), [uid], START);
            assert_eq!(seen(&mut expectations, Some(&running), new), is_met);
        }
    }

    #[test]
    fn after_five_minutes_nobody_waits() {
        let mut expectations = Expectations::default();
        expectations.expect_creation(&"owner".into(), ["a".into()], START);
        for (seconds, is_met) in [(0, false), (299, false), (300, true)] {
            let now = START + Span::from_secs(seconds);
            assert_eq!(expectations.are_met("owner", now), is_met, "{seconds} s");
        }
        let late = START + PATIENCE;
        expectations.expect_creation(&"owner".into(), ["b".into()], late);
        assert!(!expectations.are_met("owner", late));
        let b = Object::from(pod_of("owner", "b"));
        expectations.observe(&Change {
            old: None,
            new: Some(&b),
        });
        assert!(
            expectations.are_met("owner", late),
            "a is not waited for any more"
        );
    }

    #[test]
    fn own_writes_are_seen_at_their_version_or_when_the_object_is_gone() {
        let mut pod = pod_of("owner", "a");
        let mut cache = Tables::default();
        pod.meta.version = 4;
        cache.set(pod.clone().into());
        let mut writes = OwnWrites::default();
        pod.meta.version = 7;
        writes.wrote(&"owner".into(), &pod.clone().into());
        assert!(!writes.are_seen("owner", &cache));
        assert!(writes.are_seen("other", &cache));
        cache.set(pod.clone().into());
        assert!(writes.are_seen("owner", &cache));
        pod.meta.version = 9;
        let gone = Object::from(pod);
        writes.wrote(&"owner".into(), &gone);
        cache.remove(&gone.key());
        assert!(writes.are_seen("owner", &cache));
    }
}
