//! The engine against the plain oracle, and the machine against a faulty world.

mod api;
mod exhaustive;
mod machine;
mod properties;
mod world;
