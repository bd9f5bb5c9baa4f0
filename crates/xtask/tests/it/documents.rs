//! What the documents at the top must hold.

use std::path::{Component, Path, PathBuf};

use crate::{expect_none, repository};

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

#[test]
fn links_between_documents_resolve() {
    let mut broken = Vec::new();
    let is_document = |path: &PathBuf| path.extension().is_some_and(|e| e == "md");
    for path in repository::files().into_iter().filter(is_document) {
        for (i, line) in repository::read(&path).lines().enumerate() {
            // Not inside of code.
            let prose = line.split('`').step_by(2);
            for link in prose.flat_map(|part| part.split("](").skip(1)) {
                let link = link.split(')').next().unwrap_or_default();
                if let Some(what) = broken_link(&path, link) {
                    broken.push(format!("{}:{}: {what}", path.display(), i + 1));
                }
            }
        }
    }
    expect_none(
        broken,
        "A link names a file from the folder of its document, and after `#` a heading in small letters.",
    );
}

/// Pages of the book: all documents below docs but its table of contents.
fn pages() -> Vec<PathBuf> {
    let is_page = |path: &PathBuf| {
        path.starts_with("docs")
            && path.extension().is_some_and(|e| e == "md")
            && path.file_name().is_some_and(|name| name != "SUMMARY.md")
    };
    repository::files().into_iter().filter(is_page).collect()
}

/// Links of a document, which are not in code.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let prose = text.lines().flat_map(|line| line.split('`').step_by(2));
    let links = prose.flat_map(|part| part.split("](").skip(1));
    links.map(|link| link.split(')').next().unwrap_or_default())
}

#[test]
fn the_book_has_every_page_once() {
    let book = repository::read("book.toml");
    assert!(book.contains("src = \"docs\""), "book.toml: src = \"docs\"");
    let summary = repository::read("docs/SUMMARY.md");
    let listed: Vec<PathBuf> = links(&summary)
        .map(|link| Path::new("docs").join(link))
        .collect();
    let count = |page: &PathBuf| listed.iter().filter(|listed| *listed == page).count();
    let broken = pages().into_iter().filter(|page| count(page) != 1);
    expect_none(
        broken.map(|page| page.display().to_string()).collect(),
        "Give the page one line in docs/SUMMARY.md.",
    );
}

/// A book has nothing but its folder.
#[test]
fn links_of_the_book_stay_in_it() {
    let mut broken = Vec::new();
    for page in pages() {
        let folder = page.parent().unwrap_or(Path::new(""));
        let text = repository::read(&page);
        let inner = links(&text).filter(|link| !link.contains("://") && !link.starts_with('#'));
        for link in inner {
            let file = link.split('#').next().unwrap_or_default();
            if !normal(&folder.join(file)).starts_with("docs") {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    expect_none(
        broken,
        "A page links to pages below docs; name other files of the project in code.",
    );
}

/// What is wrong with a link of a document; links out of the project are not followed.
fn broken_link(document: &Path, link: &str) -> Option<String> {
    if link.contains("://") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => document.to_owned(),
        _ => normal(&document.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !repository::top().join(&target).exists() {
        return Some(format!("{link}: there is no {}", target.display()));
    }
    let text = || repository::read(&target);
    let has_heading = || text().lines().any(|line| is_heading(line, anchor));
    (!anchor.is_empty() && !has_heading())
        .then(|| format!("{link}: {} has no such heading", target.display()))
}

/// Whether a line is the heading of an anchor: in small letters, without punctuation, `-` for each blank.
fn is_heading(line: &str, anchor: &str) -> bool {
    let Some(heading) = line.strip_prefix('#') else {
        return false;
    };
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then_some(c),
    });
    kept.eq(anchor.chars())
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}
