//! Answers of the API server, and the outcomes that they mean.

use std::sync::Arc;

use serde_json::Value;
use strew_model::time::Span;
use strew_scheduler::machine::Outcome;

use super::{Request, Verb};

/// A resourceVersion as the number that it is at API servers on etcd; 0 if it is none.
pub(crate) fn version_of(text: Option<&str>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The result of sending a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The API server answered.
    Status {
        /// The status code of HTTP.
        code: u16,
        /// The header `Retry-After`, if it is a number of seconds.
        retry_after: Option<Span>,
        /// An object, or a `Status`; `null` if it is no JSON.
        body: Value,
    },
    /// Not sent: the connection was refused or failed.
    Refused(Arc<str>),
    /// Sent, but without an answer: it may have been carried out.
    Lost(Arc<str>),
}

impl Answer {
    /// An answer of HTTP.
    pub fn of(code: u16, retry_after: Option<&str>, body: &[u8]) -> Self {
        let seconds = retry_after.and_then(|text| text.trim().parse().ok());
        Self::Status {
            code,
            retry_after: seconds.map(Span::from_secs),
            body: serde_json::from_slice(body).unwrap_or_default(),
        }
    }

    /// The returned object, if the request was carried out.
    pub fn object(&self) -> Option<&Value> {
        match self {
            Self::Status {
                code: 200..=299,
                body,
                ..
            } => Some(body),
            _ => None,
        }
    }

    /// The resourceVersion of the returned object; `None` if the request was not carried out.
    pub fn version(&self) -> Option<u64> {
        let version = self.object()?.pointer("/metadata/resourceVersion");
        Some(version_of(version.and_then(Value::as_str)))
    }

    /// The status code, if there was an answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status { code, .. } => Some(*code),
            Self::Refused(_) | Self::Lost(_) => None,
        }
    }

    /// How long the server asks to wait, by the header or its `Status`; only if it is busy, as in client-go.
    pub fn retry_after(&self) -> Option<Span> {
        let Self::Status {
            code: 429 | 500..=599,
            retry_after,
            body,
        } = self
        else {
            return None;
        };
        let told = body["details"]["retryAfterSeconds"].as_u64();
        let told = told.filter(|&secs| secs > 0).map(Span::from_secs);
        (*retry_after).max(told)
    }

    /// True if the object of this name is another one than the request meant.
    ///
    /// A wrong uid is a conflict if it is a precondition (delete, binding), and an invalid change of `metadata.uid` if
    /// it is part of a patch.
    pub fn is_of_another_uid(&self) -> bool {
        let Self::Status { code, body, .. } = self else {
            return false;
        };
        match code {
            409 => text(body).contains("Precondition failed: UID"),
            422 => {
                let causes = body["details"]["causes"].as_array();
                causes.is_some_and(|all| all.iter().any(|c| c["field"] == "metadata.uid"))
            }
            _ => false,
        }
    }

    /// True if another process may have written first: the API server reports a JSON patch with a failed test as invalid.
    pub fn is_race(&self) -> bool {
        matches!(self.code(), Some(409 | 422))
    }

    /// The server's message, or strew's.
    pub fn words(&self) -> Arc<str> {
        match self {
            Self::Refused(text) | Self::Lost(text) => Arc::clone(text),
            Self::Status { code, body, .. } => match text(body) {
                "" => format!("the server answered with status {code}").into(),
                text => text.into(),
            },
        }
    }
}

fn text(body: &Value) -> &str {
    body["message"].as_str().unwrap_or_default()
}

/// The outcome of an effect, from the last answer to its request. `repeated`: an earlier attempt may have been carried
/// out.
///
/// A repeated bind succeeded if the pod is on the requested node; a repeated creation succeeded if an object with its
/// unique name exists.
pub fn outcome_of(request: &Request, answer: &Answer, repeated: bool) -> Outcome {
    let words = answer.words();
    match answer.code() {
        Some(200..=299) => Outcome::Ok,
        Some(404) => Outcome::Gone,
        Some(409 | 422) if answer.is_of_another_uid() => Outcome::Gone,
        Some(409) if repeated && is_done(request, &words) => Outcome::Ok,
        Some(409) => Outcome::Conflict(words),
        _ => Outcome::Failed(words),
    }
}

/// True if a conflict means that an earlier attempt was carried out.
fn is_done(request: &Request, words: &str) -> bool {
    if request.is_binding() {
        // Source: spec/scheduler §3.15.
        let node = request.body["target"]["name"].as_str().unwrap_or_default();
        return words.contains(&format!("is already assigned to node {node:?}"));
    }
    request.verb == Verb::Create
}
