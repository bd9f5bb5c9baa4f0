//! What may stand in a lock file.

use crate::{expect_none, repository};

/// Crates that must not come in, not even through others, and what to use instead.
const BANNED: [(&str, &str); 4] = [
    ("ring", "aws-lc-rs is the one provider of cryptography"),
    ("openssl", "rustls is the one TLS"),
    ("openssl-sys", "rustls is the one TLS"),
    ("serde_yaml", "serde-saphyr, which is maintained"),
];

/// The one crate that may bring chrono; all else uses jiff.
const MAY_USE_CHRONO: &str = "cel";

/// A package of a lock file.
#[derive(Default)]
struct Locked {
    name: String,
    source: Option<String>,
    dependencies: Vec<String>,
}

#[test]
fn no_banned_crate_comes_in() {
    let mut broken = Vec::new();
    for (file, package) in locked() {
        if let Some((name, instead)) = BANNED.iter().find(|(name, _)| *name == package.name) {
            broken.push(format!("{file}: {name}: {instead}"));
        }
        if package.dependencies.iter().any(|d| d == "chrono") && package.name != MAY_USE_CHRONO {
            broken.push(format!("{file}: {} uses chrono", package.name));
        }
    }
    expect_none(
        broken,
        "cargo tree --invert CRATE tells who brings it: switch that feature off or choose another crate.",
    );
}

#[test]
fn sources_are_the_registry_and_this_project() {
    let is_other = |source: &str| !source.starts_with("registry+");
    let mut broken = Vec::new();
    for (file, package) in locked() {
        match package.source.as_deref() {
            Some(source) if is_other(source) => {
                broken.push(format!("{file}: {} from {source}", package.name));
            }
            _ => {}
        }
    }
    expect_none(
        broken,
        "Depend on a published version: a build must not need anything but the registry.",
    );
}

/// The packages of all lock files, each with the name of its file.
fn locked() -> Vec<(&'static str, Locked)> {
    let files = ["Cargo.lock", "fuzz/Cargo.lock"];
    let in_file = |file| {
        parse(&repository::read(file))
            .into_iter()
            .map(move |p| (file, p))
    };
    let all: Vec<_> = files.into_iter().flat_map(in_file).collect();
    assert!(all.len() > 50, "lock files are read: {}", all.len());
    all
}

/// Lock files are written by cargo: a line for each field and each dependency.
fn parse(text: &str) -> Vec<Locked> {
    let mut packages: Vec<Locked> = Vec::new();
    for line in text.lines() {
        if line == "[[package]]" {
            packages.push(Locked::default());
        }
        let Some(package) = packages.last_mut() else {
            continue;
        };
        let quoted = || line.split('"').nth(1).unwrap_or_default().to_owned();
        if line.starts_with("name = ") {
            package.name = quoted();
        } else if line.starts_with("source = ") {
            package.source = Some(quoted());
        } else if line.starts_with(" \"") {
            let name = quoted();
            package
                .dependencies
                .extend(name.split(' ').next().map(str::to_owned));
        }
    }
    packages
}
