//! Documents that are no Kubernetes objects, such as a scheduler's configuration, with the same checks and places.

use serde_json::Value;

use super::check::{FaultKind, check, describe};
use super::diagnostic::Diagnostic;
use super::document::{Format, Origin};
use super::fields::FieldTable;
use super::head::{Head, TypeFault};
use super::kind::{Kind, KubeObject, OtherObject};
use super::locator::Locator;
use super::meaning::{Meaning, meaning};
use super::schema::Schema;
use super::source::{Sources, Span};
use super::yaml;
use crate::field::FieldPath;
use crate::printable::make_printable;

/// A document as its text gives it.
#[derive(Debug)]
pub struct RawDocument {
    /// Its content; keys keep their order.
    pub value: Value,
    /// Its place.
    pub origin: Origin,
}

/// The value of a YAML document that is part of the program; `None` if it cannot be read.
pub fn value_of_yaml(text: &str) -> Option<Value> {
    let document = yaml::compose(text, Span::new(0, text.len())).ok()?;
    Some(document.root.to_value())
}

/// The document, or the item of a list, at `origin`; errors of its text were reported when it was first read. For
/// several objects, ask a [`Locator`] for their values.
pub fn document_at(sources: &Sources, origin: &Origin) -> Option<RawDocument> {
    let value = Locator::new(sources).value(origin)?;
    let origin = origin.clone();
    Some(RawDocument { value, origin })
}

/// As [`document_at`], for documents that Kubernetes never reads: `y` and `n` are texts in them, as in YAML 1.2, so
/// that `n` can be a name.
pub fn document_with_letters(sources: &Sources, origin: &Origin) -> Option<RawDocument> {
    if origin.document.format == Format::Json {
        return document_at(sources, origin);
    }
    let text = sources.file(origin.file).text();
    let document = yaml::compose(text, origin.document.span).ok()?;
    let mut value = document
        .root
        .item(&origin.items)?
        .to_value_with_letters(text);
    make_printable(&mut value);
    let origin = origin.clone();
    Some(RawDocument { value, origin })
}

/// The fields of a document.
#[derive(Debug, Clone, Copy)]
pub struct RawSchema(Schema);

/// A field that cannot be read.
#[derive(Debug)]
pub struct RawFault {
    /// The field, from the top of the value that was checked.
    pub path: FieldPath,
    /// True: there is no such field; false: its value has another type.
    pub is_unknown: bool,
    /// The field that was probably meant.
    pub meant: Option<FieldPath>,
    /// The diagnostic, without a place.
    pub diagnostic: Diagnostic,
}

impl RawSchema {
    /// The schema of a kind (`v1 Pod`), or of a `LabelSelector`.
    ///
    /// # Panics
    /// There is no such kind.
    pub fn of(name: &str) -> Self {
        Self(Schema::of(name))
    }

    /// The schema with this name in another table.
    ///
    /// # Panics
    /// The table has no such schema.
    pub fn of_table(table: &'static FieldTable, name: &str) -> Self {
        Self(Schema::of_table(table, name))
    }

    /// Finds all faults of `value`; a value without faults can be decoded.
    pub fn check(&self, value: &mut Value) -> Vec<RawFault> {
        faults_of(self.0, value)
    }
}

fn faults_of(schema: Schema, value: &mut Value) -> Vec<RawFault> {
    let faults = check(schema, value).into_iter();
    faults
        .map(|fault| RawFault {
            is_unknown: matches!(fault.kind, FaultKind::Unknown { .. }),
            meant: fault
                .kind
                .meant(schema)
                .map(|meant| fault.path.parent().child_owned(meant.to_owned())),
            diagnostic: fault.kind.diagnostic(schema),
            path: fault.path,
        })
        .collect()
}

/// An object inside another document, such as one that a scenario applies later: checks it by the schema of its kind
/// and decodes it. Objects of unknown kinds are accepted as they are.
///
/// # Errors
/// All faults; their paths begin at `value`.
pub fn embedded(mut value: Value) -> Result<KubeObject, Vec<RawFault>> {
    let Some(fields) = value.as_object() else {
        let message = format!("expected a Kubernetes object, found {}", describe(&value));
        return Err(vec![fault_at(
            FieldPath::root(),
            Diagnostic::error("no-object", message),
        )]);
    };
    let head = match Head::of(fields, None) {
        Ok(head) => head,
        Err(faults) => return Err(faults.into_iter().map(type_fault).collect()),
    };
    let meaning = meaning(&head.api_version, &head.kind);
    if let Some((path, error)) = meaning.mistake(&head.api_version, &head.kind) {
        return Err(vec![fault_at(path, error)]);
    }
    let Meaning::Known(known) = meaning else {
        return Ok(KubeObject::Other(Box::new(OtherObject::of(head, fields))));
    };
    let faults = faults_of(known.schema(), &mut value);
    if !faults.is_empty() {
        return Err(faults);
    }
    known.decode(value).map_err(|error| {
        let message = format!("can't be read as a {}: {error}", known.name());
        let error = Diagnostic::error("undecodable", message);
        vec![fault_at(FieldPath::root(), error)]
    })
}

/// The faults of a partial object; none for unknown kinds. Without an `apiVersion` the kind alone decides.
pub fn check_partial(value: &Value) -> Vec<RawFault> {
    let text = |name: &str| value[name].as_str().unwrap_or_default();
    let known = Kind::ALL.iter().find(|known| {
        let version = text("apiVersion");
        known.name() == text("kind") && (version.is_empty() || version == known.api_version())
    });
    match known {
        Some(known) => faults_of(known.schema(), &mut value.clone()),
        None => Vec::new(),
    }
}

fn type_fault(fault: TypeFault) -> RawFault {
    let (name, diagnostic) = match fault {
        TypeFault::Missing(name) => {
            let message = format!("{name} is missing");
            (name, Diagnostic::error("no-type", message))
        }
        TypeFault::Mistyped(name, message) => (name, Diagnostic::error("wrong-type", message)),
    };
    fault_at(FieldPath::root().child(name), diagnostic)
}

fn fault_at(path: FieldPath, diagnostic: Diagnostic) -> RawFault {
    RawFault {
        path,
        is_unknown: false,
        meant: None,
        diagnostic,
    }
}
