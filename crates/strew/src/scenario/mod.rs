//! `strew simulate`: plays scenarios, or the built-in story, which is one.
//!
//! Reading order: [`arguments`] and [`seeds`], [`story`] (the built-in one, as a file), [`streams`] (which files belong
//! together), [`suite`] (turns files into plans), [`work`] (runs on all cores), [`recorder`] (what is kept of one run),
//! [`log`] (every change as a line), [`screen`] (a run step by step), [`series`] (its counts at each instant),
//! [`standing`] (adds runs up), [`summary`] (the results), [`remarks`] (what is told beside failures), [`verdicts`] (the
//! worst of them), [`merging`] (adds summaries up), [`text`] (for people), [`report`], [`junit`] and [`sarif`] (for
//! programs), [`page`] (for a browser), [`decision`] (`-v`), `cure` (what would prevent a breach), `life` (one run, to
//! look at), `clock`.

mod arguments;
mod clock;
mod cure;
mod decision;
mod interrupt;
mod junit;
mod ledgers;
mod life;
mod log;
pub(crate) mod merging;
mod page;
mod recorder;
mod remarks;
mod replay;
mod report;
mod sarif;
mod screen;
pub(crate) mod seeds;
mod series;
mod standing;
mod story;
mod streams;
mod suite;
pub(crate) mod summary;
mod text;
mod verdicts;
mod work;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use strew_apiserver::object::Kind;
use strew_manifest::finding::Finding;
use strew_manifest::read::nearest;

use crate::context::Context;
use crate::failure::{EXIT_INPUT, EXIT_NO, Failure};
use crate::inputs::Input;
use crate::memory::Need;
use crate::output::Format;
use crate::progress::Progress;
use crate::shown::Choice;
use crate::world::WorldArgs;
use crate::{destination, diagnostics, digest, output, terminal};
pub(crate) use arguments::{PlayArgs, PlayedKind, ScenarioArgs};
pub(crate) use clock::clock;
pub(crate) use life::{Life, Seen, When, life};
use seeds::SeedsArg;
use standing::{Answer, Standings};
pub(crate) use strew_scenario::format::BASE;
use strew_scenario::run::Plan;
use strew_sim::Size;
use strew_view::moment::Frame;
pub(crate) use suite::inspect::{Inspected, inspect, is_read};
use suite::{Cast, Staged, Suite};
use summary::Summary;
use work::Work;

pub(crate) use story::FILE as STORY_FILE;

/// Ended by a signal.
const EXIT_INTERRUPTED: u8 = 130;

/// The request of the user.
pub(crate) struct Question<'a> {
    pub(crate) args: &'a ScenarioArgs,
    pub(crate) world: &'a WorldArgs,
    /// The files, as named by the user.
    pub(crate) files: &'a [String],
    pub(crate) output: Option<Format>,
    /// The file for the result; `None`: standard output.
    pub(crate) out: Option<&'a Path>,
    /// The file for the page; `None`: no page.
    pub(crate) html: Option<&'a str>,
    /// The workloads that are shown.
    pub(crate) choice: Choice<'a>,
    /// Further topology keys by which every workload is counted, besides those of constraints, zone and node.
    pub(crate) by: &'a [String],
    /// True if tables have headers.
    pub(crate) headers: bool,
}

/// True if a file seems to hold a Scenario.
pub(crate) fn is_in(inputs: &[Input]) -> bool {
    inputs.iter().any(streams::holds_scenario)
}

/// Scenarios that can be played.
pub(crate) struct Ready {
    suites: Vec<Suite>,
    /// The built-in story as a file; `None` if Scenarios are played.
    story: Option<String>,
    inputs: String,
    /// The name of the first file.
    first_file: String,
    /// What a person should know about the files.
    findings: Vec<Finding>,
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
    check_seeds(question)?;
    let names = inputs.iter().map(|input| input.name.as_bytes());
    let bytes = inputs.iter().map(|input| input.bytes.as_slice());
    // Only a summary contains the digest of its input.
    let is_summed = question.output == Some(Format::Summary);
    let files = match is_summed {
        true => digest::of_parts(names.chain(bytes)),
        false => String::new(),
    };
    let first_file = inputs
        .first()
        .map_or(String::new(), |input| input.name.clone());
    let staged = suite::stage(question, inputs)?;
    let config = &staged.elsewhere.1;
    let config = question.world.scheduling.config.as_ref().map(|_| config);
    let config: Vec<u8> = config
        .iter()
        .flat_map(|sources| sources.iter().map(|(_, file)| file.text().as_bytes()))
        .flatten()
        .copied()
        .collect();
    let story = staged.story.clone();
    let Some((suites, findings)) = say(staged, question, context)? else {
        return Ok(None);
    };
    check_choice(question, &suites)?;
    check_keys(question.by, &suites)?;
    check_number(question.args.max_seeds, &suites)?;
    let words = replay::whole(question);
    let words = words.iter().map(String::as_bytes);
    let parts = [files.as_bytes(), config.as_slice()]
        .into_iter()
        .chain(words);
    Ok(Some(Ready {
        inputs: format!("sha256:{}", digest::of_parts(parts)),
        suites,
        story,
        first_file,
        findings,
    }))
}

impl Ready {
    /// The digest of all input that affects results.
    pub(crate) fn inputs(&self) -> &str {
        &self.inputs
    }

    /// The plan of the built-in story, and its first seed; `None` if Scenarios are played.
    pub(crate) fn into_story(self) -> Option<(Plan, u64)> {
        let suite = self.suites.into_iter().find(|suite| suite.is_story)?;
        let cast = suite.variants.into_iter().next()?;
        Some((cast.plan, cast.seeds.first))
    }

    /// The largest number of seeds of a variant.
    pub(crate) fn n_seeds(&self) -> u64 {
        let casts = self.suites.iter().flat_map(|suite| &suite.variants);
        casts.map(|cast| cast.seeds.count).max().unwrap_or(0)
    }
}

/// The arguments that play all of it, after the name of the program.
pub(crate) fn words(question: &Question<'_>) -> Vec<String> {
    replay::whole(question)
}

/// Plays every variant with every seed, and writes the results.
pub(crate) fn run(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<u8, Failure> {
    let kept = cure::kept(&inputs);
    let Some(ready) = ready(question, inputs, context)? else {
        return Ok(EXIT_INPUT);
    };
    let suites = &ready.suites;
    if let Some(story) = ready
        .story
        .as_ref()
        .filter(|_| question.args.print_scenario)
    {
        destination::write(question.out, story)?;
        return Ok(0);
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "people are told how long it took; no report is"
    )]
    let began = Instant::now();
    let work = Work::new(suites, question, context)?;
    question.world.memory.check(Need {
        size: largest(suites),
        n_at_once: question.args.jobs() as u64,
        n_runs: work.len(),
        n_kept: work.n_kept(),
    })?;
    let mut log = question.args.events.as_deref().map(open_log).transpose()?;
    let interrupt = interrupt::flag()?;
    let progress = Progress::new(context.quiet);
    if work.len() > 1 {
        progress.start("playing", work.len());
    }
    let standings = Standings::new(question, &ready);
    let jobs = question.args.jobs();
    let mut answer = work.run(standings, jobs, &interrupt, &progress, log.as_mut())?;
    // A summary is of the files as they are: its parts are added up.
    let is_summed = question.output == Some(Format::Summary);
    if let Some(inputs) = kept.filter(|_| ready.story.is_some() && !is_summed) {
        cure::try_all(question, &inputs, &ready, &mut answer, context, &interrupt)?;
    }
    progress.finish();
    if let Some(log) = &mut log {
        log.flush().map_err(Failure::outside)?;
    }
    text::say_notes(&answer, context);
    if let Some(path) = question.html {
        page::write(path, &work, suites, &answer, &interrupt)?;
    }
    let text = match question.output {
        Some(Format::Json | Format::Yaml) => output::serialized(
            &report::report(suites, &answer),
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
        None | Some(Format::Wide) => text::write(&answer, began.elapsed(), context),
    };
    destination::write(question.out, &text)?;
    Ok(exit(question, &answer))
}

/// Plays every variant with every seed, and returns the report; `None` if the files have errors, which were reported.
pub(crate) fn reported(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<serde_json::Value>, Failure> {
    let Some(ready) = ready(question, inputs, context)? else {
        return Ok(None);
    };
    let suites = &ready.suites;
    let work = Work::new(suites, question, context)?;
    let interrupt = interrupt::flag()?;
    let progress = Progress::new(context.quiet);
    let standings = Standings::new(question, &ready);
    let answer = work.run(standings, question.args.jobs(), &interrupt, &progress, None)?;
    progress.finish();
    let report = serde_json::to_value(report::report(suites, &answer));
    report.map(Some).map_err(Failure::outside)
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

/// Refuses more seeds than allowed.
fn check_number(max: Option<u64>, suites: &[Suite]) -> Result<(), Failure> {
    let each = suites
        .iter()
        .flat_map(|suite| suite.variants.iter().map(move |cast| (suite, cast)));
    for (suite, cast) in each {
        let n = cast.seeds.count;
        if let Some(max) = max.filter(|max| n > *max) {
            let (file, name) = (&suite.file, &cast.variant.name);
            let error =
                anyhow!("{file} (variant {name}) has {n} seeds, more than --max-seeds {max}");
            return Err(Failure::input(error).with_hint(format!("--seeds {max} plays fewer")));
        }
    }
    Ok(())
}

/// Refuses two arguments that set the first seed.
fn check_seeds(question: &Question<'_>) -> Result<(), Failure> {
    let is_range = matches!(question.args.play.seeds, Some(SeedsArg::Range(_)));
    match is_range && question.world.scheduling.seed.is_some() {
        false => Ok(()),
        true => {
            let error = anyhow!("--seed and --seeds A..B both say which seed is the first");
            Err(Failure::input(error).with_hint("--seed N --seeds M plays M seeds from N on"))
        }
    }
}

/// Refuses filters that match no workload of the story. A Scenario may create workloads later.
fn check_choice(question: &Question<'_>, suites: &[Suite]) -> Result<(), Failure> {
    let stories = suites.iter().filter(|suite| suite.is_story);
    let casts = stories.flat_map(|suite| &suite.variants);
    for cast in casts {
        question
            .choice
            .check(&cast.plan.admitted().workloads.list)?;
    }
    Ok(())
}

/// What can be played, and what a person should know about its files.
type Sound = (Vec<Suite>, Vec<Finding>);

/// Prints the diagnostics of the files, and returns them as findings; `None` if there are errors.
fn say(
    staged: Staged,
    question: &Question<'_>,
    context: &Context,
) -> Result<Option<Sound>, Failure> {
    let (elsewhere, config) = staged.elsewhere;
    let mut said = vec![(elsewhere, &*config)];
    let each = staged.suites.iter();
    said.extend(each.map(|staged| (staged.diagnostics.clone(), &*staged.sources)));
    if diagnostics::say_diagnostics(&said, context) {
        diagnostics::print_diagnostics("simulate", &said, question.output)?;
        return Ok(None);
    }
    for note in &staged.notes {
        diagnostics::say_note(note, context);
    }
    let notes = staged.notes.iter().map(|note| diagnostics::note(note));
    let findings = Finding::in_order(diagnostics::findings(&said).chain(notes));
    let suites = staged.suites.into_iter();
    let suites = suites.filter_map(|staged| staged.suite).collect();
    Ok(Some((suites, findings)))
}

/// Refuses keys of `--by` that no node has. A Scenario may label nodes later.
fn check_keys(keys: &[String], suites: &[Suite]) -> Result<(), Failure> {
    let stories = suites.iter().filter(|suite| suite.is_story);
    for cast in stories.flat_map(|suite| &suite.variants) {
        let nodes = cast.plan.objects().iter();
        let nodes = nodes.filter(|object| object.kind() == Kind::Node);
        let known = nodes.flat_map(|node| node.meta().labels.keys().map(|key| &**key));
        let known: BTreeSet<&str> = known.collect();
        let is_unknown = |key: &&String| *key != HOSTNAME && !known.contains(key.as_str());
        if let Some(key) = keys.iter().find(is_unknown) {
            let failure = Failure::input(anyhow!("--by {key}: no node has this label"));
            let meant = nearest(key, known.iter().copied());
            return Err(match meant {
                Some(meant) => failure.with_hint(format!("did you mean {meant}?")),
                None => failure,
            });
        }
    }
    Ok(())
}

/// Every kubelet sets it on its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The size of the largest variant, at second 0.
fn largest(suites: &[Suite]) -> Size {
    let casts = suites.iter().flat_map(|suite| &suite.variants);
    let sizes = casts.map(|cast| Size::of(cast.plan.objects()));
    sizes
        .max_by_key(|size| size.n_pods + size.n_nodes)
        .unwrap_or_default()
}

/// The state that views of a variant share; workloads are also counted by these keys.
fn frame(cast: &Cast, keys: &[String]) -> Frame {
    let blueprint = cast.plan.blueprint();
    Frame {
        names: blueprint.names.clone(),
        profiles: blueprint.profiles.clone(),
        workloads: cast.plan.admitted().workloads.clone(),
        keys: keys.to_vec(),
    }
}

pub(crate) type LogFile = BufWriter<File>;

fn open_log(path: &str) -> Result<LogFile, Failure> {
    let file = File::create(path)
        .with_context(|| format!("cannot write {path}"))
        .map_err(Failure::outside)?;
    Ok(BufWriter::new(file))
}

/// The failure of a run that did not end.
fn stuck(name: &str, error: strew_scenario::run::RunError) -> Failure {
    let strew_scenario::run::RunError::Stuck(stuck) = error;
    Failure::stuck(stuck).context(format!("{name} could not be played"))
}
