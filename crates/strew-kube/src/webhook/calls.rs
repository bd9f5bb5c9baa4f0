//! Reviews that wait for the loop's decision.

use std::net::IpAddr;
use std::time::Duration;

use rustc_hash::FxHashMap;
use strew_manifest::kruise::spec::TargetReference;
use strew_runtime::CallId;
use strew_runtime::admission::Call;
use strew_wire::workloadspread::review::Decision;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// How long a review waits until the cluster is known; less than the registered timeout, so that the refusal has its
/// reason.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// The answer to a call.
pub(super) type Answer = Result<Decision, NotTaken>;

/// Why the loop does not take a review.
pub(super) enum NotTaken {
    /// Too many reviews of its peer and namespace wait.
    Crowded,
    /// It may change the ledger of a WorkloadSpread, and the user's right to the operation is not checked yet.
    RightUnknown(Box<Call>),
}

/// A review for the loop.
pub(super) struct Ask {
    pub(super) id: CallId,
    pub(super) call: Box<Call>,
    /// The client's address.
    pub(super) peer: IpAddr,
    /// True if the user is known to have the right to the operation.
    pub(super) is_permitted: bool,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// Why a review has no decision.
pub(super) enum Unanswered {
    /// The cluster is not known yet.
    NotReady,
    /// Too many reviews of its peer and namespace wait.
    Crowded,
    /// The user's right could not be checked.
    RightUnknown(String),
    /// The process ends.
    Ends,
}

/// A question of validation: which WorkloadSpreads may have pods of this target?
pub(super) struct AskRivals {
    pub(super) namespace: String,
    pub(super) target: TargetReference,
    pub(super) answer: oneshot::Sender<Vec<Box<str>>>,
}

/// A message of a connection to the loop.
pub(super) enum CallEvent {
    /// A question of validation.
    Rivals(AskRivals),
    /// A review to answer.
    Ask(Ask),
    /// The API server has stopped waiting for the answer to this call.
    GiveUp(CallId),
}

/// The way to the loop.
#[derive(Clone)]
pub(super) struct ToDecider {
    pub(super) events: mpsc::Sender<CallEvent>,
    /// True once the cluster is known.
    pub(super) ready: watch::Receiver<bool>,
}

impl ToDecider {
    /// Waits a little until the cluster is known.
    pub(super) async fn ready(&self) -> Result<(), Unanswered> {
        let mut ready = self.ready.clone();
        match timeout(READY_WITHIN, ready.wait_for(|ready| *ready)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(Unanswered::Ends),
            Err(_) => Err(Unanswered::NotReady),
        }
    }

    /// The names of WorkloadSpreads that may have pods of this target.
    pub(super) async fn rivals(
        &self,
        namespace: &str,
        target: &TargetReference,
    ) -> Result<Vec<Box<str>>, Unanswered> {
        self.ready().await?;
        let (answer, rivals) = oneshot::channel();
        let asked = AskRivals {
            namespace: namespace.to_owned(),
            target: target.clone(),
            answer,
        };
        let sent = self.events.send(CallEvent::Rivals(asked)).await;
        sent.map_err(|_| Unanswered::Ends)?;
        rivals.await.map_err(|_| Unanswered::Ends)
    }
}

/// If it is dropped before the answer, it reports to the loop that the connection was closed.
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

/// The connections of open calls.
#[derive(Default)]
pub(super) struct Connections(FxHashMap<CallId, oneshot::Sender<Answer>>);

impl Connections {
    pub(super) fn put(&mut self, call: CallId, answer: oneshot::Sender<Answer>) {
        self.0.insert(call, answer);
    }

    pub(super) fn reply(&mut self, call: CallId, answer: Answer) {
        if let Some(connection) = self.0.remove(&call) {
            // The client may have closed the connection.
            drop(connection.send(answer));
        }
    }

    pub(super) fn give_up(&mut self, call: CallId) {
        self.0.remove(&call);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
