//! What a program without the feature `cluster` says.

use std::error::Error;

use anyhow::anyhow;
use serde_json::Value;

use super::Wanted;
use super::access::AccessArgs;
use crate::failure::Failure;

/// The commands that are not there.
const COMMANDS: [&str; 7] = [
    "sweep",
    "ui",
    "scheduler",
    "controller",
    "webhook",
    "install",
    "uninstall",
];

/// Why this is no command; `None` if it would be none in any program.
pub(crate) fn missing(command: &str) -> Option<Failure> {
    COMMANDS.contains(&command).then(files_only)
}

fn files_only() -> Failure {
    let error = anyhow!("this strew was built without the feature `cluster` and reads files only");
    Failure::input(error).with_hint("cargo build --release builds all of it")
}

/// Refuses: there is no client of API servers.
pub(crate) fn fetch(_: &AccessArgs, _: bool) -> Result<Value, Failure> {
    Err(files_only())
}

/// As [`fetch`].
pub(crate) fn fetch_wanted(access: &AccessArgs, _: Wanted, quiet: bool) -> Result<Value, Failure> {
    fetch(access, quiet)
}

/// The texts of an error and its causes.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    strew_runtime::causes::causes(error, |_| None)
}
