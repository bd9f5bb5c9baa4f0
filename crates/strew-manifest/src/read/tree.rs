//! What following a path into a document returns, for both formats.

use super::source::Span;

/// The value at the end of a path, or the last one found on the way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// Its key, if it is in an object.
    pub(super) key: Option<Span>,
    /// The value itself; for a collection, its beginning.
    pub(super) value: Span,
    /// True if it is an object or a list.
    pub(super) is_collection: bool,
    /// True if the whole path was found.
    pub(super) is_complete: bool,
}

/// Which of several equal keys is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    /// The first.
    First,
    /// The last, whose value counts.
    Last,
}

impl Found {
    /// The bytes to show: a scalar itself, a collection by its key.
    pub(super) fn shown(self) -> Span {
        match self.key {
            Some(key) if self.is_collection || !self.is_complete || self.value.is_empty() => key,
            _ => self.value,
        }
    }

    /// The key, if the field itself is meant.
    pub(super) fn shown_key(self) -> Span {
        self.key.unwrap_or(self.value)
    }
}
