//! The arguments about what is played.

use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use strew_suite::options::PlayArgs;
use strew_suite::seeds::Shard;

use crate::platform;

/// How to play it, and further outputs.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "What to play (of files without a Scenario the built-in story)")]
pub(crate) struct ScenarioArgs {
    #[command(flatten)]
    pub(crate) play: PlayArgs,
    /// Play one of N equal parts of the seeds, counted from 0, and write kind SimulationSummary, which strew merge adds
    /// up; the exit code says whether it was played, not whether it held
    #[arg(long, value_name = "I/N", conflicts_with_all = ["html", "events"])]
    pub(crate) shard: Option<Shard>,
    /// Play nothing if a variant has more seeds [default: 1000000]
    #[arg(long, value_name = "N")]
    pub(crate) max_seeds: Option<u64>,
    /// Write every change, event, verb and fault of all runs as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<String>,
    /// The number of runs at the same time [default: the number of cores]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the built-in story of these files as a Scenario, and play nothing: with the same files it gives the same
    /// result
    #[arg(long)]
    pub(crate) print_scenario: bool,
    /// Print a JSON schema: of kind Scenario, or of the report
    #[arg(long, exclusive = true, value_name = "KIND", num_args = 0..=1, default_missing_value = "scenario")]
    pub(crate) schema: Option<PlayedKind>,
    /// Print a commented example of a scenario
    #[arg(long = "new", exclusive = true)]
    pub(crate) starter: bool,
}

/// The kinds of `simulate`; `strew schema` has all.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlayedKind {
    /// Kind Scenario
    Scenario,
    /// Kind SimulationReport, which -o json writes
    Report,
}

impl ScenarioArgs {
    /// The number of runs at the same time.
    pub(crate) fn jobs(&self) -> usize {
        platform::jobs(self.jobs)
    }
}
