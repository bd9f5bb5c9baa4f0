//! Partial updates of a stored object: the API server's `PATCH` and kubectl's `apply`.
//!
//! | function | content type |
//! |---|---|
//! | [`json_patch()`] | `application/json-patch+json` (RFC 6902) |
//! | [`merge_patch`] | `application/merge-patch+json` (RFC 7386) |
//! | [`strategic::patch`] | `application/strategic-merge-patch+json` |
//! | [`apply::apply`] | client-side: last applied, live and new object |
//!
//! All take and return JSON. None checks whether the result is a valid object.

pub mod apply;
mod lists;
pub mod schema;
pub mod strategic;

use ::json_patch::{Patch, PatchErrorKind};
use serde::Deserialize;
use serde_json::Value;

use crate::field::FieldPath;
pub use schema::Schema;

/// Why a patch cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no list of JSON patch operations.
    #[error("not a list of JSON patch operations: {reason}")]
    NotOperations {
        /// What the reader says.
        reason: String,
    },
    /// One operation of a JSON patch fails, so none is done.
    #[error("operation {index} at {pointer:?}: {failure}")]
    Operation {
        /// Which, from 0.
        index: usize,
        /// Its path, a JSON pointer.
        pointer: String,
        /// Why.
        failure: OperationFailure,
    },
    /// A strategic merge patch that says what cannot be.
    #[error("{}: {problem}", if path.steps().is_empty() { "the patch".to_owned() } else { path.to_string() })]
    Strategic {
        /// Where in the patch.
        path: FieldPath,
        /// What.
        problem: Problem,
    },
}

/// Why an operation of a JSON patch fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OperationFailure {
    /// A `test` did not find its value.
    #[error("the value is another than the one tested for")]
    TestFailed,
    /// Nothing is at `from`.
    #[error("there is nothing at `from`")]
    NoSource,
    /// Nothing is at `path`, or what should hold it is no object or list.
    #[error("there is nothing at `path`")]
    NoTarget,
    /// A value would be moved into itself.
    #[error("a value cannot be moved into itself")]
    IntoItself,
}

/// What is wrong with a strategic merge patch, in the words of its library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Patch and object must be maps.
    #[error("expected an object")]
    NotAnObject,
    /// A list is expected.
    #[error("expected a list")]
    NotAList,
    /// An element of a list that is merged has no value for its key.
    #[error("does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The key.
        key: &'static str,
    },
    /// `$patch` says something unknown, or `merge`.
    #[error("unknown patch type: {directive}")]
    UnknownDirective {
        /// What it says, as JSON.
        directive: String,
    },
    /// `$retainKeys` is no list of names, or leaves out a field of the patch.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// `$deleteFromPrimitiveList` is no list.
    #[error("invalid patch format of primitive list")]
    PrimitiveList,
    /// `$setElementOrder` is no list.
    #[error("invalid patch format of setElementOrder list")]
    ElementOrderList,
    /// A list of the patch has elements that `$setElementOrder` lacks, or has in another order.
    #[error("the order in patch list doesn't match $setElementOrder list")]
    ElementOrder,
    /// A list has elements of several kinds.
    #[error("expected elements of one type")]
    MixedList,
}

/// Carries out a JSON patch, all of it or nothing.
///
/// # Errors
/// [`PatchError::NotOperations`], or the first operation that fails.
pub fn json_patch(document: &Value, patch: &Value) -> Result<Value, PatchError> {
    let patch = Patch::deserialize(patch).map_err(|error| PatchError::NotOperations {
        reason: error.to_string(),
    })?;
    let mut patched = document.clone();
    ::json_patch::patch(&mut patched, &patch).map_err(|error| PatchError::Operation {
        index: error.operation,
        pointer: error.path.to_string(),
        failure: match error.kind {
            PatchErrorKind::TestFailed => OperationFailure::TestFailed,
            PatchErrorKind::InvalidFromPointer => OperationFailure::NoSource,
            PatchErrorKind::CannotMoveInsideItself => OperationFailure::IntoItself,
            _ => OperationFailure::NoTarget,
        },
    })?;
    Ok(patched)
}

/// The JSON patch that makes `after` of `before`: what an admission webhook answers.
pub fn json_diff(before: &Value, after: &Value) -> Value {
    // A list of operations is plain data: it always has a JSON form.
    serde_json::to_value(::json_patch::diff(before, after)).unwrap_or_default()
}

/// Carries out a JSON merge patch: objects are merged, `null` deletes, all else replaces.
#[must_use]
pub fn merge_patch(document: &Value, patch: &Value) -> Value {
    let mut patched = document.clone();
    ::json_patch::merge(&mut patched, patch);
    patched
}

#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests;
