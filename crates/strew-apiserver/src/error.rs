//! Errors of requests, and options of deletions.

use std::sync::Arc;

use strew_model::time::Span;

use crate::object::Key;

/// How an object is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Only the object with this uid.
    pub uid: Option<Arc<str>>,
    /// `gracePeriodSeconds`; `None`: what the pod's spec says.
    pub grace: Option<Span>,
    /// What becomes of what it owns.
    pub propagation: Propagation,
}

impl DeleteOptions {
    /// The object with this uid, else by the defaults.
    pub fn of_uid(uid: &Arc<str>) -> Self {
        Self {
            uid: Some(Arc::clone(uid)),
            ..Self::default()
        }
    }
}

/// `propagationPolicy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Propagation {
    /// The owner goes at once, what it owned follows.
    #[default]
    Background,
    /// What blocks the owner goes first.
    Foreground,
    /// What it owned stays, without an owner.
    Orphan,
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 404
    #[error("{0} not found")]
    NotFound(Key),
    /// 409, reason AlreadyExists
    #[error("{0} already exists")]
    AlreadyExists(Key),
    /// 409, reason Conflict
    #[error("{0}")]
    Conflict(Arc<str>),
    /// 422
    #[error("{0}")]
    Invalid(Arc<str>),
    /// 403
    #[error("{0}")]
    Forbidden(Arc<str>),
    /// 429
    #[error("{message}")]
    TooManyRequests {
        /// The server's sentence.
        message: Arc<str>,
        /// Why, in more words; empty: no more is said.
        cause: Arc<str>,
        /// How long to wait.
        retry_after: Option<Span>,
    },
    /// 500
    #[error("{0}")]
    Internal(Arc<str>),
    /// No answer came, or the asking component has just died: nobody knows whether it was carried out.
    #[error("no answer")]
    Lost,
    /// No answer came yet: the request is under way, and what becomes of it will be told. Who asked does nothing else
    /// meanwhile but ask for what was to be asked for at the same time.
    #[error("no answer yet")]
    Later,
}

impl ApiError {
    /// Whether the result of the request is unknown.
    pub fn is_no_answer(&self) -> bool {
        matches!(self, Self::Lost | Self::Later)
    }

    /// The sentence of a conflict of versions.
    pub fn stale(key: &Key) -> Self {
        Self::Conflict(
            format!(
                "Operation cannot be fulfilled on {key}: the object has been modified; please apply your changes to \
                 the latest version and try again"
            )
            .into(),
        )
    }
}
