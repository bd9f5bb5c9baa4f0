//! The page of `--html`: the audit of `-o json`, and what its rules say about it.

use serde_json::json;
use strew_scenario::audit::values::{Audit, Case, Row};

use super::patches;
use crate::failure::Failure;
use crate::html;

/// Writes the page of an audit of these files; `fails` is true if it fails the command.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(
    path: &str,
    audit: &Audit,
    files: &[String],
    fails: bool,
) -> Result<(), Failure> {
    let patches = (0..audit.fixes.len()).map(|number| patches::of_fix(audit, number));
    let patches = patches.collect::<Result<Vec<String>, Failure>>()?;
    let data = json!({
        "report": audit,
        "files": files,
        "fails": fails,
        "hurt": audit.cases.iter().map(hurt).collect::<Vec<_>>(),
        "patches": patches,
    });
    html::write(path, &data.to_string())
}

/// The places of the workloads of a case on which a person should act.
fn hurt(case: &Case) -> Vec<usize> {
    let rows = case.workloads.iter().enumerate();
    let hurt = rows.filter(|(_, row): &(usize, &Row)| row.is_hurt());
    hurt.map(|(place, _)| place).collect()
}
