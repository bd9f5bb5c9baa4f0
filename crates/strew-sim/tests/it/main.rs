//! Whole lives of workloads in the simulated cluster.

mod life;
mod life_of_pods;
mod life_of_sets;
