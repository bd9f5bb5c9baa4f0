//! Decisions of WorkloadSpread, from the outside.

mod admission;
mod group_commit;
mod room;
mod world;
