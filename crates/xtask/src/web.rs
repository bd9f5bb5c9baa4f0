//! Makes the page of strew's reports from `web/src`, and tries it and `strew ui` in a browser: `cargo xtask web`.
//!
//! The result, `web/dist/page.html`, is committed, so that cargo alone builds strew.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Args;

use crate::clients::NOT_INSTALLED;

/// Options of `cargo xtask web`.
#[derive(Args)]
pub(crate) struct Web {
    /// Write nothing; exit code 1 if the committed page is not what the sources make
    #[arg(long)]
    check: bool,
    /// Try the page in a real browser (needs chromium)
    #[arg(long)]
    test: bool,
    /// Check, test and build the plugin of Headlamp instead (installs 850 MB below web/headlamp; with --check only if they
    /// are there)
    #[arg(long, conflicts_with = "test")]
    headlamp: bool,
}

/// Installs what the lock file names, if it is not there yet, and builds or tests.
///
/// Exit code 1 if a check failed, [`NOT_INSTALLED`] if the packages cannot be installed.
pub(crate) fn run(top: &Path, options: &Web) -> anyhow::Result<ExitCode> {
    let folder = top.join("web");
    if options.headlamp {
        return headlamp(&folder.join("headlamp"), !options.check);
    }
    if !has_packages(&folder)? {
        return Ok(ExitCode::from(NOT_INSTALLED));
    }
    let build: &[&str] = match options.check || options.test {
        true => &["node", "build.mjs", "--check"],
        false => &["node", "build.mjs"],
    };
    for words in [TYPES, build] {
        if !is_done(&folder, words)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    let is_passed = match options.test {
        true => is_tested(&folder, &TESTS)?,
        false => true,
    };
    Ok(match is_passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Checks, tests and builds the plugin by Headlamp's own tool, which is installed if it may be.
fn headlamp(folder: &Path, installs: bool) -> anyhow::Result<ExitCode> {
    let install: &[&str] = &["npm", "install", "--silent", "--no-audit", "--no-fund"];
    let is_there = folder.join("node_modules/.package-lock.json").exists();
    if !is_there && (!installs || !is_done(folder, install)?) {
        println!("the packages of web/headlamp are not installed: cargo xtask web --headlamp");
        return Ok(ExitCode::from(NOT_INSTALLED));
    }
    for words in HEADLAMP {
        if !is_done(folder, words)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Without `CI` its tests wait for changes.
const HEADLAMP: [&[&str]; 3] = [
    &["npm", "run", "--silent", "tsc"],
    &["env", "CI=true", "npm", "run", "--silent", "test"],
    &["npm", "run", "--silent", "build"],
];

/// Installs what the lock file names, if it is not there yet; `false`, and says so: it cannot be installed.
pub(crate) fn has_packages(folder: &Path) -> anyhow::Result<bool> {
    let install = ["npm", "ci", "--silent", "--no-audit", "--no-fund"];
    let has = folder.join("node_modules/.package-lock.json").exists() || is_done(folder, &install)?;
    if !has {
        println!("the packages of web/package-lock.json cannot be installed");
    }
    Ok(has)
}

pub(crate) const TYPES: &[&str] = &["npm", "run", "--silent", "check"];
const TESTS: [&str; 3] = [
    "test/past.test.mjs",
    "test/page.test.mjs",
    "test/ui.test.mjs",
];

/// Whether these tests pass, which start a browser and the workspace's strew.
pub(crate) fn is_tested(folder: &Path, tests: &[&str]) -> anyhow::Result<bool> {
    let status = Command::new("node")
        .arg("--test")
        .args(tests)
        .current_dir(folder)
        .env("STREW", xtask::program("strew", false)?)
        .status();
    Ok(status.context("starting node")?.success())
}

/// Runs a program; `true`: its exit code is 0.
pub(crate) fn is_done(folder: &Path, words: &[&str]) -> anyhow::Result<bool> {
    let [program, arguments @ ..] = words else {
        return Ok(true);
    };
    let mut command = Command::new(program);
    let status = command.args(arguments).current_dir(folder).status();
    Ok(status
        .with_context(|| format!("starting {program}"))?
        .success())
}
