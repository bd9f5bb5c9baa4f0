//! What the API server sends to a webhook, and what it does with the answer; the messages are kube-apiserver's.
//!
//! Source: spec/workloadspread §4.1, §4.7.

use std::sync::Arc;

use serde_json::{Value, json};
use strew_api::workloadspread::review::{Decision, Review};
use strew_apiserver::ApiError;
use strew_apiserver::object::{Object, Pod};

/// What the API server asks about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// A pod that is to be stored.
    Create(&'a Arc<Pod>),
    /// A pod that is to be deleted.
    Delete(&'a Arc<Pod>),
}

/// A registration of the webhook.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hook {
    name: &'static str,
    path: &'static str,
}

impl Hook {
    /// New pods.
    pub(super) const CREATE: Self = Self {
        name: "mpod.kb.io",
        path: "mutate-pod",
    };
    /// Deletions of pods.
    const DELETE: Self = Self {
        name: "vpod.kb.io",
        path: "validate-pod",
    };
    /// New and changed WorkloadSpreads.
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

    /// No replica is alive.
    pub(crate) fn unreachable(self) -> ApiError {
        self.failed("dial tcp: connect: connection refused")
    }

    /// Refused by the webhook itself.
    pub(crate) fn denied(self, message: &str) -> ApiError {
        let name = self.name;
        ApiError::Internal(
            format!("admission webhook {name:?} denied the request: {message}").into(),
        )
    }
}

/// How Go calls a deadline that has passed.
pub(super) const TIMED_OUT: &str = "context deadline exceeded";

pub(super) fn patch_of(hook: Hook, decision: Decision) -> Result<Option<Value>, ApiError> {
    match decision.refusal {
        Some((_, message)) => Err(hook.denied(&message)),
        None => Ok(decision.patch),
    }
}

/// What the API server sends.
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
