//! Scenarios: changes of a cluster in virtual time, and what must be true of it.
//!
//! [`format`](mod@format) reads the files that people write, [`run`] plays them in the simulated cluster, [`expect`]
//! judges the result. [`import`](mod@import) makes scenarios from recordings, [`story`](mod@story) makes the scenario
//! for manifests without one, [`made`] the nodes for files without one; [`audit`](mod@audit) plays its loss for every domain, and shifts and drains; [`rebalance`](mod@rebalance) plans
//! evictions.

pub mod audit;
pub mod expect;
pub mod format;
pub mod import;
pub mod made;
pub mod rebalance;
pub mod run;
pub mod story;

use strew_sim::Simulation;
use strew_view::moment::Moment;

/// The present moment of a simulated cluster, for views.
pub fn moment(simulation: &Simulation) -> Moment<'_> {
    let replica = simulation.schedulers().next();
    Moment {
        tables: simulation.server().tables(),
        scheduler: replica.map(strew_sim::Replica::machine),
        names: &simulation.blueprint().names,
        profiles: &simulation.blueprint().profiles,
    }
}
