//! `strew simulate`: plays scenarios, or the built-in story, which is one.
//!
//! [`strew_suite`] does it; here are the arguments ([`arguments`]), what is shown meanwhile ([`console`], [`screen`]) and
//! written after it: [`text`] (for people), [`junit`] and [`sarif`] (for programs), [`mod@page`] (for a browser), [`decision`]
//! (`-v`). [`merging`] adds summaries up, `life` is one run, to look at.

mod arguments;
mod console;
mod decision;
mod junit;
mod life;
pub(crate) mod merging;
mod page;
mod sarif;
mod screen;
mod text;

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use strew_manifest::read::Severity;
use strew_suite::options::{Keep, Options};
use strew_suite::ready::Ready;
use strew_suite::replay;
use strew_suite::report::report;
use strew_suite::shown::Choice;
use strew_suite::simulate::{Results, Simulated, simulate};
use strew_suite::standing::Answer;
use strew_suite::streams;
use strew_suite::suite::{Staged, stage};
use strew_suite::summary::Summary;
use strew_suite::work::Work;

use crate::context::Context;
use crate::failure::{EXIT_INPUT, EXIT_NO, Failure};
use crate::inputs::Input;
use crate::output::Format;
use crate::world::WorldArgs;
use crate::{configuration, destination, diagnostics, html, output, terminal};
pub(crate) use arguments::{PlayedKind, ScenarioArgs};
use console::{Console, Desk};
#[cfg(feature = "cluster")]
pub(crate) use life::recorded;
pub(crate) use life::{Life, Seen, When, looked_at};
pub(crate) use strew_scenario::format::BASE;
pub(crate) use strew_suite::options::PlayArgs;

/// Ended by a signal.
const EXIT_INTERRUPTED: u8 = 130;

/// The request of the user.
pub(crate) struct Question<'a> {
    pub(crate) args: &'a ScenarioArgs,
    pub(crate) world: &'a WorldArgs,
    /// What the command does with the files, in errors; `None`: `simulate`.
    pub(crate) verb: Option<&'static str>,
    /// The files, as named by the user.
    pub(crate) files: &'a [String],
    pub(crate) output: Option<Format>,
    /// The file for the result; `None`: standard output.
    pub(crate) out: Option<&'a Path>,
    /// The file for the page; `None`: no page.
    pub(crate) html: Option<&'a str>,
    /// The workloads that are shown.
    pub(crate) choice: Choice,
    /// Further topology keys by which every workload is counted, besides those of constraints, zone and node.
    pub(crate) by: &'a [String],
    /// True if tables have headers.
    pub(crate) headers: bool,
    /// True if warnings would name places in texts that nobody wrote.
    pub(crate) is_only_errors: bool,
}

impl<'a> Question<'a> {
    /// About all workloads of these files, with the result as text on standard output.
    pub(crate) fn of(args: &'a ScenarioArgs, world: &'a WorldArgs, files: &'a [String]) -> Self {
        Self {
            args,
            world,
            verb: None,
            files,
            output: None,
            out: None,
            html: None,
            choice: Choice::ALL,
            by: &[],
            headers: true,
            is_only_errors: false,
        }
    }

    /// The same as plain values.
    ///
    /// # Errors
    /// The file of `--config` cannot be read.
    fn options(&self, context: &Context) -> Result<Options, Failure> {
        let (world, args) = (self.world, self.args);
        let config = configuration::read(&world.scheduling)?;
        Ok(Options {
            program: context.program.to_owned(),
            verb: self.verb,
            files: self.files.to_vec(),
            read_again: world.read_args(),
            scheduling: world.scheduling.clone(),
            config: config.map(Arc::new),
            nodes: world.nodes.clone(),
            assumed: world.assumed.clone(),
            play: args.play.clone(),
            shard: args.shard,
            max_seeds: args.max_seeds,
            choice: self.choice.clone(),
            by: self.by.to_vec(),
            keep: Keep {
                reports: self.output.is_some_and(Format::is_for_programs),
                steps: !matches!(
                    self.output,
                    Some(Format::Junit | Format::Sarif | Format::Summary)
                ),
                pages: self.html.is_some(),
                decisions: context.verbose > 0,
                digest: self.output == Some(Format::Summary),
                objects: false,
            },
        })
    }
}

/// True if a file seems to hold a Scenario.
pub(crate) fn is_in(inputs: &[Input]) -> bool {
    inputs.iter().any(streams::holds_scenario)
}

/// Prepares the files, and prints diagnostics; `None` if there are errors.
///
/// # Errors
/// Arguments that contradict each other.
pub(crate) fn ready(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<Ready>, Failure> {
    let options = question.options(context)?;
    let staged = stage(&options, inputs)?;
    say(&staged, question, context)?;
    Ok(staged.ready(&options)?)
}

/// The arguments that play all of it, after the name of the program.
///
/// # Errors
/// As [`ready`].
pub(crate) fn words(question: &Question<'_>, context: &Context) -> Result<Vec<String>, Failure> {
    Ok(replay::whole(&question.options(context)?))
}

/// Plays every variant with every seed, and writes the results.
pub(crate) fn run(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<u8, Failure> {
    if question.args.print_scenario {
        return print_scenario(question, inputs, context);
    }
    let options = question.options(context)?;
    let console = Console::new(question, &options, context);
    let mut desk = Desk::new(&console);
    let Simulated::Played(results) = simulate(inputs, &options, &console, &mut desk)? else {
        return Ok(EXIT_INPUT);
    };
    let took = desk.finish()?;
    let Results { ready, answer } = *results;
    let suites = &ready.suites;
    text::say_notes(&answer, context);
    if let Some(path) = question.html {
        let work = Work::new(suites, &options, &console)?;
        html::write(path, &page::data(&work, suites, &answer, context.program)?)?;
    }
    let text = match question.output {
        Some(Format::Json | Format::Yaml) => output::serialized(
            &report(suites, &answer),
            question.output.unwrap_or(Format::Json),
        )?,
        Some(Format::Summary) if answer.is_interrupted => {
            // An incomplete part cannot be merged.
            terminal::say("interrupted: no summary was written\n");
            return Ok(EXIT_INTERRUPTED);
        }
        Some(Format::Summary) => answer.summary.line().map_err(Failure::outside)?,
        Some(Format::Junit) => junit::write(&answer.summary, context.program),
        Some(Format::Sarif) => {
            format!("{:#}\n", sarif::write(&answer.summary, context.program))
        }
        Some(Format::Name) => text::names(suites, &answer),
        None | Some(Format::Wide) => text::write(&answer, took, context),
    };
    destination::write(question.out, &text)?;
    Ok(exit(question, &answer))
}

/// Prints the built-in story of the files as a Scenario.
fn print_scenario(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<u8, Failure> {
    if is_in(&inputs) {
        let error = anyhow!("--print-scenario: the files hold a Scenario already");
        return Err(Failure::input(error));
    }
    let Some(ready) = ready(question, inputs, context)? else {
        return Ok(EXIT_INPUT);
    };
    destination::write(question.out, &ready.story.unwrap_or_default())?;
    Ok(0)
}

/// Plays every variant with every seed; `None` if the files have errors, which were reported.
fn played(
    inputs: Vec<Input>,
    options: &Options,
    console: &Console<'_>,
) -> Result<Option<Box<Results>>, Failure> {
    let mut desk = Desk::new(console);
    let Simulated::Played(results) = simulate(inputs, options, console, &mut desk)? else {
        return Ok(None);
    };
    desk.finish()?;
    Ok(Some(results))
}

/// Plays every variant with every seed, and returns the report; `None` if the files have errors, which were reported.
pub(crate) fn reported(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<serde_json::Value>, Failure> {
    let options = question.options(context)?;
    let console = Console::new(question, &options, context);
    let Some(results) = played(inputs, &options, &console)? else {
        return Ok(None);
    };
    let report = serde_json::to_value(results.report());
    report.map(Some).map_err(Failure::outside)
}

/// Plays every variant with every seed, and returns the data of the page; `None` if the files have errors, which were
/// reported.
///
/// # Errors
/// As of [`run`].
#[cfg(feature = "cluster")]
pub(crate) fn page(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<String>, Failure> {
    let options = question.options(context)?;
    let console = Console::new(question, &options, context);
    let Some(results) = played(inputs, &options, &console)? else {
        return Ok(None);
    };
    let Results { ready, answer } = *results;
    if answer.is_interrupted {
        return Err(Failure::outside(anyhow!(
            "interrupted before all was played"
        )));
    }
    let work = Work::new(&ready.suites, &options, &console)?;
    page::data(&work, &ready.suites, &answer, context.program).map(Some)
}

fn exit(question: &Question<'_>, answer: &Answer) -> u8 {
    // The result of a part alone does not decide: a variant that must break may do so in a seed of another part.
    let is_part = question.args.shard.is_some();
    match (answer.is_interrupted, answer.summary.is_red() && !is_part) {
        (true, _) => EXIT_INTERRUPTED,
        (false, true) => EXIT_NO,
        (false, false) => 0,
    }
}

/// The formats of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SummaryFormat {
    /// Text.
    Text,
    /// Kind SimulationSummary.
    Summary,
    /// For CI systems that read test results.
    Junit,
    /// For code scanning.
    Sarif,
}

/// A summary in a format.
///
/// # Errors
/// Never.
pub(crate) fn write_summary(
    summary: &Summary,
    format: SummaryFormat,
    context: &Context,
) -> Result<String, Failure> {
    Ok(match format {
        SummaryFormat::Text => text::of_summary(summary, context),
        SummaryFormat::Summary => summary.line().map_err(Failure::outside)?,
        SummaryFormat::Junit => junit::write(summary, context.program),
        SummaryFormat::Sarif => format!("{:#}\n", sarif::write(summary, context.program)),
    })
}

/// Prints the diagnostics of the files, and notes about them if they can be played.
fn say(staged: &Staged, question: &Question<'_>, context: &Context) -> Result<(), Failure> {
    let mut said = staged.said();
    if question.is_only_errors {
        for (all, _) in &mut said {
            all.retain(|diagnostic| diagnostic.severity == Severity::Error);
        }
    }
    if diagnostics::say_diagnostics(&said, context) {
        return diagnostics::print_diagnostics("simulate", &said, question.output);
    }
    for note in &staged.notes {
        diagnostics::say_note(note, context);
    }
    Ok(())
}
