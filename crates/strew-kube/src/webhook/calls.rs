//! Reviews that wait for the loop's answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::Value;
use strew_api::workloadspread::desk::PodSource;
use strew_api::workloadspread::review::{Decision, Review};
use strew_model::time::Instant;
use strew_workloadspread::admission::RequestId;
use tokio::sync::{mpsc, oneshot};

/// What connections say to the loop.
pub(super) enum Say {
    /// A review is to be answered.
    Ask(Box<Call>),
    /// Nobody waits for the answer to this call any more.
    GiveUp(u64),
}

/// A review, and who waits.
pub(super) struct Call {
    /// Names it, for who gives up.
    pub(super) number: u64,
    pub(super) review: Review,
    /// Of an eviction the pod, if there is one.
    pub(super) pod: Option<Value>,
    /// Stands for the pod in a ledger where its name is not known.
    pub(super) fresh_uid: Arc<str>,
    pub(super) answer: oneshot::Sender<Decision>,
}

/// The one pod that an eviction is about.
pub(super) struct OnePod<'a>(pub(super) Option<&'a Value>);

impl PodSource for OnePod<'_> {
    fn by_uid(&self, _: &str) -> Option<Value> {
        None
    }

    fn by_name(&self, _: &str, _: &str) -> Option<Value> {
        self.0.cloned()
    }
}

/// Tells the loop that nobody waits any more, unless somebody was answered: a connection that closes drops it.
pub(super) struct Waiting {
    number: u64,
    say: mpsc::Sender<Say>,
    is_answered: bool,
}

impl Waiting {
    pub(super) fn new(number: u64, say: mpsc::Sender<Say>) -> Self {
        Self {
            number,
            say,
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
        let say = Say::GiveUp(self.number);
        if let Err(mpsc::error::TrySendError::Full(say)) = self.say.try_send(say) {
            // It must be told: a deletion that nobody waits for must not be counted after its pod is gone.
            let channel = self.say.clone();
            tokio::spawn(async move {
                // The loop has ended.
                let _ = channel.send(say).await;
            });
        }
    }
}

/// A call that the machine has.
pub(super) struct Under {
    pub(super) number: u64,
    pub(super) fresh_uid: Arc<str>,
    pub(super) since: Instant,
    pub(super) answer: oneshot::Sender<Decision>,
}

/// The calls that the machine has, by what it knows them by.
#[derive(Default)]
pub(super) struct Calls {
    by_request: BTreeMap<RequestId, Under>,
    by_number: FxHashMap<u64, RequestId>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.by_request.len()
    }

    pub(super) fn put(&mut self, request: RequestId, under: Under) {
        self.by_number.insert(under.number, request);
        self.by_request.insert(request, under);
    }

    /// A call that was answered.
    pub(super) fn take(&mut self, request: RequestId) -> Option<Under> {
        let under = self.by_request.remove(&request)?;
        self.by_number.remove(&under.number);
        Some(under)
    }

    /// A call that was given up: what the machine knows it by.
    pub(super) fn give_up(&mut self, number: u64) -> Option<RequestId> {
        let request = self.by_number.remove(&number)?;
        self.by_request.remove(&request);
        Some(request)
    }

    pub(super) fn get(&self, request: RequestId) -> Option<&Under> {
        self.by_request.get(&request)
    }
}
