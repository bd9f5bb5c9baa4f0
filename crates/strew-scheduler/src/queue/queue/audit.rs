//! Invariants of the queue.

use super::{Counts, Place, Queue};

impl Queue {
    /// Recounts what is stored redundantly.
    ///
    /// # Errors
    /// The first difference from a recount, in words.
    pub fn audit(&self) -> Result<(), String> {
        let mut counts = Counts::default();
        let mut in_flight = 0;
        #[allow(clippy::iter_over_hash_type, reason = "counts have no order")]
        for entry in self.entries.values() {
            match entry.place {
                Place::Active => counts.active += 1,
                Place::Backoff { .. } => counts.backoff += 1,
                Place::ErrorBackoff { .. } => counts.error_backoff += 1,
                Place::Waiting { .. } => counts.unschedulable += 1,
                Place::Gated(_) => counts.gated += 1,
                Place::InFlight => in_flight += 1,
                Place::Binding => {}
            }
        }
        if counts != self.counts() || self.by_age.len() != counts.unschedulable {
            return Err(format!("counted {counts:?}, kept {:?}", self.counts()));
        }
        if in_flight == 0 && self.in_flight.len() > 0 {
            return Err("events are kept for no pod".to_owned());
        }
        Ok(())
    }
}
