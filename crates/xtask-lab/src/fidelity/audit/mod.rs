//! Compares the verdicts of `strew audit` with what happens on a real control plane: `cargo xtask fidelity audit`.
//!
//! [`cluster`] draws small clusters. [`play`] makes many of them side by side on one control plane, takes a zone from
//! each, by loss, shift and drain, and [`watched`] sees what becomes of their workloads. A [`case`] holds the objects
//! before the event, and what happened; [`compare`] asks `strew audit` about the same objects.

mod case;
mod cluster;
mod compare;
mod play;
mod watched;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

use anyhow::Context;

use case::Case;
use cluster::Cluster;
use compare::compare;
use play::{Drawn, Found};

use xtask::top;

/// Recorded cases, from the project's top.
const RECORDED: &str = "e2e/recorded/audit";

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct Audit {
    /// Cases that were written before; without any, new ones are played on a real control plane
    files: Vec<PathBuf>,
    /// How many clusters
    #[arg(long, default_value_t = 20)]
    clusters: u64,
    /// What all of them are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first cluster
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// How many clusters are on one control plane at the same time
    #[arg(long, default_value_t = 20)]
    at_once: u64,
    /// From how many zones of each cluster each event is played
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    zones: u8,
    /// The program to ask; by default it is built
    #[arg(long, value_name = "FILE")]
    strew: Option<PathBuf>,
    /// Where every case is written; e2e/recorded/audit holds those that `--recorded` compares
    #[arg(long, value_name = "FOLDER", default_value = "target/fidelity-audit")]
    record: PathBuf,
}

/// The sums of a run.
#[derive(Debug, Default)]
struct Sums {
    n_cases: usize,
    n_verdicts: usize,
    n_by_chance: usize,
    n_other_numbers: usize,
    n_different: usize,
    n_void: usize,
}

/// Plays or reads cases; exit code 1 if a verdict is not what happened.
pub(super) fn run(options: &Audit) -> anyhow::Result<ExitCode> {
    let strew = match &options.strew {
        Some(strew) => strew.clone(),
        None => crate::e2e::build()?,
    };
    let mut sums = Sums::default();
    if options.files.is_empty() {
        play_all(options, &strew, &mut sums)?;
    } else {
        for file in &options.files {
            sums.take(&strew, &Case::read(file)?)?;
        }
    }
    sums.tell();
    Ok(match sums.n_different {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Compares the recorded cases; returns whether all agree.
pub(super) fn recorded() -> anyhow::Result<bool> {
    let folder = top().join(RECORDED);
    let entries = folder
        .read_dir()
        .with_context(|| folder.display().to_string())?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    let strew = crate::e2e::build()?;
    let mut sums = Sums::default();
    for file in &files {
        sums.take(&strew, &Case::read(file)?)?;
    }
    sums.tell();
    Ok(sums.n_different == 0)
}

/// Plays batch by batch; each case is compared while others are played.
fn play_all(options: &Audit, strew: &Path, sums: &mut Sums) -> anyhow::Result<()> {
    let numbers: Vec<u64> = (options.from..options.from + options.clusters).collect();
    let at_once = usize::try_from(options.at_once.max(1))?;
    for batch in numbers.chunks(at_once) {
        let clusters: Vec<Cluster> = { batch.iter() }
            .map(|number| Cluster::draw(options.seed, *number))
            .collect();
        println!("clusters {} and {} more", clusters[0].name, batch.len() - 1);
        let (sender, found) = mpsc::channel();
        std::thread::scope(|scope| {
            let zones = usize::from(options.zones);
            let drawn = Drawn {
                seed: options.seed,
                clusters,
                folder: &options.record,
            };
            let played = scope.spawn(move || play::play(top(), strew, &drawn, zones, &sender));
            for found in found {
                match found {
                    Found::Case(case) => sums.take(strew, &case)?,
                    Found::Void(name, why) => {
                        println!("{name}: nothing to compare, {why}");
                        sums.n_void += 1;
                    }
                }
            }
            match played.join() {
                Ok(played) => played,
                Err(_) => anyhow::bail!("the run has panicked"),
            }
        })?;
        sums.tell();
    }
    Ok(())
}

impl Sums {
    /// Compares a case, and prints what differs.
    fn take(&mut self, strew: &Path, case: &Case) -> anyhow::Result<()> {
        let compared = compare(strew, case).with_context(|| case.name.clone())?;
        self.n_cases += 1;
        self.n_verdicts += compared.n_verdicts;
        self.n_by_chance += compared.n_by_chance;
        self.n_different += compared.differences.len();
        self.n_other_numbers += compared.other_numbers.len();
        for text in &compared.differences {
            println!("DIFFERS {text}");
        }
        for text in &compared.other_numbers {
            println!("other number of ready pods: {text}");
        }
        Ok(())
    }

    fn tell(&self) {
        let Self {
            n_cases,
            n_verdicts,
            n_by_chance,
            n_other_numbers,
            n_different,
            n_void,
        } = self;
        println!(
            "audit: {n_cases} cases, {n_verdicts} verdicts, {n_different} different; seeds vary in {n_by_chance}, \
             {n_other_numbers} with another number of ready pods; {n_void} void"
        );
    }
}
