//! Waits after failed requests about one object.

use strew_model::time::Span;

/// The first wait after a failed request, which may be just a lost race. Each further wait is twice as long.
const FIRST_WAIT: Span = Span::from_millis(100);

/// The longest wait: a request may be refused for ever.
pub(super) const LONGEST_WAIT: Span = Span::from_secs(60);

/// The lost races in a row after which one is logged: a replica usually loses one or two.
const RACES_MAX: u32 = 5;

/// The number of failed requests in a row about one object.
#[derive(Debug, Clone, Copy, Default)]
pub struct Failures(u32);

impl Failures {
    /// Adds a failure. Returns how long to wait, and whether to log it. `is_race`: another process wrote first.
    pub fn add(&mut self, is_race: bool) -> (Span, bool) {
        let wait = FIRST_WAIT.doubled(self.0);
        let wait = wait.map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT));
        self.0 = self.0.saturating_add(1);
        (wait, !is_race || self.0 > RACES_MAX)
    }

    /// True if the last request succeeded, and before the first.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Resets the count after a success.
    pub fn end(&mut self) {
        self.0 = 0;
    }
}
