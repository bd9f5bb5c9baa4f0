//! The engine against the plain oracle.

mod exhaustive;
mod explain;
mod properties;
mod reasons;
mod world;
