//! The documents of a recording, and the diagnostics about them.

use std::collections::BTreeSet;

use serde_json::Value;
use strew_manifest::field::{FieldPath, PathSegment};
use strew_manifest::read::{
    Diagnostic, KubeObject, Locator, Origin, RawDocument, RawFault, Severity, Sources, documents,
    embedded,
};

use super::diagnostics;
use crate::format::diagnostics::{missing, too_many};
use crate::format::problems::Problems;

/// The documents of a recording, with their problems.
pub(super) struct Input<'a> {
    pub(super) documents: Vec<RawDocument>,
    sources: &'a Sources,
    locator: Locator<'a>,
    found: Vec<Diagnostic>,
    /// Unknown fields that were reported; each is reported once.
    told: BTreeSet<String>,
}

impl<'a> Input<'a> {
    pub(super) fn new(sources: &'a Sources) -> Self {
        let is_msgpack = sources.iter().any(|(_, file)| is_msgpack(file.text()));
        let (documents, found) = match is_msgpack {
            true => (Vec::new(), vec![diagnostics::msgpack()]),
            false => documents(sources),
        };
        Self {
            documents,
            sources,
            locator: Locator::new(sources),
            found,
            told: BTreeSet::new(),
        }
    }

    /// There is no document.
    pub(super) fn nothing(&mut self, what: &str) {
        if self.found.iter().any(|d| d.severity == Severity::Error) {
            return;
        }
        let mut error = diagnostics::no_recording(what);
        // Uses the place of the diagnostic that the reader gives for an empty file.
        error.place = self.found.iter().find_map(|d| d.place);
        self.found = vec![error];
    }

    /// Gives the problems of a document their places.
    pub(super) fn place(&mut self, problems: Problems, origin: &Origin) {
        for problem in problems.found {
            let place = match problem.is_key {
                true => self.locator.key_place(origin, &problem.path),
                false => self.locator.place(origin, &problem.path),
            };
            let diagnostic = problem.diagnostic.at(place).in_field(problem.path);
            self.found.push(diagnostic);
        }
        if problems.n_left_out > 0 {
            self.found.push(too_many(problems.n_left_out));
        }
    }

    /// Reads an object of Kubernetes. A recording comes from an API server, which may be newer than strew: an unknown
    /// field is reported once as a warning, and left out.
    pub(super) fn object(
        &mut self,
        value: &Value,
        path: &FieldPath,
        problems: &mut Problems,
    ) -> Option<KubeObject> {
        let mut value = value.clone();
        let faults = match embedded(value.clone()) {
            Ok(object) => return named(object, path, problems),
            Err(faults) => faults,
        };
        let (unknown, wrong): (Vec<_>, Vec<_>) = faults.into_iter().partition(|f| f.is_unknown);
        if !wrong.is_empty() {
            problems.add_faults(path, wrong);
            return None;
        }
        for fault in unknown {
            remove(&mut value, fault.path.steps());
            self.tell_unknown(fault, path, problems);
        }
        match embedded(value) {
            Ok(object) => named(object, path, problems),
            Err(faults) => {
                problems.add_faults(path, faults);
                None
            }
        }
    }

    fn tell_unknown(&mut self, fault: RawFault, path: &FieldPath, problems: &mut Problems) {
        let mut warning = fault.diagnostic;
        if self.told.insert(warning.message.clone()) {
            warning.severity = Severity::Warning;
            problems.add_key(&path.join(&fault.path), warning);
        }
    }

    /// All diagnostics, by place.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        let n_files = self.sources.iter().count();
        debug_assert!(n_files <= 1, "a recording is one file");
        self.found.sort_by_key(|d| (d.place.is_none(), d.place));
        self.found
    }
}

/// True if the text begins like a trace in msgpack: its first byte is no character, and no JSON begins with it.
fn is_msgpack(text: &str) -> bool {
    text.starts_with('\u{fffd}') && text.contains("events")
}

/// Refuses a name that a scenario cannot refer to.
fn named(object: KubeObject, path: &FieldPath, problems: &mut Problems) -> Option<KubeObject> {
    let is_known = !matches!(object, KubeObject::Other(_));
    let namespace = object.namespace().unwrap_or_default();
    let is_bad = |name: &str| name.contains(['/', '=', ',']) || name.contains(char::is_whitespace);
    if is_known && object.name().is_empty() {
        problems.add(path, missing("metadata.name"));
        return None;
    }
    if let Some(name) = [object.name(), namespace].into_iter().find(|n| is_bad(n))
        && is_known
    {
        problems.add(&path.child("metadata"), diagnostics::bad_name(name));
        return None;
    }
    Some(object)
}

fn remove(value: &mut Value, steps: &[PathSegment]) {
    let Some((last, way)) = steps.split_last() else {
        return;
    };
    let mut value = Some(value);
    for step in way {
        value = value.and_then(|value| match step {
            PathSegment::Name(name) => value.get_mut(&**name),
            PathSegment::Key(key) => value.get_mut(key),
            PathSegment::Index(index) => value.get_mut(*index),
        });
    }
    if let (Some(Value::Object(fields)), PathSegment::Name(name)) = (value, last) {
        fields.shift_remove(&**name);
    }
}
