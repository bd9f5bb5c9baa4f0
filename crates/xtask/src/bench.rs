//! Runs the benchmarks, optimized.

use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::ValueEnum;

/// A program that measures.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Pods onto nodes: JSON lines, each beside the plain recount
    Decide,
    /// Jobs that come and go: memory and CPU time a pod, of a million pods unless a number is given
    Churn,
    /// The same for the webhook and the controller of WorkloadSpreads
    #[value(name = "churn-workloadspread")]
    ChurnWorkloadSpread,
    /// Whole lives of a simulated cluster, growing in pods, nodes and rollouts
    Lives,
    /// Clusters for placements
    Place,
    /// Pods into the subsets of a WorkloadSpread
    Admit,
    /// The audit of a large dump: every zone lost, shifted, drained
    Audit,
    /// Evictions after a zone's return: 1,000 nodes, 20,000 pods, 2,000 workloads
    Rebalance,
    /// The rules of `strew lint` on 2,000 workloads, with verified fixes
    Lint,
}

impl Suite {
    /// The crate that holds the benchmark.
    fn package(self) -> &'static str {
        match self {
            Self::Decide | Self::Churn => "strew-scheduler",
            Self::Lives => "strew-sim",
            Self::Place => "strew-placement",
            Self::Audit => "strew-scenario",
            Self::Rebalance => "strew-plan",
            Self::Lint => "strew-lint",
            Self::Admit | Self::ChurnWorkloadSpread => "strew-workloadspread",
        }
    }

    /// The benchmark's name in the crate.
    fn bench(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Churn | Self::ChurnWorkloadSpread => "churn",
            Self::Lives => "lives",
            Self::Place => "place",
            Self::Admit => "admit",
            Self::Audit => "audit",
            Self::Rebalance => "rebalance",
            Self::Lint => "lint",
        }
    }
}

/// Runs the measurements of a suite with these names, or all of it; without a suite, all suites.
pub(crate) fn run(suite: Option<Suite>, names: &[String]) -> anyhow::Result<ExitCode> {
    let suites = suite.map_or_else(|| Suite::value_variants().to_vec(), |suite| vec![suite]);
    for suite in suites {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["bench", "--quiet", "--package", suite.package()])
            .args(["--bench", suite.bench(), "--"])
            .args(names)
            .status()
            .context("starting cargo bench")?;
        if !status.success() {
            return Ok(ExitCode::from(3));
        }
    }
    Ok(ExitCode::SUCCESS)
}
