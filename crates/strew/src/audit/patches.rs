//! Changes that help as files, for `kubectl patch`.

use std::fmt::Write;
use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use strew_scenario::audit::values::{Audit, ObjectPatch};

use crate::failure::Failure;
use crate::output::{Format, serialized};

/// The patches as one stream of YAML documents, each with the command that applies it.
///
/// # Errors
/// Never.
pub(super) fn text(audit: &Audit) -> Result<String, Failure> {
    let each = (0..audit.fixes.len()).map(|number| of_fix(audit, number));
    let all: String = each.collect::<Result<_, _>>()?;
    Ok(match all.is_empty() {
        true => "# no change that was played helps\n".to_owned(),
        false => all,
    })
}

/// The patches of one change; empty if there is none of this number.
///
/// # Errors
/// Never.
pub(super) fn of_fix(audit: &Audit, number: usize) -> Result<String, Failure> {
    let mut out = String::new();
    let Some(fix) = audit.fixes.get(number) else {
        return Ok(out);
    };
    let _ = writeln!(
        out,
        "# {}: {} ({} -> {})",
        fix.of, fix.change, fix.from, fix.to
    );
    for patch in &fix.patches {
        let _ = writeln!(out, "# {}", command(patch, &file_name(number, patch)));
        let _ = writeln!(out, "---\n{}", document(patch)?.trim_end());
    }
    Ok(out)
}

/// Writes a file for each patch.
///
/// # Errors
/// The folder or a file cannot be written.
pub(super) fn write(folder: &Path, audit: &Audit) -> Result<(), Failure> {
    let cannot = || format!("cannot write into {}", folder.display());
    std::fs::create_dir_all(folder)
        .with_context(cannot)
        .map_err(Failure::outside)?;
    for (number, fix) in audit.fixes.iter().enumerate() {
        for patch in &fix.patches {
            let name = file_name(number, patch);
            let head = format!(
                "# {}: {} ({} -> {})\n# {}\n",
                fix.of,
                fix.change,
                fix.from,
                fix.to,
                command(patch, &name)
            );
            let path = folder.join(&name);
            std::fs::write(&path, head + &document(patch)?)
                .with_context(|| format!("cannot write {}", path.display()))
                .map_err(Failure::outside)?;
        }
    }
    Ok(())
}

fn file_name(number: usize, patch: &ObjectPatch) -> String {
    let kind = patch.kind.to_lowercase();
    format!(
        "{:02}-{}-{kind}-{}.yaml",
        number + 1,
        patch.namespace,
        patch.name
    )
}

fn command(patch: &ObjectPatch, file: &str) -> String {
    let kind = patch.kind.to_lowercase();
    format!(
        "kubectl patch {kind} {} -n {} --type merge --patch-file {file}",
        patch.name, patch.namespace
    )
}

fn document(patch: &ObjectPatch) -> Result<String, Failure> {
    let mut document = Map::new();
    document.insert("apiVersion".to_owned(), patch.api_version.as_str().into());
    document.insert("kind".to_owned(), patch.kind.as_str().into());
    let metadata = json!({"namespace": patch.namespace, "name": patch.name});
    document.insert("metadata".to_owned(), metadata);
    for (field, value) in &patch.patch {
        document.insert(field.clone(), value.clone());
    }
    serialized(&Value::Object(document), Format::Yaml)
}
