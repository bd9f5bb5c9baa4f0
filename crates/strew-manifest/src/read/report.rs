//! Collects problems while files are read.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::check::UNKNOWN_FIELD;
use super::diagnostic::{Diagnostic, Severity};
use super::document::{Document, Origin};
use super::locator::Locator;
use super::node::Node;
use super::source::{FileId, Sources, Span};
use crate::field::FieldPath;

/// The most problems shown; further ones are counted.
const DIAGNOSTICS_MAX: usize = 1000;

/// The problems so far.
pub(super) struct Report<'a> {
    locator: Locator<'a>,
    diagnostics: Vec<Diagnostic>,
    n_left_out: usize,
    /// The highest severity of those left out.
    left_out: Severity,
    passed_over: BTreeMap<String, PassedOver>,
}

/// What may be said of many objects, reported once.
struct PassedOver {
    /// The first, without its place.
    first: Diagnostic,
    origin: Origin,
    n_times: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        Self {
            locator: Locator::new(sources),
            diagnostics: Vec::new(),
            n_left_out: 0,
            left_out: Severity::Warning,
            passed_over: BTreeMap::new(),
        }
    }

    /// Caches the tree of the current document, since places in it may be needed.
    pub(super) fn remember(&mut self, file: FileId, document: Document, root: Rc<Node>) {
        self.locator.remember(file, document, root);
    }

    /// Adds a problem. It is built, and its places are looked up, only if it will be shown.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        diagnostic: impl FnOnce(&mut Locator<'_>) -> Diagnostic,
    ) {
        if self.diagnostics.len() >= DIAGNOSTICS_MAX {
            return self.leave_out(severity);
        }
        let mut diagnostic = diagnostic(&mut self.locator);
        diagnostic.severity = severity;
        self.diagnostics.push(diagnostic);
    }

    /// Counts a problem that is not shown.
    pub(super) fn leave_out(&mut self, severity: Severity) {
        self.n_left_out += 1;
        self.left_out = self.left_out.min(severity);
    }

    /// Adds a problem of the text itself.
    pub(super) fn add_at(&mut self, file: FileId, span: Span, diagnostic: Diagnostic) {
        self.add(diagnostic.severity, |locator| {
            diagnostic.at(locator.place_of_span(file, span))
        });
    }

    /// Adds a problem of a field's value.
    pub(super) fn add_in(&mut self, origin: &Origin, path: FieldPath, diagnostic: Diagnostic) {
        self.add(diagnostic.severity, |locator| {
            diagnostic.at(locator.place(origin, &path)).in_field(path)
        });
    }

    /// Adds a problem of a field that should not exist.
    pub(super) fn add_key(&mut self, origin: &Origin, path: FieldPath, diagnostic: Diagnostic) {
        self.add(diagnostic.severity, |locator| {
            let place = locator.key_place(origin, &path);
            diagnostic.at(place).in_field(path)
        });
    }

    /// Counts parts of dumps that strew does not read; only the first becomes a diagnostic.
    pub(super) fn pass_over(
        &mut self,
        key: String,
        origin: &Origin,
        first: impl FnOnce(&str) -> Diagnostic,
    ) {
        if let Some(known) = self.passed_over.get_mut(&key) {
            known.n_times += 1;
            return;
        }
        let first = PassedOver {
            first: first(&key),
            origin: origin.clone(),
            n_times: 1,
        };
        self.passed_over.insert(key, first);
    }

    /// All problems in the order of their places.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        for passed_over in std::mem::take(&mut self.passed_over).into_values() {
            let severity = passed_over.first.severity;
            self.add(severity, |locator| passed_over.diagnostic(locator));
        }
        let mut diagnostics = self.diagnostics;
        diagnostics.sort_by_key(|diagnostic| diagnostic.place);
        if self.n_left_out > 0 {
            let message = format!("{} more problems are not listed", self.n_left_out);
            let mut rest = Diagnostic::error("too-many", message);
            rest.severity = self.left_out;
            diagnostics.push(rest);
        }
        diagnostics
    }
}

impl PassedOver {
    fn diagnostic(self, locator: &mut Locator<'_>) -> Diagnostic {
        let path = self.first.path.clone().unwrap_or_default();
        let place = match self.first.code {
            UNKNOWN_FIELD => locator.key_place(&self.origin, &path),
            _ => locator.place(&self.origin, &path),
        };
        let mut warning = self.first.at(place);
        if self.n_times > 1 {
            warning.message = format!("{} ({} times)", warning.message, self.n_times);
        }
        warning
    }
}
