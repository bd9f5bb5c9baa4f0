//! What a decision costs. JSON lines on stdout, one a measurement; `cargo xtask bench decide` runs it.
//!
//! Each measurement is made in a process of its own, so that its memory is its own too.

mod clock;
mod machine;
mod measure;
mod world;

use std::process::{Command, ExitCode};

use measure::Measurement;
use world::{Config, Size};

/// Sizes of the table that strew is held to.
const SIZES: [(usize, usize); 3] = [(1_000, 10), (5_000, 10), (15_000, 10)];

fn main() -> ExitCode {
    // `cargo bench` adds `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["--one", measurement] => one(measurement),
        rest => all(rest),
    }
}

/// Runs the measurements whose name contains one of `wanted`; all without any.
fn all(wanted: &[&str]) -> ExitCode {
    let Ok(this) = std::env::current_exe() else {
        eprintln!("error: this program does not know where it is");
        return ExitCode::from(3);
    };
    let mut failed = false;
    for name in plan().iter().map(Measurement::name) {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w)) {
            let status = Command::new(&this).args(["--one", &name]).status();
            failed |= !status.is_ok_and(|s| s.success());
        }
    }
    if failed {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    }
}

fn one(name: &str) -> ExitCode {
    match plan().into_iter().find(|m| m.name() == name) {
        Some(measurement) => {
            measurement.run();
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("error: no measurement {name:?}");
            ExitCode::from(2)
        }
    }
}

/// Everything that is measured.
fn plan() -> Vec<Measurement> {
    let table = |(nodes, pods_per_node)| Size {
        nodes,
        pods_per_node,
        zones: 3,
        apps: 10,
    };
    let mut plan = Vec::new();
    for size in [(100, 10)].into_iter().chain(SIZES).map(table) {
        plan.extend(Config::ALL.map(|config| Measurement::Cycle { size, config }));
    }
    plan.push(Measurement::Deployment {
        nodes: 5_000,
        replicas: 10_000,
    });
    plan.extend(SIZES.map(table).map(|size| Measurement::Build { size }));
    plan.push(Measurement::Queue {
        nodes: 5_000,
        pods: 100_000,
    });
    plan.extend([1, 2, 50].map(|classes| Measurement::Refused {
        nodes: 5_000,
        pods: 20_000,
        classes,
    }));
    plan.push(Measurement::Storm {
        nodes: 5_000,
        pods: 20_000,
    });
    // Growth: one dimension at a time, around 5,000 nodes.
    let base = table((5_000, 10));
    let grown = [
        Size {
            pods_per_node: 2,
            ..base
        },
        Size {
            pods_per_node: 50,
            ..base
        },
        Size { zones: 30, ..base },
        Size { zones: 500, ..base },
        Size { apps: 100, ..base },
        Size {
            apps: 1_000,
            ..base
        },
    ];
    plan.extend(grown.map(|size| Measurement::Cycle {
        size,
        config: Config::ZoneAndHost,
    }));
    plan
}
