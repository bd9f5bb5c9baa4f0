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
}

/// Installs what the lock file names, if it is not there yet, and builds or tests.
///
/// Exit code 1 if a check failed, [`NOT_INSTALLED`] if the packages cannot be installed.
pub(crate) fn run(top: &Path, options: &Web) -> anyhow::Result<ExitCode> {
    let folder = top.join("web");
    if !folder.join("node_modules/.package-lock.json").exists() {
        let install = ["npm", "ci", "--silent", "--no-audit", "--no-fund"];
        if !is_done(&folder, &install)? {
            println!("the packages of web/package-lock.json cannot be installed");
            return Ok(ExitCode::from(NOT_INSTALLED));
        }
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
        true => is_tested(&folder)?,
        false => true,
    };
    Ok(match is_passed {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

const TYPES: &[&str] = &["npm", "run", "--silent", "check"];
const TESTS: [&str; 4] = ["node", "--test", "test/page.test.mjs", "test/ui.test.mjs"];

/// Whether the page passes its tests in a browser.
fn is_tested(folder: &Path) -> anyhow::Result<bool> {
    let [node, arguments @ ..] = TESTS;
    let status = Command::new(node)
        .args(arguments)
        .current_dir(folder)
        .env("STREW", xtask::program("strew", false)?)
        .status();
    Ok(status.context("starting node")?.success())
}

fn is_done(folder: &Path, words: &[&str]) -> anyhow::Result<bool> {
    let [program, arguments @ ..] = words else {
        return Ok(true);
    };
    let mut command = Command::new(program);
    let status = command.args(arguments).current_dir(folder).status();
    Ok(status
        .with_context(|| format!("starting {program}"))?
        .success())
}
