//! The way by which the API server reaches the webhook: its URL, or the address of its Service.
//!
//! A question without a process's secret goes that way, with TLS and the CAs of `caBundle`. Any replica may get it; its
//! refusal (401) proves that the way ends at a webhook of strew whose certificate the API server will accept.

use k8s_openapi::ByteString;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_wire::workloadspread::registration::{NAME, SERVICE_PORT};

/// The port of a URL without one.
const HTTPS: u16 = 443;

/// The path of questions and of a replica's own reviews. They are not counted in metrics, and only dry runs of the same
/// process are answered.
pub const OWN_REVIEW: &str = "/admit/own";

/// A way to the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// The host, which the certificate must name; an IPv6 address without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path of the question.
    pub path: String,
    /// True for a Service, which another process may be unable to reach although the API server can: a NetworkPolicy
    /// may hide it, and its name is known inside the cluster only.
    pub is_service: bool,
}

/// Why a question had no good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreached {
    /// What went wrong.
    pub why: String,
    /// True if the API server must fail there too: the port is closed, or another server answers. False if load or a
    /// NetworkPolicy may be the cause.
    pub is_certain: bool,
}

/// Why a review of its own has no correct answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The answer is late: the replica has much to do. It is no reason to withdraw: load must not turn limits off, and a
    /// replica that hangs fails `/livez`.
    Late(String),
    /// Nothing listens, or the answer is wrong.
    Wrong(String),
}

impl Failed {
    /// What went wrong.
    pub fn why(&self) -> &str {
        let (Self::Late(why) | Self::Wrong(why)) = self;
        why
    }
}

impl Way {
    /// The way in a webhook's `clientConfig`, which has `path` at its end. `None` if it is none that the API server
    /// accepts.
    pub fn of(client_config: &Value, path: &str) -> Option<Self> {
        if let Some(url) = client_config["url"].as_str() {
            let rest = url.strip_prefix("https://")?.strip_suffix(path)?;
            let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (host, port) = match authority.strip_prefix('[') {
                Some(rest) => rest.split_once(']')?,
                None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
            };
            let port = match port.strip_prefix(':') {
                Some(port) => port.parse().ok()?,
                None => HTTPS,
            };
            return Some(Self {
                host: host.to_owned(),
                port,
                path: format!("{prefix}{OWN_REVIEW}"),
                is_service: false,
            });
        }
        let namespace = client_config["service"]["namespace"].as_str()?;
        Some(Self {
            host: format!("{NAME}.{namespace}.svc"),
            port: SERVICE_PORT,
            path: OWN_REVIEW.to_owned(),
            is_service: true,
        })
    }

    /// True if a replica that fails so may not register: by a URL everything must be good.
    pub fn forbids(&self, unreached: &Unreached) -> bool {
        !self.is_service || unreached.is_certain
    }
}

/// The CAs of a `clientConfig`, in PEM; empty without any.
pub fn bundle_of(client_config: &Value) -> String {
    let bundle = ByteString::of_json(client_config["caBundle"].clone());
    bundle.map_or_else(
        |_| String::new(),
        |pem| String::from_utf8_lossy(&pem.0).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_url(url: &str) -> Option<(String, u16, String)> {
        let way = Way::of(&json!({ "url": url }), "/admit/pods")?;
        Some((way.host, way.port, way.path))
    }

    #[test]
    fn the_way_is_that_of_the_registration() {
        for (url, host, port, path) in [
            (
                "https://10.0.0.7:9443/admit/pods",
                "10.0.0.7",
                9443,
                OWN_REVIEW,
            ),
            ("https://a.b/admit/pods", "a.b", 443, OWN_REVIEW),
            ("https://[::1]:1/x/y/admit/pods", "::1", 1, "/x/y/admit/own"),
        ] {
            let expected = Some((host.to_owned(), port, path.to_owned()));
            assert_eq!(of_url(url), expected, "{url}");
        }
        for url in ["http://a/admit/pods", "https://a:b/admit/pods", "https://a"] {
            assert_eq!(of_url(url), None, "{url}");
        }
        let service = json!({"service": {"namespace": "n", "name": NAME, "port": 443}});
        let way = Way::of(&service, "/admit/pods").expect("a Service");
        assert_eq!((way.host.as_str(), way.port), ("strew-webhook.n.svc", 443));
        let unreached = |is_certain| Unreached {
            why: String::new(),
            is_certain,
        };
        assert!(way.forbids(&unreached(true)) && !way.forbids(&unreached(false)));
    }
}
