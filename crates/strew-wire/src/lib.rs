//! The wire: Kubernetes objects to what decisions read, and decisions to requests.
//!
//! Objects come in through [`facts`]; their text was read by [`strew_manifest`]. Effects go out as a [`request`],
//! repeated as [`retry`] says, while a [`lease`] names the replica that sends them. [`config`] reads the scheduler's
//! configuration. [`placement`] and [`workloadspread`] have all of this for their kinds, [`keep`] for deletion costs, [`zones`]
//! for budgets by zone, [`definition`] has their CustomResourceDefinitions. [`rolling`] has what rollouts may add and miss.

pub mod config;
pub mod default_policy;
pub mod definition;
pub mod facts;
mod fnv;
pub mod keep;
pub mod lease;
pub mod placement;
pub mod request;
pub mod retry;
pub mod rolling;
pub mod workloadspread;
pub mod zones;
