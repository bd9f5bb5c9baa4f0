//! Every check of the project, stage by stage, each with its time: `cargo xtask ci`.
//!
//! Needs Rust, a C compiler, git and the registry of crates. The stages of [`REAL`] need Go too, and build a
//! control plane once (4 to 12 minutes). The command says at its start which stages it will not run; without Go it ends
//! with exit code 1 unless `--no-e2e` asks for that. One build profile and one set of features: what one stage compiled,
//! the next finds. cargo gives the dependencies of a single package other features than those of the workspace with its
//! tests, so later stages run the [programs that the tests were built with](Program::Lab).

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use xtask::go::{self, Build, Compiling};
use xtask::{BUILT, built, top};

use crate::clients;

/// One check: a command, and the environment that makes it strict.
struct Stage {
    name: &'static str,
    program: Program,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// The program of a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Program {
    Cargo,
    /// `xtask-lab`, as the stage "test" has built it.
    Lab,
}

impl Program {
    fn path(self) -> anyhow::Result<PathBuf> {
        match self {
            Self::Cargo => Ok(PathBuf::from("cargo")),
            Self::Lab => built("xtask-lab", false),
        }
    }
}

/// A check by a program of the workspace.
macro_rules! lab {
    ($name:literal, $($argument:literal),+) => {
        Stage {
            name: $name,
            program: Program::Lab,
            arguments: &[$($argument),+],
            environment: &[],
        }
    };
}

/// A check by a tool of others, where it is installed. Tests of strew look at the same files in any case.
struct ByTool {
    name: &'static str,
    tool: &'static str,
    /// Programs with their arguments.
    runs: &'static [&'static [&'static str]],
}

/// A command of `cargo xtask` itself.
macro_rules! xtask {
    ($($word:literal),+) => {
        &["cargo", "run", "--locked", "--package", "xtask", "--", $($word),+]
    };
}

/// Tests that an ordinary run leaves out. With all of the workspace, so that nothing is compiled again.
macro_rules! ignored {
    ($name:literal) => {
        &[
            "cargo",
            "test",
            "--locked",
            "--workspace",
            $name,
            "--",
            "--ignored",
        ]
    };
}

const BY_TOOLS: &[ByTool] = &[
    ByTool {
        name: "rules",
        tool: "promtool",
        runs: &[
            &[
                "promtool",
                "check",
                "rules",
                "deploy/mixin/rules.yaml",
                "deploy/mixin/alerts.yaml",
            ],
            &["promtool", "test", "rules", "deploy/mixin/tests.yaml"],
        ],
    },
    // Its linter, and what it renders.
    ByTool {
        name: "chart",
        tool: "helm",
        runs: &[ignored!("helm_renders")],
    },
    ByTool {
        name: "book",
        tool: "mdbook",
        runs: &[&["mdbook", "build"]],
    },
    ByTool {
        name: "shell",
        tool: "shellcheck",
        runs: &[&["shellcheck", "deploy/pipeline/strew-check.sh"]],
    },
    // Advisories need the network: the workflow asks for them.
    ByTool {
        name: "licences",
        tool: "cargo-deny",
        runs: &[&[
            "cargo", "deny", "--locked", "check", "bans", "licenses", "sources",
        ]],
    },
    ByTool {
        name: "workflows",
        tool: "go",
        runs: &[ACTIONLINT],
    },
    // Installers of others take what dist makes for them.
    ByTool {
        name: "wheel",
        tool: "python3",
        runs: &[ignored!("python_installs_the_wheel")],
    },
    ByTool {
        name: "workflows, rights",
        tool: "python3",
        runs: &[ZIZMOR],
    },
    // Official clients refuse results that break the schema of their tool.
    ByTool {
        name: "mcp, Python",
        tool: "python3",
        runs: &[CLIENT_OF_PYTHON],
    },
    ByTool {
        name: "mcp, TypeScript",
        tool: "npm",
        runs: &[CLIENT_OF_TYPESCRIPT],
    },
    ByTool {
        name: "npm package",
        tool: "npm",
        runs: &[ignored!("npm_installs_the_package")],
    },
    // The committed page is what its sources make.
    ByTool {
        name: "page",
        tool: "npm",
        runs: &[PAGE_IS_MADE],
    },
    ByTool {
        name: "page, browser",
        tool: "chromium",
        runs: &[PAGE_IN_A_BROWSER],
    },
    // Headlamp's own tool is 850 MB: where it was installed by hand.
    ByTool {
        name: "headlamp",
        tool: "headlamp-plugin",
        runs: &[PLUGIN_OF_HEADLAMP],
    },
];

const ACTIONLINT: &[&str] = xtask!["workflows", "actionlint"];
const ZIZMOR: &[&str] = xtask!["workflows", "zizmor"];
const PAGE_IS_MADE: &[&str] = xtask!["web", "--check"];
const PAGE_IN_A_BROWSER: &[&str] = xtask!["web", "--test"];
const PLUGIN_OF_HEADLAMP: &[&str] = xtask!["web", "--headlamp", "--check"];
const CLIENT_OF_PYTHON: &[&str] = xtask!["clients", "python"];
const CLIENT_OF_TYPESCRIPT: &[&str] = xtask!["clients", "typescript"];

/// Cheap stages first; arrows between crates, licences and house rules are ordinary tests of xtask.
const FIRST: &[Stage] = &[
    Stage {
        name: "format",
        program: Program::Cargo,
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
    },
    Stage {
        name: "clippy",
        program: Program::Cargo,
        arguments: &[
            "clippy",
            "--locked",
            "--workspace",
            "--all-targets",
            "--",
            "-Dwarnings",
        ],
        environment: &[],
    },
    // The program of README's first command: xtask-lab is there so that dependencies keep their features, and are checked
    // already.
    Stage {
        name: "clippy, files",
        program: Program::Cargo,
        arguments: &[
            "clippy",
            "--locked",
            "--package=strew",
            "--package=xtask-lab",
            "--no-default-features",
            "--",
            "-Dwarnings",
        ],
        environment: &[],
    },
    Stage {
        name: "docs",
        program: Program::Cargo,
        arguments: &["doc", "--locked", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-Dwarnings")],
    },
    Stage {
        name: "test",
        program: Program::Cargo,
        arguments: &["test", "--locked", "--workspace"],
        environment: &[],
    },
    Stage {
        name: "fuzz format",
        program: Program::Cargo,
        arguments: &["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"],
        environment: &[],
    },
    // The fuzz targets keep compiling; nothing is linked, so their library in C++ need not be built. In the workspace's
    // folder, where the crates of others are checked already.
    Stage {
        name: "fuzz clippy",
        program: Program::Cargo,
        arguments: &[
            "clippy",
            "--locked",
            "--manifest-path",
            "fuzz/Cargo.toml",
            "--",
            "-Dwarnings",
        ],
        environment: &[
            ("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a"),
            ("CARGO_TARGET_DIR", "target"),
        ],
    },
];

/// Stages that compute, one core each. They run beside [`REAL`], which mostly waits, and leave the processor to it.
const SIMULATED: &[Stage] = &[
    // The build of the tests: answers are integers and IEEE doubles, the same with and without optimisation, and a
    // release build of everything would double the time of a cold run.
    lab!("conform", "conform"),
    // Compares the simulated cluster with recorded outcomes of real control planes.
    lab!("fidelity", "fidelity", "--recorded"),
    // Other seeds than the tests of strew-scenario play: many commits play all of `cargo xtask scenarios`.
    lab!("scenarios, new", "scenarios", "--from-commit", "--seeds=10"),
    // More seeds than the tests of strew-sim play: a fixed set, and some that no commit has tried before. A failing one
    // prints a small story and the command that plays it again.
    lab!("soak", "soak", "--from=0", "--seeds=100"),
    lab!("soak, new", "soak", "--from-commit", "--seeds=50"),
    lab!(
        "soak hubs",
        "soak",
        "--of=placement",
        "--from=0",
        "--seeds=100"
    ),
    lab!(
        "soak hubs, new",
        "soak",
        "--of=placement",
        "--from-commit",
        "--seeds=50"
    ),
    lab!(
        "soak spreads",
        "soak",
        "--of=workloadspread",
        "--from=0",
        "--seeds=20"
    ),
    lab!(
        "soak spreads, new",
        "soak",
        "--of=workloadspread",
        "--from-commit",
        "--seeds=10"
    ),
    lab!(
        "soak webhooks",
        "soak",
        "--of=registration",
        "--from-commit",
        "--seeds=10"
    ),
    lab!("soak churn", "soak", "--of=churn", "--from=0", "--seeds=40"),
    lab!(
        "soak churn, new",
        "soak",
        "--of=churn",
        "--from-commit",
        "--seeds=20"
    ),
    lab!(
        "soak zones, new",
        "soak",
        "--of=zones",
        "--from-commit",
        "--seeds=20"
    ),
    lab!(
        "soak keep, new",
        "soak",
        "--of=keep",
        "--from-commit",
        "--seeds=60"
    ),
    lab!(
        "soak rebalance, new",
        "soak",
        "--of=rebalance",
        "--from-commit",
        "--seeds=20"
    ),
];

/// Stages on a real control plane.
const REAL: &[Stage] = &[
    // Compares the simulated cluster with a real control plane that runs now.
    lab!(
        "control plane",
        "fidelity",
        "scenarios/fidelity/rollout-plain.yaml"
    ),
    // Tests strew's own processes on it: one case for each feature.
    lab!("e2e", "e2e"),
    // Checks that a real API server accepts deploy/crds.
    lab!("definitions", "fidelity", "--check-lab"),
];

/// The result of a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    /// An earlier stage failed.
    Skipped,
    /// `--no-e2e` asked for it.
    LeftOut,
    /// It needs Go, which is not installed.
    NotRun,
    /// It needs this tool, which is not installed.
    NoTool(&'static str),
    /// The same where all tools are asked for.
    ToolMissing(&'static str),
}

impl Outcome {
    /// The outcome where each tool must be installed.
    fn of_all_tools(self) -> Self {
        match self {
            Self::NoTool(tool) => Self::ToolMissing(tool),
            other => other,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
            Self::LeftOut => "left out",
            Self::NotRun => "NOT RUN",
            Self::NoTool(tool) => return write!(f, "not run: {tool} is not installed"),
            Self::ToolMissing(tool) => return write!(f, "NOT RUN: {tool} is not installed"),
        };
        f.write_str(text)
    }
}

/// A stage, its result and its time.
type Row = (&'static str, Outcome, Duration);

/// How many of the last lines of a failed stage stand once more below the table: whoever reads a log from its end sees
/// what failed, not only where.
const LAST_LINES: usize = 12;

/// Runs the stages, up to the first failure unless `keep_going`.
///
/// Exit code 1 if a stage failed, or could not run for want of Go. `no_e2e` leaves out the stages that need a control
/// plane, which is no failure. With `all_tools`, a check whose tool is not installed is one.
pub(crate) fn run(keep_going: bool, no_e2e: bool, all_tools: bool) -> anyhow::Result<ExitCode> {
    let begin = now();
    let go = match no_e2e {
        true => Ok(()),
        false => go::check_go(top()),
    };
    let absent = match (no_e2e, &go) {
        (true, _) => Some((Outcome::LeftOut, "--no-e2e".to_owned())),
        (false, Err(error)) => Some((Outcome::NotRun, format!("{error:#}"))),
        (false, Ok(())) => None,
    };
    print!("{}", announcement(absent.as_ref()));
    // Beside the first stages: cargo leaves cores idle while it waits for its longest crates. What fails here is told by
    // the stage that needs it.
    let control_plane = match absent {
        Some(_) => None,
        None => Compiling::start(top(), Build::ControlPlane).ok(),
    };
    let mut run = Run {
        keep_going,
        is_beside: false,
        done: Vec::new(),
    };
    run.stages(FIRST, &mut std::io::stdout())?;
    let _ = control_plane.map(Compiling::finish);
    run.both(absent.map(|(outcome, _)| outcome))?;
    let (mut rows, ends): (Vec<Row>, Vec<_>) = run.done.into_iter().unzip();
    let mut ends: Vec<_> = rows.clone().into_iter().zip(ends).collect();
    ends.retain(|(row, end)| row.1 == Outcome::Failed && !end.is_empty());
    for check in BY_TOOLS {
        let stop = !keep_going && rows.iter().any(|&(_, o, _)| o == Outcome::Failed);
        rows.push(match stop {
            true => (check.name, Outcome::Skipped, Duration::ZERO),
            false => run_by_tool(check)?,
        });
    }
    if all_tools {
        rows.iter_mut().for_each(|row| row.1 = row.1.of_all_tools());
    }
    print!("{}", summary(&rows, begin.elapsed()));
    for ((name, ..), end) in ends {
        println!("{name} ended with:");
        end.iter().for_each(|line| println!("  {line}"));
    }
    Ok(match is_success(&rows) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The text before the first stage: the number of stages, which of them will not run, and why.
fn announcement(absent: Option<&(Outcome, String)>) -> String {
    let n_stages = FIRST.len() + SIMULATED.len() + REAL.len();
    let Some((outcome, why)) = absent else {
        return format!("{n_stages} stages\n\n");
    };
    let n_absent = REAL.len();
    let names: Vec<&str> = REAL.iter().map(|stage| stage.name).collect();
    let names = names.join(", ");
    let consequence = match outcome {
        Outcome::NotRun => {
            "the others run, and the exit code is 1: these checks are part of the whole; --no-e2e leaves them out"
        }
        _ => "whether strew works with a real control plane is not checked",
    };
    format!(
        "{n_stages} stages, of which {n_absent} will not run: {names}\n  reason: {why}\n  {consequence}\n\n"
    )
}

/// A row, and the last lines of the stage's standard output.
type Done = (Row, Vec<String>);

/// Stages one after another.
#[derive(Clone)]
struct Run {
    keep_going: bool,
    /// Whether something else runs at the same time, which comes first.
    is_beside: bool,
    done: Vec<Done>,
}

impl Run {
    /// Runs stages, up to the first failure unless `keep_going`; what they print goes to `out`.
    fn stages(&mut self, stages: &[Stage], out: &mut impl Write) -> anyhow::Result<()> {
        for stage in stages {
            let has_failed = self.done.iter().any(|(row, _)| row.1 == Outcome::Failed);
            let done = match has_failed && !self.keep_going {
                true => ((stage.name, Outcome::Skipped, Duration::ZERO), Vec::new()),
                false => self.stage(stage, out)?,
            };
            self.done.push(done);
        }
        Ok(())
    }

    /// Runs the stages that compute beside those on a real control plane, which may be absent.
    fn both(&mut self, absent: Option<Outcome>) -> anyhow::Result<()> {
        let mut simulated = Self {
            is_beside: absent.is_none(),
            ..self.clone()
        };
        let n_before = self.done.len();
        let (log, real) = std::thread::scope(|scope| {
            let beside = scope.spawn(|| {
                let mut log = Vec::new();
                simulated.stages(SIMULATED, &mut log).map(|()| log)
            });
            let real = match absent {
                Some(outcome) => {
                    self.leave_out(REAL, outcome);
                    Ok(())
                }
                None => self.stages(REAL, &mut std::io::stdout()),
            };
            let log = beside.join();
            (
                log.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                real,
            )
        });
        std::io::stdout().write_all(&log?)?;
        real?;
        let real = self.done.split_off(n_before);
        self.done = simulated.done;
        self.done.extend(real);
        Ok(())
    }

    fn leave_out(&mut self, stages: &[Stage], outcome: Outcome) {
        let rows = stages
            .iter()
            .map(|stage| ((stage.name, outcome, Duration::ZERO), Vec::new()));
        self.done.extend(rows);
    }

    fn stage(&self, stage: &Stage, out: &mut impl Write) -> anyhow::Result<Done> {
        let program = stage.program.path()?;
        let words = stage.arguments.join(" ");
        writeln!(out, "=== {}: {} {words}", stage.name, program.display())?;
        let begin = now();
        let mut command = match self.is_beside && cfg!(unix) {
            true => {
                let mut nice = Command::new("nice");
                nice.arg(program);
                nice
            }
            false => Command::new(program),
        };
        let mut child = command
            .args(stage.arguments)
            .envs(stage.environment.iter().copied())
            .env(BUILT, "1")
            .current_dir(top())
            .stdout(Stdio::piped())
            .spawn()?;
        let end = match child.stdout.take() {
            Some(output) => passed_on(BufReader::new(output), out)?,
            None => Vec::new(),
        };
        let status = child.wait()?;
        let outcome = match status.success() {
            true => Outcome::Passed,
            false => Outcome::Failed,
        };
        let took = begin.elapsed();
        writeln!(out, "=== {}: {outcome} in {}\n", stage.name, seconds(took))?;
        Ok(((stage.name, outcome, took), end))
    }
}

/// Writes each line as it comes; returns the last ones.
fn passed_on(mut output: impl BufRead, out: &mut impl Write) -> std::io::Result<Vec<String>> {
    let mut end = VecDeque::new();
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        out.write_all(&line)?;
        if end.len() == LAST_LINES {
            end.pop_front();
        }
        end.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        line.clear();
    }
    Ok(end.into())
}

/// Runs a check if its tool is installed.
fn run_by_tool(check: &ByTool) -> anyhow::Result<Row> {
    let begin = now();
    let mut outcome = match is_installed(check.tool)? {
        true => Outcome::Passed,
        false => Outcome::NoTool(check.tool),
    };
    for words in check.runs {
        let [program, arguments @ ..] = words else {
            continue;
        };
        if outcome != Outcome::Passed {
            break;
        }
        println!("=== {}: {}", check.name, words.join(" "));
        let mut command = Command::new(program);
        let status = command
            .args(arguments)
            .env(BUILT, "1")
            .current_dir(top())
            .status()?;
        outcome = match status.code() {
            Some(0) => outcome,
            // What the tool needs from its registry.
            Some(code) if code == i32::from(clients::NOT_INSTALLED) => Outcome::NoTool(check.name),
            _ => Outcome::Failed,
        };
    }
    let took = begin.elapsed();
    println!("=== {}: {outcome}", check.name);
    println!();
    Ok((check.name, outcome, took))
}

/// Whether a program is on `PATH`.
fn is_installed(tool: &str) -> anyhow::Result<bool> {
    match Command::new(tool).arg("--help").output() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_success(rows: &[Row]) -> bool {
    rows.iter()
        .all(|&(_, o, _)| matches!(o, Outcome::Passed | Outcome::LeftOut | Outcome::NoTool(_)))
}

/// A table of the stages; the last line is the verdict. A stage that did not run never counts as passed.
fn summary(rows: &[Row], total: Duration) -> String {
    let mut text = String::new();
    for &(name, outcome, took) in rows {
        let took = match outcome {
            Outcome::Passed | Outcome::Failed => seconds(took),
            _ => String::new(),
        };
        let row = format!("{name:17} {outcome:8} {took:>9}");
        text += row.trim_end();
        text += "\n";
    }
    text += &format!("{:26} {:>9}\n", "total", seconds(total));
    let count = |wanted| rows.iter().filter(|&&(_, o, _)| o == wanted).count();
    let mut counts = vec![
        format!("{} passed", count(Outcome::Passed)),
        format!("{} failed", count(Outcome::Failed)),
    ];
    let tools = rows.iter().filter_map(|&(_, outcome, _)| match outcome {
        Outcome::NoTool(tool) | Outcome::ToolMissing(tool) => Some(tool),
        _ => None,
    });
    let must = |row: &Row| matches!(row.1, Outcome::ToolMissing(_));
    let mut tools: Vec<&str> = tools.collect();
    for outcome in [Outcome::Skipped, Outcome::LeftOut, Outcome::NotRun] {
        if count(outcome) > 0 {
            counts.push(format!("{} {outcome}", count(outcome)));
        }
    }
    if !tools.is_empty() {
        counts.push(format!("{} without their tool", tools.len()));
    }
    // Checks that follow each other may need the same tool.
    tools.dedup();
    let verdict = match (count(Outcome::Failed), count(Outcome::NotRun)) {
        (0, 0) if rows.iter().any(must) => {
            format!("INCOMPLETE: not installed: {}", tools.join(", "))
        }
        (0, 0) if count(Outcome::LeftOut) > 0 => "passed, without a real control plane".to_owned(),
        (0, 0) if !tools.is_empty() => format!("passed, without {}", tools.join(", ")),
        (0, 0) => "passed".to_owned(),
        (0, _) => "INCOMPLETE: what needs Go was not checked".to_owned(),
        _ => "FAILED".to_owned(),
    };
    text += &format!("stages: {}\n{verdict}\n", counts.join(", "));
    text
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[expect(
    clippy::disallowed_methods,
    reason = "automation tells how long its stages take"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of_control_plane: Outcome) -> Vec<Row> {
        let took = Duration::from_millis(1500);
        let others = FIRST.iter().chain(SIMULATED);
        let others = others.map(|stage| (stage.name, Outcome::Passed, took));
        let real = REAL
            .iter()
            .map(|stage| (stage.name, of_control_plane, took));
        others.chain(real).collect()
    }

    fn last_line(rows: &[Row]) -> String {
        let text = summary(rows, Duration::from_secs(60));
        text.lines().last().unwrap_or_default().to_owned()
    }

    #[test]
    fn without_go_the_start_says_so_and_the_end_is_no_success() {
        let absent = (Outcome::NotRun, "no Go".to_owned());
        let start = announcement(Some(&absent));
        assert!(
            start.contains("will not run: control plane, e2e, definitions\n  reason: no Go"),
            "{start}"
        );
        let rows = rows(Outcome::NotRun);
        assert!(!is_success(&rows));
        assert_eq!(
            last_line(&rows),
            "INCOMPLETE: what needs Go was not checked"
        );
        let text = summary(&rows, Duration::ZERO);
        assert!(text.contains("e2e               NOT RUN\n"), "{text}");
        assert!(text.contains("0 failed, 3 NOT RUN"), "{text}");
    }

    #[test]
    fn the_last_lines_of_a_stage_are_kept() {
        let lines: Vec<String> = (0..20).map(|i| format!("line {i}")).collect();
        let end = passed_on(lines.join("\n").as_bytes(), &mut Vec::new()).unwrap();
        assert_eq!(end, lines[20 - LAST_LINES..]);
    }

    #[test]
    fn what_is_left_out_on_purpose_is_no_failure_and_is_named() {
        let rows = rows(Outcome::LeftOut);
        assert!(is_success(&rows));
        assert_eq!(last_line(&rows), "passed, without a real control plane");
    }

    #[test]
    fn without_a_tool_the_end_says_so() {
        let mut rows = rows(Outcome::Passed);
        for check in BY_TOOLS {
            rows.push((check.name, Outcome::NoTool(check.tool), Duration::ZERO));
        }
        assert!(is_success(&rows));
        assert_eq!(
            last_line(&rows),
            "passed, without promtool, helm, mdbook, shellcheck, cargo-deny, go, python3, npm, chromium, headlamp-plugin"
        );
        let text = summary(&rows, Duration::ZERO);
        assert!(
            text.contains("rules             not run: promtool is not installed\n"),
            "{text}"
        );
    }

    #[test]
    fn where_all_tools_are_asked_for_the_lack_of_one_is_a_failure() {
        let mut rows = rows(Outcome::LeftOut);
        let outcome = Outcome::NoTool("helm").of_all_tools();
        rows.push(("chart", outcome, Duration::ZERO));
        assert!(!is_success(&rows));
        assert_eq!(last_line(&rows), "INCOMPLETE: not installed: helm");
    }

    /// A filter that no test has passes.
    #[test]
    fn tests_that_stages_name_are_there() {
        let mut names = BY_TOOLS
            .iter()
            .flat_map(|check| check.runs)
            .filter(|words| words.last() == Some(&"--ignored"))
            .filter_map(|words| words.iter().rev().nth(2))
            .peekable();
        assert!(names.peek().is_some());
        for name in names {
            let found = Command::new("git")
                .args(["grep", "--quiet", "--untracked", &format!("fn {name}")])
                .arg("crates")
                .current_dir(top())
                .status();
            assert!(found.unwrap().success(), "{name}");
        }
    }

    #[test]
    fn a_failure_is_one_whatever_else_did_not_run() {
        let mut rows = rows(Outcome::NotRun);
        rows[0].1 = Outcome::Failed;
        assert!(!is_success(&rows));
        assert_eq!(last_line(&rows), "FAILED");
    }

    /// It would compile dependencies again, with other features.
    #[test]
    fn no_stage_builds_a_single_package() {
        let later = || SIMULATED.iter().chain(REAL);
        assert!(later().all(|stage| stage.program == Program::Lab));
        assert!(FIRST.iter().any(|stage| stage.name == "test"));
        assert!(is_success(&rows(Outcome::Passed)));
        assert_eq!(last_line(&rows(Outcome::Passed)), "passed");
    }

    #[test]
    fn a_failure_skips_the_later_stages_unless_all_are_asked_for() {
        let stage = |name, argument| Stage {
            name,
            program: Program::Cargo,
            arguments: argument,
            environment: &[],
        };
        let stages = [
            stage("bad", &["no-such-command"]),
            stage("good", &["--version"]),
        ];
        for (keep_going, last) in [(false, Outcome::Skipped), (true, Outcome::Passed)] {
            let mut run = Run {
                keep_going,
                is_beside: true,
                done: Vec::new(),
            };
            let mut log = Vec::new();
            run.stages(&stages, &mut log).unwrap();
            let outcomes: Vec<Outcome> = run.done.iter().map(|(row, _)| row.1).collect();
            assert!(outcomes == [Outcome::Failed, last]);
            let log = String::from_utf8(log).unwrap();
            assert!(log.contains("=== bad: FAILED in"), "{log}");
        }
    }
}
