//! Registers the webhook for pods at the API server, only while a replica is ready: the shells of
//! [`strew_runtime::registration`], which decides.
//!
//! Reading order: [`registrar`] (a replica's loop), [`guard`] (the controller's loop), `own_review`, `way` (is the webhook
//! reached as the API server will reach it?).

pub mod guard;
mod own_review;
pub mod registrar;
mod way;

use std::time::Duration;

use strew_runtime::registration::ANSWER_WITHIN;

use crate::clock::duration;

pub use guard::Guard;
pub use registrar::{Registrar, Setup};
pub(crate) use strew_runtime::registration::way::OWN_REVIEW;

/// The time limit for an answer of the API server.
fn answer_within() -> Duration {
    duration(ANSWER_WITHIN)
}
