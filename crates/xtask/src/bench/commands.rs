//! What whole commands cost: CPU time as a ratio to one command of the same run, and the most memory.
//!
//! The last figures are in docs/bench-commands.json: a command that costs 1.3 times as much as there fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::inputs;

/// The last figures, by the name of a line.
const LAST: &str = "docs/bench-commands.json";

/// A line that costs more times its last figure than this fails.
const GROWTH_MAX: f64 = 1.3;

/// Below this ratio and this many MiB a figure is too small to be compared.
const RATIO_MIN: f64 = 0.1;
const MIB_MIN: f64 = 40.0;

/// The line that the others are compared with: 10,000 pods on 500 nodes.
const REFERENCE: &str = "reference";

/// A measured command.
struct Line {
    name: &'static str,
    /// The name and the text of its file.
    file: (&'static str, fn() -> String),
    args: &'static [&'static str],
    /// Exit codes that mean that it did its work.
    codes: &'static [i32],
}

const NODES: [&str; 6] = [
    "--zones=3",
    "--node-cpu=64",
    "--node-memory=256Gi",
    "--color=never",
    "--quiet",
    "--until",
];

const LINES: &[Line] = &[
    Line {
        name: REFERENCE,
        file: ("d10000.yaml", || inputs::one(10_000)),
        args: &["simulate", "--nodes=500", "--seed=0"],
        codes: &[0],
    },
    Line {
        name: "deploy/10000-on-5000",
        file: ("d10000.yaml", || inputs::one(10_000)),
        args: &["simulate", "--nodes=5000", "--seed=0"],
        codes: &[0],
    },
    Line {
        name: "deploy/10000-on-5000/raced",
        file: ("d10000.yaml", || inputs::one(10_000)),
        args: &["simulate", "--nodes=5000", "--seed=2"],
        codes: &[0],
    },
    Line {
        name: "deploy/1000/ten-seeds",
        file: ("d1000.yaml", || inputs::one(1_000)),
        args: &["simulate", "--nodes=500", "--seeds=10"],
        codes: &[0],
    },
    Line {
        name: "rollout/3000",
        file: ("d3000.yaml", || inputs::one(3_000)),
        args: &["simulate", "--nodes=1000", "--seed=0", "rollout"],
        codes: &[0, 1],
    },
    Line {
        name: "workloads/2000-on-2000",
        file: ("w2000.yaml", || inputs::many(2_000)),
        args: &["simulate", "--nodes=2000", "--seed=0"],
        codes: &[0],
    },
    Line {
        name: "html/500-on-500",
        file: ("w500.yaml", || inputs::many(500)),
        args: &["simulate", "--nodes=500", "--seed=0", "--html=page.html"],
        codes: &[0],
    },
    Line {
        name: "lost-zone/400",
        file: ("lost.yaml", || inputs::lost_zone(400)),
        args: &["simulate", "--seed=0"],
        codes: &[0, 1],
    },
    Line {
        name: "cel/2000",
        file: ("cel.yaml", || inputs::always_cel(2_000)),
        args: &["simulate", "--seed=0"],
        codes: &[0],
    },
    Line {
        name: "explain/dump",
        file: ("dump.json", || inputs::dump(500, 500, 20)),
        args: &["explain"],
        codes: &[0],
    },
    Line {
        name: "lint/dump",
        file: ("dump.json", || inputs::dump(500, 500, 20)),
        args: &["lint"],
        codes: &[0, 1],
    },
    Line {
        name: "audit-at-once/dump",
        file: ("dump.json", || inputs::dump(500, 500, 20)),
        args: &["audit", "--at-once"],
        codes: &[0, 1],
    },
    Line {
        name: "rebalance/dump",
        file: ("dump.json", || inputs::dump(500, 500, 20)),
        args: &["rebalance"],
        codes: &[0, 1],
    },
    Line {
        name: "place/500-of-200",
        file: ("fleet.yaml", || inputs::fleet(200, 500)),
        args: &["place"],
        codes: &[0, 1],
    },
];

/// Options for commands.
#[derive(clap::Args, Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// Keep the figures of commands as the last ones (docs/bench-commands.json)
    #[arg(long)]
    write: bool,
    /// Measure the program in target/release as it is
    #[arg(long)]
    built: bool,
}

/// What a command cost.
#[derive(Debug, Clone, Copy)]
struct Cost {
    seconds: f64,
    mib: f64,
}

/// Measures the lines with one of these names in theirs, or all.
pub(super) fn run(names: &[String], keep: Keep) -> anyhow::Result<ExitCode> {
    let Keep { write, built } = keep;
    let top = xtask::top();
    let program = program(top, built)?;
    let folder = top.join("target/bench");
    fs::create_dir_all(&folder)?;
    let mut last = last(top)?;
    let reference = LINES
        .iter()
        .find(|line| line.name == REFERENCE)
        .context("there is one")?;
    let unit = measured(reference, &program, &folder)?;
    println!(
        "{:28} {:>8.2} s {:>6.0} MiB",
        REFERENCE, unit.seconds, unit.mib
    );
    let mut is_good = true;
    for line in LINES.iter().filter(|line| line.name != REFERENCE) {
        if !names.is_empty() && !names.iter().any(|name| line.name.contains(name.as_str())) {
            continue;
        }
        let cost = measured(line, &program, &folder)?;
        let ratio = cost.seconds / unit.seconds;
        let known = last.get(line.name).copied();
        let grew = |now: f64, then: f64, least: f64| now > then.max(least) * GROWTH_MAX;
        let has_grown = known.is_some_and(|(then, mib)| {
            grew(ratio, then, RATIO_MIN) || grew(cost.mib, mib, MIB_MIN)
        });
        let was = known.map_or("new".to_owned(), |(then, mib)| {
            format!("was {then:.2}, {mib:.0} MiB")
        });
        let mark = if has_grown { "GREW" } else { "" };
        println!(
            "{:28} {:>8.2} s {:>6.0} MiB {ratio:>7.2}  {was} {mark}",
            line.name, cost.seconds, cost.mib
        );
        is_good &= !has_grown;
        last.insert(line.name.to_owned(), (ratio, cost.mib));
    }
    if write {
        let round = |number: f64| (number * 100.0).round() / 100.0;
        let figures = last.iter().map(|(name, (ratio, mib))| {
            (
                name.clone(),
                json!({"ratio": round(*ratio), "mib": mib.round()}),
            )
        });
        let figures = Value::Object(figures.collect());
        fs::write(top.join(LAST), format!("{figures:#}\n"))?;
    }
    Ok(match is_good || write {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The program, optimized.
fn program(top: &Path, built: bool) -> anyhow::Result<PathBuf> {
    let program = top.join("target/release/strew");
    if built {
        return Ok(program);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--package=strew",
        ])
        .current_dir(top)
        .status()?;
    ensure!(status.success(), "strew was not built");
    Ok(program)
}

/// Ratio and MiB of each line.
fn last(top: &Path) -> anyhow::Result<BTreeMap<String, (f64, f64)>> {
    let Ok(text) = fs::read_to_string(top.join(LAST)) else {
        return Ok(BTreeMap::new());
    };
    let figures: BTreeMap<String, Value> = serde_json::from_str(&text).context(LAST)?;
    let number = |of: &Value, field: &str| of[field].as_f64().unwrap_or_default();
    let each = figures
        .into_iter()
        .map(|(name, of)| (name, (number(&of, "ratio"), number(&of, "mib"))));
    Ok(each.collect())
}

/// The cheaper of two runs.
fn measured(line: &Line, program: &Path, folder: &Path) -> anyhow::Result<Cost> {
    let (file, text) = line.file;
    fs::write(folder.join(file), text())?;
    let mut command = Command::new(program);
    let is_story =
        line.args.contains(&"simulate") && line.args.iter().any(|arg| arg.starts_with("--nodes"));
    let (until, args) = match line.args {
        [args @ .., "rollout"] => ("rollout", args),
        args => ("deploy", args),
    };
    command.args(args).arg(file).current_dir(folder);
    if is_story {
        command.args(NODES).arg(until);
    }
    let [one, other] = [once(line, &mut command)?, once(line, &mut command)?];
    Ok(if other.seconds < one.seconds {
        other
    } else {
        one
    })
}

fn once(line: &Line, command: &mut Command) -> anyhow::Result<Cost> {
    let before = children_ticks()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mib = watch(&mut child)?;
    let status = child.wait()?;
    let code = status.code();
    ensure!(
        code.is_some_and(|code| line.codes.contains(&code)),
        "{}: {command:?} ended with {status}",
        line.name
    );
    let seconds = (children_ticks()? - before) as f64 / TICKS_PER_SECOND;
    Ok(Cost {
        seconds: seconds.max(1.0 / TICKS_PER_SECOND),
        mib,
    })
}

/// The unit of /proc/self/stat on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time of the children that have ended.
fn children_ticks() -> anyhow::Result<u64> {
    let text = fs::read_to_string("/proc/self/stat").context("bench commands needs /proc")?;
    // The name, in parentheses, may have spaces. cutime and cstime are fields 16 and 17 of all.
    let (_, rest) = text.rsplit_once(')').context("/proc/self/stat")?;
    let mut fields = rest.split_whitespace().skip(13);
    let mut next = || -> anyhow::Result<u64> { Ok(fields.next().context("cutime")?.parse()?) };
    Ok(next()? + next()?)
}

/// Waits for the end; the most memory that was seen, in MiB.
#[expect(
    clippy::disallowed_methods,
    reason = "what a process holds can only be asked for again and again"
)]
fn watch(child: &mut Child) -> anyhow::Result<f64> {
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0.0_f64;
    while child.try_wait()?.is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|line| line.trim().split(' ').next()?.parse::<f64>().ok());
        most = most.max(kib.unwrap_or_default() / 1024.0);
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(most)
}
