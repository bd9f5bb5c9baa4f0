//! The controller of Placements on a real hub: [`strew_runtime::placement`] between sockets.
//!
//! Reading order: this file, `debug` (why a Placement holds what it holds), `metrics`.
//!
//! Source: spec/placement §2.

pub mod debug;
pub mod metrics;

use strew_placement::machine::Limits;
use strew_runtime::placement::{Placements, watches};

use crate::clock::stopwatch;
use crate::work::{Links, Worker};

/// A controller that begins by listing what there is.
pub(super) fn begin(links: Links, hostname: String) -> Worker<Placements> {
    let now = links.clock.now();
    let machine = Placements::new(hostname, Limits::production(), now).measured_with(stopwatch);
    Worker::new(machine, watches(), links)
}
