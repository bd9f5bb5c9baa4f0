//! Runs the benchmarks, optimized.

mod commands;
mod inputs;

use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::ValueEnum;

pub(crate) use commands::Keep;

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
    /// Whole commands, beside their last figures: fails where one costs 1.3 times as much
    Commands,
}

impl Suite {
    /// The crate that holds the benchmark, and the benchmark's name there; `None` for commands.
    fn bench(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Decide => ("strew-scheduler", "decide"),
            Self::Churn => ("strew-scheduler", "churn"),
            Self::ChurnWorkloadSpread => ("strew-workloadspread", "churn"),
            Self::Lives => ("strew-sim", "lives"),
            Self::Place => ("strew-placement", "place"),
            Self::Admit => ("strew-workloadspread", "admit"),
            Self::Audit => ("strew-scenario", "audit"),
            Self::Rebalance => ("strew-plan", "rebalance"),
            Self::Lint => ("strew-lint", "lint"),
            Self::Commands => return None,
        })
    }
}

/// Runs the measurements of a suite with these names, or all of it; without a suite, all suites.
pub(crate) fn run(suite: Option<Suite>, names: &[String], keep: Keep) -> anyhow::Result<ExitCode> {
    let suites = suite.map_or_else(|| Suite::value_variants().to_vec(), |suite| vec![suite]);
    for suite in suites {
        let Some((package, bench)) = suite.bench() else {
            let code = commands::run(names, keep)?;
            if code != ExitCode::SUCCESS {
                return Ok(code);
            }
            continue;
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo)
            .args(["bench", "--quiet", "--package", package])
            .args(["--bench", bench, "--"])
            .args(names)
            .status()
            .context("starting cargo bench")?;
        if !status.success() {
            return Ok(ExitCode::from(3));
        }
    }
    Ok(ExitCode::SUCCESS)
}
