//! Requests of the registration: the Lease of the replicas and the webhook configuration.

use serde_json::{Value, json};
use strew_model::time::Span;
use strew_wire::request::{Answer, Request, Resource, Verb};
use strew_wire::workloadspread::registration::NAME;

use super::replicas::LEASE;

/// The time limit for an answer: shorter than a replica counts as ready without a renewal.
pub const ANSWER_WITHIN: Span = Span::from_secs(3);

/// Reads the configuration.
pub(super) fn configuration() -> Request {
    let resource = Resource::MUTATING_WEBHOOKS;
    Request::of(Verb::Get, resource, ("", NAME), Value::Null)
}

/// Changes the configuration by a JSON patch.
pub(super) fn change(patch: Value) -> Request {
    let resource = Resource::MUTATING_WEBHOOKS;
    Request::of(Verb::JsonPatch, resource, ("", NAME), patch)
}

/// Reads the Lease of the replicas.
pub(super) fn replicas(namespace: &str) -> Request {
    let lease = (namespace, LEASE);
    Request::of(Verb::Get, Resource::LEASES, lease, Value::Null)
}

/// Changes annotations of the Lease by a merge patch.
pub(super) fn annotate(namespace: &str, patch: Value) -> Request {
    let lease = (namespace, LEASE);
    Request::of(Verb::MergePatch, Resource::LEASES, lease, patch)
}

/// Creates the Lease with the annotations of a merge patch.
pub(super) fn create(namespace: &str, patch: &Value) -> Request {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": LEASE,
            "namespace": namespace,
            "annotations": patch["metadata"]["annotations"],
        },
    });
    Request::of(Verb::Create, Resource::LEASES, (namespace, LEASE), lease)
}

/// The object of an answer; `null` if it does not exist.
///
/// # Errors
/// Every other answer.
pub(super) fn found(answer: &Answer) -> Result<&Value, &Answer> {
    match answer.code() {
        Some(404) => Ok(&Value::Null),
        _ => answer.object().ok_or(answer),
    }
}
