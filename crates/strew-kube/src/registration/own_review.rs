//! The review that a replica sends itself, exactly as the API server would: with TLS, through its own port, trusting
//! the CAs of `caBundle`, and answered by the same loop as all others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use strew_runtime::registration::way::{Failed, OWN_REVIEW};
use strew_wire::workloadspread::registration::{NAME, TIMEOUT_OF_PODS_S};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::serve::{OwnConnections, provider};

/// The longest answer that is read, in bytes; real ones are shorter.
const ANSWER_MAX: u64 = 64 << 10;

/// Where and how a replica sends itself a review.
pub(super) struct OwnReview {
    address: SocketAddr,
    connections: OwnConnections,
    /// The name that the certificate must have.
    host: String,
    namespace: String,
    /// A secret of this process, which proves that the review is its own.
    secret: Arc<str>,
}

impl OwnReview {
    /// `address`: where the server listens; `namespace`: strew's own; `secret`: as given to the server.
    pub(super) fn new(
        address: SocketAddr,
        connections: OwnConnections,
        namespace: &str,
        secret: Arc<str>,
    ) -> Self {
        let ip = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        Self {
            address: SocketAddr::new(ip, address.port()),
            connections,
            host: format!("{NAME}.{namespace}.svc"),
            namespace: namespace.to_owned(),
            secret,
        }
    }

    /// Sends a review; `bundle`: the CAs to trust, in PEM.
    ///
    /// # Errors
    /// Why there was no correct answer in time.
    pub(super) async fn ask(&self, bundle: &str) -> Result<(), Failed> {
        let within = Duration::from_secs(TIMEOUT_OF_PODS_S.into());
        let asked = tokio::time::timeout(within, self.exchange(bundle)).await;
        let late = |_| Failed::Late(format!("no answer within {} s", within.as_secs()));
        let answer = asked.map_err(late)?.map_err(Failed::Wrong)?;
        let answer = body_of(&answer)?;
        let response = &answer["response"];
        match response["uid"] == NAME && response["allowed"] == true {
            true => Ok(()),
            false => Err(Failed::Wrong(format!("unexpected answer: {response}"))),
        }
    }

    async fn exchange(&self, bundle: &str) -> Result<Vec<u8>, String> {
        let connected = self.connections.connect(self.address).await;
        let (_end, stream) = connected.map_err(|error| error.to_string())?;
        let body = review(&self.namespace).to_string();
        let path = format!("{OWN_REVIEW}?timeout={TIMEOUT_OF_PODS_S}s");
        let asked = post(
            stream,
            (&self.host, bundle),
            &path,
            Some(&self.secret),
            &body,
        );
        asked.await.map_err(|error| error.to_string())
    }
}

/// Sends a POST over TLS to a server with this name, whose certificate one of these CAs (PEM) has signed, and returns
/// its answer.
pub(super) async fn post(
    stream: TcpStream,
    (host, bundle): (&str, &str),
    path: &str,
    secret: Option<&str>,
    body: &str,
) -> std::io::Result<Vec<u8>> {
    let config = trusting(bundle).map_err(std::io::Error::other)?;
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
    let mut stream = connector.connect(name, stream).await?;
    let proof = secret.map(|secret| format!("Authorization: Bearer {secret}\r\n"));
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         {}Connection: close\r\n\r\n{body}",
        body.len(),
        proof.unwrap_or_default(),
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).await?;
    Ok(answer)
}

/// A TLS client that trusts these CAs and no others.
fn trusting(bundle: &str) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(provider()));
    let config = config.with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// A dry-run creation of a pod without a controller.
fn review(namespace: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": NAME,
            "operation": "CREATE",
            "namespace": namespace,
            "name": NAME,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "dryRun": true,
            "object": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": NAME, "namespace": namespace},
                "spec": {"containers": [{"name": "own", "image": "own"}]},
            },
        },
    })
}

/// The first line of an answer.
pub(super) fn first_line(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.lines().next().unwrap_or_default().to_owned()
}

/// The status code in the first line of an answer.
pub(super) fn code_of(line: &str) -> Option<u16> {
    line.split(' ').nth(1)?.parse().ok()
}

/// The JSON in a complete HTTP/1.1 answer with code 200. Code 504 says that there was no decision in time.
fn body_of(answer: &[u8]) -> Result<Value, Failed> {
    const END: &[u8] = b"\r\n\r\n";
    let at = answer.windows(END.len()).position(|part| part == END);
    let (head, body) = at.map_or((answer, &[][..]), |at| {
        (&answer[..at], &answer[at + END.len()..])
    });
    let line = first_line(head);
    let said = || {
        let body = String::from_utf8_lossy(body);
        format!("{line}: {}", body.trim())
    };
    match code_of(&line) {
        Some(200) => serde_json::from_slice(body).map_err(|error| Failed::Wrong(error.to_string())),
        Some(504) => Err(Failed::Late(said())),
        _ => Err(Failed::Wrong(said())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_good_or_says_why_not() {
        for (answer, expected) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}",
                Ok(json!({"a": 1})),
            ),
            (
                "HTTP/1.1 503 Service Unavailable\r\n\r\nthe webhook ends\n",
                Err("HTTP/1.1 503 Service Unavailable: the webhook ends"),
            ),
            (
                "HTTP/1.1 200 OK\r\n",
                Err("EOF while parsing a value at line 1 column 0"),
            ),
            ("", Err(": ")),
        ] {
            let found = body_of(answer.as_bytes());
            let expected = expected.map_err(|why| Failed::Wrong(why.to_owned()));
            assert_eq!(found, expected, "{answer:?}");
        }
        let late = body_of(b"HTTP/1.1 504 Gateway Timeout\r\n\r\nno answer in time\n");
        let why = "HTTP/1.1 504 Gateway Timeout: no answer in time";
        assert_eq!(late, Err(Failed::Late(why.to_owned())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_is_late_is_told_from_one_that_is_not_there() {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap();
        let own = OwnReview::new(address, OwnConnections::default(), "strew", "".into());
        let late = own.ask("").await;
        assert!(matches!(late, Err(Failed::Late(_))), "{late:?}");
        drop(listener);
        let gone = own.ask("").await;
        assert!(matches!(gone, Err(Failed::Wrong(_))), "{gone:?}");
    }
}
