//! The commands of `cargo xtask` that need Kubernetes' types.

mod attack;
mod bench_live;
mod conform;
mod control_plane;
mod e2e;
mod fidelity;
mod scenarios;
mod soak;
mod soak_live;
mod steady;
mod taken;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use xtask::top;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own automation")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare decisions with what kube-scheduler answered, in files of scheduling vectors (.jsonl, .jsonl.gz)
    Conform {
        /// Vector files; the project's own without any
        files: Vec<PathBuf>,
        /// How many differences to show a file
        #[arg(long, default_value_t = 3)]
        show: usize,
    },
    /// Measure strew's processes beside kube-scheduler on a real control plane, optimized (needs Go)
    BenchLive(bench_live::BenchLive),
    /// Write the files that are made from the code: deploy/crds, docs/commands.md, docs/schemas.md
    Gen,
    /// Play seeded lives under faults, each judged; a bad one is made small and printed
    Soak(soak::Soak),
    /// Play the project's scenarios with many seeds; each must hold in all, or break as its `mustFail` says
    Scenarios(scenarios::Scenarios),
    /// Run strew's processes on a real control plane under churn, faults and attacks, and judge them (needs Go)
    SoakLive(soak_live::SoakLive),
    /// Attack a process on this machine, as soak-live does
    Attack(attack::Attack),
    /// Start a real control plane to try things on, until Ctrl-C (needs Go)
    Lab(control_plane::ControlPlane),
    /// Try strew's processes on a real control plane, case by case (needs Go)
    E2e(e2e::E2e),
    /// Play scenario files on a real control plane and compare with what was recorded (needs Go)
    Fidelity(fidelity::Fidelity),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Conform { files, show } => conform::run(files, show),
        Command::BenchLive(options) => bench_live::run(&options),
        Command::Gen => generate().map(|()| ExitCode::SUCCESS),
        Command::Soak(options) => soak::run(&options),
        Command::Scenarios(options) => scenarios::run(&options),
        Command::SoakLive(options) => soak_live::run(&options),
        Command::Attack(options) => attack::run(options),
        Command::Lab(options) => control_plane::run(top(), &options).map(|()| ExitCode::SUCCESS),
        Command::E2e(options) => e2e::run(&options),
        Command::Fidelity(options) => fidelity::run(&options),
    }
}

/// Pages that the program itself makes, and its words for them.
const PAGES: &[(&str, &[&str])] = &[
    ("docs/commands.md", &["__reference"]),
    ("docs/schemas.md", &["__reference", "schemas"]),
    ("docs/rules.md", &["__reference", "rules"]),
];

/// Writes the files that are made from the code.
fn generate() -> anyhow::Result<()> {
    xtask_lab::generated::write(top())?;
    let strew = e2e::build()?;
    for &(path, words) in PAGES {
        let run = std::process::Command::new(&strew).args(words).output()?;
        anyhow::ensure!(
            run.status.success(),
            "strew {}: {}",
            words.join(" "),
            run.status
        );
        std::fs::write(top().join(path), run.stdout)?;
    }
    Ok(())
}
