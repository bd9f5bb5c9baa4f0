//! A watch of one object beside the tables: it shows each change late, and in order.

use std::collections::VecDeque;

use serde_json::Value;
use strew_model::Prng;
use strew_model::time::{Instant, Span};

/// A watch of one object.
#[derive(Debug, Default)]
pub(super) struct Follow {
    /// The version of the last change that was sent; `None` before the first, `Some(None)` if there is no object.
    version: Option<Option<String>>,
    /// Changes under way.
    coming: VecDeque<(Instant, Value)>,
}

impl Follow {
    /// Takes in what is stored. Returns the object that the watch shows now, if that is news; `null` if it does not
    /// exist. The first answer comes at once.
    pub(super) fn next(
        &mut self,
        now: Instant,
        stored: Option<&Value>,
        lag: Span,
        rng: &mut Prng,
    ) -> Option<Value> {
        let version = stored.and_then(|object| object["metadata"]["resourceVersion"].as_str());
        let known = self.version.as_ref().map(Option::as_deref);
        if known != Some(version) {
            let lag = match known {
                None => Span::default(),
                Some(_) => Span::from_millis(rng.between(0, lag.0 / 1_000_000)),
            };
            let due = now + lag;
            let due = self.coming.back().map_or(due, |(last, _)| due.max(*last));
            self.coming
                .push_back((due, stored.cloned().unwrap_or_default()));
            self.version = Some(version.map(str::to_owned));
        }
        let mut shown = None;
        while let Some((_, object)) = self.coming.pop_front_if(|(due, _)| *due <= now) {
            shown = Some(object);
        }
        shown
    }

    /// When the next change is shown.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.coming.front().map(|(due, _)| *due)
    }
}
