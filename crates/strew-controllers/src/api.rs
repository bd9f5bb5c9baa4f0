//! What a component may ask of the API server, and what it may be answered.

use std::sync::Arc;

use strew_model::time::{Instant, Span};

use crate::object::{Key, Name, Object};

/// The API server, as a component sees it.
///
/// Every write is one request: it is carried out, or refused, whole. An object that is written names the version that it
/// was made from ([`Meta::version`](crate::object::Meta)); another version in the store is a conflict.
pub trait Api {
    /// Creates an object. Its name is made from `generate_name` if it has none; uid, version and time are the server's.
    ///
    /// # Errors
    /// What admission, validation or a quota refuse; a name that is taken. [`ApiError::Later`]: a webhook is being
    /// asked, and the answer will be told.
    fn create(&mut self, object: Object) -> Result<Object, ApiError>;

    /// The requests that were said to be answered later, since the last such question: by these numbers their answers
    /// are told ([`Manager::answered`](crate::Manager::answered)).
    fn under_way(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Writes metadata and spec.
    ///
    /// # Errors
    /// A conflict; no such object; what admission and validation refuse.
    fn update(&mut self, object: Object) -> Result<Object, ApiError>;

    /// Writes the status.
    ///
    /// # Errors
    /// A conflict; no such object.
    fn update_status(&mut self, object: Object) -> Result<Object, ApiError>;

    /// Deletes an object; pods and whatever has finalizers first begin to terminate.
    ///
    /// # Errors
    /// No such object, or another one of this name.
    fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError>;

    /// Asks that a pod goes, if its budgets allow it. Source: spec/controllers §8.2.
    ///
    /// # Errors
    /// The budget does not allow it (429); no such pod.
    fn evict(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError>;

    /// Reads an object as it is now, past any cache.
    fn get(&self, key: &Key) -> Option<Object>;

    /// When the Lease of a node was renewed last; `None`: it has none.
    fn heartbeat(&self, node: &str) -> Option<Instant>;

    /// The nodes whose kubelets do not renew their Leases at present; `None`: nobody keeps count, ask for each node's
    /// [`heartbeat`](Self::heartbeat). A pass over thousands of healthy nodes need not touch them.
    fn silent_nodes(&self) -> Option<Vec<Arc<str>>> {
        None
    }

    /// What the metrics server shows for a HorizontalPodAutoscaler: how much of its request each running pod of the
    /// target uses, in percent; `None`: it has no figures.
    fn utilisation(&self, autoscaler: &Name) -> Option<u32>;

    /// Records an event. Nobody waits for what becomes of it.
    fn record(&mut self, event: Event);
}

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
    /// Whether nobody knows what became of the request.
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

/// Something that happened, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// About which object.
    pub regarding: Key,
    /// Its uid.
    pub uid: Arc<str>,
    /// Whether it is of type Warning, not Normal.
    pub is_warning: bool,
    /// `reason`
    pub reason: &'static str,
    /// The text.
    pub note: Arc<str>,
    /// Who tells.
    pub source: &'static str,
}

impl Event {
    /// An event of type Normal.
    pub fn normal(
        source: &'static str,
        object: &Object,
        reason: &'static str,
        note: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            regarding: object.key(),
            uid: Arc::clone(&object.meta().uid),
            is_warning: false,
            reason,
            note: note.into(),
            source,
        }
    }

    /// An event of type Warning.
    pub fn warning(
        source: &'static str,
        object: &Object,
        reason: &'static str,
        note: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            is_warning: true,
            ..Self::normal(source, object, reason, note)
        }
    }
}
