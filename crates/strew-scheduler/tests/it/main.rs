//! The engine against the plain oracle, and the machine against a faulty world.

mod api;
mod exhaustive;
mod explain;
mod hints;
mod hostile;
mod machine;
mod making_room;
mod metrics;
mod preemption;
mod properties;
mod queue;
mod reasons;
mod ties;
mod volume_hints;
mod volumes;
mod world;
