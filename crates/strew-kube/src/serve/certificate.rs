//! The serving certificate: read from files and reloaded when they change, self-signed in memory, or renewed by
//! [`authority`](crate::authority).

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use strew_runtime::Warning;
use tokio_util::sync::CancellationToken;

use super::listen::ServeError;

/// How often files are read again. A mounted Secret or ConfigMap is replaced by a symbolic link, which no watch of a file would
/// notice.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The source of the serving certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificate {
    /// Files in PEM, read again when they change: `--tls-cert-file` and `--tls-private-key-file`.
    Files {
        /// The certificate, followed by the CAs that signed it.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// Made at the start, in memory, for `localhost`, this host's name and the listening address.
    SelfSigned {
        /// The host's name.
        host: String,
    },
    /// Set by other code, possibly later; until then connections fail.
    Exchanged(Exchange),
}

/// Holds the serving certificate of new connections; clones share it.
#[derive(Clone, Default)]
pub struct Exchange(Arc<ArcSwapOption<CertifiedKey>>);

impl Exchange {
    /// Sets the certificate of new connections.
    pub fn put(&self, key: Arc<CertifiedKey>) {
        self.0.store(Some(key));
    }

    /// The certificate in DER, without its chain; `None` if there is none yet.
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        let key = self.0.load();
        key.as_ref()?.cert.first().cloned()
    }
}

/// The key must not be printed.
impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exchange")
    }
}

impl PartialEq for Exchange {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Exchange {}

/// The serving certificate, which can be replaced while connections are open.
#[derive(Debug)]
pub struct Shown {
    current: Exchange,
    source: Certificate,
}

impl Shown {
    /// Reads or makes the certificate.
    ///
    /// # Errors
    /// The files are missing or invalid.
    pub fn new(source: Certificate, address: IpAddr) -> Result<Self, ServeError> {
        let current = match &source {
            Certificate::Exchanged(exchange) => exchange.clone(),
            _ => Exchange::default(),
        };
        match &source {
            Certificate::Files { certificate, key } => {
                current.put(Arc::new(Pem::read(certificate, key)?.parse()?));
            }
            Certificate::SelfSigned { host } => current.put(Arc::new(self_signed(host, address)?)),
            Certificate::Exchanged(_) => {}
        }
        Ok(Self { current, source })
    }

    /// Where the certificate lies.
    pub fn exchange(&self) -> &Exchange {
        &self.current
    }

    /// Reloads changed files until asked to stop. Unusable files are logged once and change nothing.
    pub async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let Certificate::Files { certificate, key } = self.source.clone() else {
            return;
        };
        let mut seen = None;
        while stop
            .run_until_cancelled(tokio::time::sleep(LOOK_EVERY))
            .await
            .is_some()
        {
            let (of, with) = (certificate.clone(), key.clone());
            let read = tokio::task::spawn_blocking(move || Pem::read(&of, &with)).await;
            let Ok(read) = read else {
                continue;
            };
            self.take_over(read, &mut seen);
        }
    }

    /// Uses a changed certificate; `seen` holds the last files, which are not tried again.
    fn take_over(&self, read: Result<Pem, ServeError>, seen: &mut Option<Result<Pem, String>>) {
        let read = read.map_err(|error| whole_text(&error));
        if seen.as_ref() == Some(&read) {
            return;
        }
        let parsed = match &read {
            Ok(pem) => pem.parse().map_err(|error| whole_text(&error)),
            Err(error) => Err(error.clone()),
        };
        *seen = Some(read);
        match parsed {
            Ok(key) if key.cert.first() != self.current.certificate().as_ref() => {
                self.current.put(Arc::new(key));
                tracing::info!("the serving certificate was exchanged");
            }
            Ok(_) => {}
            Err(error) => {
                let file = match &self.source {
                    Certificate::Files { certificate, .. } => certificate.to_string_lossy(),
                    Certificate::SelfSigned { .. } | Certificate::Exchanged(_) => "".into(),
                };
                let exchange = Warning {
                    kind: "certificate",
                    namespace: "",
                    name: &file,
                    node: None,
                    action: "exchange",
                    error: &error,
                    next: "when the file changes; until then the one before is shown",
                };
                exchange.log();
            }
        }
    }
}

#[cfg(test)]
impl Shown {
    /// The present certificate with its key.
    fn whole(&self) -> Arc<CertifiedKey> {
        self.current.0.load_full().expect("there is one")
    }

    /// The present certificate.
    pub(super) fn shown(&self) -> CertificateDer<'static> {
        self.current.certificate().expect("there is one")
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.0.load_full()
    }
}

/// The contents of a certificate's files. Not printable, because one of them is a secret.
#[derive(PartialEq, Eq)]
struct Pem {
    paths: [PathBuf; 2],
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Pem {
    fn read(certificate: &Path, key: &Path) -> Result<Self, ServeError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|source| ServeError::Unreadable {
                path: path.to_owned(),
                source,
            })
        };
        Ok(Self {
            paths: [certificate.to_owned(), key.to_owned()],
            certificate: read(certificate)?,
            key: read(key)?,
        })
    }

    fn parse(&self) -> Result<CertifiedKey, ServeError> {
        let [certificate, key] = self.paths.clone();
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let Some(chain) = chain else {
            return Err(ServeError::NoCertificate { path: certificate });
        };
        let Ok(private) = PrivateKeyDer::from_pem_slice(&self.key) else {
            return Err(ServeError::NoKey { path: key });
        };
        CertifiedKey::from_der(chain, private, &provider()).map_err(|source| ServeError::Mismatch {
            certificate,
            key,
            source,
        })
    }
}

/// The cryptography of all connections.
pub(crate) fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

fn self_signed(host: &str, address: IpAddr) -> Result<CertifiedKey, ServeError> {
    let failed = |error: rcgen::Error| ServeError::SelfSigned(Box::new(error));
    let mut names = vec!["localhost".to_owned(), host.to_owned(), address.to_string()];
    // A certificate cannot hold these names; it is better without them than not made at all.
    names.retain(|name| !name.is_empty() && name.is_ascii());
    names.dedup();
    let mut params = rcgen::CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(rcgen::DnType::CommonName, format!("strew@{host}"));
    let key = rcgen::KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    let private = PrivateKeyDer::try_from(key.serialize_der())
        .map_err(|error| ServeError::SelfSigned(error.into()))?;
    let chain = vec![certificate.der().clone()];
    CertifiedKey::from_der(chain, private, &provider()).map_err(ServeError::Tls)
}

/// An error and its causes in one line.
pub(super) fn whole_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
