//! Estimates memory before a simulation begins: one that would need more than there is does not begin.

use std::fmt;

use anyhow::anyhow;
use clap::Args;
use strew_sim::{N_PODS_MAX, Size};

use crate::failure::Failure;
use crate::inputs::bytes;
use crate::platform::available_memory;

/// What the program takes before it simulates: mostly pages of its code.
const OF_PROGRAM: u64 = 53 << 20;

/// The memory of a pod that comes to be: its object, its row, its events and the state of controllers. This and the
/// other numbers were fitted to the peaks in docs/benchmarks.md ("The estimate of memory").
const OF_POD: u64 = 6_200;

/// The memory of a pod in each further step, in which most pods are replaced: the event log keeps both.
const OF_POD_AGAIN: u64 = 4_500;

/// The memory of a node.
const OF_NODE: u64 = 16 << 10;

/// The memory of a workload in the report of a step.
const OF_WORKLOAD: u64 = 95_000;

/// The memory of a node in the report of a workload.
const OF_PLACE: u64 = 20;

/// The memory of a pod of a step on the page.
const OF_PAGE: u64 = 7_000;

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
    /// The most steps of a run, each of which ends with a report of all workloads.
    pub(crate) n_steps: u64,
    /// True if one run is kept for the page.
    pub(crate) is_page: bool,
}

impl Need {
    /// The estimate in bytes.
    fn bytes(self) -> u64 {
        let Size {
            n_pods,
            n_nodes,
            n_workloads,
        } = self.size;
        let n_steps = self.n_steps.max(1);
        let of_reports = sum([
            (n_workloads, OF_WORKLOAD),
            (n_workloads.saturating_mul(n_nodes), OF_PLACE),
        ]);
        let of_run = sum([
            (n_pods, OF_POD),
            (n_pods.saturating_mul(n_steps - 1), OF_POD_AGAIN),
            (n_nodes, OF_NODE),
            (n_steps, of_reports),
        ]);
        let page = n_pods.saturating_mul(n_steps);
        sum([
            (1, OF_PROGRAM),
            (self.n_at_once.min(self.n_runs), of_run),
            (self.n_kept, OF_RUN),
            (u64::from(self.is_page), page.saturating_mul(OF_PAGE)),
        ])
    }
}

/// The sum of products.
fn sum<const N: usize>(products: [(u64, u64); N]) -> u64 {
    let products = products.into_iter();
    products.fold(0, |sum, (n, of_one)| {
        sum.saturating_add(n.saturating_mul(of_one))
    })
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
        let Size {
            n_pods, n_nodes, ..
        } = need.size;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of so many pods on so many nodes, of so many workloads, with so many steps.
    fn need([n_pods, n_nodes, n_workloads, n_steps]: [u64; 4], is_page: bool) -> Need {
        Need {
            size: Size {
                n_pods,
                n_nodes,
                n_workloads,
            },
            n_at_once: 1,
            n_runs: 1,
            n_kept: 1,
            n_steps,
            is_page,
        }
    }

    /// The table of docs/benchmarks.md: peaks of whole runs of `strew simulate`, in MiB.
    #[test]
    fn an_estimate_is_within_a_factor_of_two_of_what_was_measured() {
        let table = [
            ([10_000, 500, 1, 1], false, 130),
            ([10_000, 15_000, 1, 1], false, 362),
            ([100_000, 5_000, 1, 1], false, 735),
            ([10_000, 1_000, 100, 1], false, 154),
            ([10_000, 5_000, 100, 1], false, 235),
            ([10_000, 1_000, 1_000, 1], false, 250),
            ([10_000, 5_000, 5_000, 1], false, 893),
            ([10_000, 1_000, 100, 6], false, 433),
            ([1_000, 100, 10, 6], true, 146),
            ([10_000, 1_000, 100, 1], true, 205),
            ([10_000, 1_000, 1_000, 2], false, 558),
            ([10_000, 1_000, 1_000, 2], true, 718),
            ([6_090, 1_523, 477, 1], false, 337),
            ([6_090, 1_523, 477, 2], false, 443),
            ([6_090, 1_523, 477, 2], true, 544),
        ];
        for (shape, is_page, measured) in table {
            let estimate = need(shape, is_page).bytes() >> 20;
            let is_near = estimate * 2 >= measured && estimate <= measured * 2;
            assert!(
                is_near,
                "{shape:?}, page {is_page}: {estimate} MiB for {measured}"
            );
        }
    }

    #[test]
    fn runs_at_the_same_time_need_memory_at_the_same_time() {
        let bytes = |n_pods, n_at_once, n_runs| {
            let need = Need {
                n_at_once,
                n_runs,
                n_kept: n_runs,
                ..need([n_pods, 10, 1, 1], false)
            };
            need.bytes() - OF_PROGRAM
        };
        let one = bytes(1_000, 2, 1);
        assert!((4 << 20..8 << 20).contains(&one), "{one}");
        assert!(bytes(1_000, 2, 2) >= 2 * one - OF_RUN);
        assert!(bytes(1_000, 2, 100) < 2 * one + 100 * OF_RUN);
        assert_eq!(need([u64::MAX, 10, 1, 1], false).bytes(), u64::MAX);
    }
}
