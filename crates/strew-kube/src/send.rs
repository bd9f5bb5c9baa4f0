//! Sends a request of `strew-wire` once. The driver decides when it is sent, and whether it is retried.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use strew_model::time::Span;
use strew_runtime::Ticket;
use strew_wire::request::{Answer, Request};
use strew_wire::retry::{Retry, Retrying};
use tokio::sync::mpsc;

use crate::clock::{Clock, duration};
use crate::panics::caught;

/// The longest answer that is read, in bytes: far more than any object that strew writes.
const ANSWER_MAX: usize = 4 << 20;

/// The longest answer to a read, in bytes: it may list all objects of a namespace.
const LIST_MAX: usize = 64 << 20;

/// Time limits of requests.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A request is not retried after this long.
    pub in_all: Span,
    /// The time limit for one answer.
    pub answer: Duration,
}

impl Default for Patience {
    /// For requests that only the machine waits for.
    fn default() -> Self {
        Self {
            in_all: Span::from_secs(60),
            answer: Duration::from_secs(30),
        }
    }
}

/// Requests in transit, each with its own task.
pub(crate) struct Exchanges {
    client: Client,
    /// The time limit for one answer.
    answer_within: Duration,
    to_answers: mpsc::UnboundedSender<(Ticket, Answer)>,
    answers: mpsc::UnboundedReceiver<(Ticket, Answer)>,
}

impl Exchanges {
    /// Without any request.
    pub(crate) fn new(client: Client, answer_within: Duration) -> Self {
        let (to_answers, answers) = mpsc::unbounded_channel();
        Self {
            client,
            answer_within,
            to_answers,
            answers,
        }
    }

    /// Sends a request once; [`next`](Self::next) returns its answer.
    pub(crate) fn send(&self, ticket: Ticket, request: Arc<Request>) {
        let (client, within) = (self.client.clone(), self.answer_within);
        let to_answers = self.to_answers.clone();
        tokio::spawn(async move {
            let sent = caught(once(&client, &request, within)).await;
            // The task panicked: whether the API server got the request is not known.
            let answer = sent.unwrap_or_else(|text| Answer::Lost(text.into()));
            // The receiver is dropped: the process ends.
            let _ = to_answers.send((ticket, answer));
        });
    }

    /// The next answer. Cancel-safe.
    pub(crate) async fn next(&mut self) -> (Ticket, Answer) {
        loop {
            // The channel never closes: `self` holds a sender.
            if let Some(answer) = self.answers.recv().await {
                return answer;
            }
        }
    }

    /// The next answer, if one has arrived.
    pub(crate) fn try_next(&mut self) -> Option<(Ticket, Answer)> {
        self.answers.try_recv().ok()
    }
}

/// Sends a request once.
pub async fn once(client: &Client, request: &Request, within: Duration) -> Answer {
    let built = http::Request::builder()
        .method(request.verb.method())
        .uri(request.path())
        .header(CONTENT_TYPE, request.verb.content_type())
        .body(Body::from(text_of(&request.body)));
    answer_within(client, built, ANSWER_MAX, within).await
}

/// The body of a request as bytes.
fn text_of(body: &Value) -> Vec<u8> {
    match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    }
}

/// Reads a path; retries for `within` while the API server may give another answer shortly.
pub async fn read(client: &Client, path: &str, within: Span) -> Answer {
    let clock = Clock::new();
    let end = clock.now() + within;
    let mut retrying = Retrying::new(end);
    loop {
        let built = http::Request::get(path).body(Body::empty());
        let answer = answer_within(client, built, LIST_MAX, clock.until(end)).await;
        let now = clock.now();
        match retrying.next_read(&answer, now, now.0) {
            Retry::After(wait) => tokio::time::sleep(duration(wait)).await,
            Retry::GiveUp => return answer,
        }
    }
}

async fn answer_within(
    client: &Client,
    built: http::Result<http::Request<Body>>,
    max: usize,
    within: Duration,
) -> Answer {
    let built = match built {
        Ok(built) => built,
        Err(error) => return Answer::Refused(error.to_string().into()),
    };
    match tokio::time::timeout(within, exchange(client, built, max)).await {
        Ok(answer) => answer,
        Err(_) => Answer::Lost(format!("no answer within {:.1} s", within.as_secs_f64()).into()),
    }
}

async fn exchange(client: &Client, request: http::Request<Body>, max: usize) -> Answer {
    let response = match client.send(request).await {
        Ok(response) => response,
        Err(error) => return failed(&error),
    };
    let code = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok().map(str::to_owned));
    match Limited::new(response.into_body(), max).collect().await {
        Ok(body) => Answer::of(code, retry_after.as_deref(), &body.to_bytes()),
        Err(error) => Answer::Lost(error.to_string().into()),
    }
}

/// The answer for a failed request: it was certainly not sent, or its result is unknown.
fn failed(error: &kube::Error) -> Answer {
    let text = crate::causes::in_a_line(error).into();
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let is_connect = cause
            .downcast_ref::<hyper_util::client::legacy::Error>()
            .is_some_and(hyper_util::client::legacy::Error::is_connect);
        if is_connect {
            return Answer::Refused(text);
        }
        next = cause.source();
    }
    match error {
        // Without credentials, or with an invalid request, nothing has left this process.
        kube::Error::Auth(_) | kube::Error::HttpError(_) => Answer::Refused(text),
        _ => Answer::Lost(text),
    }
}
