//! Where an interface of one operating system may be named.
//!
//! A search for words, so it can be fooled; `cargo xtask platforms` builds for the others.

use std::path::Path;

use crate::{expect_none, repository};

/// Tools of the project, which run on Linux and macOS.
const TOOLS: [&str; 2] = ["xtask", "xtask-lab"];

/// Interfaces of one system, and conditions on it.
const WORDS: [&str; 15] = [
    "std::os::",
    "rustix",
    "libc::",
    "signal::unix",
    "signal::windows",
    "cfg(unix",
    "cfg(windows",
    "cfg(not(unix",
    "cfg(not(windows",
    "cfg!(unix",
    "cfg!(windows",
    "target_os",
    "target_family",
    "\"/proc",
    "\"/dev/",
];

/// Files that read what only one system has, and do without it elsewhere.
const OTHERS: [(&str, &str); 1] = [(
    "strew-kube/src/metrics/process.rs",
    "metrics of a process, from /proc; none without it",
)];

/// Crates that exist for some systems only.
const OF_A_SYSTEM: [&str; 4] = ["rustix", "libc", "nix", "windows-sys"];

#[test]
fn one_module_of_a_crate_names_systems() {
    let mut broken = Vec::new();
    for path in repository::rust_files()
        .into_iter()
        .filter(|path| is_bound(path))
    {
        let text = repository::read(&path);
        // Tests are at the end, and may be of one system.
        let tests = ["#[cfg(test)]", "#[cfg(all(test,"].map(|mark| text.find(mark));
        let end = tests.into_iter().flatten().min().unwrap_or(text.len());
        let code = &text[..end];
        for (i, line) in code.lines().enumerate() {
            let line = line.split("//").next().unwrap_or_default();
            if WORDS.iter().any(|word| line.contains(word)) {
                broken.push(format!("{}:{}: {}", path.display(), i + 1, line.trim()));
            }
        }
    }
    expect_none(
        broken,
        "Put a function with the same name and contract into each file of the crate's platform/, and call it; if this \
         is found at run time and nothing is lost without it, add the file to OTHERS here.",
    );
}

/// Code of the program outside of `platform/`.
fn is_bound(path: &Path) -> bool {
    let Ok(name) = path.strip_prefix("crates") else {
        return false;
    };
    let parts: Vec<&str> = name.iter().filter_map(|part| part.to_str()).collect();
    let [of, "src", inner @ ..] = parts.as_slice() else {
        return false;
    };
    let is_known = OTHERS.iter().any(|(known, _)| name == Path::new(known));
    !TOOLS.contains(of) && inner.first() != Some(&"platform") && !is_known
}

#[test]
fn crates_of_one_system_are_asked_for_there_only() {
    let mut broken = Vec::new();
    for name in repository::crates() {
        let mut section = "";
        let manifest = repository::read(format!("crates/{name}/Cargo.toml"));
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let is_one = |of: &&str| line.starts_with(&format!("{of}."));
            if OF_A_SYSTEM.iter().any(is_one) && !section.starts_with("[target.") {
                broken.push(format!("{name}: {section} {line}"));
            }
        }
    }
    expect_none(
        broken,
        "Name it in [target.'cfg(unix)'.dependencies], and use it in the crate's platform/ only.",
    );
}
