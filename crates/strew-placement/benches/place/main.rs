//! Measures the cost of placement. Prints JSON lines on stdout, one per measurement; `cargo xtask bench place` runs it.
//!
//! Targets: one placement of 1,000 out of 10,000 clusters in 100 zones under three levels in 5 ms; 2,000 placements
//! over 5,000 clusters from nothing in 10 s and 300 MiB; one cluster's label change afterwards in 50 ms. Each
//! measurement runs in a process of its own, so that memory is measured separately. The program exits with 1 if a
//! target is missed.

mod clock;
mod fleet;
mod one;
mod world;

use std::process::{Command, ExitCode};

use fleet::Fleet;
use one::One;

fn main() -> ExitCode {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    match arguments.as_slice() {
        [flag, name] if flag == "--one" => one(name),
        wanted => all(wanted),
    }
}

/// All measurements.
enum Measurement {
    One(One),
    Fleet(Fleet),
}

impl Measurement {
    fn name(&self) -> String {
        match self {
            Self::One(one) => one.name(),
            Self::Fleet(fleet) => fleet.name(),
        }
    }

    /// Measures and prints. Returns true if the targets are met.
    fn run(&self) -> bool {
        match self {
            Self::One(one) => one.run(),
            Self::Fleet(fleet) => fleet.run(),
        }
    }
}

fn plan() -> Vec<Measurement> {
    let one = |clusters, levels, hard| {
        Measurement::One(One {
            clusters,
            levels,
            hard,
        })
    };
    let fleet = |placements, clusters, levels| {
        Measurement::Fleet(Fleet {
            placements,
            clusters,
            levels,
        })
    };
    let mut plan = Vec::new();
    // The largest first, then growth: clusters and picks together, levels, placements.
    for levels in [3, 2, 1] {
        plan.extend([false, true].map(|hard| one(10_000, levels, hard)));
    }
    plan.extend([1_250, 2_500, 5_000].map(|clusters| one(clusters, 3, false)));
    plan.extend([2_000, 500, 100].map(|placements| fleet(placements, 5_000, 3)));
    plan.extend([1, 2].map(|levels| fleet(2_000, 5_000, levels)));
    // The sizes that OCM's users ask about.
    plan.push(fleet(100, 100, 3));
    plan
}

/// Runs the measurements whose names contain one of `wanted`; all of them if `wanted` is empty.
fn all(wanted: &[String]) -> ExitCode {
    let Ok(this) = std::env::current_exe() else {
        eprintln!("error: this program does not know where it is");
        return ExitCode::from(3);
    };
    let mut worst = 0;
    for name in plan().iter().map(Measurement::name) {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w)) {
            let status = Command::new(&this).args(["--one", &name]).status();
            let code = status.ok().and_then(|status| status.code());
            worst = worst.max(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(3));
        }
    }
    ExitCode::from(worst)
}

fn one(name: &str) -> ExitCode {
    match plan().into_iter().find(|m| m.name() == name) {
        Some(measurement) => ExitCode::from(u8::from(!measurement.run())),
        None => {
            eprintln!("error: no measurement {name:?}");
            ExitCode::from(2)
        }
    }
}
