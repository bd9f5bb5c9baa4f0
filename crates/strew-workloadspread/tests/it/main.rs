//! Decisions of WorkloadSpread, from the outside.

mod admission;
mod adoption;
mod ahead;
mod costs;
mod counters;
mod desk;
mod fleet;
mod group_commit;
mod ledger;
mod news;
mod pause;
mod replicas;
mod reschedule;
mod room;
mod use_cases;
mod world;
