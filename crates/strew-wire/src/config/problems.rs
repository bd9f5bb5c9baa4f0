//! The errors of one configuration document, with their places.

use serde_json::Value;

use super::fields::{FIELDS, Part};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::{Diagnostic, Locator, Origin, RawSchema, Sources};

/// The most errors shown of one document, since each place costs a search in its text. Further ones are counted.
const DIAGNOSTICS_MAX: usize = 1000;

/// The problems of a document so far.
pub(super) struct Problems<'a> {
    locator: Locator<'a>,
    origin: &'a Origin,
    /// The type of the document in messages: `KubeSchedulerConfiguration`.
    label: &'static str,
    found: Vec<Diagnostic>,
    n_left_out: usize,
    /// Fields whose value is invalid; further errors in them are dropped.
    unread: Vec<FieldPath>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(sources: &'a Sources, origin: &'a Origin, label: &'static str) -> Self {
        Self {
            locator: Locator::new(sources),
            origin,
            label,
            found: Vec::new(),
            n_left_out: 0,
            unread: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds a violation of a rule of kube-scheduler, in its words.
    pub(super) fn field(&mut self, error: FieldError) {
        if self.is_unread(&error.path) || self.is_full() {
            return;
        }
        let place = self.locator.place(self.origin, &error.path);
        let diagnostic = Diagnostic::from_field_error(&error, self.label, place);
        if self.found.iter().all(|known| *known != diagnostic) {
            self.found.push(diagnostic);
        }
    }

    pub(super) fn fields(&mut self, errors: Vec<FieldError>) {
        for error in errors {
            self.field(error);
        }
    }

    /// Adds any other error, at the value of `path`.
    pub(super) fn at(&mut self, path: FieldPath, diagnostic: Diagnostic) {
        if self.is_unread(&path) || self.is_full() {
            return;
        }
        let place = self.locator.place(self.origin, &path);
        let diagnostic = diagnostic.about(self.label).in_field(path).at(place);
        self.found.push(diagnostic);
    }

    /// Counts an error instead if the limit is reached; returns true then.
    fn is_full(&mut self) -> bool {
        let is_full = self.found.len() >= DIAGNOSTICS_MAX;
        self.n_left_out += usize::from(is_full);
        is_full
    }

    fn is_unread(&self, path: &FieldPath) -> bool {
        let mut unread = self.unread.iter();
        unread.any(|unread| path.steps().starts_with(unread.steps()))
    }

    /// Decodes the value at `path`. Reports invalid fields and leaves them out.
    pub(super) fn decode<T: Part>(&mut self, mut value: Value, path: &FieldPath) -> T {
        let schema = RawSchema::of_table(&FIELDS, T::NAME);
        // After leaving fields out there should be no new fault, but the loop must have a bound.
        for _ in 0..2 {
            let faults = schema.check(&mut value);
            if faults.is_empty() {
                break;
            }
            for fault in faults.into_iter().rev() {
                leave_out(&mut value, &fault.path);
                if self.is_full() {
                    continue;
                }
                let whole = path.join(&fault.path);
                let place = match fault.is_unknown {
                    true => self.locator.key_place(self.origin, &whole),
                    false => self.locator.place(self.origin, &whole),
                };
                let diagnostic = fault.diagnostic.about(self.label).at(place);
                let mut diagnostic = diagnostic.in_field(whole.clone());
                if let Some(help) = field_help(&whole) {
                    diagnostic = diagnostic.with_help(help);
                }
                self.found.push(diagnostic);
                self.unread.push(whole);
                self.unread
                    .extend(fault.meant.map(|meant| path.join(&meant)));
            }
        }
        serde_json::from_value(value).unwrap_or_else(|error| {
            // The check accepted what the decoder refuses. This is a defect of strew, and is reported.
            let message = format!("can't be read: {error}");
            self.at(path.clone(), Diagnostic::error("undecodable", message));
            T::default()
        })
    }

    /// Returns the notes, or all errors by place.
    pub(super) fn finish(mut self) -> Result<Vec<String>, Vec<Diagnostic>> {
        if self.found.is_empty() {
            return Ok(self.notes);
        }
        self.found.sort_by_key(|diagnostic| diagnostic.place);
        if self.n_left_out > 0 {
            let message = format!("{} more problems are not listed", self.n_left_out);
            self.found.push(Diagnostic::error("too-many", message));
        }
        Err(self.found)
    }
}

/// Advice on removed fields.
fn field_help(path: &FieldPath) -> Option<&'static str> {
    let name = path.to_string();
    name.ends_with(".disableDefaultConstraints").then_some(
        "it is a field of v1beta1: in v1 write `defaultingType: List` without defaultConstraints",
    )
}

/// Removes the value at `path`; an element of a list becomes null, so that the others keep their indexes.
fn leave_out(value: &mut Value, path: &FieldPath) {
    use strew_manifest::field::PathSegment;
    let Some((last, way)) = path.steps().split_last() else {
        *value = Value::Object(serde_json::Map::new());
        return;
    };
    let mut holder = value;
    for step in way {
        let next = match step {
            PathSegment::Index(index) => holder.get_mut(*index),
            PathSegment::Name(name) => holder.get_mut(name.as_ref()),
            PathSegment::Key(key) => holder.get_mut(key.as_str()),
        };
        let Some(next) = next else { return };
        holder = next;
    }
    match (last, holder) {
        (PathSegment::Index(index), Value::Array(elements)) => {
            if let Some(element) = elements.get_mut(*index) {
                *element = Value::Null;
            }
        }
        (PathSegment::Name(name), Value::Object(fields)) => {
            fields.shift_remove(name.as_ref());
        }
        (PathSegment::Key(key), Value::Object(fields)) => {
            fields.shift_remove(key);
        }
        _ => {}
    }
}
