//! The project's own scenarios with many seeds: `cargo xtask scenarios`. Each must hold in all, or break as its
//! `mustFail` says.

use std::ops::Range;
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::soak::of_commit;
use xtask::top;

/// The seeds of which `--from-commit` plays a part.
const SEEDS: u64 = 200;

/// Folders, those below included.
const FOLDERS: [&str; 2] = ["scenarios", "examples/scenarios"];

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Scenarios {
    /// How many seeds to play
    #[arg(long, default_value_t = SEEDS)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Play a part of the seeds 0 to 199 that is chosen by the newest commit, so that many commits try all
    #[arg(long, conflicts_with = "from")]
    from_commit: bool,
    /// Use the release build
    #[arg(long)]
    release: bool,
}

/// Plays them; exit code 1 if one does not hold.
pub(crate) fn run(options: &Scenarios) -> anyhow::Result<ExitCode> {
    let seeds = match options.from_commit {
        true => part(of_commit()?, options.seeds),
        false => options.from..options.from.saturating_add(options.seeds),
    };
    let range = format!("{}..{}", seeds.start, seeds.end);
    let status = Command::new(xtask::program("strew", options.release)?)
        .current_dir(top())
        .args(["simulate", "--recursive"])
        .args(FOLDERS)
        .args(["--seeds", &range])
        .status()
        .context("starting strew")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The part of the seeds that a number chooses; all if there are not more.
fn part(number: u64, n_seeds: u64) -> Range<u64> {
    let n_seeds = n_seeds.clamp(1, SEEDS);
    let start = number % SEEDS.div_ceil(n_seeds) * n_seeds;
    start..(start + n_seeds).min(SEEDS)
}

#[test]
fn parts_are_all_seeds() {
    let parts = (0..29).map(|number| part(number, 7));
    let seeds: Vec<u64> = parts.flatten().collect();
    assert_eq!(seeds, (0..SEEDS).collect::<Vec<u64>>());
    assert_eq!(part(u64::MAX, 1000), 0..SEEDS);
}
