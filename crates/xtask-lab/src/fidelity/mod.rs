//! Compares a real control plane with the simulated cluster: `cargo xtask fidelity`.
//!
//! [`scenario`] reads a file. [`real`] plays it with kubectl ([`verb`]), [`simulated`] with strew and many seeds; both
//! wait until the cluster is at rest ([`snapshot`]), and [`observe`] makes an [`outcome`] of its objects. [`recorded`]
//! keeps real outcomes as facts, [`agreement`] compares others with them ([`known`] differences apart), and
//! [`document`] writes the table of docs/fidelity.md.
//!
//! [`audit`] compares the verdicts of `strew audit` with what becomes of generated clusters.

mod agreement;
mod audit;
mod crds;
mod document;
mod known;
mod observe;
mod outcome;
pub(crate) mod real;
mod recorded;
pub(crate) mod scenario;
pub(crate) mod simulated;
mod smoke;
pub(crate) mod snapshot;
pub(crate) mod verb;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use strew_scenario::run::Plan;
use xtask_lab::lab::now;

use document::{Row, Seeds};
use known::Known;
use outcome::BY_NAME;
use recorded::Recorded;
use scenario::Scenario;
use simulated::FilterWorkers;

use xtask::top;

/// The number of seeds that show what varies.
const SEEDS: u64 = 30;

/// What the command line says.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Fidelity {
    #[command(subcommand)]
    mode: Option<Mode>,
    /// Scenario files; all of scenarios/fidelity without any
    files: Vec<PathBuf>,
    /// How often each is played on a real control plane
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// How many seeds each is simulated with
    #[arg(long, default_value_t = SEEDS)]
    seeds: u64,
    /// Compare the simulation with e2e/recorded alone (needs no Go)
    #[arg(long)]
    recorded: bool,
    /// Write the table of docs/fidelity.md
    #[arg(long, requires = "recorded", conflicts_with_all = ["files", "seeds"])]
    document: bool,
    /// Add what is seen on a real control plane to e2e/recorded, and compare nothing
    #[arg(long, conflicts_with = "recorded")]
    record: bool,
    /// The scheduler of the real control plane
    #[arg(long, value_enum, default_value_t = Decider::KubeScheduler, conflicts_with_all = ["record", "recorded"])]
    scheduler: Decider,
    /// Only start the control plane, run a Deployment on a node, apply deploy/crds, and end it all
    #[arg(long, conflicts_with_all = ["files", "repeat", "record", "recorded", "seeds"])]
    check_lab: bool,
}

impl Fidelity {
    /// Whether a reason of e2e/known.json that nothing needs fails the comparison. Not after a real run, which may show
    /// by chance what the reason excuses, nor with fewer seeds, which may not show the difference.
    fn needs_each_reason(&self) -> bool {
        self.recorded && self.seeds >= SEEDS
    }
}

/// What else is compared.
#[derive(clap::Subcommand)]
enum Mode {
    /// Take zones from generated clusters on a real control plane, and compare with what strew audit says of them
    Audit(audit::Audit),
}

/// The values of `--scheduler`.
#[derive(clap::ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum Decider {
    /// kube-scheduler, as recorded
    KubeScheduler,
    /// `strew scheduler` in its place: a real cluster then shows nothing that it did not show with kube-scheduler, or
    /// in the simulation
    Strew,
}

/// Plays the files; exit code 1 if strew and a real control plane disagree.
pub(crate) fn run(options: &Fidelity) -> anyhow::Result<ExitCode> {
    if let Some(Mode::Audit(options)) = &options.mode {
        return audit::run(options);
    }
    if options.check_lab {
        return smoke::run(top()).map(|()| ExitCode::SUCCESS);
    }
    let files = match options.files.is_empty() {
        true => scenario::files(&top().join("scenarios/fidelity"))?,
        false => options.files.clone(),
    };
    let scenarios: Vec<Scenario> = files
        .iter()
        .map(|file| scenario::read(file))
        .collect::<Result<_, _>>()?;
    if options.record {
        for scenario in &scenarios {
            record(scenario, options.repeat).with_context(|| scenario.name.clone())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for scenario in &scenarios {
        rows.push(compare(scenario, options).with_context(|| scenario.name.clone())?);
    }
    let audit_agrees = !options.recorded || !options.files.is_empty() || audit::recorded()?;
    let n_agree = rows.iter().filter(|row| row.agrees).count();
    println!(
        "scenarios: {n_agree} agree, {} differ",
        rows.len() - n_agree
    );
    let is_documented = is_documented(options, &rows)?;
    Ok(
        match n_agree == rows.len() && is_documented && audit_agrees {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        },
    )
}

/// Whether docs/fidelity.md has this table; writes it first with `--document`. `true` without a comparison unless all
/// recorded scenarios ran with [`SEEDS`] seeds.
fn is_documented(options: &Fidelity, rows: &[Row]) -> anyhow::Result<bool> {
    let is_all = options.files.is_empty() && options.seeds == SEEDS;
    if !options.recorded || !is_all {
        return Ok(true);
    }
    if options.document {
        document::write(top(), rows)?;
    }
    let is_current = document::is_current(top(), rows)?;
    if !is_current {
        println!("docs/fidelity.md says something else: run with --document");
    }
    Ok(is_current)
}

/// Adds real runs to the record.
fn record(scenario: &Scenario, n_runs: u32) -> anyhow::Result<()> {
    let earlier = Recorded::read(top(), scenario)?;
    let mut record = earlier.unwrap_or_else(|| Recorded::new(scenario));
    for _ in 0..n_runs {
        record.add(play_real(scenario, None)?)?;
        record.write(top(), scenario)?;
    }
    println!("  {} runs recorded", record.runs);
    for step in &record.steps {
        for (about, values) in agreement::varying(&step.outcomes()) {
            let values: Vec<String> = values.into_iter().collect();
            println!("  {}: {about} varies: {}", step.at, values.join(", "));
        }
    }
    Ok(())
}

/// Compares both ways: strew must show nothing that no real control plane showed, and a real one now nothing that
/// neither strew nor earlier runs showed.
fn compare(scenario: &Scenario, options: &Fidelity) -> anyhow::Result<Row> {
    let earlier = Recorded::read(top(), scenario)?;
    if earlier.is_none() && options.recorded {
        bail!("nothing is recorded of this text: run with --record");
    }
    let plan = simulated::plan(scenario, FilterWorkers::InOrder)?;
    let in_order = simulate(scenario, &plan, options.seeds)?;
    let raced = simulated::plan(scenario, FilterWorkers::Raced)?;
    let raced = simulate(scenario, &raced, options.seeds)?;
    let mut known = earlier.unwrap_or_else(|| Recorded::new(scenario));
    let mut agree = true;
    if !options.recorded {
        let mut fresh = Recorded::new(scenario);
        let strew = match options.scheduler {
            Decider::KubeScheduler => None,
            Decider::Strew => Some(crate::e2e::build()?),
        };
        for _ in 0..options.repeat {
            fresh.add(play_real(scenario, strew.as_deref())?)?;
        }
        let mut expected = known.clone();
        expected.extend(&in_order)?;
        expected.extend(&raced)?;
        let side = Side {
            who: "a real one shows",
            seen: &fresh,
            names_domains: true,
        };
        agree &= print_differences(scenario, &expected, &side, &mut []);
        known.extend(&fresh)?;
    }
    let mut reasons = known::read(top())?;
    reasons.retain(|known| known.is_of(&scenario.name));
    let mut reasons: Vec<Reason> = reasons.into_iter().map(Reason::of).collect();
    let sides = [
        Side {
            who: "strew shows",
            seen: &in_order,
            names_domains: true,
        },
        Side {
            who: "strew with racing filter workers shows",
            seen: &raced,
            names_domains: false,
        },
    ];
    for side in &sides {
        agree &= print_differences(scenario, &known, side, &mut reasons);
    }
    if options.needs_each_reason() && reasons.iter().any(|reason| !reason.is_used) {
        println!(
            "  {}: a reason in e2e/known.json is not needed",
            scenario.name
        );
        agree = false;
    }
    let reasons = reasons.into_iter().map(|reason| reason.known.why).collect();
    let word = if agree { "agrees" } else { "DIFFERS" };
    let seeds = Seeds {
        in_order: in_order.runs,
        raced: raced.runs,
    };
    println!(
        "{}: {word}, {seeds} seeds, {} real runs",
        scenario.name, known.runs
    );
    Ok(Row {
        name: scenario.name.clone(),
        story: plan.scenario().story().unwrap_or_default().to_owned(),
        n_runs: known.runs,
        varies: document::varies(&known),
        seeds,
        agrees: agree,
        reasons,
    })
}

fn play_real(scenario: &Scenario, strew: Option<&Path>) -> anyhow::Result<Vec<outcome::Outcome>> {
    let begin = now();
    let outcomes = real::play(top(), scenario, strew)?;
    let took = begin.elapsed().as_secs_f64();
    println!("{}: {} steps in {took:.1} s", scenario.name, outcomes.len());
    Ok(outcomes)
}

/// The outcomes of `n_seeds` seeds, from 1 on.
fn simulate(scenario: &Scenario, plan: &Plan, n_seeds: u64) -> anyhow::Result<Recorded> {
    let mut seen = Recorded::new(scenario);
    for seed in 1..=n_seeds {
        let outcomes = simulated::play(plan, seed).with_context(|| format!("seed {seed}"))?;
        seen.add(outcomes)?;
    }
    Ok(seen)
}

/// Outcomes that are compared with recorded ones.
struct Side<'a> {
    /// The name of the side, for the text.
    who: &'a str,
    seen: &'a Recorded,
    /// Whether facts that name domains are compared: not where the order of equal nodes is random.
    names_domains: bool,
}

/// A known difference, and whether a fact needed it.
struct Reason {
    known: Known,
    is_used: bool,
}

impl Reason {
    fn of(known: Known) -> Self {
        Self {
            known,
            is_used: false,
        }
    }
}

/// Prints what a side has and `known` has not; returns whether every difference had a reason.
fn print_differences(
    scenario: &Scenario,
    known: &Recorded,
    side: &Side<'_>,
    reasons: &mut [Reason],
) -> bool {
    let mut agree = true;
    let Side { who, seen, .. } = side;
    for (known, step) in known.steps.iter().zip(&seen.steps) {
        for found in agreement::disagreements(&known.outcomes(), &step.outcomes()) {
            if !side.names_domains && found.about.contains(BY_NAME) {
                continue;
            }
            let n_here = step.runs_with(&found.about, &found.here);
            let explains = |r: &&mut Reason| r.known.explains(&known.at, &found, n_here, seen.runs);
            if let Some(reason) = reasons.iter_mut().find(explains) {
                reason.is_used = true;
                continue;
            }
            agree = false;
            println!(
                "  {} after {}, {who} {found} ({n_here} of {} runs)",
                scenario.name, known.at, seen.runs
            );
        }
    }
    agree
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fidelity: Fidelity,
    }

    #[test]
    fn only_the_records_say_that_a_reason_is_not_needed() {
        let needs = |line: &[&str]| {
            let line = Line::parse_from(["fidelity"].iter().chain(line));
            line.fidelity.needs_each_reason()
        };
        assert!(needs(&["--recorded"]));
        assert!(!needs(&["--recorded", "--seeds=3"]));
        assert!(!needs(&["rollout-plain.yaml"]));
    }
}
