//! The project's own automation: `cargo xtask COMMAND`.

mod bench;
mod ci;
mod clients;
mod dist;
mod fuzz;
mod platforms;
mod play;
mod web;
mod workflows;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};

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
        /// A check whose tool is not installed is a failure, too
        #[arg(long)]
        all_tools: bool,
    },
    /// Measure what strew costs, optimized
    Bench {
        /// Which program; all without one
        suite: Option<bench::Suite>,
        /// Only measurements whose name contains one of these (of decide: cycle/5000, deployment, build, …)
        names: Vec<String>,
        #[command(flatten)]
        keep: bench::Keep,
    },
    /// Pack what is published: an archive, checksums, the manifest for krew
    Dist(dist::Dist),
    /// Call strew mcp with the official clients of the Model Context Protocol (needs Python and npm)
    Clients {
        /// Which clients; all without one
        clients: Vec<clients::Client>,
    },
    /// Make the page of strew's reports from web/src (needs Node and npm)
    Web(web::Web),
    /// Make the page in which strew runs as WebAssembly (needs Node, npm and Rust's library for wasm32-wasip1)
    Play(play::Play),
    /// Check .github and action.yml with actionlint (needs Go) and zizmor (needs Python)
    Workflows {
        /// Which linters; all without one
        linters: Vec<workflows::Linter>,
    },
    /// Build strew for Windows and Linux on arm64 and run it here, and check it for macOS (needs cross compilers)
    Platforms(platforms::Platforms),
    /// Run the fuzz targets, a minute each (needs nightly and cargo-fuzz)
    Fuzz(fuzz::Fuzz),
    /// Compare decisions with what kube-scheduler answered, in files of scheduling vectors
    Conform(Lab),
    /// Measure strew's processes beside kube-scheduler on a real control plane, optimized (needs Go)
    BenchLive(Lab),
    /// Write the files that are made from the code
    Gen(Lab),
    /// Play seeded lives under faults, each judged; a bad one is made small and printed
    Soak(Lab),
    /// Play the project's scenarios with many seeds
    Scenarios(Lab),
    /// Run strew's processes on a real control plane under churn, faults and attacks, and judge them (needs Go)
    SoakLive(Lab),
    /// Attack a process on this machine, as soak-live does
    Attack(Lab),
    /// Start a real control plane to try things on, until Ctrl-C (needs Go)
    Lab(Lab),
    /// Try strew's processes on a real control plane, case by case (needs Go)
    E2e(Lab),
    /// Play scenario files on a real control plane and compare with what was recorded (needs Go)
    Fidelity(Lab),
}

/// The arguments of a command of `xtask-lab`, which has Kubernetes' types and so takes minutes to build.
#[derive(Args)]
#[command(disable_help_flag = true)]
struct Lab {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Ci {
            keep_going,
            no_e2e,
            all_tools,
        } => ci::run(keep_going, no_e2e, all_tools),
        Command::Bench { suite, names, keep } => bench::run(suite, &names, keep),
        Command::Dist(options) => dist::run(&options),
        Command::Clients { clients } => clients::run(xtask::top(), &clients),
        Command::Web(options) => web::run(xtask::top(), &options),
        Command::Play(options) => play::run(xtask::top(), &options),
        Command::Workflows { linters } => workflows::run(xtask::top(), &linters),
        Command::Platforms(options) => platforms::run(xtask::top(), &options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Conform(lab) => lab.run("conform"),
        Command::BenchLive(lab) => lab.run("bench-live"),
        Command::Gen(lab) => lab.run("gen"),
        Command::Soak(lab) => lab.run("soak"),
        Command::Scenarios(lab) => lab.run("scenarios"),
        Command::SoakLive(lab) => lab.run("soak-live"),
        Command::Attack(lab) => lab.run("attack"),
        Command::Lab(lab) => lab.run("lab"),
        Command::E2e(lab) => lab.run("e2e"),
        Command::Fidelity(lab) => lab.run("fidelity"),
    }
}

impl Lab {
    /// Builds `xtask-lab`, optimized if this program is, and runs its command.
    fn run(self, command: &str) -> anyhow::Result<ExitCode> {
        let program = xtask::program("xtask-lab", !cfg!(debug_assertions))?;
        let mut lab = std::process::Command::new(program);
        lab.arg(command).args(self.arguments);
        let status = lab.status().context("starting xtask-lab")?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn all_arguments_of_the_lab_are_passed_on() {
        Arguments::command().debug_assert();
        let words = ["cargo xtask", "soak", "--seeds", "3", "--help", "--", "x"];
        let Command::Soak(lab) = Arguments::parse_from(words).command else {
            panic!("soak is a command of xtask-lab");
        };
        assert_eq!(lab.arguments[..3], ["--seeds", "3", "--help"]);
    }
}
