//! What the documents at the top must hold.

use std::path::{Component, Path, PathBuf};

use crate::{expect_none, repository};

/// The two commands that do all the set-up.
const COMMANDS: [&str; 2] = [
    "cargo run --no-default-features -- simulate examples/shop.yaml",
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
        for (number, line) in outside_of_code(&repository::read(&path)) {
            for link in links(line) {
                if let Some(what) = broken_link(&path, link) {
                    broken.push(format!("{}:{number}: {what}", path.display()));
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

/// The lines of a document that are in no block of code, with their numbers.
fn outside_of_code(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.map(|(pos, line)| (pos + 1, line)).collect()
}

/// The parts of a line that are not code.
fn prose(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').step_by(2)
}

/// The links of a line, which are not in code.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let links = prose(line).flat_map(|part| part.split("](").skip(1));
    links.map(|link| link.split(')').next().unwrap_or_default())
}

#[test]
fn the_book_has_every_page_once() {
    let book = repository::read("book.toml");
    assert!(book.contains("src = \"docs\""), "book.toml: src = \"docs\"");
    let summary = repository::read("docs/SUMMARY.md");
    let listed: Vec<PathBuf> = summary
        .lines()
        .flat_map(links)
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
        let all = outside_of_code(&text)
            .into_iter()
            .flat_map(|(_, line)| links(line));
        let inner = all.filter(|link| !link.contains("://") && !link.starts_with('#'));
        for link in inner {
            let file = normal(&folder.join(link.split('#').next().unwrap_or_default()));
            // A folder has no page.
            if !file.starts_with("docs") || !repository::top().join(file).is_file() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    expect_none(
        broken,
        "A page links to pages below docs; name other files of the project in code.",
    );
}

/// In a book, `<name>` is an element of HTML, and is not shown.
#[test]
fn the_book_shows_every_word() {
    let is_element = |rest: &str| {
        let is_comment = rest.starts_with("!--");
        let mut letters = rest.chars();
        !is_comment
            && letters
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || "/!?".contains(c))
    };
    let mut broken = Vec::new();
    for page in pages() {
        for (number, line) in outside_of_code(&repository::read(&page)) {
            if prose(line).any(|part| part.split('<').skip(1).any(is_element)) {
                broken.push(format!("{}:{number}: {line}", page.display()));
            }
        }
    }
    expect_none(broken, "Put it into code: `<name>`.");
}

/// mdbook takes titles of parts, and lists of links whose indentation is the level of the page; it leaves out or refuses
/// what stands beside these.
#[test]
fn the_table_of_contents_has_parts_and_links_alone() {
    let summary = repository::read("docs/SUMMARY.md");
    let mut broken = Vec::new();
    let mut level = 0;
    for (pos, line) in summary.lines().enumerate() {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let is_link =
            |text: &str| text.starts_with('[') && text.ends_with(')') && text.contains("](");
        let is_right = match text.strip_prefix("- ") {
            Some(text) => is_link(text) && indent % 4 == 0 && indent / 4 <= level + 1,
            // A page outside of the lists stands before all of them.
            None => indent == 0 && (text.is_empty() || text.starts_with("# ") || is_link(text)),
        };
        if !is_right {
            broken.push(format!("docs/SUMMARY.md:{}: {line}", pos + 1));
        }
        level = if text.is_empty() { level } else { indent / 4 };
    }
    expect_none(
        broken,
        "`- [Title](page.md)`, four spaces for each level; `# Title` for a part.",
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
    let has_heading = || {
        let text = text();
        let lines = outside_of_code(&text);
        lines.iter().any(|(_, line)| is_heading(line, anchor))
    };
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
