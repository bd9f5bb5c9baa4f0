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

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is no list of JSON patch operations.
    #[error("not a list of JSON patch operations: {reason}")]
    NotOperations {
        /// The decoder's error.
        reason: String,
    },
    /// An operation of a JSON patch fails, so none is applied.
    #[error("operation {index} at {pointer:?}: {failure}")]
    Operation {
        /// Its index, from 0.
        index: usize,
        /// Its path, a JSON pointer.
        pointer: String,
        /// The reason.
        failure: OperationFailure,
    },
    /// A strategic merge patch is invalid.
    #[error("{}: {problem}", if path.steps().is_empty() { "the patch".to_owned() } else { path.to_string() })]
    Strategic {
        /// The path in the patch.
        path: FieldPath,
        /// The fault.
        problem: Problem,
    },
}

/// Why an operation of a JSON patch fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OperationFailure {
    /// A `test` found another value.
    #[error("the value is another than the one tested for")]
    TestFailed,
    /// There is no value at `from`.
    #[error("there is nothing at `from`")]
    NoSource,
    /// There is no value at `path`, or its parent is no object or list.
    #[error("there is nothing at `path`")]
    NoTarget,
    /// A value would be moved into itself.
    #[error("a value cannot be moved into itself")]
    IntoItself,
}

/// An error of a strategic merge patch, in the words of Kubernetes' library.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Patch and object must be maps.
    #[error("expected an object")]
    NotAnObject,
    /// A list is expected.
    #[error("expected a list")]
    NotAList,
    /// An element of a merged list has no value for its key.
    #[error("does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The key.
        key: &'static str,
    },
    /// `$patch` has an unknown value, or `merge`.
    #[error("unknown patch type: {directive}")]
    UnknownDirective {
        /// The value, as JSON.
        directive: String,
    },
    /// `$retainKeys` is no list of names, or lacks a field of the patch.
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
    /// A list has elements of different types.
    #[error("expected elements of one type")]
    MixedList,
}

/// Applies a JSON patch, all of it or nothing.
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

/// The JSON patch that turns `before` into `after`, for the answer of an admission webhook.
pub fn json_diff(before: &Value, after: &Value) -> Value {
    // A list of operations is plain data: it always has a JSON form.
    serde_json::to_value(::json_patch::diff(before, after)).unwrap_or_default()
}

/// Applies a JSON merge patch: objects are merged, `null` deletes, other values replace.
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
