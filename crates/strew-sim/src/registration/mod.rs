//! The registration of WorkloadSpread's webhook in the simulated cluster, with the machines of a real one.
//!
//! Replicas register themselves in the MutatingWebhookConfiguration, and controllers take the registration out. The API
//! server asks what is registered there, as far as its own watch has shown it, and trusts the CAs of its `caBundle`.
//! Without a [`RegistrationPlan`] every replica counts as registered, always.
//!
//! Reading order: `deed` (what a story does to it), `transit` (requests and questions under way), `follow` (watches),
//! `process` (a replica's and a controller's), `certificates`, `world` (which process reaches which), `known` (what the API server
//! knows), `judge`.

mod certificates;
mod deed;
mod follow;
mod judge;
mod known;
mod process;
mod transit;
mod world;

pub use deed::{Edit, HookDeed, Lives, RegistrationPlan};
pub(crate) use judge::ReviewOutcome;
pub(crate) use known::Terms;
pub(crate) use process::Registering;
pub(crate) use world::{Member, Registered};

/// strew's own namespace.
const NAMESPACE: &str = "strew-system";
