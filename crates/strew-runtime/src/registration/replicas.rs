//! Which replicas of the webhook are ready, from annotations that they renew.
//!
//! Every ready replica renews its own annotation on one Lease, [`LEASE`]. One object is enough for an RBAC rule by
//! name, and the answer to a replica's last write shows whether another replica exists: two that shut down at the same
//! time cannot both rely on the other. Endpoints would work only inside the cluster, and depend on kubelet probes.
//!
//! Clocks of different machines are never compared: a replica is ready while its annotation keeps changing, by the
//! observer's clock.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use strew_model::time::{Instant, Span};

use super::failures::LONGEST_WAIT;

/// The name of the Lease, in strew's namespace.
pub const LEASE: &str = "strew-webhook-replicas";

/// The prefix of each replica's annotation.
const PREFIX: &str = "replica.webhook.strew.dev/";

/// How often a replica renews its annotation, and how often the controller reads them.
pub const EVERY: Span = Span::from_secs(2);

/// How long an annotation counts after it was seen to change.
pub const EXPIRES: Span = Span::from_secs(8);

/// How long an annotation counts that was never seen to change: its replica may have been killed before. A ready
/// replica that is slower registers itself again if its registration is removed.
const PROVES_WITHIN: Span = Span::from_secs(3);

/// An annotation that has not changed for this long is removed: its replica was killed.
const FORGOTTEN_AFTER: Span = Span::from_secs(600);

/// After a longer gap between two reads, the silence is measured anew: an API server that does not answer prevents
/// replicas from writing.
const GAP: Span = Span::from_secs(6);

/// An annotation as last read.
#[derive(Debug, Clone)]
struct Seen {
    value: Value,
    /// When it first had its present value.
    at: Instant,
    /// True if it was seen to change.
    has_changed: bool,
}

impl Seen {
    fn counts(&self, now: Instant) -> bool {
        let lasts = match self.has_changed {
            true => EXPIRES,
            false => PROVES_WITHIN,
        };
        now < self.at + lasts
    }
}

/// What the Lease showed, read by read.
#[derive(Debug, Clone, Default)]
pub struct Replicas {
    /// Each annotation, by its replica.
    seen: BTreeMap<String, Seen>,
    looked: Option<Instant>,
    /// Since when it could not be read; `None`: the last read succeeded.
    failing_since: Option<Instant>,
    /// Since when reads have followed each other without a gap.
    since: Option<Instant>,
    /// When an annotation last changed.
    changed: Option<Instant>,
}

impl Replicas {
    /// Takes in the Lease; `null` if it does not exist.
    pub fn take_in(&mut self, now: Instant, lease: &Value) {
        if self.looked.is_none_or(|looked| now > looked + GAP) {
            self.since = Some(now);
        }
        if let Some(failing) = self.failing_since.take() {
            self.since = Some(now + now.since(failing).min(LONGEST_WAIT));
        }
        self.looked = Some(now);
        let annotations = lease["metadata"]["annotations"].as_object();
        let mut seen = BTreeMap::new();
        for (key, value) in annotations.into_iter().flatten() {
            let Some(id) = key.strip_prefix(PREFIX) else {
                continue;
            };
            let known = self.seen.remove(id);
            let replica = match known {
                Some(known) if known.value == *value => known,
                known => {
                    self.changed = Some(now);
                    Seen {
                        value: value.clone(),
                        at: now,
                        has_changed: known.is_some(),
                    }
                }
            };
            seen.insert(id.to_owned(), replica);
        }
        self.seen = seen;
    }

    /// The Lease could not be read: replicas may have been unable to write it, so the silence is measured anew. Replicas
    /// pause between attempts, never longer than they have failed: the silence begins that much later.
    pub fn not_read(&mut self, now: Instant) {
        self.failing_since.get_or_insert(now);
    }

    /// True if another replica is ready.
    pub fn has_others(&self, own: &str, now: Instant) -> bool {
        let mut others = self.seen.iter().filter(|(id, _)| *id != own);
        others.any(|(_, seen)| seen.counts(now))
    }

    /// Since when no replica has renewed its annotation; `None` if that is not known.
    pub fn silent_since(&self) -> Option<Instant> {
        let since = self.since?;
        Some(self.changed.map_or(since, |changed| changed.max(since)))
    }

    /// The merge patch with which a replica announces that it is ready. It also removes annotations of replicas that
    /// are long gone.
    pub fn renewal(&self, own: &str, value: &str, now: Instant) -> Value {
        let is_gone = |at: Instant| now >= at + FORGOTTEN_AFTER;
        let gone = self.seen.iter().filter(|(_, seen)| is_gone(seen.at));
        let mut annotations: Map<String, Value> =
            gone.map(|(id, _)| (key(id), Value::Null)).collect();
        annotations.insert(key(own), value.into());
        json!({"metadata": {"annotations": annotations}})
    }
}

/// The merge patch with which a replica announces that it is no longer ready.
pub fn withdrawal(own: &str) -> Value {
    json!({"metadata": {"annotations": {key(own): null}}})
}

fn key(id: &str) -> String {
    format!("{PREFIX}{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(annotations: &[(&str, &str)]) -> Value {
        let each = annotations.iter();
        let each: Map<String, Value> = each.map(|(id, v)| (key(id), (*v).into())).collect();
        json!({"metadata": {"annotations": each}})
    }

    const fn at(second: u64) -> Instant {
        Instant::from_secs(1_000 + second)
    }

    #[test]
    fn a_replica_is_there_while_its_annotation_changes() {
        let mut replicas = Replicas::default();
        assert_eq!(replicas.silent_since(), None);
        replicas.take_in(at(0), &lease(&[("a", "1"), ("b", "1")]));
        assert!(replicas.has_others("a", at(0)), "what is new counts");
        for second in [2, 4, 6, 8] {
            replicas.take_in(
                at(second),
                &lease(&[("a", &second.to_string()), ("b", "1")]),
            );
        }
        assert!(!replicas.has_others("a", at(3)), "b has never changed");
        assert!(replicas.has_others("b", at(15)));
        assert!(!replicas.has_others("b", at(16)));
        assert_eq!(replicas.silent_since(), Some(at(8)));
        replicas.take_in(at(10), &lease(&[("b", "1")]));
        replicas.take_in(at(12), &Value::Null);
        assert_eq!(replicas.silent_since(), Some(at(8)), "what goes is no sign");
    }

    #[test]
    fn a_gap_between_looks_is_no_silence_of_replicas() {
        let mut replicas = Replicas::default();
        replicas.take_in(at(0), &lease(&[("a", "1")]));
        replicas.take_in(at(6), &lease(&[("a", "1")]));
        assert_eq!(replicas.silent_since(), Some(at(0)));
        replicas.take_in(at(60), &lease(&[("a", "1")]));
        assert_eq!(replicas.silent_since(), Some(at(60)));
    }

    #[test]
    fn replicas_have_as_long_as_they_could_not_write() {
        let mut replicas = Replicas::default();
        replicas.take_in(at(0), &lease(&[("a", "1")]));
        replicas.not_read(at(2));
        replicas.not_read(at(4));
        replicas.take_in(at(5), &lease(&[("a", "1")]));
        assert_eq!(replicas.silent_since(), Some(at(8)));
        replicas.take_in(at(7), &lease(&[("a", "1")]));
        assert_eq!(replicas.silent_since(), Some(at(8)));
        replicas.not_read(at(10));
        replicas.take_in(at(110), &lease(&[("a", "1")]));
        assert_eq!(replicas.silent_since(), Some(at(170)));
    }

    #[test]
    fn replicas_take_away_those_that_are_long_gone() {
        let mut replicas = Replicas::default();
        replicas.take_in(at(0), &lease(&[("a", "1"), ("b", "1")]));
        assert_eq!(replicas.renewal("a", "2", at(599)), lease(&[("a", "2")]));
        let mut both = lease(&[("a", "2")]);
        both["metadata"]["annotations"][key("b")] = Value::Null;
        assert_eq!(replicas.renewal("a", "2", at(600)), both);
    }
}
