//! Connects strew's machines to a real Kubernetes API server: watches in, requests out.
//!
//! This crate decides nothing and keeps no second copy of the cluster.
//!
//! Reading order: [`connect`] and [`permission`], `agent` (user agent and field manager), [`clock`], [`watch`]
//! (watches), [`send`] (requests), `waits` (after failures), [`leading`] (election), `work` (the loop around a
//! machine); the processes [`scheduler`], [`controller`] and [`webhook`]; [`discovery`] (served kinds),
//! [`definitions`] (CustomResourceDefinitions), [`rivals`] (other schedulers), [`serve`] (HTTPS), [`page`] and [`mirror`] (`strew ui`), [`authority`]
//! (certificates), [`registration`] (when the webhook is registered), `signals` (health pages), [`metrics`],
//! [`panics`], [`huge_pages`], `platform` (what differs between operating systems), [`snapshot`] (all objects at one
//! time, for `strew snapshot` and `strew explain`), [`jobs`] (an Indexed Job and its logs, for `strew sweep`).

mod agent;
pub mod authority;
pub mod causes;
pub mod clock;
pub mod connect;
pub mod controller;
pub mod definitions;
mod der;
pub mod discovery;
pub mod huge_pages;
pub mod identity;
pub mod installed;
pub mod jobs;
pub mod leading;
pub mod metrics;
pub mod mirror;
pub mod page;
pub mod panics;
pub mod permission;
mod platform;
pub mod registration;
pub mod rivals;
pub mod scheduler;
pub mod send;
pub mod serve;
mod signals;
pub mod snapshot;
mod untyped;
mod waits;
pub mod watch;
pub mod webhook;
pub mod work;

pub use kube::Client;
pub use strew_runtime::Warning;
