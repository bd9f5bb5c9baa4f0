//! What deciding code may not name.
//!
//! A search for words, so it can be fooled; it is here for the honest mistake.

use crate::{DECIDING, expect_none, repository};

/// Words, and what to do instead.
const ABSENT: [(&str, &str); 12] = [
    ("SystemTime", "time comes in as an argument"),
    ("std::time", "time comes in as an argument"),
    ("Instant::now", "time comes in as an argument"),
    (
        "std::fs",
        "the shell reads files and hands text to strew-manifest",
    ),
    ("std::io", "the shell reads and writes"),
    ("std::net", "sockets belong to a shell"),
    (
        "std::env",
        "what the environment says comes in as an argument",
    ),
    (
        "std::thread",
        "a decision takes one core; sweeps are split outside",
    ),
    ("println!", "return a value: the binary prints"),
    (
        "HashMap::new()",
        "FxHashMap: the same order in every run, or better none",
    ),
    (
        "std::collections::Hash",
        "FxHashMap or FxHashSet: random hashing makes runs differ",
    ),
    ("serde", "the wire has its own types, in strew-wire"),
];

#[test]
fn deciding_code_is_pure() {
    let mut broken = Vec::new();
    let is_deciding = |path: &std::path::PathBuf| {
        DECIDING
            .iter()
            .any(|name| path.starts_with(format!("crates/{name}/src")))
    };
    for path in repository::rust_files().into_iter().filter(is_deciding) {
        for (i, line) in repository::read(&path).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for (word, instead) in ABSENT.iter().filter(|(word, _)| code.contains(word)) {
                broken.push(format!("{}:{}: {word}: {instead}", path.display(), i + 1));
            }
        }
    }
    expect_none(
        broken,
        "A decision is a function of its inputs: that is what makes it testable, repeatable and explainable.",
    );
}

/// The driver below both worlds does no I/O: time, answers and a seed come in, actions go out.
#[test]
fn the_driver_does_no_io() {
    const ABSENT: [&str; 9] = [
        "SystemTime",
        "std::time",
        "Instant::now",
        "std::fs",
        "std::io",
        "std::net",
        "std::thread",
        "tokio",
        "async ",
    ];
    let mut broken = Vec::new();
    let of_driver = |path: &std::path::PathBuf| path.starts_with("crates/strew-runtime/src");
    for path in repository::rust_files().into_iter().filter(of_driver) {
        for (i, line) in repository::read(&path).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in ABSENT.iter().filter(|word| code.contains(**word)) {
                broken.push(format!("{}:{}: {word}", path.display(), i + 1));
            }
        }
    }
    expect_none(
        broken,
        "What the driver needs of the world comes in as an event, and goes out as an action: both worlds carry it out.",
    );
}
