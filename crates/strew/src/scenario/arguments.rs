//! The arguments that are for scenarios only.

use std::num::{NonZeroU32, NonZeroUsize};

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use strew_api::duration::GoDuration;
use strew_model::Span;
use strew_scenario::format::SEEDS_MAX;

use crate::failure::Failure;
use crate::story::StepName;

/// What to play of a scenario.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Files with a Scenario")]
pub(crate) struct ScenarioArgs {
    /// Play this variant only, or these; the scenario as written is called base
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Vec<String>,
    /// Play each variant with so many seeds, whatever the scenario says; --seed plays one
    #[arg(long, value_name = "N", value_parser = seeds)]
    pub(crate) seeds: Option<NonZeroU32>,
    /// End each run then, for example 90s or 1h30m; without a Scenario, after this step of the story: deploy, rollout,
    /// scale, lose or restore
    #[arg(long, value_name = "DURATION|STEP")]
    pub(crate) until: Option<String>,
    /// Write every change, event, verb and fault of all runs as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<String>,
    /// Runs at the same time [default: as many as there are cores]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Print the JSON schema of kind Scenario
    #[arg(long, exclusive = true)]
    pub(crate) schema: bool,
    /// Print a commented scenario to begin with
    #[arg(long = "new", exclusive = true)]
    pub(crate) starter: bool,
}

impl ScenarioArgs {
    /// When to end.
    ///
    /// # Errors
    /// It is no duration.
    pub(crate) fn until(&self) -> Result<Option<Span>, Failure> {
        let Some(text) = &self.until else {
            return Ok(None);
        };
        match GoDuration::parse(text).filter(|duration| *duration >= GoDuration::ZERO) {
            Some(duration) => Ok(Some(Span(duration.nanos()))),
            _ => Err(Failure::input(anyhow!("--until {text}: no duration"))
                .with_hint("90s, 15m and 1h30m are")),
        }
    }

    /// The last step of the built-in story.
    ///
    /// # Errors
    /// There is no such step.
    pub(crate) fn last_step(&self) -> Result<StepName, Failure> {
        let Some(text) = &self.until else {
            return Ok(StepName::Restore);
        };
        StepName::from_str(text, true).map_err(|_| {
            Failure::input(anyhow!("--until {text}: the story has no such step"))
                .with_hint("its steps are deploy, rollout, scale, lose and restore; a duration is for a Scenario")
        })
    }

    /// How many runs at the same time.
    pub(crate) fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().ok();
        self.jobs.or_else(cores).map_or(1, NonZeroUsize::get)
    }

    /// The first argument that means a Scenario, as it is written.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [
            (!self.variant.is_empty(), "--variant"),
            (self.seeds.is_some(), "--seeds"),
            (self.events.is_some(), "--events"),
        ];
        let mut given = all.iter().filter(|(is_given, _)| *is_given);
        given.next().map(|(_, name)| *name)
    }
}

/// As many seeds as a scenario may have.
fn seeds(text: &str) -> Result<NonZeroU32, String> {
    let seeds = text.parse::<u32>().ok().and_then(NonZeroU32::new);
    let seeds = seeds.filter(|n| n.get() <= SEEDS_MAX);
    seeds.ok_or_else(|| format!("{text} is not in 1..={SEEDS_MAX}"))
}
