//! Tests of WorkloadSpread's decisions from the outside.

mod admission;
mod adoption;
mod costs;
mod counters;
mod desk;
mod fleet;
mod group_commit;
mod ledger;
mod news;
mod owners;
mod pause;
mod policies;
mod reschedule;
mod rollouts;
mod room;
mod selector_labels;
mod together;
mod use_cases;
mod webhook;
mod world;
