//! Logs clients that reject the serving certificate.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustls::AlertDescription;
use strew_runtime::Warning;
use tokio::time::Instant;

/// How often one is logged: a client that rejects the certificate keeps reconnecting.
const TOLD_EVERY: Duration = Duration::from_secs(600);

/// Logs such clients, rate-limited.
#[derive(Default)]
pub(super) struct Distrust {
    told: Mutex<Option<Instant>>,
}

impl Distrust {
    /// Logs why a connection failed.
    pub(super) fn tell(&self, error: &io::Error) {
        match alert(error) {
            Some(alert) if self.is_due() => {
                let error = format!(
                    "the client does not accept the certificate that it is shown ({alert:?}): it trusts another \
                     authority, or knows this server by another name, or the certificate has ended"
                );
                let handshake = Warning {
                    kind: "connection",
                    namespace: "",
                    name: "",
                    node: None,
                    action: "TLS handshake",
                    error: &error,
                    next: "when a client connects; told once in ten minutes",
                };
                handshake.log();
            }
            _ => tracing::debug!("a connection could not be made: {error}"),
        }
    }

    fn is_due(&self) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = told.is_none_or(|told| told.elapsed() >= TOLD_EVERY);
        if is_due {
            *told = Some(Instant::now());
        }
        is_due
    }
}

/// The TLS alert of the client, if it is about the certificate.
fn alert(error: &io::Error) -> Option<AlertDescription> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA),
        ) => Some(*alert),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::sync::Arc;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, RootCertStore};
    use tokio_rustls::TlsConnector;

    use super::*;
    use crate::serve::Certificate;
    use crate::serve::certificate::{Shown, provider};
    use crate::serve::server::acceptor;

    /// The server's error for a client that trusts these CAs and expects this name.
    async fn failure(shown: &Arc<Shown>, roots: RootCertStore, name: &'static str) -> io::Error {
        let config = ClientConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (client, server) = tokio::io::duplex(1 << 16);
        let name = ServerName::try_from(name).unwrap();
        let connector = TlsConnector::from(Arc::new(config));
        let accepting = acceptor(Arc::clone(shown), None, &[]).unwrap();
        let (_, accepted) = tokio::join!(connector.connect(name, client), accepting.accept(server));
        accepted.expect_err("nobody trusts it")
    }

    #[tokio::test]
    async fn a_client_that_does_not_trust_the_certificate_is_known_from_one_that_goes() {
        let source = Certificate::SelfSigned {
            host: "node-1".to_owned(),
        };
        let shown = Shown::new(source, IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        let shown = Arc::new(shown);
        let mut ours = RootCertStore::empty();
        ours.add(shown.shown()).unwrap();
        let foreign = failure(&shown, RootCertStore::empty(), "node-1").await;
        assert_eq!(alert(&foreign), Some(AlertDescription::UnknownCA));
        let misnamed = failure(&shown, ours, "node-2").await;
        assert_eq!(alert(&misnamed), Some(AlertDescription::BadCertificate));
        let gone = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(alert(&gone), None);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_told_once_in_a_while() {
        let distrust = Distrust::default();
        assert!(distrust.is_due());
        tokio::time::advance(TOLD_EVERY - Duration::from_secs(1)).await;
        assert!(!distrust.is_due());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(distrust.is_due());
    }
}
