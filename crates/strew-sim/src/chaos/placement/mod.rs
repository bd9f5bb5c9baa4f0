//! Generated hubs with faults: a seed gives a [`HubStory`], a story gives a run, and the run a verdict.
//!
//! Rules: no write of a PlacementDecision drops a cluster that stays; at rest hard limits hold, and a newly started
//! controller would decide what is stored, so that it writes nothing.
//!
//! Reading order: [`story`], [`generate`](mod@generate), `manifests`, `acts`, [`play`](mod@play), `text`.

mod acts;
pub mod generate;
mod manifests;
pub mod play;
pub mod story;
mod text;

pub use generate::generate;
pub use play::{play, shrink};
pub use story::{HubAction, HubStory};
