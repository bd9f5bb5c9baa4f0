//! Makes the table of docs/fidelity.md from recorded and simulated outcomes.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fmt, fs};

use anyhow::{Context, ensure};

use super::agreement;
use super::outcome::BY_NAME;
use super::recorded::Recorded;

const FILE: &str = "docs/fidelity.md";
const BEGIN: &str = "<!-- made by cargo xtask fidelity --recorded --document -->\n";
const END: &str = "<!-- end -->\n";

/// Facts that a row names; the others are counted.
const NAMED_MAX: usize = 3;

/// The number of seeds: with filter workers that finish in order, and with racing workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seeds {
    pub(crate) in_order: u64,
    pub(crate) raced: u64,
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.in_order, self.raced)
    }
}

/// A scenario's line.
pub(crate) struct Row {
    pub(crate) name: String,
    /// What the scenario shows.
    pub(crate) story: String,
    pub(crate) n_runs: u64,
    pub(crate) varies: String,
    /// Seeds whose filter workers finish in order, and seeds whose workers race.
    pub(crate) seeds: Seeds,
    pub(crate) agrees: bool,
    /// The reasons of known differences.
    pub(crate) reasons: Vec<String>,
}

/// The facts that differed between real runs, in words.
pub(crate) fn varies(real: &Recorded) -> String {
    let mut facts = BTreeSet::new();
    let mut is_symmetric = false;
    for step in &real.steps {
        for (about, _) in agreement::varying(&step.outcomes()) {
            match about.contains(BY_NAME) {
                true => is_symmetric = true,
                false => drop(facts.insert(about)),
            }
        }
    }
    let named: Vec<&str> = facts.iter().take(NAMED_MAX).map(String::as_str).collect();
    match (facts.len(), is_symmetric) {
        (0, false) => "no".to_owned(),
        (0, true) => "which of equal domains".to_owned(),
        (n, _) if n <= NAMED_MAX => named.join(", "),
        (n, _) => format!("{} and {} more", named.join(", "), n - NAMED_MAX),
    }
}

/// Writes the table into the document.
///
/// # Errors
/// If the document lacks the place for it.
pub(crate) fn write(top: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let path = top.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| FILE)?;
    fs::write(&path, with_table(&text, rows)?).with_context(|| FILE)
}

/// Whether the document has this very table.
///
/// # Errors
/// If the document lacks the place for it.
pub(crate) fn is_current(top: &Path, rows: &[Row]) -> anyhow::Result<bool> {
    let text = fs::read_to_string(top.join(FILE)).with_context(|| FILE)?;
    Ok(with_table(&text, rows)? == text)
}

fn with_table(text: &str, rows: &[Row]) -> anyhow::Result<String> {
    let places = (text.find(BEGIN), text.find(END));
    let (Some(begin), Some(end)) = places else {
        anyhow::bail!("{FILE} lacks the marks of its table");
    };
    let begin = begin + BEGIN.len();
    ensure!(
        begin <= end,
        "{FILE} has the marks of its table in disorder"
    );
    Ok(format!("{}{}{}", &text[..begin], table(rows), &text[end..]))
}

fn table(rows: &[Row]) -> String {
    let mut text =
        "| scenario | what it shows | real runs | varies among them | seeds | strew agrees |\n\
                    |---|---|---|---|---|---|\n"
            .to_owned();
    for row in rows {
        let agrees = match (row.agrees, row.reasons.is_empty()) {
            (true, true) => "yes".to_owned(),
            (true, false) => format!("in part: {}", row.reasons.join("; ")),
            (false, _) => "**no**".to_owned(),
        };
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} | {agrees} |\n",
            row.name, row.story, row.n_runs, row.varies, row.seeds
        ));
    }
    text
}

#[test]
fn the_table_stands_between_its_marks() {
    let rows = [Row {
        name: "scale".to_owned(),
        story: "up, then down".to_owned(),
        n_runs: 5,
        varies: "no".to_owned(),
        seeds: Seeds {
            in_order: 30,
            raced: 30,
        },
        agrees: true,
        reasons: Vec::new(),
    }];
    let text = format!("# Title\n{BEGIN}old\n{END}rest\n");
    let new = with_table(&text, &rows).unwrap();
    assert!(
        new.contains("\n| scale | up, then down | 5 | no | 30 + 30 | yes |\n<!-- end -->\nrest\n")
    );
    assert!(!new.contains("old"));
    assert_eq!(with_table(&new, &rows).unwrap(), new);
    assert!(with_table("# Title\n", &rows).is_err());
}
