//! The API server's interface for controllers: the trait [`Api`] and its errors.

use std::sync::Arc;

use strew_apiserver::object::{Key, Name, Object};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_model::time::Instant;

/// The API server's interface for a controller.
///
/// Every write is one request, carried out or refused as a whole. A written object names the version that it was made
/// from ([`Meta::version`](strew_apiserver::object::Meta)); if the store has another version, the write is a conflict.
pub trait Api {
    /// Creates an object. Without a name it gets one from `generate_name`; the server sets uid, version and time.
    ///
    /// # Errors
    /// Admission, validation or a quota refuse it, or the name is taken. [`ApiError::Later`]: the request was sent, and
    /// its answer follows.
    fn create(&mut self, object: Object) -> Result<Object, ApiError>;

    /// The numbers of the requests with [`ApiError::Later`] since the last call. Their answers arrive under these
    /// numbers ([`Manager::answered`](crate::Manager::answered)).
    fn under_way(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Writes metadata and spec.
    ///
    /// # Errors
    /// A conflict; no such object; a refusal by admission or validation.
    fn update(&mut self, object: Object) -> Result<Object, ApiError>;

    /// Writes the status.
    ///
    /// # Errors
    /// A conflict; no such object.
    fn update_status(&mut self, object: Object) -> Result<Object, ApiError>;

    /// Deletes an object; pods and objects with finalizers begin to terminate first.
    ///
    /// # Errors
    /// No such object, or its uid differs from the one in the options.
    fn delete(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError>;

    /// Requests the eviction of a pod. Source: spec/controllers §8.2.
    ///
    /// # Errors
    /// A budget does not allow it (429); no such pod.
    fn evict(&mut self, key: &Key, options: &DeleteOptions) -> Result<(), ApiError>;

    /// Reads an object from the store, not from a cache.
    fn get(&self, key: &Key) -> Option<Object>;

    /// When the Lease of a node was last renewed; `None` if it has none.
    fn heartbeat(&self, node: &str) -> Option<Instant>;

    /// The nodes whose kubelets do not renew their Leases at present, in the order of their names, so that a pass over
    /// thousands of healthy nodes need not touch them. `None` if the server does not know: then
    /// [`heartbeat`](Self::heartbeat) tells for each node.
    fn silent_nodes(&self) -> Option<Vec<Arc<str>>> {
        None
    }

    /// The metrics server's figure for a HorizontalPodAutoscaler: how much of its request each running pod of the
    /// target uses, in percent; `None` if there are no figures.
    fn utilisation(&self, autoscaler: &Name) -> Option<u32>;

    /// Records an event. The result is not awaited.
    fn record(&mut self, event: Event);
}

/// An event of the events API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The object that it is about.
    pub regarding: Key,
    /// The object's uid.
    pub uid: Arc<str>,
    /// True: type Warning; false: type Normal.
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
