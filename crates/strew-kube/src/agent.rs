//! The user agent and field manager of a process, in every request, so that audit logs and `managedFields` name it.

use std::task::{Context, Poll};

use http::header::USER_AGENT;
use http::{HeaderValue, Method, Request, Uri};
use tower::{Layer, Service};

/// The query parameter of the field manager.
const FIELD_MANAGER: &str = "fieldManager";

/// A client layer that adds user agent and field manager.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    user_agent: HeaderValue,
    /// The name of the process: letters, digits and hyphens.
    manager: &'static str,
}

impl Agent {
    /// For a process of strew, such as `strew-scheduler`. Source: client-go `rest/config.go`,
    /// `DefaultKubernetesUserAgent`.
    pub(crate) fn of(part: &'static str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let os = match std::env::consts::OS {
            "macos" => "darwin",
            os => os,
        };
        let arch = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            arch => arch,
        };
        let text = format!("{part}/{version} ({os}/{arch})");
        Self {
            user_agent: HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("strew")),
            manager: part,
        }
    }

    fn sign<B>(&self, request: &mut Request<B>) {
        let user_agent = self.user_agent.clone();
        request.headers_mut().insert(USER_AGENT, user_agent);
        let writes = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
        if writes && let Some(uri) = managed(request.uri(), self.manager) {
            *request.uri_mut() = uri;
        }
    }
}

/// The URL with a field manager added; `None` if it has one, or cannot be parsed with it.
fn managed(uri: &Uri, manager: &str) -> Option<Uri> {
    let query = uri.query().unwrap_or_default();
    let has_one = |pair: &str| pair.split('=').next() == Some(FIELD_MANAGER);
    if query.split('&').any(has_one) {
        return None;
    }
    let joint = if query.is_empty() { "" } else { "&" };
    let path = uri.path();
    let path = format!("{path}?{query}{joint}{FIELD_MANAGER}={manager}");
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

impl<S> Layer<S> for Agent {
    type Service = Signed<S>;

    fn layer(&self, service: S) -> Signed<S> {
        Signed {
            service,
            agent: self.clone(),
        }
    }
}

/// A client service that adds user agent and field manager to requests.
#[derive(Debug, Clone)]
pub(crate) struct Signed<S> {
    service: S,
    agent: Agent,
}

impl<S, B> Service<Request<B>> for Signed<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        self.agent.sign(&mut request);
        self.service.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_added_where_there_is_none() {
        for (before, after) in [
            ("/api/v1/pods", "/api/v1/pods?fieldManager=strew-part"),
            ("/api/v1/pods?", "/api/v1/pods?fieldManager=strew-part"),
            (
                "https://hub:6443/a?fieldValidation=Strict",
                "https://hub:6443/a?fieldValidation=Strict&fieldManager=strew-part",
            ),
            ("/a?fieldManager=mine&b=c", "/a?fieldManager=mine&b=c"),
        ] {
            let mut request = Request::patch(before).body(()).unwrap();
            Agent::of("strew-part").sign(&mut request);
            assert_eq!(request.uri().to_string(), after);
        }
    }
}
