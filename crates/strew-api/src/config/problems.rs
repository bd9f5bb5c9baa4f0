//! The problems of one configuration document, with their places.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::field::{FieldError, FieldPath};
use crate::read::{Diagnostic, Locator, Origin, RawSchema, Sources};

/// Problems shown of one document: each place costs a look at its text. What is beyond is counted.
const DIAGNOSTICS_MAX: usize = 1000;

/// The problems of a document so far.
pub(super) struct Problems<'a> {
    locator: Locator<'a>,
    origin: &'a Origin,
    /// What the document is, for people: `KubeSchedulerConfiguration`.
    label: &'static str,
    found: Vec<Diagnostic>,
    n_left_out: usize,
    /// Fields whose value could not be read; they get no further errors.
    unread: Vec<FieldPath>,
    /// What the user should know of how it was read.
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

    /// A broken rule of kube-scheduler's, in its words.
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

    /// Any other mistake, at the value of `path`.
    pub(super) fn at(&mut self, path: FieldPath, diagnostic: Diagnostic) {
        if self.is_unread(&path) || self.is_full() {
            return;
        }
        let place = self.locator.place(self.origin, &path);
        let diagnostic = diagnostic.about(self.label).in_field(path).at(place);
        self.found.push(diagnostic);
    }

    /// Whether one more problem can only be counted, which is done.
    fn is_full(&mut self) -> bool {
        let is_full = self.found.len() >= DIAGNOSTICS_MAX;
        self.n_left_out += usize::from(is_full);
        is_full
    }

    fn is_unread(&self, path: &FieldPath) -> bool {
        let mut unread = self.unread.iter();
        unread.any(|unread| path.steps().starts_with(unread.steps()))
    }

    /// Decodes the value at `path` of the document. What can't be read is reported and left out.
    pub(super) fn decode<T: JsonSchema + DeserializeOwned + Default>(
        &mut self,
        mut value: Value,
        path: &FieldPath,
    ) -> T {
        let schema = RawSchema::of::<T>();
        // Leaving out can't end in a fault anew, but a loop has a bound.
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
            // The check let through what the decoder refuses: ours to mend, but never to hide.
            let message = format!("can't be read: {error}");
            self.at(path.clone(), Diagnostic::error("undecodable", message));
            T::default()
        })
    }

    /// All problems in the order of their places, or none.
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

/// Advice on fields of the past.
fn field_help(path: &FieldPath) -> Option<&'static str> {
    let name = path.to_string();
    name.ends_with(".disableDefaultConstraints").then_some(
        "it is a field of v1beta1: in v1 write `defaultingType: List` without defaultConstraints",
    )
}

/// Takes the value at `path` away; an element of a list becomes nothing, so that the others keep their places.
fn leave_out(value: &mut Value, path: &FieldPath) {
    use crate::field::Step;
    let Some((last, way)) = path.steps().split_last() else {
        *value = Value::Object(serde_json::Map::new());
        return;
    };
    let mut holder = value;
    for step in way {
        let next = match step {
            Step::Index(index) => holder.get_mut(*index),
            Step::Name(name) => holder.get_mut(name.as_ref()),
            Step::Key(key) => holder.get_mut(key.as_str()),
        };
        let Some(next) = next else { return };
        holder = next;
    }
    match (last, holder) {
        (Step::Index(index), Value::Array(elements)) => {
            if let Some(element) = elements.get_mut(*index) {
                *element = Value::Null;
            }
        }
        (Step::Name(name), Value::Object(fields)) => {
            fields.shift_remove(name.as_ref());
        }
        (Step::Key(key), Value::Object(fields)) => {
            fields.shift_remove(key);
        }
        _ => {}
    }
}
