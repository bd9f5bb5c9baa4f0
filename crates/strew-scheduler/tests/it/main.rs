//! The engine against the plain oracle.

mod exhaustive;
mod preemption;
mod properties;
mod world;
