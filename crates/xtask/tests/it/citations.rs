//! Every citation of a specification resolves: `spec/NAME §N` means section N of docs/spec/NAME.md.
//!
//! A citation ends with its sentence; until there each further `§` and each mark (`F6`, `I1`) is of the same document.
//! A `§` of no document is an error, too; those of RFCs and other standards are not looked up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::{expect_none, repository};

/// Where the specifications are.
const FOLDER: &str = "docs/spec";

/// Words that name a document which is not ours; the next `§` is in there.
const OTHERS: [&str; 4] = ["RFC", "TR", "X.690", "KEP"];

/// What can be cited of one specification.
struct Specification {
    /// Numbers of its headings: `2`, `2.4`.
    sections: BTreeSet<String>,
    /// Names of defects and invariants, wherever the text has them: `F6`, `I1`.
    marks: BTreeSet<String>,
}

/// Which document a `§` belongs to.
#[derive(Clone, Copy)]
enum Cited<'a> {
    None,
    Other,
    Ours(&'a str, &'a Specification),
}

#[test]
fn every_citation_resolves() {
    let specifications = specifications();
    let mut broken = Vec::new();
    let mut resolved = 0;
    for path in repository::files().iter().filter(|path| is_read(path)) {
        let own = own_name(path).and_then(|name| specifications.get_key_value(name));
        let own = own.map_or(Cited::None, |(name, found)| Cited::Ours(name, found));
        for (line, citation) in citations(&repository::read(path), own, &specifications) {
            match citation {
                Ok(()) => resolved += 1,
                Err(what) => broken.push(format!("{}:{line}: {what}", path.display())),
            }
        }
    }
    expect_none(
        broken,
        "Cite a rule as `spec/NAME §N`: docs/spec has a file for each NAME and a heading for each N.",
    );
    assert!(resolved > 400, "only {resolved} citations were found");
}

#[test]
fn a_broken_citation_is_found() {
    let specifications = specifications();
    let broken = |text: &str| {
        let found = citations(text, Cited::None, &specifications);
        let broken = found
            .into_iter()
            .filter_map(|(line, c)| Some((line, c.err()?)));
        broken.collect::<Vec<_>>()
    };
    let one = |line, what: &str| vec![(line, what.to_owned())];
    assert_eq!(
        broken("// spec/scheduler §1.3, §2.4, step 3, and\n// §2.6 (x)."),
        []
    );
    assert_eq!(
        broken("\n/// Spec/cluster §1."),
        one(2, "no document spec/cluster")
    );
    assert_eq!(
        broken("//! Source: spec/scheduler §1.3,\n//! §99.1."),
        one(2, "spec/scheduler has no section 99.1")
    );
    assert_eq!(
        broken("// spec/workloadspread §5.5, F99."),
        one(1, "spec/workloadspread has no mark F99")
    );
    assert_eq!(
        broken("// spec/scheduler §1. See §2."),
        one(1, "§2. of which document?")
    );
    assert_eq!(broken("// RFC 4648 §4. A path: /spec/replicas."), []);
}

/// Each reference of a text with its line; `own` is the document that a bare `§` means.
fn citations(
    text: &str,
    own: Cited<'_>,
    specifications: &BTreeMap<String, Specification>,
) -> Vec<(usize, Result<(), String>)> {
    let mut found = Vec::new();
    let mut cited = own;
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let words = line.trim_start_matches(['/', '!', '#', '|', ' ', '-']);
        if words.is_empty() {
            cited = own;
        }
        for word in words.split_whitespace() {
            if let Some(name) = document(word) {
                match specifications.get_key_value(name) {
                    Some((name, specification)) => {
                        found.push((i + 1, Ok(())));
                        cited = Cited::Ours(name, specification);
                    }
                    None => {
                        found.push((i + 1, Err(format!("no document spec/{name}"))));
                        cited = Cited::Other;
                    }
                }
            } else if OTHERS.iter().any(|other| bare(word).starts_with(other)) {
                cited = Cited::Other;
            }
            found.extend(reference(word, cited).map(|result| (i + 1, result)));
            if word.ends_with(['.', ';', '|']) {
                cited = own;
            }
        }
    }
    found
}

/// What a word refers to in the document that is cited; `None` if it is an ordinary word.
fn reference(word: &str, cited: Cited<'_>) -> Option<Result<(), String>> {
    if let Some((_, number)) = word.split_once('§') {
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.');
        let number = number[..end.unwrap_or(number.len())].trim_end_matches('.');
        // `§N` tells how to cite.
        if number.is_empty() {
            return None;
        }
        return Some(match cited {
            Cited::None => Err(format!("{word} of which document?")),
            Cited::Ours(name, found) if !found.sections.contains(number) => {
                Err(format!("spec/{name} has no section {number}"))
            }
            Cited::Other | Cited::Ours(..) => Ok(()),
        });
    }
    let mark = bare(word);
    match cited {
        Cited::Ours(name, found) if is_mark(mark) => Some(match found.marks.contains(mark) {
            true => Ok(()),
            false => Err(format!("spec/{name} has no mark {mark}")),
        }),
        _ => None,
    }
}

/// `NAME` of a word that holds `spec/NAME`; not of a path into an object, `/spec/replicas`.
fn document(word: &str) -> Option<&str> {
    let at = word.find("spec/").or_else(|| word.find("Spec/"))?;
    let (before, name) = (&word[..at], &word[at + "spec/".len()..]);
    let is_path = before.ends_with(|c: char| c == '/' || c.is_alphanumeric());
    let end = name.find(|c: char| !c.is_ascii_lowercase());
    let name = &name[..end.unwrap_or(name.len())];
    let is_ours = !is_path || before.ends_with("docs/");
    (is_ours && !name.is_empty()).then_some(name)
}

/// `F6`, `I1`: a letter and a number.
fn is_mark(word: &str) -> bool {
    let number = word.strip_prefix(['F', 'I']);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

fn specifications() -> BTreeMap<String, Specification> {
    let files = repository::files();
    let names = files.iter().filter_map(|path| own_name(path));
    let read = |name: &str| {
        let text = repository::read(format!("{FOLDER}/{name}.md"));
        let headings = text.lines().filter(|line| line.starts_with("##"));
        let number = |line: &str| {
            let number = line.split_whitespace().nth(1)?.trim_end_matches('.');
            number
                .starts_with(|c: char| c.is_ascii_digit())
                .then(|| number.to_owned())
        };
        let marks = text.split(|c: char| !c.is_alphanumeric());
        Specification {
            sections: headings.filter_map(number).collect(),
            marks: marks.filter(|w| is_mark(w)).map(str::to_owned).collect(),
        }
    };
    names.map(|name| (name.to_owned(), read(name))).collect()
}

/// The name of a specification's file; README.md there is none.
fn own_name(path: &Path) -> Option<&str> {
    let is_there = path.parent() == Some(Path::new(FOLDER)) && path.extension()? == "md";
    let name = path.file_stem()?.to_str()?;
    (is_there && name.bytes().all(|b| b.is_ascii_lowercase())).then_some(name)
}

/// Sources and texts; not this file, whose tests cite what does not exist, and not what others wrote.
fn is_read(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    let is_text = matches!(extension, Some("rs" | "md" | "yaml" | "toml"));
    is_text && !path.ends_with("it/citations.rs") && !path.starts_with("vectors")
}
