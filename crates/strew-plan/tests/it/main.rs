//! Changes against decisions that are made afresh.

// The random clusters of the engine's tests: the same pods and nodes, asked another question.
#[allow(dead_code, unused_imports)]
#[path = "../../../strew-scheduler/tests/it/world/mod.rs"]
mod world;

mod rebalance;
mod suggest;
mod transaction;
