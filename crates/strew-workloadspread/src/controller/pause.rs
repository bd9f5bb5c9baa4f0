//! How long a WorkloadSpread is not synced after its status was written.
//!
//! The first of several changes is written at once. A pause holds back the next sync, so that one write reports what
//! came meanwhile, and few writes meet admission's. It holds back the whole sync, not the write alone: a sync looks at
//! all pods of its target, and a scale-up changes hundreds of them a second.
//!
//! Kruise has no such pause: each event of a pod is a sync, and each sync a write.

use strew_model::{Instant, Span};

/// The pause after the last status write of one WorkloadSpread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    until: Instant,
    /// How long the pause after the last write was. Zero before the first write.
    length: Span,
}

impl Pause {
    /// After a write: twice as long as the pause before, at most `max`, if that one ended no longer ago than it lasted.
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

    /// After a conflict, in which another writer was faster: `first`, whatever the pauses before were.
    pub(super) fn after_conflict(before: Option<Self>, now: Instant, first: Span) -> Self {
        Self {
            until: now + first,
            length: before.map_or(Span::default(), |pause| pause.length),
        }
    }

    /// When the pause ends; `None` if it has ended.
    pub(super) fn ends(self, now: Instant) -> Option<Instant> {
        (now < self.until).then_some(self.until)
    }
}
