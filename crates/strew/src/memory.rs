//! Estimates memory before a simulation begins: one that would need more than there is does not begin.

use std::fmt;

use anyhow::anyhow;
use clap::Args;
use strew_sim::{N_PODS_MAX, Size};

use crate::failure::Failure;
use crate::inputs::bytes;
use crate::platform::available_memory;

/// The memory of a pod in a simulation: its object, its row, its events and the state of controllers. From the peak
/// memory of whole runs in docs/benchmarks.md: 100,000 pods on 5,000 nodes take 492 to 505 MiB.
const OF_POD: u64 = 5 << 10;

/// The memory of a node: 3,900 more of them take 60 MiB more.
const OF_NODE: u64 = 16 << 10;

/// The memory that is kept of a completed run, without pages and decisions: 190 more runs of a rollout take 1 MiB more.
const OF_RUN: u64 = 8 << 10;

/// Options about memory.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct MemoryArgs {
    /// Do not begin a simulation that is estimated to need more memory [default: the available memory]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_memory: Option<u64>,
}

/// The runs to be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// The largest simulation.
    pub(crate) size: Size,
    /// The number of runs at the same time.
    pub(crate) n_at_once: u64,
    /// The number of all runs.
    pub(crate) n_runs: u64,
    /// The number of completed runs that are kept.
    pub(crate) n_kept: u64,
}

impl Need {
    /// The estimate in bytes.
    fn bytes(self) -> u64 {
        let Size { n_pods, n_nodes } = self.size;
        let of_run = n_pods
            .saturating_mul(OF_POD)
            .saturating_add(n_nodes.saturating_mul(OF_NODE));
        let at_once = self.n_at_once.min(self.n_runs);
        of_run
            .saturating_mul(at_once)
            .saturating_add(self.n_kept.saturating_mul(OF_RUN))
    }
}

impl MemoryArgs {
    /// # Errors
    /// It needs more memory than allowed.
    pub(crate) fn check(self, need: Need) -> Result<(), Failure> {
        // A simulation refuses more pods than that.
        let is_refused = need.size.n_pods > N_PODS_MAX;
        let max = self.max_memory.or_else(available_memory);
        let Some(max) = max.filter(|_| !is_refused) else {
            return Ok(());
        };
        let bytes = need.bytes();
        if bytes <= max {
            return Ok(());
        }
        let Size { n_pods, n_nodes } = need.size;
        let (bytes, max) = (Mebibytes(bytes), Mebibytes(max));
        let n_at_once = need.n_at_once.min(need.n_runs);
        let error = anyhow!(
            "{n_pods} pods and {n_nodes} nodes, {n_at_once} of {} runs at a time, take about {bytes}, and {max} are available",
            need.n_runs
        );
        let hint =
            "fewer replicas, --seeds or --jobs take less; --max-memory plays it all the same";
        Err(Failure::input(error).with_hint(hint))
    }
}

/// Rounded up.
struct Mebibytes(u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB", self.0.div_ceil(1 << 20))
    }
}

#[test]
fn an_estimate_is_near_what_was_measured() {
    let size = Size {
        n_pods: 100_000,
        n_nodes: 5_000,
    };
    let (n_at_once, n_runs) = (1, 1);
    let need = Need {
        size,
        n_at_once,
        n_runs,
        n_kept: n_runs,
    };
    let mebibytes = need.bytes() >> 20;
    assert!((505..650).contains(&mebibytes), "{mebibytes} MiB for 505");
}

#[test]
fn runs_at_the_same_time_need_memory_at_the_same_time() {
    let need = |n_pods, n_at_once, n_runs| {
        let size = Size {
            n_pods,
            n_nodes: 10,
        };
        let need = Need {
            size,
            n_at_once,
            n_runs,
            n_kept: n_runs,
        };
        need.bytes()
    };
    let one = need(1_000, 2, 1);
    assert!((4 << 20..6 << 20).contains(&one), "{one}");
    assert!(need(1_000, 2, 2) >= 2 * one - OF_RUN);
    assert!(need(1_000, 2, 100) < 2 * one + 100 * OF_RUN);
    assert_eq!(need(u64::MAX, 2, 2), u64::MAX);
}
