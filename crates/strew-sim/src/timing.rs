//! Durations drawn from the seed.

use strew_model::Prng;
use strew_model::time::Span;

/// A range of durations, bounds included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Between {
    /// The lower bound.
    pub min: Span,
    /// The upper bound.
    pub max: Span,
}

impl Between {
    /// A range in seconds.
    pub const fn secs(min: u64, max: u64) -> Self {
        Self {
            min: Span::from_secs(min),
            max: Span::from_secs(max),
        }
    }

    /// A range in milliseconds.
    pub const fn millis(min: u64, max: u64) -> Self {
        Self {
            min: Span::from_millis(min),
            max: Span::from_millis(max),
        }
    }

    /// Draws a duration in whole milliseconds, so that not every pod has an instant of its own.
    pub fn draw(self, dice: &mut Prng) -> Span {
        const MILLI: u64 = 1_000_000;
        let (low, high) = (self.min.0 / MILLI, self.max.0.max(self.min.0) / MILLI);
        Span::from_millis(dice.between(low, high))
    }
}

/// How long things take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// From a pod's binding until it is ready: image, containers.
    pub pod_start: Between,
    /// From a pod's deletion until it is gone; at most its grace period.
    pub pod_stop: Between,
    /// How long a pod runs that ends by itself.
    pub pod_run: Between,
    /// From the request for a node until it exists.
    pub node_boot: Between,
    /// How long the webhook's write of a WorkloadSpread's status takes; creations by controllers wait for it.
    pub status_write: Between,
}

impl Default for Timing {
    /// Defaults for a cached image, a server that stops when asked, a Job of half a minute, a cloud machine, and an API
    /// server whose store has its own disks.
    fn default() -> Self {
        Self {
            pod_start: Between::secs(1, 3),
            pod_stop: Between::secs(1, 2),
            pod_run: Between::secs(30, 30),
            node_boot: Between::secs(60, 120),
            status_write: Between::millis(5, 5),
        }
    }
}
