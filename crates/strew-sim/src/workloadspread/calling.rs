//! The requests of the API server to a webhook, and its reaction to the answer; the messages are kube-apiserver's.
//!
//! Source: spec/workloadspread §4.1, §4.7.

use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::ApiError;
use strew_apiserver::object::{Object, Pod};
use strew_wire::workloadspread::review::{Decision, Review};

/// What an admission request is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// A pod that is created.
    Create(&'a Arc<Pod>),
    /// A pod that is deleted.
    Delete(&'a Arc<Pod>),
}

/// A registration of the webhook.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hook {
    name: &'static str,
    path: &'static str,
}

impl Hook {
    /// Creations of pods.
    pub(super) const CREATE: Self = Self {
        name: "mpod.kb.io",
        path: "mutate-pod",
    };
    /// Deletions of pods.
    const DELETE: Self = Self {
        name: "vpod.kb.io",
        path: "validate-pod",
    };
    /// Creations and updates of WorkloadSpreads.
    pub(crate) const SPREAD: Self = Self {
        name: "vworkloadspread.kb.io",
        path: "validate-apps-kruise-io-workloadspread",
    };

    pub(super) fn failed(self, why: &str) -> ApiError {
        let Self { name, path } = self;
        ApiError::Internal(
            format!(
                "Internal error occurred: failed calling webhook {name:?}: failed to call webhook: Post \
                 \"https://strew-webhook.strew-system.svc:443/{path}?timeout=10s\": {why}"
            )
            .into(),
        )
    }

    /// The error if no replica is alive.
    pub(crate) fn unreachable(self) -> ApiError {
        self.failed("dial tcp: connect: connection refused")
    }

    /// The error if the webhook refuses the request.
    pub(crate) fn denied(self, message: &str) -> ApiError {
        let name = self.name;
        ApiError::Internal(
            format!("admission webhook {name:?} denied the request: {message}").into(),
        )
    }
}

/// Go's message for an exceeded deadline.
pub(super) const TIMED_OUT: &str = "context deadline exceeded";

pub(super) fn patch_of(hook: Hook, decision: Decision) -> Result<Option<Value>, ApiError> {
    match decision.refusal {
        Some((_, message)) => Err(hook.denied(&message)),
        None => Ok(decision.patch),
    }
}

/// The admission review that the API server sends.
pub(super) fn review_of(asked: Asked<'_>, number: u64) -> (Hook, Review) {
    let (hook, name) = match asked {
        Asked::Create(pod) => (Hook::CREATE, &pod.meta.name),
        Asked::Delete(pod) => (Hook::DELETE, &pod.meta.name),
    };
    let json = |pod: &Arc<Pod>| Object::Pod(Arc::clone(pod)).to_json();
    let mut request = json!({
        "uid": format!("call-{number}"),
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": &*name.namespace,
        "name": &*name.name,
        "operation": "CREATE",
        "dryRun": false,
    });
    match asked {
        Asked::Create(pod) => request["object"] = json(pod),
        Asked::Delete(pod) => {
            request["operation"] = "DELETE".into();
            request["oldObject"] = json(pod);
        }
    }
    let review = Review::read(&mut json!({ "request": request }));
    (hook, review.expect("it is a review about a pod"))
}
