//! What may stand in a lock file.

use std::collections::BTreeSet;
use std::process::Command;

use crate::{deny, expect_none, graph, repository};

/// The one crate that may bring chrono; all else uses jiff.
const MAY_USE_CHRONO: &str = "cel";

/// The fuzz targets are no members of the workspace: they have a lock file of their own.
const FUZZ: &str = "fuzz/Cargo.lock";

/// A package of a lock file.
#[derive(Default)]
struct Locked {
    name: String,
    source: Option<String>,
    dependencies: Vec<String>,
}

/// A lock file also names crates of features that are off (ring, for rustls-webpki): cargo is asked what it builds.
#[test]
fn no_banned_crate_is_built() {
    let built = built();
    let banned = deny::banned().into_iter();
    let broken = banned.filter(|(name, _)| built.contains(name));
    expect_none(
        broken
            .map(|(name, instead)| format!("{name}: {instead}"))
            .collect(),
        "cargo tree --invert CRATE tells who brings it: switch that feature off or choose another crate.",
    );
}

#[test]
fn only_cel_uses_chrono() {
    let uses = |package: &Locked| {
        package.dependencies.iter().any(|d| d == "chrono") && package.name != MAY_USE_CHRONO
    };
    let broken = locked().into_iter().filter(|(_, package)| uses(package));
    expect_none(
        broken
            .map(|(file, package)| format!("{file}: {} uses chrono", package.name))
            .collect(),
        "Choose another crate, or a feature of it that does without.",
    );
}

/// The names of all that a build of the workspace, its tools and its tests compiles on this machine.
pub(crate) fn built() -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--workspace", "--locked", "--offline"])
        .args(["--edges=normal,build,dev", "--prefix=none", "--format={p}"])
        .current_dir(repository::top())
        .output()
        .expect("cargo runs");
    assert!(
        tree.status.success(),
        "cargo tree: {}",
        String::from_utf8_lossy(&tree.stderr)
    );
    let text = String::from_utf8(tree.stdout).expect("cargo prints text");
    let names = text.lines().filter_map(|line| line.split(' ').next());
    let built: BTreeSet<String> = names.map(str::to_owned).collect();
    assert!(built.contains("rustls"), "the tree is read: {built:?}");
    built
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

/// cargo refuses `--locked` otherwise, which nothing sees before the fuzz targets are compiled.
#[test]
fn the_lock_of_fuzz_names_what_our_crates_use() {
    let ours = graph::requires();
    let packages = parse(&repository::read(FUZZ));
    let ours_of_fuzz: Vec<_> = packages
        .iter()
        .filter_map(|package| Some((package, ours.get(package.name.as_str())?)))
        .collect();
    assert!(ours_of_fuzz.len() > 5, "{} crates", ours_of_fuzz.len());
    let mut broken = Vec::new();
    for (package, required) in ours_of_fuzz {
        let has = |name: &&str| package.dependencies.iter().any(|d| d == name);
        let lacks = required.iter().filter(|name| !has(name));
        broken.extend(lacks.map(|name| format!("{FUZZ}: {} lacks {name}", package.name)));
    }
    expect_none(
        broken,
        "cargo metadata --manifest-path fuzz/Cargo.toml --format-version 1 > /dev/null writes it again.",
    );
}

/// The packages of all lock files, each with the name of its file.
fn locked() -> Vec<(&'static str, Locked)> {
    let files = ["Cargo.lock", FUZZ];
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
