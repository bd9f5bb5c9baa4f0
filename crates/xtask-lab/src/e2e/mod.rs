//! Tests strew's processes on a real control plane, case by case: `cargo xtask e2e`.
//!
//! A case is a scenario file of `scenarios/e2e` ([`scenario`]), or a function of `cases` if it is about what only a
//! process has.
//!
//! Reading order: [`stage`] (what a case works with), [`parts`] (strew installed and started), [`scenario`], [`mirror`]
//! (the cluster that a file's expectations are judged on), `cases`, [`rollout`] (how a rollout with a fault is judged), [`watch_log`], [`follow`], [`histogram`], [`decisions`],
//! [`generated`] (clusters for comparisons).

mod cases;
mod decisions;
pub(crate) mod follow;
mod generated;
mod histogram;
mod mirror;
pub(crate) mod parts;
mod rollout;
mod scenario;
pub(crate) mod stage;
mod watch_log;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::slice;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use xtask_lab::lab::{Lab, Options, Scheduler, Timing, now};

use cases::{Case, Play};
use stage::{DEFAULT, Stage};

use xtask::go::{Build, binary};
use xtask::top;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct E2e {
    /// Cases by name, or by the beginning of it; all without any
    cases: Vec<String>,
    /// In full size, and all cases: 2,000 pods on 500 nodes under faults, for which xtask should be built with --release
    #[arg(long)]
    full: bool,
    /// How many cases run at the same time, each on a control plane of its own; those of --full are measured one by one
    #[arg(long, default_value_t = AT_ONCE)]
    at_once: NonZeroUsize,
    /// Only tell which cases there are
    #[arg(long)]
    list: bool,
}

/// Plays the cases; exit code 1 if any failed.
pub(crate) fn run(options: &E2e) -> anyhow::Result<ExitCode> {
    let cases = chosen(&options.cases, options.full || options.list)?;
    if options.list {
        for case in cases {
            let when = if case.only_full { " (--full)" } else { "" };
            println!("{:24} {}{when}", case.name, case.story);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let strew = build()?;
    // Before the workers, of which each would build it.
    binary(top(), Build::ControlPlane)?;
    let begin = now();
    let queue = Mutex::new(cases.iter());
    let workers = options.workers(cases.len());
    let failed = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| work(&strew, options.full, &queue)))
            .collect();
        let ended = workers.into_iter().map(|worker| match worker.join() {
            Ok(failed) => failed,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<anyhow::Result<Vec<_>>>()
    })?
    .concat();
    println!(
        "cases: {} ok, {} failed, in {:.1} s",
        cases.len() - failed.len(),
        failed.len(),
        begin.elapsed().as_secs_f64()
    );
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    // Once more, at the end: the log of a whole run is long.
    println!("{}", failed.join("\n"));
    Ok(ExitCode::FAILURE)
}

/// Two cases wait for each other's processor seldom: a case mostly waits for controllers.
const AT_ONCE: NonZeroUsize = NonZeroUsize::new(2).unwrap();

impl E2e {
    /// How many control planes `n_cases` cases use.
    fn workers(&self, n_cases: usize) -> usize {
        match self.full {
            true => 1,
            false => self.at_once.get().min(n_cases),
        }
    }
}

/// Plays cases of the queue on one control plane, in their order; returns what failed, with the folder of its logs.
fn work(
    strew: &Path,
    is_full: bool,
    queue: &Mutex<slice::Iter<Case>>,
) -> anyhow::Result<Vec<String>> {
    let begin = now();
    let lab = control_plane()?;
    println!(
        "control plane ready in {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    let mut stage = Stage::new(lab, top(), strew.to_owned(), is_full);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let mut failed = Vec::new();
    while let Some(case) = next() {
        if let Err(error) = play(&mut stage, case)? {
            let logs = stage.lab.folder().display();
            failed.push(format!("failed: {}: {error:#}\nlogs: {logs}", case.name));
        }
    }
    Ok(failed)
}

/// A control plane without a scheduler.
pub(crate) fn control_plane() -> anyhow::Result<Lab> {
    // Pods start and stop at once: the time that kubelets take does not matter here.
    let soon = (Duration::from_millis(100), Duration::from_millis(300));
    let timing = [("podStart", soon), ("podStop", soon)];
    Lab::start(
        top(),
        &Options {
            timing: Timing::from(timing.map(|(name, delay)| (name.to_owned(), delay))),
            scheduler: Scheduler::None,
            feature_gates: Vec::new(),
            grace: None,
        },
    )
}

/// Plays one case and cleans up after it; returns why it failed.
fn play(stage: &mut Stage, case: &Case) -> anyhow::Result<anyhow::Result<()>> {
    let begin = now();
    let result = match &case.play {
        Play::Code(play) => stage.begin(&case.name).and_then(|()| play(stage)),
        Play::Scenario(file) => stage
            .begin(DEFAULT)
            .and_then(|()| scenario::play(stage, file)),
    };
    let took = begin.elapsed().as_secs_f64();
    match &result {
        Ok(()) => println!("{:24} ok     {took:>6.1} s", case.name),
        Err(error) => println!("{:24} FAILED {took:>6.1} s: {error:#}", case.name),
    }
    // A component that has ended is the cause of all later failures; its output says why.
    stage.lab.expect_running()?;
    stage.end().context("cleaning up")?;
    Ok(result)
}

/// The cases with these names; without names all cases, except those that only run in full size.
fn chosen(names: &[String], is_full: bool) -> anyhow::Result<Vec<Case>> {
    let mut cases = cases::all()?;
    let is_named = |case: &Case, name: &str| case.name.starts_with(name);
    for name in names {
        ensure!(
            cases.iter().any(|case| is_named(case, name)),
            "there is no case {name:?}: --list tells which there are"
        );
    }
    let is_chosen = |case: &Case| match names {
        [] => is_full || !case.only_full,
        names => names.iter().any(|name| is_named(case, name)),
    };
    cases.retain(is_chosen);
    Ok(cases)
}

/// The workspace's own strew, built as this program is.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    xtask::program("strew", !cfg!(debug_assertions))
}
