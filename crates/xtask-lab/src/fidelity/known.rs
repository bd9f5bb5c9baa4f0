//! Known differences with their causes: e2e/known.json.
//!
//! A few real runs do not show every value of what a real cluster draws (uids, the order in which two controllers' pods
//! come). The file names such facts, with the number of seeds that may differ. An entry that no seed needs is an error.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use super::agreement::Disagreement;

const FILE: &str = "e2e/known.json";

/// Why facts of a scenario may differ.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Known {
    scenario: String,
    /// The steps that it concerns, by their `at`.
    at: Vec<String>,
    /// The beginnings of the facts that it concerns.
    about: Vec<String>,
    /// How many of 30 seeds may differ.
    seeds: u64,
    pub(crate) why: String,
}

/// Reads all entries.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn read(top: &Path) -> anyhow::Result<Vec<Known>> {
    let text = fs::read_to_string(top.join(FILE)).with_context(|| FILE)?;
    serde_json::from_str(&text).with_context(|| FILE)
}

impl Known {
    /// Whether it concerns this scenario.
    pub(crate) fn is_of(&self, scenario: &str) -> bool {
        self.scenario == scenario
    }

    /// Whether it explains a fact that differs in `n_here` of `n_all` runs.
    pub(crate) fn explains(&self, at: &str, found: &Disagreement, n_here: u64, n_all: u64) -> bool {
        let is_about = self
            .about
            .iter()
            .any(|about| found.about.starts_with(about));
        let is_rare = n_here * 30 <= self.seeds * n_all;
        is_about && is_rare && self.at.iter().any(|known| known == at)
    }
}

#[test]
fn a_known_difference_is_one_of_its_step_and_fact_and_no_more_frequent() {
    use std::collections::BTreeSet;
    let known = Known {
        scenario: "scale".to_owned(),
        at: vec!["2s".to_owned()],
        about: vec!["deployment/web by".to_owned()],
        seeds: 3,
        why: String::new(),
    };
    let found = |about: &str| Disagreement {
        about: about.to_owned(),
        real: BTreeSet::new(),
        here: BTreeSet::new(),
    };
    let by_host = found("deployment/web by kubernetes.io/hostname");
    assert!(known.explains("2s", &by_host, 3, 30));
    assert!(known.explains("2s", &by_host, 1, 10));
    assert!(!known.explains("2s", &by_host, 4, 30));
    assert!(!known.explains("3s", &by_host, 3, 30));
    assert!(!known.explains("2s", &found("deployment/web ready"), 1, 30));
}
