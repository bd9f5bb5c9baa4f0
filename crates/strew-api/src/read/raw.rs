//! Documents that are no Kubernetes objects, such as a scheduler's configuration: the same texts, checks and places,
//! another owner.

use schemars::JsonSchema;
use serde_json::Value;

use super::check::{FaultKind, check};
use super::diagnostic::Diagnostic;
use super::document::{Format, Origin};
use super::json;
use super::nearest::nearest;
use super::schema::{Schema, Shape};
use super::source::Sources;
use super::yaml;
use crate::field::FieldPath;

/// A document as its text gives it.
#[derive(Debug)]
pub(crate) struct RawDocument {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// The document, or the item of a list, at `origin`; what is wrong with its text was said when it was first read.
pub(crate) fn document_at(sources: &Sources, origin: &Origin) -> Option<RawDocument> {
    let text = sources.file(origin.file).text();
    let span = origin.document.span;
    let mut value = match origin.document.format {
        Format::Yaml => yaml::compose(text, span).ok()?.root.to_value(),
        Format::Json => json::documents(text, span).next()?.ok()?.value,
    };
    for item in &origin.items {
        value = value.get_mut("items")?.get_mut(*item as usize)?.take();
    }
    let origin = origin.clone();
    Some(RawDocument { value, origin })
}

/// What a document of type `T` may hold.
#[derive(Debug)]
pub(crate) struct RawSchema(Schema);

/// A field that can't be read.
#[derive(Debug)]
pub(crate) struct RawFault {
    pub(crate) path: FieldPath,
    /// No such field; else a value of another type.
    pub(crate) is_unknown: bool,
    /// The field that was probably meant.
    pub(crate) meant: Option<FieldPath>,
    /// What to say of it, without its place.
    pub(crate) diagnostic: Diagnostic,
}

impl RawSchema {
    pub(crate) fn of<T: JsonSchema>() -> Self {
        Self(Schema::of::<T>())
    }

    /// Finds all faults of `value`; without faults it can be decoded.
    pub(crate) fn check(&self, value: &mut Value) -> Vec<RawFault> {
        let faults = check(&self.0, value).into_iter();
        faults
            .map(|fault| {
                let diagnostic = fault.kind.diagnostic(&self.0);
                let meant = match &fault.kind {
                    FaultKind::Unknown { name, parent } => match self.0.shape(*parent) {
                        Shape::Object(fields) => nearest(name, fields.names())
                            .map(|meant| fault.path.parent().child_owned(meant.to_owned())),
                        _ => None,
                    },
                    _ => None,
                };
                RawFault {
                    is_unknown: matches!(fault.kind, FaultKind::Unknown { .. }),
                    path: fault.path,
                    meant,
                    diagnostic,
                }
            })
            .collect()
    }
}
