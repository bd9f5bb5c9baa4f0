//! Runs strew's processes under churn, faults and attacks: `cargo xtask soak-live`.
//!
//! A victim's Deployment goes from nothing to 100 pods again and again, and every process is probed each second as a
//! kubelet does. Ratios within a run are judged: each phase is compared with quiet times just before it. Attackers
//! are processes of their own that yield to all others ([`crate::attack`]): the cores that they take would be those of
//! other machines.
//!
//! Reading order: [`phases`] (what is done in turn), [`parts`] (the processes), [`tenants`] (namespaces of the victim and of
//! attackers), [`victim`] (100 pods), [`observer`] (probes, memory, CPU), [`report`] (the table and the bars), [`curves`].

mod curves;
mod faults;
mod observer;
mod parts;
mod phases;
mod report;
mod tenants;
mod victim;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use jiff::SignedDuration;
use xtask_lab::lab::now;

use crate::e2e::stage::Stage;
use observer::Log;
use phases::{Field, PHASES, Phase};
use report::Report;
use xtask::top;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct SoakLive {
    /// Begin no further round after this time: 3m, 2h; one round is always played
    #[arg(long = "for", value_name = "TIME", default_value = "3m", value_parser = time)]
    time: Duration,
    /// How long each attack goes on
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    attack: Duration,
    /// Only phases whose names begin with one of these
    #[arg(value_name = "PHASE")]
    phases: Vec<String>,
    /// Another program than the workspace's own strew
    #[arg(long, value_name = "FILE")]
    strew: Option<PathBuf>,
    /// Write memory, CPU and latencies over time to this file
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw them into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Only tell which phases there are
    #[arg(long)]
    list: bool,
}

impl SoakLive {
    /// Writes the curves into their files.
    fn draw(&self, log: &Log) -> anyhow::Result<()> {
        if let Some(file) = &self.csv {
            std::fs::write(file, curves::csv(log))?;
        }
        if let Some(file) = &self.svg {
            std::fs::write(file, curves::svg(log))?;
        }
        Ok(())
    }
}

fn time(text: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = text.parse().map_err(|error| format!("{error}"))?;
    Duration::try_from(parsed).map_err(|error| error.to_string())
}

/// Plays the phases in turn. Exit code 1 if a bar is broken.
pub(crate) fn run(options: &SoakLive) -> anyhow::Result<ExitCode> {
    let phases = chosen(&options.phases)?;
    if options.list {
        for phase in phases {
            println!("{:20} {}", phase.name, phase.story);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let strew = match &options.strew {
        Some(file) => file.canonicalize()?,
        None => crate::e2e::build()?,
    };
    let lab = crate::e2e::control_plane()?;
    println!("logs: {}", lab.folder().display());
    let mut stage = Stage::new(lab, top(), strew, false);
    stage.begin("victim")?;
    let report = play(&mut stage, &phases, options)?;
    print!("\n{report}");
    Ok(match report.is_met() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A short run on the stage of a case: every phase once.
pub(crate) fn case(stage: &mut Stage, attack: Duration) -> anyhow::Result<()> {
    let options = SoakLive {
        time: Duration::ZERO,
        attack,
        phases: Vec::new(),
        strew: None,
        csv: None,
        svg: None,
        list: false,
    };
    let report = play(stage, &chosen(&[])?, &options)?;
    print!("{report}");
    ensure!(report.is_met(), "a bar is broken");
    Ok(())
}

fn play(stage: &mut Stage, phases: &[&Phase], options: &SoakLive) -> anyhow::Result<Report> {
    let begin = now();
    let mut field = Field::prepare(stage)?;
    let mut report = Report::default();
    loop {
        for phase in phases {
            field.play(phase, options.attack, &mut report)?;
        }
        // After each round, so that a run that is broken off has curves too.
        options.draw(&field.log())?;
        if begin.elapsed() >= options.time {
            break;
        }
    }
    field.end()?;
    Ok(report)
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Phase>> {
    let is_named = |phase: &Phase, name: &String| phase.name.starts_with(name.as_str());
    for name in names {
        ensure!(
            PHASES.iter().any(|phase| is_named(phase, name)),
            "there is no phase {name:?}: --list shows them"
        );
    }
    let is_chosen =
        |phase: &&Phase| names.is_empty() || names.iter().any(|name| is_named(phase, name));
    Ok(PHASES.iter().filter(is_chosen).collect())
}

#[test]
fn times_are_read_and_phases_are_found_by_their_beginning() {
    assert_eq!(time("2h"), Ok(Duration::from_secs(7200)));
    assert!(time("-1s").is_err() && time("soon").is_err());
    let found = chosen(&["sock".to_owned()]).unwrap();
    assert!(found.iter().all(|phase| phase.name.starts_with("sockets")) && found.len() > 1);
    assert!(chosen(&["nothing".to_owned()]).is_err());
}
