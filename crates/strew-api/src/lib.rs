//! The wire: reading and validating Kubernetes objects, and converting them to facts.
//!
//! Objects come in through [`read`] (text to typed objects, every problem with its place), [`defaults`] and
//! [`validation`] (rules that configurations and custom resources share with pods), and [`facts`] (what decisions
//! read). [`kinds`] is the table of kinds; a [`mod@patch`] changes a stored object. Effects go out as a [`request`],
//! repeated as [`retry`] says, while a [`lease`] names the replica that sends them; an [`explanation`] is the output
//! for users. [`config`] reads the scheduler's configuration. [`placement`] and [`workloadspread`] have all of this for
//! their kinds, [`definition`] makes their CustomResourceDefinitions. [`rolling`] has what rollouts may add
//! and miss, [`mod@printable`] makes text safe to print;
//! [`snapshot`] removes secrets from a dump of a cluster.

pub mod config;
pub mod defaults;
pub mod definition;
pub mod duration;
pub mod explanation;
pub mod facts;
pub mod field;
mod fnv;
pub mod kinds;
pub mod lease;
pub mod patch;
pub mod placement;
pub mod printable;
pub mod quantity;
pub mod read;
pub mod request;
pub mod retry;
pub mod rolling;
pub mod snapshot;
pub mod validation;
pub mod workloadspread;
