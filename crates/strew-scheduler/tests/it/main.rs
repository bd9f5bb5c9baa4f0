//! The engine against the plain oracle.

mod exhaustive;
mod properties;
mod world;
