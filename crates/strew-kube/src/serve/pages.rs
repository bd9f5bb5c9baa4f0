//! Responses in Kubernetes' forms, and pages of plain text.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, StatusCode};
use serde_json::json as value;

use super::access::Access;

const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A plain text response.
pub(crate) fn text(code: StatusCode, text: String) -> Response {
    answer(code, PLAIN, text)
}

/// A JSON response.
pub(crate) fn json(text: String) -> Response {
    answer(StatusCode::OK, JSON, text)
}

/// A JSON response with a status code.
pub(crate) fn json_with(code: StatusCode, text: String) -> Response {
    answer(code, JSON, text)
}

/// A plain text response with an error message. Source: Go's `http.Error`.
pub(crate) fn error(code: StatusCode, why: &str) -> Response {
    answer(code, PLAIN, format!("{why}\n"))
}

/// A response with an object `Status`, which kubectl and client libraries read.
pub(crate) fn status(code: StatusCode, reason: &str, message: &str) -> Response {
    let mut status = value!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    });
    // As in the API server's library: a refusal has details, a failed authentication has none.
    if code == StatusCode::FORBIDDEN {
        status["details"] = value!({});
    }
    status["code"] = code.as_u16().into();
    answer(code, JSON, format!("{status}\n"))
}

pub(crate) fn answer(code: StatusCode, of_type: HeaderValue, body: String) -> Response {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, of_type);
    let nosniff = HeaderName::from_static("x-content-type-options");
    headers.insert(nosniff, HeaderValue::from_static("nosniff"));
    headers.insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    answer
}

/// All pages together, each behind authorization; unknown paths too.
pub fn guarded(pages: impl IntoIterator<Item = Router>, access: Access) -> Router {
    let all = pages.into_iter().fold(Router::new(), Router::merge);
    access.guard(all.fallback(not_found))
}

async fn not_found() -> Response {
    error(StatusCode::NOT_FOUND, "404 page not found")
}

/// A page with a JSON text: `/configz`, `/version`.
pub fn json_page(path: &str, text: Arc<str>) -> Router {
    Router::new().route(
        path,
        get(async move || answer(StatusCode::OK, JSON, text.to_string())),
    )
}
