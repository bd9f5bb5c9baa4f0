//! A page for a browser on this machine: its document, script and style, its data, and the changes of its data.
//!
//! It is read-only and serves GET and HEAD alone. A name that another site made point to this machine is no host of it
//! (`guard`), nothing runs but its own script, and no other site may read or frame it.
//!
//! Reading order: [`Page`], [`rows`] (data that changes), `changes` (server-sent events), `guard`.

mod changes;
mod guard;
pub mod rows;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    VARY,
};
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode};
use tokio::sync::watch;

use crate::serve::Limits;
use crate::serve::pages::error;
use guard::Asker;
pub use rows::Rows;

/// A page with its data.
#[derive(Debug, Clone)]
pub struct Page {
    /// The HTML. It names `script.js` and `style.css`.
    pub document: Bytes,
    /// `script.js`, the only script that runs.
    pub script: Bytes,
    /// `style.css`.
    pub style: Bytes,
    /// `data.json`, and `events` if the data changes.
    pub data: Data,
    /// Another origin whose pages may read the data, for example `http://localhost:4466`; `None`: no other one may.
    pub allowed_origin: Option<HeaderValue>,
}

/// The data of a page.
#[derive(Debug, Clone)]
pub enum Data {
    /// JSON that stays as it is.
    Fixed(Bytes),
    /// Rows that change; the newest are sent.
    Live(watch::Receiver<Arc<Rows>>),
}

/// The limits of a page's server: all clients of this machine are one peer, and one peer gets a quarter.
pub fn limits() -> Limits {
    Limits {
        connections_max: 512,
        requests_max: 512,
        ..Limits::default()
    }
}

/// What the page may do: run its own script, use its own style, and ask this server.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// Headers of every answer, beside the policy.
const HEADERS: [(&str, &str); 5] = [
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const JSON: &str = "application/json";

impl Page {
    /// The page as routes of a server.
    pub fn routes(self) -> Router {
        let page = Arc::new(self);
        Router::new().fallback(async move |request: Request<Body>| {
            let (head, _) = request.into_parts();
            protected(page.answer(&head))
        })
    }

    fn answer(&self, head: &Parts) -> Response {
        if head.method != Method::GET && head.method != Method::HEAD {
            return error(StatusCode::METHOD_NOT_ALLOWED, "the page is read only");
        }
        let allowed = self.allowed_origin.as_ref();
        let asker = match guard::check(&head.headers, allowed.and_then(|o| o.to_str().ok())) {
            Ok(asker) => asker,
            Err(why) => return error(StatusCode::FORBIDDEN, why),
        };
        let mut answer = self.found(head);
        if let (Asker::Allowed, Some(origin)) = (asker, allowed) {
            let headers = answer.headers_mut();
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(VARY, HeaderValue::from_static("origin"));
        }
        answer
    }

    fn found(&self, head: &Parts) -> Response {
        match (head.uri.path(), &self.data) {
            ("/", _) => whole(HTML, self.document.clone()),
            ("/script.js", _) => whole(SCRIPT, self.script.clone()),
            ("/style.css", _) => whole(STYLE, self.style.clone()),
            ("/data.json", Data::Fixed(data)) => whole(JSON, data.clone()),
            ("/data.json", Data::Live(rows)) => whole(JSON, rows.borrow().whole().into()),
            ("/events", Data::Live(rows)) if head.method == Method::GET => {
                changes::answer(rows.clone())
            }
            // A browser asks for it, and tells people that it is missing.
            ("/favicon.ico", _) => {
                let mut answer = Response::default();
                *answer.status_mut() = StatusCode::NO_CONTENT;
                answer
            }
            _ => error(StatusCode::NOT_FOUND, "404 page not found"),
        }
    }
}

fn whole(of_type: &'static str, bytes: Bytes) -> Response {
    let mut answer = Response::new(Body::from(bytes));
    let of_type = HeaderValue::from_static(of_type);
    answer.headers_mut().insert(CONTENT_TYPE, of_type);
    answer
}

fn protected(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in HEADERS {
        let name = HeaderName::from_static(name);
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests;
