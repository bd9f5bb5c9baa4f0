//! `strew simulate`: scenarios, or the built-in story, which is one.
//!
//! Reading order: [`arguments`], [`story`] (the built-in one, as a file), [`suite`] (files into plans), [`work`] (runs on
//! all cores, in order), [`recorder`] (what is kept of one run), [`log`] (every change as a line), [`screen`] (a run step
//! by step), [`series`] (its counts at each instant), [`standing`] (what is right and what is not), [`text`] (for people), [`report`], [`junit`] and [`sarif`] (for
//! programs), [`page`] (for a browser), [`decision`] (`-v`), `life` (one run, looked at), `clock`.

mod arguments;
mod clock;
mod decision;
mod interrupt;
mod junit;
mod ledgers;
mod life;
mod log;
mod page;
mod recorder;
mod replay;
mod report;
pub(crate) mod sarif;
mod screen;
mod series;
mod standing;
mod story;
mod suite;
mod text;
mod work;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use strew_api::read::nearest;
use strew_apiserver::object::Kind;

use crate::arguments::{Context, WorldArgs};
use crate::failure::{EXIT_NO, Failure};
use crate::inputs::Input;
use crate::memory::Need;
use crate::progress::Progress;
use crate::schema::SchemaKind;
use crate::shown::Choice;
use crate::simulate::{self, Format};
use crate::terminal;
pub(crate) use arguments::ScenarioArgs;
use arguments::{PlayedKind, Until};
pub(crate) use clock::clock;
pub(crate) use junit::wrong_input;
pub(crate) use life::{Life, When, life};
use standing::Breach;
pub(crate) use strew_scenario::format::BASE;
use strew_sim::Size;
use strew_view::moment::Frame;
use suite::{Cast, Staged, Suite};
use work::Work;

/// Somebody ended it.
const EXIT_INTERRUPTED: u8 = 130;

/// What was asked.
pub(crate) struct Question<'a> {
    pub(crate) args: &'a ScenarioArgs,
    pub(crate) world: &'a WorldArgs,
    /// The files, as they were named.
    pub(crate) files: &'a [String],
    pub(crate) output: Option<Format>,
    /// Where the page goes.
    pub(crate) html: Option<&'a str>,
    /// Which workloads are shown.
    pub(crate) choice: Choice<'a>,
    /// Topology keys to count every workload by, beside those of constraints, zone and node.
    pub(crate) by: &'a [String],
    /// Tables have headers.
    pub(crate) headers: bool,
}

/// Whether some file seems to hold a Scenario.
pub(crate) fn is_in(inputs: &[Input]) -> bool {
    inputs.iter().any(suite::holds_scenario)
}

/// Prints what needs no files: the schema, or a starter.
pub(crate) fn document(args: &ScenarioArgs) -> Option<String> {
    if let Some(kind) = args.schema {
        let kind = match kind {
            PlayedKind::Scenario => SchemaKind::Scenario,
            PlayedKind::Report => SchemaKind::Report,
        };
        return Some(format!("{:#}\n", kind.schema()));
    }
    args.starter
        .then(|| strew_scenario::format::starter().to_owned())
}

/// Plays every variant with every seed, and tells what came of it.
pub(crate) fn run(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<u8, Failure> {
    let staged = suite::stage(question, inputs)?;
    let story = staged.story.clone();
    let Some(suites) = say(staged, question, context)? else {
        return Ok(2);
    };
    check_choice(question, &suites)?;
    check_keys(question.by, &suites)?;
    if let Some(story) = story.filter(|_| question.args.print_scenario) {
        terminal::print(&story)?;
        return Ok(0);
    }
    #[allow(
        clippy::disallowed_methods,
        reason = "people are told how long it took; no report is"
    )]
    let began = Instant::now();
    let work = Work::new(&suites, question, context)?;
    question.world.memory.check(Need {
        size: largest(&suites),
        n_at_once: question.args.jobs() as u64,
        n_runs: work.len() as u64,
    })?;
    let mut log = question.args.events.as_deref().map(open_log).transpose()?;
    let interrupt = interrupt::flag()?;
    let progress = Progress::new(context.global.quiet);
    if work.len() > 1 {
        progress.start("playing", work.len());
    }
    let runs = work.run(question.args.jobs(), &interrupt, &progress, log.as_mut())?;
    progress.finish();
    if let Some(log) = &mut log {
        log.flush().map_err(Failure::outside)?;
    }
    let is_cut = question.args.until.is_some();
    let answer = standing::judge(&suites, runs, is_cut, &question.args.fail_on);
    text::say_notes(&answer, context);
    if let Some(path) = question.html {
        page::write(path, &work, question, &suites, &answer, &interrupt)?;
    }
    let again = |suite: &Suite, cast: &Cast, breach: &Breach| {
        let until = Until::At(breach.at);
        let program = context.program;
        replay::replay(program, question, suite, cast, breach.seed, Some(&until))
    };
    let text = match question.output {
        Some(Format::Json | Format::Yaml) => simulate::serialized(
            &report::report(question, &suites, &answer),
            question.output.unwrap_or(Format::Json),
        )?,
        Some(Format::Junit) => junit::write(&suites, &answer, &again),
        Some(Format::Sarif) => format!("{:#}\n", sarif::write(&suites, &answer, &again)),
        Some(Format::Name) => text::names(&suites, &answer),
        _ => text::write(question, &suites, &answer, began.elapsed(), context),
    };
    terminal::print(&text)?;
    Ok(match (&answer.is_interrupted, answer.is_red) {
        (true, _) => EXIT_INTERRUPTED,
        (false, true) => EXIT_NO,
        (false, false) => 0,
    })
}

/// Refuses words that choose none of the story's workloads. A Scenario may make workloads later.
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

/// Tells what is to be said of the files; `None` if they are wrong.
fn say(
    staged: Staged,
    question: &Question<'_>,
    context: &Context,
) -> Result<Option<Vec<Suite>>, Failure> {
    let (elsewhere, config) = staged.elsewhere;
    let mut said = vec![(elsewhere, &*config)];
    let each = staged.suites.iter();
    said.extend(each.map(|staged| (staged.diagnostics.clone(), &*staged.sources)));
    if simulate::say_diagnostics(&said, context) {
        simulate::print_diagnostics(&said, question.output)?;
        return Ok(None);
    }
    for note in &staged.notes {
        simulate::say_note(note, context);
    }
    let suites = staged.suites.into_iter();
    Ok(Some(suites.filter_map(|staged| staged.suite).collect()))
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

/// Each kubelet gives it to its node.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// The size of the largest variant, by what it begins with.
fn largest(suites: &[Suite]) -> Size {
    let casts = suites.iter().flat_map(|suite| &suite.variants);
    let sizes = casts.map(|cast| Size::of(cast.plan.objects()));
    sizes
        .max_by_key(|size| size.n_pods + size.n_nodes)
        .unwrap_or_default()
}

/// What views of a variant share; workloads are counted by these keys, too.
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

/// A run that came to no end.
fn stuck(name: &str, error: strew_scenario::run::RunError) -> Failure {
    let strew_scenario::run::RunError::Stuck(stuck) = error;
    Failure::stuck(stuck).context(format!("{name} could not be played"))
}
