//! How crates are declared.

use crate::{expect_none, repository};

#[test]
fn dependencies_are_declared_once() {
    let mut broken = Vec::new();
    for name in repository::crates() {
        for (section, line) in entries(&repository::read(manifest(&name))) {
            let inherits = line.contains(".workspace = true") || line.contains("workspace = true");
            if section.ends_with("dependencies") && !inherits {
                broken.push(format!("{name}: [{section}] {line}"));
            }
        }
    }
    expect_none(
        broken,
        "Declare the dependency in [workspace.dependencies] of the top Cargo.toml, with a line saying why, and use \
         it with `NAME.workspace = true`.",
    );
}

#[test]
fn every_declared_dependency_is_used() {
    let used: Vec<String> = repository::crates()
        .iter()
        .flat_map(|name| entries(&repository::read(manifest(name))))
        .filter(|(section, _)| section.ends_with("dependencies"))
        .map(|(_, line)| key(&line))
        .collect();
    let unused = declared().into_iter().filter(|name| !used.contains(name));
    // Declared for crates that are being written; take a name off with the commit that uses it.
    let waiting = ["snapbox"];
    let broken = unused.filter(|name| !waiting.contains(&name.as_str()));
    expect_none(
        broken.collect(),
        "Remove it from [workspace.dependencies]: a dependency comes with the commit that uses it.",
    );
}

#[test]
fn every_group_of_dependencies_says_why() {
    let text = repository::read("Cargo.toml");
    let section = text
        .split("[workspace.dependencies]\n")
        .nth(1)
        .expect("it stands there");
    let section = section.split("\n[").next().unwrap_or_default();
    let without = |group: &&str| {
        let first = group.lines().next().unwrap_or_default();
        !first.is_empty() && !first.starts_with('#') && !first.starts_with("strew-")
    };
    let broken = section
        .split("\n\n")
        .filter(without)
        .map(str::to_owned)
        .collect();
    expect_none(
        broken,
        "Begin the group with a comment that says why these crates are here.",
    );
}

#[test]
fn crates_share_lints_and_package_facts() {
    let mut broken = Vec::new();
    for name in repository::crates() {
        let text = repository::read(manifest(&name));
        if !text.contains("[lints]\nworkspace = true") {
            broken.push(format!("{name}: no [lints] workspace = true"));
        }
        if !text.contains(&format!("name = \"{name}\"")) {
            broken.push(format!("{name}: the folder's name is not the crate's"));
        }
        for field in ["version", "edition", "rust-version", "license", "publish"] {
            if !text.contains(&format!("{field}.workspace = true")) {
                broken.push(format!("{name}: no {field}.workspace = true"));
            }
        }
    }
    expect_none(
        broken,
        "Copy the head of another crate's Cargo.toml: versions, lints and licence are said once, at the top.",
    );
}

#[test]
fn every_crate_begins_with_what_it_is() {
    let mut broken = Vec::new();
    for name in repository::crates() {
        let roots = ["lib.rs", "main.rs"].map(|root| format!("crates/{name}/src/{root}"));
        for root in roots {
            let exists = repository::top().join(&root).exists();
            if exists && !repository::read(&root).starts_with("//! ") {
                broken.push(root);
            }
        }
    }
    expect_none(
        broken,
        "Begin with `//!`: what the crate is, its main types, the reading order, what is absent on purpose.",
    );
}

fn manifest(name: &str) -> String {
    format!("crates/{name}/Cargo.toml")
}

/// The names in `[workspace.dependencies]`.
fn declared() -> Vec<String> {
    let entries = entries(&repository::read("Cargo.toml")).into_iter();
    entries
        .filter(|(section, _)| section == "workspace.dependencies")
        .map(|(_, line)| key(&line))
        .collect()
}

/// Each line of a manifest that says something, with its section.
fn entries(text: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if !line.is_empty() && !line.starts_with('#') {
            found.push((section.clone(), line.to_owned()));
        }
    }
    found
}

/// `serde` of `serde.workspace = true` and of `serde = "1"`.
fn key(line: &str) -> String {
    line.split(['.', ' ', '='])
        .next()
        .unwrap_or_default()
        .to_owned()
}
