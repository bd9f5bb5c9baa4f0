//! The result of reading files.

use super::broken::Broken;
use super::diagnostic::{Diagnostic, Severity};
use super::document::Origin;
use super::kind::KubeObject;

/// The objects of the files, and all problems.
#[derive(Debug, Default)]
pub struct Reading {
    /// The objects without errors, in the order of the files; lists are taken apart.
    pub objects: Vec<Located>,
    /// The objects without errors that change an object of a dump; only of [`read_applying`](super::read_applying).
    pub applied: Vec<Located>,
    /// The objects with errors, as far as they could be read.
    pub broken: Vec<Broken>,
    /// All problems, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

/// An object and where it came from.
#[derive(Debug, Clone)]
pub struct Located {
    /// The object.
    pub object: KubeObject,
    /// Its place, for [`locate`](super::locate).
    pub origin: Origin,
    /// True if an API server made it: it has a `metadata.uid`.
    pub from_dump: bool,
}

impl Reading {
    /// True if at least one problem is an error.
    pub fn has_errors(&self) -> bool {
        let mut diagnostics = self.diagnostics.iter();
        diagnostics.any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

impl Located {}
