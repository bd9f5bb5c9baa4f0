//! Recorded outcomes of real runs: `e2e/recorded/NAME.json`.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use xtask::go::Fnv;

use super::outcome::Outcome;
use super::scenario::Scenario;

/// All outcomes of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded {
    /// A fingerprint of the scenario's text: another text makes the record void.
    scenario: String,
    /// The number of runs.
    pub(crate) runs: u64,
    /// Second 0, then each step.
    pub(crate) steps: Vec<Step>,
}

/// The outcomes of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// The step's `at`, as the scenario writes it.
    pub(crate) at: String,
    /// The different outcomes, in their own order.
    pub(crate) outcomes: Vec<Seen>,
}

/// An outcome, and the number of runs that had it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seen {
    /// The number of runs that had it.
    pub(crate) seen: u64,
    /// What was met.
    pub(crate) outcome: Outcome,
}

impl Recorded {
    /// A record without runs.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let steps = scenario.steps.iter().map(|step| step.text.as_str());
        let step = |at: &str| Step {
            at: at.to_owned(),
            outcomes: Vec::new(),
        };
        Self {
            scenario: digest(scenario),
            runs: 0,
            steps: std::iter::once("0s").chain(steps).map(step).collect(),
        }
    }

    /// The record of earlier runs of this very text; `None` without a file, or if it is of another text.
    pub(crate) fn read(top: &Path, scenario: &Scenario) -> anyhow::Result<Option<Self>> {
        let path = path(top, scenario);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context(path.display().to_string()),
        };
        let recorded: Self =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        Ok((recorded.scenario == digest(scenario)).then_some(recorded))
    }

    /// Adds a run: an outcome for each step.
    pub(crate) fn add(&mut self, outcomes: Vec<Outcome>) -> anyhow::Result<()> {
        ensure!(
            outcomes.len() == self.steps.len(),
            "a run has another number of steps"
        );
        self.runs += 1;
        for (step, outcome) in self.steps.iter_mut().zip(outcomes) {
            step.add(Seen { seen: 1, outcome });
        }
        Ok(())
    }

    /// Adds the runs of another record of this scenario.
    pub(crate) fn extend(&mut self, other: &Self) -> anyhow::Result<()> {
        ensure!(
            other.steps.len() == self.steps.len(),
            "the records have different steps"
        );
        self.runs += other.runs;
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            for seen in &other.outcomes {
                step.add(seen.clone());
            }
        }
        Ok(())
    }

    /// Writes the file.
    pub(crate) fn write(&self, top: &Path, scenario: &Scenario) -> anyhow::Result<()> {
        let path = path(top, scenario);
        fs::create_dir_all(top.join(FOLDER))?;
        fs::write(&path, self.text()?).with_context(|| path.display().to_string())
    }

    /// JSON with one outcome on each line: another run then adds a line to a diff.
    fn text(&self) -> anyhow::Result<String> {
        let step = |step: &Step| -> anyhow::Result<String> {
            let lines: Vec<String> = step
                .outcomes
                .iter()
                .map(serde_json::to_string)
                .collect::<Result<_, _>>()?;
            let at = serde_json::to_string(&step.at)?;
            Ok(format!(
                "{{\"at\": {at}, \"outcomes\": [\n{}\n]}}",
                lines.join(",\n")
            ))
        };
        let steps: Vec<String> = self.steps.iter().map(step).collect::<Result<_, _>>()?;
        let scenario = serde_json::to_string(&self.scenario)?;
        Ok(format!(
            "{{\"scenario\": {scenario}, \"runs\": {}, \"steps\": [\n{}\n]}}\n",
            self.runs,
            steps.join(",\n")
        ))
    }
}

impl Step {
    fn add(&mut self, new: Seen) {
        match self.outcomes.iter_mut().find(|s| s.outcome == new.outcome) {
            Some(known) => known.seen += new.seen,
            None => self.outcomes.push(new),
        }
        self.outcomes.sort_by(|a, b| a.outcome.cmp(&b.outcome));
    }

    /// The number of runs in which the fact had one of these values.
    pub(crate) fn runs_with(&self, about: &str, values: &BTreeSet<String>) -> u64 {
        let is_one = |seen: &&Seen| {
            let facts = seen.outcome.facts();
            facts.get(about).is_some_and(|fact| values.contains(fact))
        };
        self.outcomes.iter().filter(is_one).map(|s| s.seen).sum()
    }

    /// The outcomes without their numbers of runs.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        self.outcomes.iter().map(|s| s.outcome.clone()).collect()
    }
}

const FOLDER: &str = "e2e/recorded";

fn path(top: &Path, scenario: &Scenario) -> PathBuf {
    top.join(FOLDER).join(format!("{}.json", scenario.name))
}

fn digest(scenario: &Scenario) -> String {
    let mut hash = Fnv::new();
    hash.write(scenario.text.as_bytes());
    hash.to_string()
}

#[test]
fn what_is_written_is_read_again_and_equal_runs_are_counted() {
    let text = "kind: Scenario\nspec: {timeline: [{at: 5s}]}".to_owned();
    let scenario = super::scenario::parse("strew-recorded-test", text).unwrap();
    let top = std::env::temp_dir().join(format!("strew-recorded-{}", std::process::id()));
    assert!(Recorded::read(&top, &scenario).unwrap().is_none());
    let mut recorded = Recorded::new(&scenario);
    let other = Outcome {
        refused: vec!["drain".to_owned()],
        ..Outcome::default()
    };
    recorded
        .add(vec![Outcome::default(), other.clone()])
        .unwrap();
    recorded
        .add(vec![Outcome::default(), Outcome::default()])
        .unwrap();
    assert!(recorded.add(vec![other.clone()]).is_err());
    recorded.write(&top, &scenario).unwrap();
    let again = Recorded::read(&top, &scenario).unwrap().unwrap();
    let seen = |i: usize| -> Vec<u64> { again.steps[i].outcomes.iter().map(|s| s.seen).collect() };
    assert_eq!((again.runs, seen(0), seen(1)), (2, vec![2], vec![1, 1]));
    assert_eq!(again.steps[1].outcomes(), [Outcome::default(), other]);
    let text = "kind: Scenario\nspec: {timeline: [{at: 6s}]}".to_owned();
    let changed = super::scenario::parse("strew-recorded-test", text).unwrap();
    assert!(
        Recorded::read(&top, &changed).unwrap().is_none(),
        "another text"
    );
    fs::remove_dir_all(top).unwrap();
}
