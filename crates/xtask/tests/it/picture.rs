//! The picture of crates in ARCHITECTURE.md is what cargo sees.

use std::collections::{BTreeMap, BTreeSet};

use crate::{graph, repository};

/// The line before the picture.
const BEGIN: &str = "```crates\n";

/// The crates that each crate uses, but in its tests.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

#[test]
fn the_picture_of_crates_is_true() {
    let file = repository::top().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&file).expect("ARCHITECTURE.md is readable");
    let (before, rest) = text.split_once(BEGIN).expect("the picture begins");
    let (picture, after) = rest.split_once("```").expect("the picture ends");
    let now = drawn(&graph::uses());
    if std::env::var_os("SNAPSHOTS").is_some_and(|how| how == "overwrite") {
        std::fs::write(&file, format!("{before}{BEGIN}{now}```{after}")).expect("it is writable");
        return;
    }
    assert_eq!(
        picture, now,
        "SNAPSHOTS=overwrite cargo test -p xtask --test it picture draws it again"
    );
}

/// A line for each crate, those that use others above them. An arrow that others imply is left out.
fn drawn(uses: &Uses<'_>) -> String {
    let mut names: Vec<&str> = uses.keys().copied().collect();
    names.sort_by_key(|name| (std::cmp::Reverse(height(uses, name)), *name));
    let line = |name: &str| {
        let mut direct: Vec<&str> = uses[name].iter().copied().collect();
        direct.retain(|to| !uses[name].iter().any(|via| reaches(uses, via, to)));
        direct.sort_by_key(|to| (std::cmp::Reverse(height(uses, to)), *to));
        let arrow = if direct.is_empty() { "" } else { "-> " };
        let line = format!(
            "{:2}  {name:20} {arrow}{}",
            height(uses, name),
            direct.join(", ")
        );
        line.trim_end().to_owned() + "\n"
    };
    names.into_iter().map(line).collect()
}

/// The length of the longest way down.
fn height(uses: &Uses<'_>, name: &str) -> usize {
    let below = uses[name].iter().map(|to| height(uses, to) + 1);
    below.max().unwrap_or(0)
}

/// True if a crate uses another one by way of a third.
fn reaches(uses: &Uses<'_>, from: &str, to: &str) -> bool {
    let direct = &uses[from];
    direct.contains(to) || direct.iter().any(|via| reaches(uses, via, to))
}

#[test]
fn an_implied_arrow_is_not_drawn() {
    let uses = BTreeMap::from([
        ("low", BTreeSet::new()),
        ("middle", BTreeSet::from(["low"])),
        ("high", BTreeSet::from(["middle", "low"])),
        ("aside", BTreeSet::from(["low"])),
    ]);
    let expected = " 2  high                 -> middle\n 1  aside                -> low\n \
                    1  middle               -> low\n 0  low\n";
    assert_eq!(drawn(&uses), expected);
}
