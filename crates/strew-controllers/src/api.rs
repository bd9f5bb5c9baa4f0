//! The API server's interface for controllers: the trait [`Api`] and its errors.

use std::sync::Arc;

use strew_apiserver::object::{Key, Name, Object};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_model::time::Instant;

/// The API server, as a component sees it.
///
/// Every write is one request: it is carried out, or refused, whole. An object that is written names the version that it
/// was made from ([`Meta::version`](strew_apiserver::object::Meta)); another version in the store is a conflict.
pub trait Api {
    /// Creates an object. Its name is made from `generate_name` if it has none; uid, version and time are the server's.
    ///
    /// # Errors
    /// What admission, validation or a quota refuse; a name that is taken. [`ApiError::Later`]: the request
    /// is on its way, and the answer will be told.
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

    /// Records an event. The result is not awaited.
    fn record(&mut self, event: Event);
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
    /// The reporting controller.
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
