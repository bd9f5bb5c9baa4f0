//! Scenarios: what happens to a cluster in virtual time, and what must be true of it.
//!
//! [`format`](mod@format) reads the files that people write, [`run`] plays them in the simulated cluster, [`expect`]
//! judges what came of it.
//! [`import`](mod@import) makes scenarios of recordings, [`story`](mod@story) the one that manifests without any are played in.

pub mod expect;
pub mod format;
pub mod import;
pub mod run;
pub mod story;

use strew_sim::Simulation;
use strew_view::moment::Moment;

/// A simulated cluster as it is now.
pub fn moment(simulation: &Simulation) -> Moment<'_> {
    let replica = simulation.schedulers().next();
    Moment {
        server: simulation.server(),
        scheduler: replica.map(strew_sim::Replica::machine),
        names: &simulation.blueprint().names,
        profiles: &simulation.blueprint().profiles,
    }
}
