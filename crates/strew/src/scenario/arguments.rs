//! The arguments about what is played.

use std::num::NonZeroUsize;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use strew_manifest::duration::GoDuration;
use strew_model::Span;

use super::seeds::{SeedsArg, Shard};
use crate::failure::Failure;

/// What to play, and which results decide.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "What to play (of files without a Scenario the built-in story)")]
pub(crate) struct PlayArgs {
    /// Play only this variant, or these; the scenario as written is called base
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Play each variant with this number of seeds, or with the seeds from A to before B, in place of the scenario's
    /// number; --seed plays one
    #[arg(long, value_name = "N|A..B")]
    pub(crate) seeds: Option<SeedsArg>,
    /// End each run at this time, for example 90s or 1h30m, or after the step of this name: of the built-in story
    /// deploy, rollout, lose, restore, cronjobs or scale
    #[arg(long, value_name = "DURATION|STEP")]
    pub(crate) until: Option<String>,
    /// Steps that decide the exit code, by name [default: all]; claims about every moment always do. The word warnings
    /// adds: each warning fails the command
    #[arg(long, value_name = "STEP", num_args = 1.., value_delimiter = ',')]
    pub(crate) fail_on: Vec<String>,
}

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

/// The word of `--fail-on` that names no step.
pub(crate) const WARNINGS: &str = "warnings";

/// When runs end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Until {
    /// This long after the start.
    At(Span),
    /// After the step of this name.
    Step(String),
}

/// The kinds of `simulate`; `strew schema` has all.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlayedKind {
    /// Kind Scenario
    Scenario,
    /// Kind SimulationReport, which -o json writes
    Report,
}

impl PlayArgs {
    /// Parses `--until`: a duration, or else the name of a step.
    ///
    /// # Errors
    /// It is a negative duration.
    pub(crate) fn until(&self) -> Result<Option<Until>, Failure> {
        let Some(text) = &self.until else {
            return Ok(None);
        };
        match GoDuration::parse(text) {
            Some(duration) if duration < GoDuration::ZERO => {
                let error = anyhow!("--until {text}: before the start");
                Err(Failure::input(error).with_hint("90s, 15m and 1h30m are times of a run"))
            }
            Some(duration) => Ok(Some(Until::At(Span(duration.nanos())))),
            None => Ok(Some(Until::Step(text.clone()))),
        }
    }

    /// True if a warning fails the command.
    pub(crate) fn fails_on_warnings(&self) -> bool {
        self.fail_on.iter().any(|word| word == WARNINGS)
    }

    /// The steps of `--fail-on`; empty: all decide.
    pub(crate) fn deciding_steps(&self) -> Vec<&str> {
        let words = self.fail_on.iter().map(String::as_str);
        words.filter(|word| *word != WARNINGS).collect()
    }

    /// The options that play the same again, without the shard.
    pub(crate) fn to_args(&self) -> Vec<String> {
        let seeds = self.seeds.map(|seeds| seeds.to_string());
        let options = [("--seeds", seeds), ("--until", self.until.clone())];
        let options = options
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let variants = self.variant.iter().map(|name| ("--variant", name.clone()));
        let steps = (!self.fail_on.is_empty()).then(|| ("--fail-on", self.fail_on.join(",")));
        let all = options.chain(variants).chain(steps);
        all.flat_map(|(name, value)| [name.to_owned(), value])
            .collect()
    }
}

impl ScenarioArgs {
    /// The number of runs at the same time.
    pub(crate) fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().ok();
        self.jobs.or_else(cores).map_or(1, NonZeroUsize::get)
    }
}
