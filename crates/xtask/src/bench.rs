//! Runs the benchmarks of decisions, optimized.

use std::process::{Command, ExitCode};

use anyhow::Context;

/// Crates and their benchmarks.
const BENCHES: [(&str, &str); 2] = [
    ("strew-scheduler", "decide"),
    // One line an admission or sync, with its bound.
    ("strew-workloadspread", "admit"),
];

/// Runs the measurements with these names, or all.
pub(crate) fn run(names: &[String]) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut succeeded = true;
    for (package, bench) in BENCHES {
        let arguments = [
            "bench",
            "--quiet",
            "--package",
            package,
            "--bench",
            bench,
            "--",
        ];
        let status = Command::new(&cargo)
            .args(arguments)
            .args(names)
            .status()
            .context("starting cargo bench")?;
        succeeded &= status.success();
    }
    Ok(if succeeded {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    })
}
