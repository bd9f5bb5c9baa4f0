//! Rules: probable mistakes in objects that the API server accepts.
//!
//! [`RULES`] is the only table of them, [`lint`] applies it. `strew lint` and `strew simulate` both call it, so that
//! they say the same about a file. No rule counts by itself: the engine places pods (`trial`, `placings`), or a scenario
//! is played (`played` on made-up nodes, `stage` on those of the files). Reading order: `table`, `files` (what rules look at), a file of `rules`, `fixes`, `ignore`.
//!
//! A sound file must give no warning: a rule about something that is missing speaks only where the files have enough to
//! judge, and what may be meant so is a note.

#[cfg(test)]
mod documented;
mod files;
mod fixes;
mod ignore;
mod placings;
mod played;
mod rules;
mod scheduling;
mod stage;
mod table;
#[cfg(test)]
mod tests;
mod trial;

use std::cell::RefCell;

use strew_manifest::field::FieldPath;
use strew_manifest::fix::Fix;
use strew_manifest::read::{KubeObject, Severity};

use files::Files;
pub use ignore::{Ignore, ignores};
use played::Plays;
pub use scheduling::Scheduling;
pub use table::{RULES, Rule};

use strew_wire::workloadspread::lint::What;

/// A finding about one of the objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The rule.
    pub code: &'static str,
    /// A warning, or a note.
    pub severity: Severity,
    /// The index of the object in the list.
    pub object: usize,
    /// The field.
    pub path: FieldPath,
    /// One sentence, lower case, without a full stop.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
    /// A change of the object that takes the finding away.
    pub fix: Option<Fix>,
    /// The numbers of the message, by name.
    pub numbers: Vec<(&'static str, i64)>,
    /// Other objects, each with what it is in this finding.
    pub related: Vec<(usize, &'static str)>,
}

impl Found {
    fn warning(object: usize, path: FieldPath, message: String) -> Self {
        Self {
            // The table sets it.
            code: "",
            severity: Severity::Warning,
            object,
            path,
            message,
            help: None,
            fix: None,
            numbers: Vec::new(),
            related: Vec::new(),
        }
    }

    fn note(object: usize, path: FieldPath, message: String) -> Self {
        Self {
            severity: Severity::Note,
            ..Self::warning(object, path, message)
        }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    fn related(mut self, object: usize, label: &'static str) -> Self {
        self.related.push((object, label));
        self
    }

    fn number(mut self, name: &'static str, number: i64) -> Self {
        self.numbers.push((name, number));
        self
    }
}

/// How far rules go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// What is written, for files that are played anyway.
    Written,
    /// The engine places the workloads, and short rollouts are played.
    Tried,
}

/// Applies every rule of this depth to these objects, in the order of the table. With `more_come`, objects may be added
/// later, and nothing is said about what is missing.
pub fn lint(objects: &[&KubeObject], more_come: bool, depth: Depth) -> Vec<Found> {
    let scheduling = Scheduling::default();
    apply(objects, more_come, depth, &Memory::of(&scheduling))
}

/// What stays the same while rules are applied again and again: the scheduler, and the rollouts that were played.
struct Memory<'a> {
    scheduling: &'a Scheduling,
    played: RefCell<Plays>,
}

impl<'a> Memory<'a> {
    fn of(scheduling: &'a Scheduling) -> Self {
        Self {
            scheduling,
            played: RefCell::default(),
        }
    }
}

/// As [`lint`].
fn apply(
    objects: &[&KubeObject],
    more_come: bool,
    depth: Depth,
    memory: &Memory<'_>,
) -> Vec<Found> {
    let files = Files::of(objects, more_come, memory);
    let mut found = Vec::new();
    for rule in RULES.iter().filter(|rule| rule.depth <= depth) {
        let Some(check) = rule.check else {
            continue;
        };
        let of_rule = check(&files).into_iter();
        found.extend(of_rule.map(|found| Found {
            code: rule.code,
            ..found
        }));
    }
    found.extend(of_spreads(objects, more_come));
    found
}

/// As [`lint`] of all that can be tried; then each fix is made in a copy of its object, and the rules are applied again.
/// A fix that does not take its finding away, or brings a new warning, is dropped.
pub fn lint_with_fixes(objects: &[&KubeObject], scheduling: &Scheduling) -> Vec<Found> {
    let memory = Memory::of(scheduling);
    let mut found = apply(objects, false, Depth::Tried, &memory);
    fixes::verify(objects, &mut found, &memory);
    found
}

/// The warnings about WorkloadSpreads; what their webhook refuses is an error elsewhere.
fn of_spreads(objects: &[&KubeObject], more_come: bool) -> Vec<Found> {
    let is_missing = ["target-missing", "no-node"];
    let grows = || objects.iter().any(|object| files::adds_nodes(object));
    let found = strew_wire::workloadspread::lint::lint(objects).into_iter();
    let found = found.filter_map(|found| match found.what {
        What::Suspicious(warning) => Some(Found {
            code: warning.code,
            help: Some(warning.help),
            ..Found::warning(found.object, warning.path, warning.message)
        }),
        What::Refused(_) => None,
    });
    found
        .filter(|found| !more_come || !is_missing.contains(&found.code))
        .filter(|found| found.code != "subset-over-room" || !grows())
        .collect()
}

/// The rule with this code; `None` for problems that are found while files are read, which say themselves what to do.
pub fn rule_text(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code == code)
}

/// What a problem without a rule means.
pub const HELP: &str = "strew reads files as the API server does; the message says what is wrong, where, and what to do about it.";
