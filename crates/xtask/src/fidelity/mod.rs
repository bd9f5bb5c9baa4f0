//! Scenarios on a real control plane: `cargo xtask fidelity`.
//!
//! [`scenario`] reads a file, [`real`] plays it with kubectl ([`verb`]) and waits until the cluster has come to rest
//! ([`snapshot`]), [`observe`] makes an [`outcome`] of what is there; [`recorded`] keeps outcomes as facts, and
//! [`agreement`] compares others with them.

mod agreement;
mod observe;
mod outcome;
mod real;
mod recorded;
mod scenario;
mod smoke;
mod snapshot;
mod verb;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use xtask::lab::now;

use crate::ci::top;
use recorded::Recorded;
use scenario::Scenario;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Fidelity {
    /// Scenario files; all of scenarios/fidelity without any
    files: Vec<PathBuf>,
    /// How often each is played
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Add what is seen to e2e/recorded instead of comparing with it
    #[arg(long)]
    record: bool,
    /// Only start the control plane, run a Deployment on a node, and end it all
    #[arg(long, conflicts_with_all = ["files", "repeat", "record"])]
    check_lab: bool,
}

/// Plays the files; exit code 1 if an outcome is none that earlier runs have shown.
pub(crate) fn run(options: &Fidelity) -> anyhow::Result<ExitCode> {
    if options.check_lab {
        return smoke::run(top()).map(|()| ExitCode::SUCCESS);
    }
    let files = match options.files.is_empty() {
        true => own_scenarios()?,
        false => options.files.clone(),
    };
    let scenarios: Vec<Scenario> = files
        .iter()
        .map(|file| scenario::read(file))
        .collect::<Result<_, _>>()?;
    let mut agree = true;
    for scenario in &scenarios {
        agree &= play(scenario, options).with_context(|| scenario.name.clone())?;
    }
    Ok(match agree {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Whether all that is seen was seen before, or is recorded now.
fn play(scenario: &Scenario, options: &Fidelity) -> anyhow::Result<bool> {
    let earlier = Recorded::read(top(), scenario)?;
    if earlier.is_none() && !options.record {
        bail!("nothing is recorded of this text: run with --record");
    }
    let mut seen = Recorded::new(scenario);
    let mut record = earlier.unwrap_or_else(|| Recorded::new(scenario));
    for _ in 0..options.repeat {
        let begin = now();
        let outcomes = real::play(top(), scenario)?;
        let took = begin.elapsed().as_secs_f64();
        println!("{}: {} steps in {took:.1} s", scenario.name, outcomes.len());
        match options.record {
            true => {
                record.add(outcomes)?;
                record.write(top(), scenario)?;
            }
            false => seen.add(outcomes)?,
        }
    }
    if options.record {
        print_varying(&record);
        return Ok(true);
    }
    Ok(print_disagreements(scenario, &record, &seen))
}

fn print_varying(record: &Recorded) {
    println!("  {} runs recorded", record.runs);
    for step in &record.steps {
        for (about, values) in agreement::varying(&step.outcomes()) {
            let values: Vec<String> = values.into_iter().collect();
            println!("  {}: {about} varies: {}", step.at, values.join(", "));
        }
    }
}

fn print_disagreements(scenario: &Scenario, record: &Recorded, seen: &Recorded) -> bool {
    let mut agree = true;
    for (real, here) in record.steps.iter().zip(&seen.steps) {
        for found in agreement::disagreements(&real.outcomes(), &here.outcomes()) {
            println!("  {} {}: {found}", scenario.name, real.at);
            agree = false;
        }
    }
    agree
}

/// The scenarios that the project keeps for this.
fn own_scenarios() -> anyhow::Result<Vec<PathBuf>> {
    let folder: PathBuf = Path::new(top()).join("scenarios/fidelity");
    let entries = folder
        .read_dir()
        .with_context(|| format!("reading {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    Ok(files)
}
