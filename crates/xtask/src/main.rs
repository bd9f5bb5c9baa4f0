//! The project's own automation: `cargo xtask COMMAND`.

mod attack;
mod bench;
mod bench_live;
mod ci;
mod clients;
mod conform;
mod control_plane;
mod dist;
mod e2e;
mod fidelity;
mod fuzz;
mod scenarios;
mod soak;
mod soak_live;
mod steady;
mod taken;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own automation")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check: format, clippy, docs, tests, conformance, fidelity, soak, a real control plane (needs Go)
    Ci {
        /// Run all stages, even after one has failed
        #[arg(long)]
        keep_going: bool,
        /// Leave out the stages that need a real control plane, and so Go
        #[arg(long)]
        no_e2e: bool,
    },
    /// Compare decisions with what kube-scheduler answered, in files of scheduling vectors (.jsonl, .jsonl.gz)
    Conform {
        /// Vector files; the project's own without any
        files: Vec<PathBuf>,
        /// How many differences to show a file
        #[arg(long, default_value_t = 3)]
        show: usize,
    },
    /// Measure what strew costs, optimized
    Bench {
        /// Which program; all without one
        suite: Option<bench::Suite>,
        /// Only measurements whose name contains one of these (of decide: cycle/5000, deployment, build, …)
        names: Vec<String>,
    },
    /// Measure strew's processes beside kube-scheduler on a real control plane, optimized (needs Go)
    BenchLive(bench_live::BenchLive),
    /// Write the files that are made from the code: deploy/crds, docs/commands.md, docs/schemas.md
    Gen,
    /// Pack what is published: an archive, checksums, the manifest for krew
    Dist(dist::Dist),
    /// Call strew mcp with the official clients of the Model Context Protocol (needs Python and npm)
    Clients {
        /// Which clients; all without one
        clients: Vec<clients::Client>,
    },
    /// Run the fuzz targets, a minute each (needs nightly and cargo-fuzz)
    Fuzz(fuzz::Fuzz),
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
        Command::Ci { keep_going, no_e2e } => ci::run(keep_going, no_e2e),
        Command::Conform { files, show } => conform::run(files, show),
        Command::Bench { suite, names } => bench::run(suite, &names),
        Command::BenchLive(options) => bench_live::run(&options),
        Command::Gen => generate().map(|()| ExitCode::SUCCESS),
        Command::Dist(options) => dist::run(&options),
        Command::Clients { clients } => clients::run(ci::top(), &clients),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Soak(options) => soak::run(&options),
        Command::Scenarios(options) => scenarios::run(&options),
        Command::SoakLive(options) => soak_live::run(&options),
        Command::Attack(options) => attack::run(options),
        Command::Lab(options) => {
            control_plane::run(ci::top(), &options).map(|()| ExitCode::SUCCESS)
        }
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
    xtask::generated::write(ci::top())?;
    let strew = e2e::build()?;
    for &(path, words) in PAGES {
        let run = std::process::Command::new(&strew).args(words).output()?;
        anyhow::ensure!(
            run.status.success(),
            "strew {}: {}",
            words.join(" "),
            run.status
        );
        std::fs::write(ci::top().join(path), run.stdout)?;
    }
    Ok(())
}
