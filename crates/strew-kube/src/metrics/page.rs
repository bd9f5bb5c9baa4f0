//! The page.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::get;
use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, StatusCode};
use strew_scheduler::metrics::Family;

use super::source::MetricsSource;
use super::text::Form;
use crate::serve::pages::{answer, error};

/// A further source of metrics.
type More = Arc<dyn Fn() -> Vec<Family> + Send + Sync>;

/// The content of `/metrics`: the machine's metrics and the process'.
#[derive(Clone)]
pub struct Metrics {
    source: MetricsSource,
    more: Vec<More>,
}

impl Metrics {
    /// The machine's metrics from `source`, and those of the process.
    pub fn new(source: MetricsSource) -> Self {
        let more: Vec<More> = vec![
            Arc::new(crate::panics::families),
            Arc::new(super::process::families),
        ];
        Self { source, more }
    }

    /// Adds a source.
    pub fn with(mut self, more: impl Fn() -> Vec<Family> + Send + Sync + 'static) -> Self {
        self.more.push(Arc::new(more));
        self
    }

    /// `/metrics`.
    pub fn pages(self) -> Router {
        let page = get(async move |headers: HeaderMap| self.tell(&headers).await);
        Router::new().route("/metrics", page)
    }

    async fn tell(&self, headers: &HeaderMap) -> Response {
        let mut families = match self.source.families().await {
            Ok(families) => families,
            Err(why) => return error(StatusCode::SERVICE_UNAVAILABLE, &why.to_string()),
        };
        families.extend(self.more.iter().flat_map(|more| more()));
        let accept = headers.get_all(ACCEPT).iter();
        let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
        let form = Form::accepted(&accept.join(","));
        match form.write(families) {
            Ok(text) => {
                let of_type = HeaderValue::from_static(form.content_type());
                answer(StatusCode::OK, of_type, text)
            }
            Err(_) => {
                let why = "the metrics could not be written";
                error(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        }
    }
}
