//! Whole lives of workloads in the simulated cluster.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed"
)]

mod chaos;
mod faults;
mod judge;
mod life;
mod life_of_deployments;
mod life_of_pods;
mod life_of_sets;
mod placement;
mod ties;
mod variety;
