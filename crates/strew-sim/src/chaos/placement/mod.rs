//! Small hubs that everything befalls: from a seed a [`HubStory`], from a story a life, and a verdict on it.
//!
//! Judged: after each write of a decision no cluster that stays is missing; at rest hard limits hold, and what is stored
//! is what a controller that begins then would decide, so that nothing more is written.
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
pub use story::{HubAction, HubEvent, HubStory};
