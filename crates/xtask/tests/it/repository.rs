//! The project's own files.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's top folder.
pub(crate) fn top() -> PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    top.canonicalize()
        .expect("xtask lies in crates/ of the project")
}

/// The text of a file, named from the top.
#[track_caller]
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(top().join(path))
        .unwrap_or_else(|e| panic!("{} is a file of the project: {e}", path.display()))
}

/// What git keeps or would keep, named from the top, sorted; not what it ignores.
pub(crate) fn files() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(top())
        .output()
        .expect("git lists the project's files");
    assert!(
        listed.status.success(),
        "git lists the project's files: run the tests in a clone"
    );
    let names = String::from_utf8(listed.stdout).expect("file names are UTF-8");
    let names = names.split('\0').filter(|name| !name.is_empty());
    let mut files: Vec<PathBuf> = names.map(PathBuf::from).collect();
    files.sort();
    files.dedup();
    // Deleted and not yet committed.
    files.retain(|file| top().join(file).is_file());
    files
}

/// The same, of Rust.
pub(crate) fn rust_files() -> Vec<PathBuf> {
    let mut files = files();
    files.retain(|file| file.extension().is_some_and(|e| e == "rs"));
    files
}

/// The workspace's crates: folder name = crate name.
pub(crate) fn crates() -> Vec<String> {
    let folder = top().join("crates");
    let entries = folder.read_dir().expect("crates/ is a folder");
    let mut names: Vec<String> = entries
        .map(|e| e.expect("crates/ can be listed"))
        .filter(|e| e.path().join("Cargo.toml").exists())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
