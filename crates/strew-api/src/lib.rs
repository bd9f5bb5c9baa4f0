//! The wire: reading and validating Kubernetes objects, and turning them into facts.
//!
//! An object's way: [`read`] (text into typed objects, every problem with its place), [`defaults`] and [`validation`]
//! (the rules that configurations and custom resources share with pods), [`facts`] (what decisions look at). A stored
//! object is changed by a [`mod@patch`]. An [`explanation`] goes the other way, and so do effects: each is a [`request`]
//! to the API server, sent again as [`retry`] says. A [`lease`] says which replica sends them.
//! How a scheduler is to decide is in [`config`];
//! [`definition`] makes CustomResourceDefinitions of types;
//! text of them is shown as [`mod@printable`] makes it; [`snapshot`] makes a dump of a cluster fit to be shown; WorkloadSpread has all of it in [`workloadspread`].

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
pub mod snapshot;
pub mod validation;
pub mod workloadspread;
