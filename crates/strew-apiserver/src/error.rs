//! Errors of requests, and options of deletions.

use std::sync::Arc;

use strew_model::time::Span;

use crate::object::{Key, Meta};

/// The finalizer of an owner that waits for its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer of an owner whose dependents should stay.
pub const ORPHAN: &str = "orphan";

/// The options of a deletion.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Only the object with this uid.
    pub uid: Option<Arc<str>>,
    /// `gracePeriodSeconds`; `None`: as the pod's spec says.
    pub grace: Option<Span>,
    /// What happens to the objects that it owns; `None`: what an earlier deletion asked for, else as
    /// [`Propagation::Background`].
    pub propagation: Option<Propagation>,
}

impl DeleteOptions {
    /// What `kubectl delete` asks for.
    pub const KUBECTL: Self = Self {
        uid: None,
        grace: None,
        propagation: Some(Propagation::Background),
    };

    /// Deletes only the object with this uid; otherwise with defaults.
    pub fn of_uid(uid: &Arc<str>) -> Self {
        Self {
            uid: Some(Arc::clone(uid)),
            ..Self::default()
        }
    }

    /// Gives an object the finalizer that the propagation needs, in the place of the one of an earlier deletion. False
    /// if nothing changes.
    ///
    /// Source: `deletionFinalizersForGarbageCollection` of `k8s.io/apiserver/pkg/registry/generic/registry/store.go`.
    pub fn set_finalizer(&self, meta: &mut Meta) -> bool {
        let Some(propagation) = self.propagation else {
            return false;
        };
        let wanted = propagation.finalizer();
        let stays = |name: &str| Some(name) == wanted || ![FOREGROUND, ORPHAN].contains(&name);
        let kept = meta.finalizers.iter().filter(|name| stays(name));
        let missing = wanted.filter(|wanted| !meta.finalizers.iter().any(|name| name == wanted));
        let after: Vec<String> = kept.cloned().chain(missing.map(str::to_owned)).collect();
        let is_changed = after[..] != meta.finalizers[..];
        meta.finalizers = after.into();
        is_changed
    }
}

/// `propagationPolicy`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// The owner is deleted at once, its dependents follow.
    Background,
    /// Dependents that block the owner are deleted first.
    Foreground,
    /// Dependents stay, without the owner.
    Orphan,
}

impl Propagation {
    /// The finalizer that keeps the owner until its dependents are gone or free.
    const fn finalizer(self) -> Option<&'static str> {
        match self {
            Self::Background => None,
            Self::Foreground => Some(FOREGROUND),
            Self::Orphan => Some(ORPHAN),
        }
    }
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
        /// The server's message.
        message: Arc<str>,
        /// The cause in its details; empty if there is none.
        cause: Arc<str>,
        /// How long to wait.
        retry_after: Option<Span>,
    },
    /// 500
    #[error("{0}")]
    Internal(Arc<str>),
    /// No answer came, or the sender has just crashed: whether the request was carried out is unknown.
    #[error("no answer")]
    Lost,
    /// No answer yet: the request was sent, and its answer follows. The sender may only send the other requests of the
    /// same batch meanwhile.
    #[error("no answer yet")]
    Later,
}

impl ApiError {
    /// True if the result of the request is unknown.
    pub fn is_no_answer(&self) -> bool {
        matches!(self, Self::Lost | Self::Later)
    }

    /// A version conflict, with the API server's message.
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
