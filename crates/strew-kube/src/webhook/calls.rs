//! Reviews that wait for the loop's answer.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_api::workloadspread::review::Decision;
use strew_runtime::CallId;
use strew_runtime::admission::Call;
use tokio::sync::{mpsc, oneshot};

/// The answer to a call.
pub(super) type Answer = Result<Decision, NotTaken>;

/// Why a review is not taken.
pub(super) enum NotTaken {
    /// Too many of its namespace wait.
    Crowded,
    /// It may change the ledger of a WorkloadSpread, and it is not known yet that its user has the right to what is done.
    RightUnknown(Box<Call>),
}

/// A review that is to be answered.
pub(super) struct Ask {
    pub(super) id: CallId,
    pub(super) call: Box<Call>,
    /// Whether its user is known to have the right to what is done.
    pub(super) is_permitted: bool,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// What connections send to the loop.
pub(super) enum CallEvent {
    /// A review is to be answered.
    Ask(Ask),
    /// The API server no longer waits for the answer to this call.
    GiveUp(CallId),
}

/// Tells the loop, when dropped before the answer, that the connection was closed.
pub(super) struct Waiting {
    call: CallId,
    to_decider: mpsc::Sender<CallEvent>,
    is_answered: bool,
}

impl Waiting {
    pub(super) fn new(call: CallId, to_decider: mpsc::Sender<CallEvent>) -> Self {
        Self {
            call,
            to_decider,
            is_answered: false,
        }
    }

    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let event = CallEvent::GiveUp(self.call);
        if let Err(mpsc::error::TrySendError::Full(event)) = self.to_decider.try_send(event) {
            // The loop must know: a deletion without a waiting client must not be counted after its pod is gone.
            let channel = self.to_decider.clone();
            tokio::spawn(async move {
                // The loop has ended.
                let _ = channel.send(event).await;
            });
        }
    }
}

/// A connection that waits, and the namespace that it asks about.
struct Connection {
    answer: oneshot::Sender<Answer>,
    namespace: Arc<str>,
}

/// The connections of calls that are not answered.
#[derive(Default)]
pub(super) struct Connections(FxHashMap<CallId, Connection>);

impl Connections {
    pub(super) fn put(
        &mut self,
        call: CallId,
        namespace: Arc<str>,
        answer: oneshot::Sender<Answer>,
    ) {
        self.0.insert(call, Connection { answer, namespace });
    }

    /// The namespace of a call that waits.
    pub(super) fn namespace(&self, call: CallId) -> Option<Arc<str>> {
        let connection = self.0.get(&call)?;
        Some(Arc::clone(&connection.namespace))
    }

    pub(super) fn reply(&mut self, call: CallId, answer: Answer) {
        if let Some(connection) = self.0.remove(&call) {
            // The client may have closed the connection.
            drop(connection.answer.send(answer));
        }
    }

    pub(super) fn give_up(&mut self, call: CallId) {
        self.0.remove(&call);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
