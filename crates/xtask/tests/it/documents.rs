//! What the documents at the top must hold.

use crate::repository;

/// The two commands that do all the set-up.
const COMMANDS: [&str; 2] = [
    "cargo run --release -- simulate examples/shop.yaml",
    "cargo xtask ci",
];

#[test]
fn the_changelog_has_room_for_the_next_change() {
    let first = repository::read("CHANGELOG.md");
    let first = first.lines().find(|line| line.starts_with("## "));
    assert_eq!(
        first,
        Some("## Unreleased"),
        "CHANGELOG.md begins with what is not released yet"
    );
}

#[test]
fn the_map_names_every_crate() {
    let map = repository::read("ARCHITECTURE.md");
    for name in repository::crates() {
        assert!(
            map.contains(&format!("`{name}`")),
            "ARCHITECTURE.md says nothing of `{name}`: add a paragraph to its code map"
        );
    }
}

#[test]
fn the_two_commands_stand_in_the_readme() {
    let readme = repository::read("README.md");
    for command in COMMANDS {
        assert!(
            readme.lines().any(|line| line.trim() == command),
            "README.md lacks the line `{command}`"
        );
    }
}

#[test]
fn ci_and_desk_run_the_same_checks() {
    let script = repository::read(".ci/run");
    assert!(
        script.contains("\nexec cargo xtask ci\n"),
        ".ci/run calls the command of the README and nothing else: put new checks into crates/xtask/src/ci.rs"
    );
}
