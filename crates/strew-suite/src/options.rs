//! What to play of the texts, what decides, and what is kept: plain values.

use std::sync::Arc;

use strew_manifest::duration::GoDuration;
use strew_manifest::read::Sources;
use strew_model::Span;

use crate::assumed::AssumedArgs;
use crate::configuration::SchedulingArgs;
use crate::failure::Failure;
use crate::nodes::NodeArgs;
use crate::seeds::{SeedsArg, Shard};
use crate::shown::Choice;

/// What to play, and what is kept of it.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The program's name, for commands to paste.
    pub program: String,
    /// What the command does with the files, in errors; `None`: `simulate`.
    pub verb: Option<&'static str>,
    /// The names of the files, for commands to paste.
    pub files: Vec<String>,
    /// The options that read the same files again.
    pub read_again: Vec<String>,
    /// How pods are scheduled.
    pub scheduling: SchedulingArgs,
    /// The text of `scheduling.config`.
    pub config: Option<Arc<Sources>>,
    /// Nodes beside those of the texts.
    pub nodes: NodeArgs,
    /// Objects that the texts name and lack.
    pub assumed: AssumedArgs,
    /// What is played.
    pub play: PlayArgs,
    /// The part of the seeds.
    pub shard: Option<Shard>,
    /// Nothing is played if a variant has more seeds.
    pub max_seeds: Option<u64>,
    /// The workloads that are told.
    pub choice: Choice,
    /// Further topology keys by which every workload is counted, besides those of constraints, zone and node.
    pub by: Vec<String>,
    /// What is kept of runs.
    pub keep: Keep,
}

/// What is kept of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// Every run with the cluster after each of its steps; otherwise sums, and one example of each variant.
    pub reports: bool,
    /// The steps of one run are shown: the one that failed, if one did.
    pub steps: bool,
    /// All that happened in the run that is shown, for the page.
    pub pages: bool,
    /// The schedulers' decisions of the run that is shown.
    pub decisions: bool,
    /// The digest of the input: parts that are added up must be of the same.
    pub digest: bool,
    /// The objects of the files, for questions about them after the run.
    pub objects: bool,
}

impl Keep {
    /// What a report needs.
    pub const REPORT: Self = Self {
        reports: true,
        steps: true,
        pages: false,
        decisions: false,
        digest: false,
        objects: false,
    };
}

/// What to play, and which results decide.
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    feature = "clap",
    derive(clap::Args),
    command(next_help_heading = "What to play (of files without a Scenario the built-in story)")
)]
pub struct PlayArgs {
    /// Play only this variant, or these; the scenario as written is called base
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub variant: Vec<String>,
    /// Play each variant with this number of seeds, or with the seeds from A to before B, in place of the scenario's
    /// number; --seed plays one
    #[cfg_attr(feature = "clap", arg(long, value_name = "N|A..B"))]
    pub seeds: Option<SeedsArg>,
    /// End each run at this time, for example 90s or 1h30m, or after the step of this name: of the built-in story
    /// deploy, rollout, lose, restore, cronjobs or scale
    #[cfg_attr(feature = "clap", arg(long, value_name = "DURATION|STEP"))]
    pub until: Option<String>,
    /// Steps that decide the exit code, by name [default: all]; claims about every moment always do. The word warnings
    /// adds: each warning fails the command
    #[cfg_attr(feature = "clap", arg(long, value_name = "STEP", num_args = 1.., value_delimiter = ','))]
    pub fail_on: Vec<String>,
}

/// The word of `--fail-on` that names no step.
pub const WARNINGS: &str = "warnings";

/// When runs end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// This long after the start.
    At(Span),
    /// After the step of this name.
    Step(String),
}

impl PlayArgs {
    /// Parses `--until`: a duration, or else the name of a step.
    ///
    /// # Errors
    /// It is a negative duration.
    pub fn until(&self) -> Result<Option<Until>, Failure> {
        let Some(text) = &self.until else {
            return Ok(None);
        };
        match GoDuration::parse(text) {
            Some(duration) if duration < GoDuration::ZERO => {
                let error = format!("--until {text}: before the start");
                Err(Failure::input(error).with_hint("90s, 15m and 1h30m are times of a run"))
            }
            Some(duration) => Ok(Some(Until::At(Span(duration.nanos())))),
            None => Ok(Some(Until::Step(text.clone()))),
        }
    }

    /// True if a warning fails the command.
    pub fn fails_on_warnings(&self) -> bool {
        self.fail_on.iter().any(|word| word == WARNINGS)
    }

    /// The steps of `--fail-on`; empty: all decide.
    pub fn deciding_steps(&self) -> Vec<&str> {
        let words = self.fail_on.iter().map(String::as_str);
        words.filter(|word| *word != WARNINGS).collect()
    }

    /// The options that play the same again, without the shard.
    pub fn to_args(&self) -> Vec<String> {
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
