//! Counts what the scenario leaves out of a recording.

use std::collections::BTreeMap;

/// Counts by reason.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    /// Changes of status and bookkeeping, and objects applied without a change.
    pub(super) n_idle: usize,
    /// Changes of objects that the simulated controllers make and delete themselves.
    pub(super) n_owned: usize,
    /// Changes of objects that the recording does not hold.
    pub(super) n_unknown: usize,
    /// Objects by kind or resource.
    pub(super) unmodelled: BTreeMap<String, usize>,
    /// Pods whose lifetimes the recording has.
    pub(super) n_lifetimes: usize,
    /// Objects whose owner the recording does not hold.
    pub(super) n_orphans: usize,
}

/// The kinds that a note names; the rest is counted.
const KINDS_MAX: usize = 8;

impl LeftOut {
    pub(super) fn unmodelled(&mut self, kind: &str) {
        *self.unmodelled.entry(kind.to_owned()).or_default() += 1;
    }

    /// One note for each reason.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let mut say = |n: usize, what: &str| {
            if n > 0 {
                notes.push(format!("left out {} {what}", changes(n)));
            }
        };
        say(
            self.n_idle,
            "of status or bookkeeping alone, or of nothing at all",
        );
        say(
            self.n_owned,
            "of objects that the simulated controllers make themselves",
        );
        say(
            self.n_unknown,
            "of objects that the recording does not hold",
        );
        let n: usize = self.unmodelled.values().sum();
        if n > 0 {
            let mut kinds: Vec<_> = self.unmodelled.iter().collect();
            kinds.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
            let shown = kinds.iter().take(KINDS_MAX);
            let mut shown: Vec<String> = shown.map(|(kind, n)| format!("{n} {kind}")).collect();
            if kinds.len() > KINDS_MAX {
                shown.push(format!("{} other kinds", kinds.len() - KINDS_MAX));
            }
            let what = format!("of kinds that strew does not model: {}", shown.join(", "));
            say(n, &what);
        }
        if self.n_lifetimes > 0 {
            notes.push(format!(
                "left out how long the pods of {} owners lived: spec.timing says it for a scenario",
                self.n_lifetimes
            ));
        }
        if self.n_orphans > 0 {
            let what = match self.n_orphans {
                1 => "1 object without its owner".to_owned(),
                n => format!("{n} objects without their owners"),
            };
            notes.push(format!("kept {what}, which the recording does not hold"));
        }
        notes
    }
}

fn changes(n: usize) -> String {
    match n {
        1 => "1 change".to_owned(),
        n => format!("{n} changes"),
    }
}
