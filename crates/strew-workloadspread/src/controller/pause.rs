//! The pause after a status write in which a WorkloadSpread is not synced.
//!
//! The first of several changes is written at once. The pause delays the next sync, so that one write covers all
//! changes until then and few writes conflict with admission's. It delays the whole sync, not only the write: a sync
//! reads all pods of its target, and a scale-up changes hundreds of them per second.
//!
//! Kruise has no such pause: each event of a pod is a sync, and each sync is a write.

use strew_model::{Instant, Span};

/// The pause after the last status write of one WorkloadSpread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    until: Instant,
    /// The length of the pause after the last write. Zero before the first write.
    length: Span,
}

impl Pause {
    /// After a write: twice the previous pause, at most `max`, if that pause ended no longer ago than it lasted.
    /// Otherwise changes do not keep coming, and the pause is `first`.
    pub(super) fn after_write(before: Option<Self>, now: Instant, first: Span, max: Span) -> Self {
        let running = before.filter(|pause| now < pause.until + pause.length);
        let doubled = running.and_then(|pause| pause.length.doubled(1));
        let length = doubled.map_or(first, |doubled| doubled.max(first)).min(max);
        Self {
            until: now + length,
            length,
        }
    }

    /// After a conflict with another writer: `first`, whatever the previous pauses were.
    pub(super) fn after_conflict(before: Option<Self>, now: Instant, first: Span) -> Self {
        Self {
            until: now + first,
            length: before.map_or(Span::default(), |pause| pause.length),
        }
    }

    /// The end of the pause; `None` if it has ended.
    pub(super) fn ends(self, now: Instant) -> Option<Instant> {
        (now < self.until).then_some(self.until)
    }
}
