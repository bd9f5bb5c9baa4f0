//! Files whose right answer is known: public reports, everyday mistakes, and files that are as they should be.
//!
//! Each folder of `tests/cases` has input files and `case.txt`: commands, each with what must come of it. A command
//! runs in its folder.
//!
//! ```text
//! # where the case is from, and why this is the right answer
//! $ strew simulate in.yaml --until deploy
//! exit 1
//! has deployment/web 3 replicas: 2 placed, 1 Pending
//! lacks nothing found
//! ```
//!
//! `has` and `lacks` look at stdout and stderr together, with each run of whitespace as one space; `out` and `not-out`
//! at stdout alone, `head` at its first three lines. `stdin FILE` gives the command a file. `CASE=name cargo test -p strew --test it cases` runs the
//! cases whose names contain `name`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::strew;

/// One command of a case.
#[derive(Debug, Default)]
struct Run {
    args: String,
    stdin: Option<String>,
    exit: Option<i32>,
    checks: Vec<Check>,
}

/// What must be, or must not be, in the output.
#[derive(Debug)]
struct Check {
    is_there: bool,
    part: Part,
    text: String,
}

/// Where a check looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Stdout and stderr.
    Both,
    Stdout,
    /// The first three lines of stdout.
    Head,
}

/// The commands of a case.
fn runs(text: &str) -> Result<Vec<Run>, String> {
    let mut runs: Vec<Run> = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "$" {
            let args = rest.strip_prefix("strew ");
            let args = args.ok_or_else(|| format!("not a command of strew: {line}"))?;
            runs.push(Run {
                args: args.to_owned(),
                ..Run::default()
            });
            continue;
        }
        let run = runs.last_mut().ok_or("no command before this line")?;
        let mut check = |is_there, part| {
            run.checks.push(Check {
                is_there,
                part,
                text: squeezed(rest),
            });
        };
        match word {
            "exit" => run.exit = Some(rest.parse().map_err(|_| format!("no number: {line}"))?),
            "stdin" => run.stdin = Some(rest.to_owned()),
            "has" => check(true, Part::Both),
            "lacks" => check(false, Part::Both),
            "out" => check(true, Part::Stdout),
            "head" => check(true, Part::Head),
            "not-out" => check(false, Part::Stdout),
            _ => return Err(format!("unknown word: {line}")),
        }
    }
    match runs.is_empty() || runs.iter().any(|run| run.exit.is_none()) {
        true => Err("a case has commands, and each says its exit code".to_owned()),
        false => Ok(runs),
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is not as it must be; empty if all is.
fn wrong(folder: &Path, run: &Run) -> String {
    let mut command = strew(&run.args).current_dir(folder);
    if let Some(file) = &run.stdin {
        command = command.stdin(std::fs::read(folder.join(file)).unwrap());
    }
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut wrong = String::new();
    if output.status.code() != run.exit {
        let _ = writeln!(
            wrong,
            "  exit {:?}, expected {:?}",
            output.status.code(),
            run.exit
        );
    }
    let all = squeezed(&format!("{stdout}\n{stderr}"));
    let out = squeezed(&stdout);
    let head: Vec<&str> = stdout.lines().take(3).collect();
    let head = squeezed(&head.join("\n"));
    for check in &run.checks {
        let text = match check.part {
            Part::Both => &all,
            Part::Stdout => &out,
            Part::Head => &head,
        };
        if text.contains(&check.text) != check.is_there {
            let word = if check.is_there { "lacks" } else { "has" };
            let _ = writeln!(wrong, "  {word}: {}", check.text);
        }
    }
    match wrong.is_empty() {
        true => wrong,
        false => format!(
            "$ strew {}\n{wrong}--- stdout\n{stdout}--- stderr\n{stderr}",
            run.args
        ),
    }
}

#[test]
fn every_case_is_as_it_must_be() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let wanted = std::env::var("CASE").unwrap_or_default();
    let entries = std::fs::read_dir(&folder).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = folders
        .filter(|path| path.to_string_lossy().contains(&wanted))
        .collect();
    folders.sort();
    assert!(!folders.is_empty(), "no case has {wanted:?} in its name");
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| {
                while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
                    let text = std::fs::read_to_string(folder.join("case.txt")).unwrap();
                    let failed = match runs(&text) {
                        Err(error) => error,
                        Ok(runs) => runs.iter().map(|run| wrong(folder, run)).collect(),
                    };
                    if !failed.is_empty() {
                        failures
                            .lock()
                            .unwrap()
                            .push(format!("=== {name}\n{failed}"));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    assert!(
        failures.is_empty(),
        "{} of {} cases:\n{}",
        failures.len(),
        folders.len(),
        failures.join("\n")
    );
}

#[test]
fn a_case_that_asks_nothing_is_refused() {
    assert!(runs("# nothing").is_err());
    assert!(runs("$ strew lint a.yaml").is_err());
    assert!(runs("$ rm a.yaml\nexit 0").is_err());
    assert!(runs("$ strew lint a.yaml\nexit 0\nhsa x").is_err());
    assert!(runs("$ strew lint a.yaml\nexit 0").is_ok());
}
