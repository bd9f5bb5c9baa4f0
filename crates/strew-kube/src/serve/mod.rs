//! HTTPS: health, metrics and configuration, with authentication and authorization; HTTP for a page on this machine.
//!
//! [`Server::bind`] listens as a [`Listen`] says; [`Server::run`] serves an [`axum::Router`] until it is stopped.
//! [`Access`] asks the API server who the client is and what it may see.
//!
//! Reading order: [`listen`] (address and errors), [`certificate`], [`server`] (connections and their limits), `places`
//! (which connection is closed when there are too many), `own` (connections of the process itself), `room` and `turns`
//! (shares and turns of peers), `distrust` (clients that reject the certificate), [`patience`]
//! (time limits of connections), [`access`], [`health`], [`pages`].
//!
//! Source: spec/scheduler §5.4, §5.5.

pub mod access;
pub mod certificate;
mod distrust;
pub mod health;
pub mod listen;
mod own;
pub mod pages;
pub mod patience;
mod places;
pub(crate) mod room;
pub mod server;
pub(crate) mod turns;

pub use access::{Access, Asker, Paths};
pub(crate) use certificate::provider;
pub use certificate::{Certificate, Exchange};
pub use health::{Check, Health};
pub use listen::{Listen, ServeError};
pub use own::OwnConnections;
pub use places::Peer;
pub use server::{CutOff, GoesOn, Limits, Server};

#[cfg(test)]
mod tests;
