//! Calls without an answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::time::Instant;
use strew_wire::workloadspread::review::Review;
use strew_workloadspread::admission::RequestId;

use crate::machine::CallId;

/// An API server's call of the webhook.
#[derive(Debug)]
pub struct Call {
    /// The review.
    pub review: Review,
    /// A new UUID, which stands for the pod in a ledger if its name is not known.
    pub fresh_uid: Arc<str>,
    /// True if simulated scheduling may run. Otherwise its answer is "unknown", as beyond the bounds of a pod
    /// ([`bounds`](strew_wire::workloadspread::bounds)).
    pub is_simulated: bool,
}

/// A call without an answer.
pub(super) struct Pending {
    pub(super) call: CallId,
    pub(super) fresh_uid: Arc<str>,
    pub(super) is_simulated: bool,
    pub(super) since: Instant,
}

/// The calls that the machine has, by request and by call.
#[derive(Default)]
pub(super) struct Calls {
    by_request: BTreeMap<RequestId, Pending>,
    by_call: FxHashMap<CallId, RequestId>,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.by_request.len()
    }

    pub(super) fn put(&mut self, request: RequestId, pending: Pending) {
        self.by_call.insert(pending.call, request);
        self.by_request.insert(request, pending);
    }

    /// Removes a call that was answered.
    pub(super) fn take(&mut self, request: RequestId) -> Option<Pending> {
        let pending = self.by_request.remove(&request)?;
        self.by_call.remove(&pending.call);
        Some(pending)
    }

    /// Removes a call that was given up; returns the machine's request.
    pub(super) fn give_up(&mut self, call: CallId) -> Option<RequestId> {
        let request = self.by_call.remove(&call)?;
        self.by_request.remove(&request);
        Some(request)
    }

    pub(super) fn get(&self, request: RequestId) -> Option<&Pending> {
        self.by_request.get(&request)
    }
}
