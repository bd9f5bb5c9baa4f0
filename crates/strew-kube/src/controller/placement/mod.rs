//! The controller of Placements on a real hub: the machine of [`strew_runtime::placement`] with watches and requests.
//!
//! Reading order: this file, `debug` (explains decisions), `metrics`.
//!
//! Source: spec/placement §2.

pub mod debug;
pub mod metrics;

use strew_placement::machine::Limits;
use strew_runtime::placement::{Placements, watches};

use crate::clock::stopwatch;
use crate::work::{Links, Worker};

/// Starts the controller, which lists its objects first.
pub(super) fn begin(links: Links, hostname: String) -> Worker<Placements> {
    let now = links.clock.now();
    let machine = Placements::new(hostname, Limits::production(), now).measured_with(stopwatch);
    Worker::new(machine, watches(), links)
}
