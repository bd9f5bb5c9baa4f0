//! Runs the benchmark of decisions, optimized.

use std::process::{Command, ExitCode};

use anyhow::Context;

/// Runs the measurements with these names, or all.
pub(crate) fn run(names: &[String]) -> anyhow::Result<ExitCode> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "bench",
        "--quiet",
        "--package",
        "strew-scheduler",
        "--bench",
        "decide",
        "--",
    ];
    let status = Command::new(cargo)
        .args(arguments)
        .args(names)
        .status()
        .context("starting cargo bench")?;
    Ok(if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(3)
    })
}
