//! Every check of the project, stage by stage, each with its time: `cargo xtask ci`.
//!
//! Needs a toolchain and the registry; the last two stages need Go too, and build a control plane once (4 to 12
//! minutes); `--no-e2e` leaves them out. Two build profiles (dev, release) and one set of features: what
//! one stage compiled, the next finds.

use std::fmt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// One check: a cargo command, and the environment that makes it strict.
struct Stage {
    name: &'static str,
    cargo: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// Lives under faults, by seed.
macro_rules! soak {
    ($name:literal, $($argument:literal),+) => {
        Stage {
            name: $name,
            cargo: &["run", "--locked", "--package", "xtask", "--", "soak", $($argument),+],
            environment: &[],
        }
    };
}

/// Stages on a real control plane.
const END_TO_END: [&str; 3] = ["control plane", "e2e", "definitions"];

/// Cheap ones first; arrows between crates, licences and house rules are ordinary tests of xtask.
const STAGES: &[Stage] = &[
    Stage {
        name: "format",
        cargo: &["fmt", "--all", "--check"],
        environment: &[],
    },
    Stage {
        name: "clippy",
        cargo: &[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-Dwarnings",
        ],
        environment: &[],
    },
    Stage {
        name: "docs",
        cargo: &["doc", "--locked", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-Dwarnings")],
    },
    Stage {
        name: "test",
        cargo: &["test", "--locked", "--workspace"],
        environment: &[],
    },
    Stage {
        name: "fuzz format",
        cargo: &["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"],
        environment: &[],
    },
    // The fuzz targets keep compiling; nothing is linked, so their library in C++ need not be built.
    Stage {
        name: "fuzz clippy",
        cargo: &[
            "clippy",
            "--locked",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--",
            "-Dwarnings",
        ],
        environment: &[("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a")],
    },
    // The build of the tests: answers are integers and IEEE doubles, the same with and without optimisation, and a
    // release build of everything would double the time of a cold run.
    Stage {
        name: "conform",
        cargo: &["run", "--locked", "--package", "xtask", "--", "conform"],
        environment: &[],
    },
    // The simulated cluster against what real control planes did.
    Stage {
        name: "fidelity",
        cargo: &[
            "run",
            "--locked",
            "--package",
            "xtask",
            "--",
            "fidelity",
            "--recorded",
        ],
        environment: &[],
    },
    // More seeds than the tests of strew-sim play: a fixed set, and some that no commit has tried before. A failing one
    // prints a small story and the command that plays it again.
    soak!("soak", "--from=0", "--seeds=100"),
    soak!("soak, new", "--from-commit", "--seeds=50"),
    soak!("soak hubs", "--of=placement", "--from=0", "--seeds=100"),
    soak!(
        "soak hubs, new",
        "--of=placement",
        "--from-commit",
        "--seeds=50"
    ),
    soak!(
        "soak spreads",
        "--of=workloadspread",
        "--from=0",
        "--seeds=20"
    ),
    soak!(
        "soak spreads, new",
        "--of=workloadspread",
        "--from-commit",
        "--seeds=10"
    ),
    soak!("soak churn", "--of=churn", "--from=0", "--seeds=40"),
    soak!(
        "soak churn, new",
        "--of=churn",
        "--from-commit",
        "--seeds=20"
    ),
    // The same as fidelity against a real control plane of now, end to end. A machine without Go fails here: that
    // strew agrees with Kubernetes is not known then.
    Stage {
        name: "control plane",
        cargo: &[
            "run",
            "--locked",
            "--package",
            "xtask",
            "--",
            "fidelity",
            "scenarios/fidelity/rollout-plain.yaml",
        ],
        environment: &[],
    },
    // strew's own processes there: one case for each feature.
    Stage {
        name: "e2e",
        cargo: &["run", "--locked", "--package", "xtask", "--", "e2e"],
        environment: &[],
    },
    // A real API server takes what deploy/crds has.
    Stage {
        name: "definitions",
        cargo: &[
            "run",
            "--locked",
            "--package",
            "xtask",
            "--",
            "fidelity",
            "--check-lab",
        ],
        environment: &[],
    },
];

/// What became of a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
    LeftOut,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
            Self::LeftOut => "left out",
        })
    }
}

/// Runs the stages, up to the first failure unless told to go on; exit code 1 if any failed.
///
/// `no_e2e` leaves out what needs a control plane, and says so.
pub(crate) fn run(keep_going: bool, no_e2e: bool) -> anyhow::Result<ExitCode> {
    let begin = now();
    let mut results = Vec::new();
    for stage in STAGES {
        let stop = !keep_going && results.iter().any(|&(_, o, _)| o == Outcome::Failed);
        let leave_out = no_e2e && END_TO_END.contains(&stage.name);
        results.push(match (leave_out, stop) {
            (true, _) => (stage.name, Outcome::LeftOut, Duration::ZERO),
            (_, true) => (stage.name, Outcome::Skipped, Duration::ZERO),
            _ => run_stage(stage)?,
        });
    }
    print_results(&results, begin.elapsed());
    let failed = results.iter().any(|&(_, o, _)| o == Outcome::Failed);
    Ok(match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

fn run_stage(stage: &Stage) -> anyhow::Result<(&'static str, Outcome, Duration)> {
    println!("=== {}: cargo {}", stage.name, stage.cargo.join(" "));
    let begin = now();
    let status = Command::new("cargo")
        .args(stage.cargo)
        .envs(stage.environment.iter().copied())
        .current_dir(top())
        .status()?;
    let outcome = match status.success() {
        true => Outcome::Passed,
        false => Outcome::Failed,
    };
    let took = begin.elapsed();
    println!("=== {}: {outcome} in {}", stage.name, seconds(took));
    println!();
    Ok((stage.name, outcome, took))
}

/// A table of the stages; the last line is the verdict.
fn print_results(results: &[(&'static str, Outcome, Duration)], total: Duration) {
    for &(name, outcome, took) in results {
        println!("{name:17} {outcome:8} {:>9}", seconds(took));
    }
    println!("{:26} {:>9}", "total", seconds(total));
    let count = |wanted| results.iter().filter(|&&(_, o, _)| o == wanted).count();
    print!(
        "stages: {} passed, {} failed",
        count(Outcome::Passed),
        count(Outcome::Failed)
    );
    for outcome in [Outcome::Skipped, Outcome::LeftOut] {
        match count(outcome) {
            0 => {}
            n => print!(", {n} {outcome}"),
        }
    }
    println!();
    if count(Outcome::LeftOut) > 0 {
        println!(
            "what is left out by --no-e2e is not known to work: it needs a real control plane"
        );
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// The project's top folder.
pub(crate) fn top() -> &'static Path {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates
        .and_then(Path::parent)
        .expect("xtask lies in crates/ of the project")
}

#[expect(
    clippy::disallowed_methods,
    reason = "automation tells how long its stages take"
)]
fn now() -> Instant {
    Instant::now()
}
