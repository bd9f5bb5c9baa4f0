//! What may stand in the project's files.

use std::path::Path;

use crate::{expect_none, repository};

/// No file is larger, but vectors.
const BYTES_MAX: u64 = 1 << 20;

/// Texts that must not stay, put together here so that this file is no finding.
const LEFT_OVERS: [&str; 4] = [
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("TO", "DO"),
    concat!("dbg", "!("),
];

/// Beginnings of paths of one machine.
const MACHINE_PATHS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

#[test]
fn nothing_is_left_over() {
    expect_none(
        lines_with(&LEFT_OVERS),
        "Do it now, or file an issue and take the mark out.",
    );
}

#[test]
fn no_path_of_a_machine() {
    expect_none(
        lines_with(&MACHINE_PATHS),
        "Name the file from the project's top, or take the path as an argument: a clone lies anywhere.",
    );
}

#[test]
fn files_are_small() {
    let is_vector =
        |path: &Path| path.starts_with("vectors") && path.extension() == Some("gz".as_ref());
    let mut broken = Vec::new();
    for path in repository::files().iter().filter(|p| !is_vector(p)) {
        let bytes = repository::top().join(path).metadata().unwrap().len();
        if bytes > BYTES_MAX {
            broken.push(format!("{}: {bytes} bytes", path.display()));
        }
    }
    expect_none(
        broken,
        "A clone should be quick: generate it, or keep a small sample.",
    );
}

#[test]
fn no_tabs_in_rust() {
    let has_tab = |path: &std::path::PathBuf| repository::read(path).contains('\t');
    let broken = repository::rust_files().into_iter().filter(has_tab);
    expect_none(
        broken.map(|p| p.display().to_string()).collect(),
        "cargo fmt; inside text write \\t.",
    );
}

/// Every line of a text file that holds one of `words`. What others wrote (lock files, vectors) is not looked at.
fn lines_with(words: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in repository::files() {
        let foreign = path.extension().is_some_and(|e| e == "lock") || path.starts_with("vectors");
        // Seeds of fuzz targets may be no text at all.
        let Ok(text) = std::fs::read_to_string(repository::top().join(&path)) else {
            continue;
        };
        if foreign {
            continue;
        }
        for (i, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
            }
        }
    }
    found
}

/// Where events of the log at these levels are written.
const WARNERS: [&str; 2] = [
    "crates/strew-runtime/src/warning.rs",
    "crates/strew-kube/src/panics.rs",
];

#[test]
fn warnings_have_one_form() {
    let found = lines_with(&[
        concat!("tracing::", "warn!"),
        concat!("tracing::", "error!"),
    ]);
    let is_broken = |line: &String| {
        let is_in_test = line.contains("tests/") || line.contains("src/process/log.rs");
        !is_in_test && !WARNERS.iter().any(|path| line.starts_with(path))
    };
    expect_none(
        found.into_iter().filter(is_broken).collect(),
        "Use strew_runtime::Warning: it names the object, the action, the error and what comes next.",
    );
}
