//! `strew controller`: the machines of WorkloadSpread and Placement on a real API server.

pub mod permissions;
