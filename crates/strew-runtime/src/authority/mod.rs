//! The webhook's own certificates: a CA in a Secret, serving certificates in memory, and `caBundle` in the
//! configurations. All are renewed before they expire, without a restart.
//!
//! The first replica that finds no Secret creates it. Afterwards the holder of lease `strew-webhook` takes each step.
//! If two replicas both believe to lead, the resourceVersion lets only one of them write. Every process makes its own
//! serving certificate.
//!
//! Reading order: [`plan`] (which step is due), [`bundle`] (`caBundle`), [`rotator`] (the machine).

pub mod bundle;
pub mod plan;
pub mod rotator;

pub use bundle::Place;
pub use plan::Lifetimes;
pub use rotator::Rotator;
