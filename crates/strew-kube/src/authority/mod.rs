//! The webhook's own certificates: the shell of [`strew_runtime::authority`], which decides. It has the keys; serving keys
//! stay in memory, and no key is logged.
//!
//! Reading order: [`pair`] (certificates), [`stored`] (the Secret), [`rotator`] (the loop).

pub mod pair;
pub mod rotator;
pub mod stored;

pub use rotator::CertificateRotator;
pub use strew_runtime::authority::{Lifetimes, Place};
