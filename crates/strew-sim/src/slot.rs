//! A component's slot, empty while the component is crashed.

use strew_model::time::{Instant, Span};

/// A component, alive or dead.
pub(crate) struct Slot<T> {
    pub(crate) alive: Option<T>,
    /// When it is restarted.
    pub(crate) restart: Option<Instant>,
    /// The number of requests until it crashes, and how long it is down then.
    pub(crate) doomed: Option<(u32, Span)>,
}

impl<T> Slot<T> {
    pub(crate) fn new(component: T) -> Self {
        Self {
            alive: Some(component),
            restart: None,
            doomed: None,
        }
    }

    pub(crate) fn die(&mut self, restart: Instant) {
        self.alive = None;
        self.doomed = None;
        self.restart = Some(restart);
    }

    /// Crashes it at once, or instead of a later request.
    pub(crate) fn crash(&mut self, now: Instant, after_writes: u32, down: Span) {
        match after_writes {
            0 => self.die(now + down),
            n => self.doomed = Some((n, down)),
        }
    }

    /// Crashes it if it has sent its last request.
    pub(crate) fn meet_doom(&mut self, now: Instant) {
        if let Some((0, down)) = self.doomed {
            self.die(now + down);
        }
    }

    /// True if its restart is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.restart.is_some_and(|at| at <= now)
    }

    /// Cancels planned crashes, and restarts it at once if it is down.
    pub(crate) fn calm(&mut self, now: Instant) {
        self.doomed = None;
        self.restart = self.restart.map(|_| now);
    }
}
