//! What the process tells over HTTPS: health, metrics, configuration; and who may ask.
//!
//! [`Server::bind`] listens as a [`Listen`] says, and [`Server::run`] answers with an [`axum::Router`] until it is told to
//! stop. [`Access`] stands before the pages: who asks is asked of the API server, and so is what they may see.
//!
//! Reading order: [`listen`] (where, and the errors), [`certificate`] (given files, or self-signed), [`server`]
//! (connections and their limits), `places` (whose connection goes where there are too many), `distrust` (clients that do not accept the certificate), [`patience`] (no connection
//! waits for ever), [`access`], [`health`], [`pages`].
//!
//! Source: spec/scheduler §5.4, §5.5.

pub mod access;
pub mod certificate;
mod distrust;
pub mod health;
pub mod listen;
pub mod pages;
pub mod patience;
mod places;
pub mod server;

pub use access::{Access, Asker, Paths};
pub(crate) use certificate::provider;
pub use certificate::{Certificate, Exchange};
pub use health::{Check, Health};
pub use listen::{Listen, ServeError};
pub use server::{Limits, Server};

#[cfg(test)]
mod tests;
