//! Requests of the registration: the Lease of the replicas and the webhook configuration.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use strew_model::time::Span;

use super::configuration;
use super::replicas::LEASE;

/// The first wait after a failed request, which may be just a lost race. Each further wait is twice as long.
const FIRST_WAIT: Span = Span::from_millis(100);

/// The longest wait: a request may be refused for ever.
pub(super) const LONGEST_WAIT: Span = Span::from_secs(60);

/// The lost races in a row after which one is logged: a replica usually loses one or two.
const RACES_MAX: u32 = 5;

/// The time limit for an answer: shorter than a replica counts as ready without a renewal.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// The client with the paths of its requests.
pub(super) struct Calls {
    client: Client,
    namespace: String,
    /// The path of the namespace's Leases.
    leases: String,
}

impl Calls {
    /// `namespace`: strew's own.
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
        let namespace = namespace.to_owned();
        Self {
            client,
            namespace,
            leases,
        }
    }

    /// Reads the configuration; `null` if it does not exist.
    pub(super) async fn configuration(&self) -> kube::Result<Value> {
        self.get(&configuration::path()).await
    }

    /// Changes the configuration by a JSON patch.
    pub(super) async fn change(&self, patch: &Value) -> kube::Result<Value> {
        let (path, kind) = (configuration::path(), "application/json-patch+json");
        self.send(Method::PATCH, &path, kind, patch).await
    }

    /// Reads the Lease of the replicas; `null` if it does not exist.
    pub(super) async fn replicas(&self) -> kube::Result<Value> {
        self.get(&format!("{}/{LEASE}", self.leases)).await
    }

    /// Changes annotations of the Lease by a merge patch. Returns the Lease; `null` if it does not exist.
    pub(super) async fn annotate(&self, patch: &Value) -> kube::Result<Value> {
        let path = format!("{}/{LEASE}", self.leases);
        let kind = "application/merge-patch+json";
        found(self.send(Method::PATCH, &path, kind, patch).await)
    }

    /// As [`annotate`](Self::annotate), and creates the Lease if it does not exist.
    pub(super) async fn renew(&self, patch: &Value) -> kube::Result<Value> {
        match self.annotate(patch).await? {
            Value::Null => {
                let lease = json!({
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {
                        "name": LEASE,
                        "namespace": self.namespace,
                        "annotations": patch["metadata"]["annotations"],
                    },
                });
                let json = "application/json";
                self.send(Method::POST, &self.leases, json, &lease).await
            }
            lease => Ok(lease),
        }
    }

    async fn get(&self, path: &str) -> kube::Result<Value> {
        found(self.send(Method::GET, path, "", &Value::Null).await)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> kube::Result<Value> {
        let mut request = Request::builder().method(method).uri(path);
        let mut text = Vec::new();
        if !body.is_null() {
            request = request.header(CONTENT_TYPE, content_type);
            text = body.to_string().into_bytes();
        }
        let request = request.body(text).map_err(kube::Error::HttpError)?;
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.request(request)).await;
        answer.unwrap_or_else(|late| Err(kube::Error::Service(late.into())))
    }
}

/// Replaces "not found" by `null`.
fn found(answer: kube::Result<Value>) -> kube::Result<Value> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Value::Null),
        answer => answer,
    }
}

/// True if another process wrote first. The API server reports a JSON patch with a failed test as invalid (422).
fn is_race(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 409 | 422))
}

/// The number of failed requests in a row about one object.
#[derive(Default)]
pub(super) struct Failures(u32);

impl Failures {
    /// Adds a failure. Returns how long to wait, and whether to log it.
    pub(super) fn add(&mut self, error: &kube::Error) -> (Span, bool) {
        let wait = FIRST_WAIT.doubled(self.0);
        let wait = wait.map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT));
        self.0 = self.0.saturating_add(1);
        (wait, !is_race(error) || self.0 > RACES_MAX)
    }

    /// Resets the count after a success.
    pub(super) fn end(&mut self) {
        self.0 = 0;
    }
}
