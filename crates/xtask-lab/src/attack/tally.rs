//! The result of an attack.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How often each result has occurred, by its name.
#[derive(Debug, Default)]
pub(super) struct Tally(Mutex<BTreeMap<String, u64>>);

impl Tally {
    /// Counts one result.
    pub(super) fn count(&self, what: impl Into<String>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what.into()).or_default() += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = serde_json::to_string(&*counts).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

#[test]
fn counts_are_one_line() {
    let tally = Tally::default();
    for what in ["opened", "closed", "opened"] {
        tally.count(what);
    }
    assert_eq!(tally.to_string(), r#"{"closed":1,"opened":2}"#);
}
