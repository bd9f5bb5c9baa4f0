//! The engine against the plain oracle.

mod exhaustive;
mod explain;
mod preemption;
mod properties;
mod reasons;
mod world;
