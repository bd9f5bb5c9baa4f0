//! Where a result is written: standard output, or a file, which is written completely or not at all.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::failure::Failure;
use crate::platform::process_id;
use crate::terminal;

/// Writes a result. A file is written under a temporary name beside its place and renamed when it is complete: a
/// process that is killed leaves no partial file under the name.
///
/// # Errors
/// The result cannot be written.
pub(crate) fn write(out: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(path) = out else {
        return terminal::print(text);
    };
    let text = anstream::adapter::strip_str(text).to_string();
    let done = match path.metadata() {
        // A pipe or a device cannot be renamed.
        Ok(found) if !found.is_file() => std::fs::write(path, text),
        _ => {
            let beside = beside(path);
            std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path))
        }
    };
    done.with_context(|| format!("cannot write {}", path.display()))
        .map_err(Failure::outside)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", process_id()));
    path.with_file_name(name)
}
