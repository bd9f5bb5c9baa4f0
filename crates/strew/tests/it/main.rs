//! Runs the binary as people and programs do: whole commands, their output and exit codes.
//!
//! `SNAPSHOTS=overwrite cargo test -p strew --test it` writes the expected output again; read the diff.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod anonymous;
// Links, pipes and modes of files.
#[cfg(unix)]
mod bounds;
mod cases;
mod chart;
#[cfg(unix)]
mod complete;
mod configuration;
mod connecting;
mod data;
mod documents;
mod dump;
mod explain;
mod formats;
#[cfg(unix)]
mod growth;
mod html;
mod import;
mod input;
mod install;
mod keps;
mod lint;
mod lint_fixes;
mod look;
mod mcp;
mod mixin;
mod nothing;
mod one_count;
#[cfg(unix)]
mod pipelines;
mod place;
mod place_changes;
mod place_groups;
mod readme;
mod recipes;
mod refused;
mod scaled;
mod scenario;
mod schema;
mod simulate;
mod spread;
mod story;
mod sweep;
mod ui;
mod uninstall;
mod what_if;

use std::path::{Path, PathBuf};

use snapbox::cmd::{Command, OutputAssert};

/// What `strew install` and `strew uninstall` know, and the chart has.
const COMPONENTS: [&str; 6] = [
    "scheduler",
    "workloadspread",
    "placement",
    "keep",
    "audit",
    "rebalance",
];

/// `--crds=WHEN` for a component with CustomResourceDefinitions, else nothing.
fn crds(component: &str, when: &str) -> String {
    match component {
        "workloadspread" | "placement" => format!("--crds={when}"),
        _ => String::new(),
    }
}

/// The root of the workspace, where every command runs.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program under test; `STREW_PROGRAM` names one of another platform, as `cargo xtask platforms` does.
fn program() -> PathBuf {
    let named = std::env::var_os("STREW_PROGRAM").map(PathBuf::from);
    named.unwrap_or_else(|| snapbox::cmd::cargo_bin!("strew").to_owned())
}

/// `strew ARGS`, split at spaces, in an environment without settings of colour and with UTF-8.
fn strew(args: &str) -> Command {
    let quiet = [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLUMNS",
        "TERM",
        "LC_CTYPE",
        "LANG",
    ];
    let command = Command::new(program())
        .current_dir(root())
        .env("LC_ALL", "C.UTF-8")
        .args(args.split_whitespace());
    quiet
        .iter()
        .fold(command, |command, name| command.env_remove(name))
}

fn stdout(assert: &OutputAssert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &OutputAssert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

fn json(assert: &OutputAssert) -> serde_json::Value {
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

/// The only run of a report, of a Scenario with one variant and one seed; of the built-in story, the run that is shown.
fn only_run(report: &serde_json::Value) -> &serde_json::Value {
    let runs = report["scenarios"][0]["variants"][0]["runs"].as_array();
    let runs = runs.map_or(&[][..], Vec::as_slice);
    let shown = runs
        .iter()
        .find(|run| !run["steps"][0]["workloads"].is_null());
    shown.or(runs.first()).unwrap_or(&serde_json::Value::Null)
}

/// The result of its first step.
fn first_step(report: &serde_json::Value) -> &serde_json::Value {
    &only_run(report)["steps"][0]
}
