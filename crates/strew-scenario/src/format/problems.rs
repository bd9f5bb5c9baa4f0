//! Mistakes of a scenario, gathered before their places are looked up.

use strew_manifest::field::{FieldPath, PathSegment};
use strew_manifest::read::{Diagnostic, RawFault};

/// A mistake at a field of the document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) path: FieldPath,
    /// True if the field itself is the mistake, not its value.
    pub(crate) is_key: bool,
    pub(crate) diagnostic: Diagnostic,
    /// Another field that takes part in the mistake.
    pub(crate) related: Option<(FieldPath, &'static str)>,
}

/// The problems kept of one document; further ones are counted.
const PROBLEMS_MAX: usize = 1000;

/// The problems so far, in the order found.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    pub(crate) found: Vec<Problem>,
    pub(crate) n_left_out: usize,
}

impl Problems {
    /// A mistake in the value at `path`.
    pub(crate) fn add(&mut self, path: &FieldPath, diagnostic: Diagnostic) {
        self.push(path, false, diagnostic, None);
    }

    /// A field that should not exist, or has the wrong name.
    pub(crate) fn add_key(&mut self, path: &FieldPath, diagnostic: Diagnostic) {
        self.push(path, true, diagnostic, None);
    }

    /// A wrong target, which is a key of an object by target, or a value.
    pub(crate) fn add_target(&mut self, path: &FieldPath, diagnostic: Diagnostic) {
        let is_key = matches!(path.steps().last(), Some(PathSegment::Key(_)));
        self.push(path, is_key, diagnostic, None);
    }

    /// A field that contradicts another one.
    pub(crate) fn add_pair(
        &mut self,
        path: &FieldPath,
        diagnostic: Diagnostic,
        other: &FieldPath,
        label: &'static str,
    ) {
        self.push(path, true, diagnostic, Some((other.clone(), label)));
    }

    /// The faults that the schema of a Kubernetes object finds in the object at `path`.
    pub(crate) fn add_faults(&mut self, path: &FieldPath, faults: Vec<RawFault>) {
        for fault in faults {
            let path = path.join(&fault.path);
            self.push(&path, fault.is_unknown, fault.diagnostic, None);
        }
    }

    fn push(
        &mut self,
        path: &FieldPath,
        is_key: bool,
        diagnostic: Diagnostic,
        related: Option<(FieldPath, &'static str)>,
    ) {
        if self.found.len() >= PROBLEMS_MAX {
            self.n_left_out += 1;
            return;
        }
        self.found.push(Problem {
            path: path.clone(),
            is_key,
            diagnostic,
            related,
        });
    }
}
