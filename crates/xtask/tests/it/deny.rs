//! What deny.toml says, read without cargo-deny: each entry of a list is a line of its own.

use crate::repository;

/// The licences under which a part may come: `licenses.allow`.
pub(crate) fn licences() -> Vec<String> {
    let lines = list("[licenses]", "allow = [");
    lines.iter().filter_map(|line| quoted(line, 0)).collect()
}

/// Crates that must not be built, each with the reason: `bans.deny`.
pub(crate) fn banned() -> Vec<(String, String)> {
    let lines = list("[bans]", "deny = [");
    let entry = |line: &String| Some((quoted(line, 0)?, quoted(line, 1)?));
    let banned: Vec<_> = lines.iter().filter_map(entry).collect();
    assert_eq!(banned.len(), lines.len(), "a name and a reason: {lines:?}");
    banned
}

/// The targets of Rust that are looked at: `graph.targets`.
pub(crate) fn targets() -> Vec<String> {
    let lines = list("[graph]", "targets = [");
    lines.iter().filter_map(|line| quoted(line, 0)).collect()
}

/// The entries of a list.
fn list(section: &str, begin: &str) -> Vec<String> {
    let text = repository::read("deny.toml");
    let lines = text.lines().skip_while(|line| *line != section);
    let entries = lines.skip_while(|line| *line != begin).skip(1);
    let entries = entries.take_while(|line| *line != "]").map(str::trim);
    let entries: Vec<String> = entries
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    assert!(!entries.is_empty(), "deny.toml: {section} {begin}");
    entries
}

/// The text of a pair of quotation marks; the first is 0.
fn quoted(line: &str, nth: usize) -> Option<String> {
    line.split('"').nth(2 * nth + 1).map(str::to_owned)
}
