//! The way by which the API server reaches the webhook: its URL, or the address of its Service.
//!
//! A question without the process's secret goes that way, with TLS and the CAs of `caBundle`. Any replica may get it;
//! its refusal (401) proves that the way ends at a webhook of strew whose certificate the API server will accept.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use k8s_openapi::ByteString;
use serde_json::Value;
use strew_manifest::json::Json;
use strew_wire::workloadspread::registration::{NAME, SERVICE_PORT, TIMEOUT_OF_PODS_S};
use tokio::net::TcpStream;

use super::own_review::{PATH, code_of, first_line, post};

/// The port of a URL without one.
const HTTPS: u16 = 443;

/// A way to the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    /// The host, which the certificate must name; an IPv6 address without brackets.
    host: String,
    port: u16,
    /// The path of the question.
    path: String,
    /// True for a Service, which another process may be unable to reach although the API server can: a NetworkPolicy
    /// may hide it, and its name is known inside the cluster only.
    is_service: bool,
}

/// Why a question had no good answer.
#[derive(Debug)]
pub(super) struct Unreached {
    pub(super) why: String,
    /// True if the API server must fail there too: the port is closed, or another server answers. False if load or a
    /// NetworkPolicy may be the cause.
    pub(super) is_certain: bool,
}

impl Way {
    /// The way in a webhook's `clientConfig`, which has `path` at its end. `None` if it is none that the API server
    /// accepts.
    pub(super) fn of(client_config: &Value, path: &str) -> Option<Self> {
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
                path: format!("{prefix}{PATH}"),
                is_service: false,
            });
        }
        let namespace = client_config["service"]["namespace"].as_str()?;
        Some(Self {
            host: format!("{NAME}.{namespace}.svc"),
            port: SERVICE_PORT,
            path: PATH.to_owned(),
            is_service: true,
        })
    }

    /// Asks; `bundle`: the CAs to trust, in PEM.
    ///
    /// # Errors
    /// Why no webhook of strew answered.
    pub(super) async fn ask(&self, bundle: &str) -> Result<(), Unreached> {
        let within = Duration::from_secs(TIMEOUT_OF_PODS_S.into());
        let asked = tokio::time::timeout(within, self.exchange(bundle)).await;
        let (error, is_certain) = match asked {
            Ok(Ok(line)) => match code_of(&line) {
                Some(401) => return Ok(()),
                code => (
                    format!("another server answers: {line:?}"),
                    code.is_some_and(|code| (300..500).contains(&code) && code != 429),
                ),
            },
            Ok(Err(error)) => (error.to_string(), is_certain(&error)),
            Err(_) => (format!("no answer within {} s", within.as_secs()), false),
        };
        let (host, port) = (&self.host, self.port);
        Err(Unreached {
            why: format!("https://{host}:{port}{}: {error}", self.path),
            is_certain,
        })
    }

    /// True if a replica that fails so may not register: by a URL everything must be good.
    pub(super) fn forbids(&self, unreached: &Unreached) -> bool {
        !self.is_service || unreached.is_certain
    }

    async fn exchange(&self, bundle: &str) -> Result<String, Error> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let answer = post(stream, (&self.host, bundle), &self.path, None, "").await?;
        Ok(first_line(&answer))
    }
}

/// The CAs of a `clientConfig`, in PEM; empty without any.
pub(super) fn bundle_of(client_config: &Value) -> String {
    let bundle = ByteString::of_json(client_config["caBundle"].clone());
    bundle.map_or_else(
        |_| String::new(),
        |pem| String::from_utf8_lossy(&pem.0).into_owned(),
    )
}

/// True if no server is there, or one without strew's certificate. A connection that is closed may be the sign of load.
fn is_certain(error: &Error) -> bool {
    let inner = error.get_ref();
    let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
    error.kind() == ErrorKind::ConnectionRefused
        || matches!(
            tls,
            Some(rustls::Error::InvalidCertificate(_) | rustls::Error::InvalidMessage(_))
        )
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    fn of_url(url: &str) -> Option<(String, u16, String)> {
        let way = Way::of(&json!({ "url": url }), "/admit/pods")?;
        Some((way.host, way.port, way.path))
    }

    #[test]
    fn the_way_is_that_of_the_registration() {
        for (url, host, port, path) in [
            ("https://10.0.0.7:9443/admit/pods", "10.0.0.7", 9443, PATH),
            ("https://a.b/admit/pods", "a.b", 443, PATH),
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
    }

    #[tokio::test]
    async fn a_closed_port_is_certain_and_a_closed_connection_is_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = json!({"url": format!("https://127.0.0.1:{port}/admit/pods")});
        let way = Way::of(&url, "/admit/pods").unwrap();
        let hang_up = async { drop(listener.accept().await) };
        let (asked, ()) = tokio::join!(way.ask(""), hang_up);
        let unreached = asked.unwrap_err();
        assert!(
            !unreached.is_certain && way.forbids(&unreached),
            "{unreached:?}"
        );
        drop(listener);
        let unreached = way.ask("").await.unwrap_err();
        assert!(unreached.is_certain, "{unreached:?}");
        assert!(unreached.why.contains(&port.to_string()), "{unreached:?}");
        let service = Way {
            is_service: true,
            ..way
        };
        let late = Unreached {
            why: String::new(),
            is_certain: false,
        };
        assert!(service.forbids(&unreached) && !service.forbids(&late));
    }
}
