//! `/debug/placements/`: explains the decision of a stored Placement (GET), or of one in the request (POST).
//!
//! The user is authenticated by the server. This page checks the user's right to `get` or `create` Placements in that
//! namespace, as OCM does, because it shows one namespace and not the process. A stored Placement is read from the API
//! server, since the machine keeps no copy. The deciding code makes the answer; nothing is written.
//!
//! Source: spec/placement §2.11.

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Extension, Path, State};
use axum::response::Response;
use axum::routing::any;
use http::{Method, StatusCode};
use k8s_openapi::Resource;
use kube::Client;
use strew_manifest::json::Json;
use strew_manifest::ocm::{GROUP, Placement};
use strew_runtime::placement::Placements;
use strew_wire::placement::debug::DebugResult;
use tokio::sync::{mpsc, oneshot};

use crate::causes::in_a_line;
use crate::serve::Asker;
use crate::serve::access::Deed;
use crate::serve::pages::{json, json_with};
use crate::untyped;
use crate::work::Worker;

/// The paths whose pages authorize the client themselves.
pub const PATHS: &str = "/debug/placements*";

/// The largest Placement in a request, in bytes.
const BODY_MAX: usize = 1 << 20;

/// The number of queued questions; a further one waits.
const WAITING_MAX: usize = 4;

/// The receiving end, for the loop.
pub(crate) struct Questions(mpsc::Receiver<Question>);

/// A Placement to explain.
pub(crate) struct Question {
    placement: Placement,
    answer: oneshot::Sender<Option<DebugResult>>,
}

impl Questions {
    /// The next question; `None` when all senders are dropped. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Question> {
        self.0.recv().await
    }
}

impl Question {
    /// Sends the answer: `None` if the controller of Placements does not run, or has not read the hub yet.
    pub(in crate::controller) fn answer(self, worker: Option<&mut Worker<Placements>>) {
        let result = worker.map(|worker| {
            let now = worker.now();
            worker.tell(|placements, _| placements.explain(&self.placement, now))
        });
        // The client may have closed the connection.
        let _ = self.answer.send(result);
    }
}

/// The state of the pages.
#[derive(Clone)]
struct Pages {
    client: Client,
    ask: mpsc::Sender<Question>,
}

/// A status code and its reason.
type Refusal = (StatusCode, String);

/// The pages, and the receiving end for the loop.
pub(crate) fn pages(client: Client) -> (Questions, Router) {
    let (ask, asked) = mpsc::channel(WAITING_MAX);
    let pages = Pages { client, ask };
    let posted = any(async |State(pages): State<Pages>, method, asker, body| {
        told(pages.what_if(method, asker, body).await)
    });
    let stored = any(
        async |State(pages): State<Pages>, Path(path): Path<String>, method, asker| {
            told(pages.stored(&path, method, asker).await)
        },
    );
    let router = Router::new()
        .route("/debug/placements", posted.clone())
        .route("/debug/placements/", posted)
        .route("/debug/placements/{*path}", stored)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(pages);
    (Questions(asked), router)
}

fn told(answer: Result<DebugResult, Refusal>) -> Response {
    match answer {
        // Plain data always has a JSON form.
        Ok(result) => json(serde_json::to_string(&result).unwrap_or_default()),
        // OCM's clients expect a JSON object for errors too.
        Err((code, why)) => json_with(code, serde_json::json!({"error": why}).to_string()),
    }
}

impl Pages {
    /// Explains a stored Placement.
    async fn stored(
        &self,
        path: &str,
        method: Method,
        asker: Option<Extension<Asker>>,
    ) -> Result<DebugResult, Refusal> {
        only(&method, &Method::GET)?;
        let (namespace, name) = path
            .split_once('/')
            .filter(|(namespace, name)| {
                !namespace.is_empty() && !name.is_empty() && !name.contains('/')
            })
            .ok_or_else(incomplete)?;
        may(asker, "get", namespace).await?;
        let api = untyped::api::<Placement>(&self.client, namespace);
        let found = api.get_opt(name).await;
        let failed = |error: &(dyn std::error::Error + 'static)| {
            (StatusCode::INTERNAL_SERVER_ERROR, in_a_line(error))
        };
        let found = found.map_err(|error| failed(&error))?;
        let found = found.map(|object| Placement::of_json(object.value));
        let found = found.transpose().map_err(|error| failed(&error))?;
        let absent = || {
            (
                StatusCode::NOT_FOUND,
                format!("placement '{name}' not found"),
            )
        };
        self.ask(found.ok_or_else(absent)?).await
    }

    /// Explains the Placement in the request.
    async fn what_if(
        &self,
        method: Method,
        asker: Option<Extension<Asker>>,
        body: Result<Bytes, axum::extract::rejection::BytesRejection>,
    ) -> Result<DebugResult, Refusal> {
        if method == Method::GET {
            return Err(incomplete());
        }
        only(&method, &Method::POST)?;
        let body = body.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => (
                StatusCode::BAD_REQUEST,
                format!("request body too large: at most {BODY_MAX} bytes"),
            ),
            code => (code, rejection.body_text()),
        })?;
        let read = serde_json::from_slice(&body).and_then(Placement::of_json);
        let placement = read.map_err(|error| {
            let why = format!("failed to unmarshal placement JSON: {error}");
            (StatusCode::BAD_REQUEST, why)
        })?;
        let namespace = placement.metadata.namespace.clone().unwrap_or_default();
        may(asker, "create", &namespace).await?;
        self.ask(placement).await
    }

    async fn ask(&self, placement: Placement) -> Result<DebugResult, Refusal> {
        let (answer, answered) = oneshot::channel();
        let stopped = || {
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "the process ends".to_owned(),
            )
        };
        let question = Question { placement, answer };
        self.ask.send(question).await.map_err(|_| stopped())?;
        let answer = answered.await.map_err(|_| stopped())?;
        answer.ok_or_else(|| {
            let why = "the controller of Placements does not run, or has not read the hub yet";
            (StatusCode::SERVICE_UNAVAILABLE, why.to_owned())
        })
    }
}

fn incomplete() -> Refusal {
    let why = "invalid debug path: namespace and name required";
    (StatusCode::BAD_REQUEST, why.to_owned())
}

fn only(method: &Method, allowed: &Method) -> Result<(), Refusal> {
    match method == allowed {
        true => Ok(()),
        false => Err((
            StatusCode::METHOD_NOT_ALLOWED,
            format!("method {method} not allowed"),
        )),
    }
}

async fn may(asker: Option<Extension<Asker>>, verb: &str, namespace: &str) -> Result<(), Refusal> {
    let Some(Extension(asker)) = asker else {
        let why = "user information not found in request context";
        return Err((StatusCode::UNAUTHORIZED, why.to_owned()));
    };
    let deed = Deed {
        verb,
        group: GROUP,
        resource: Placement::URL_PATH_SEGMENT,
        subresource: "",
        namespace,
    };
    match asker.may(deed).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => {
            let what = format!(
                "user does not have permission to {verb} placements in namespace {namespace}"
            );
            let text = match reason.is_empty() {
                true => what,
                false => format!("{what}: {reason}"),
            };
            Err((StatusCode::FORBIDDEN, text))
        }
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, in_a_line(&error))),
    }
}
