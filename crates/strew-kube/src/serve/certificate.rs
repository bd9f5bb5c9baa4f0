//! The server's certificate: given files that are read again when they change, or one that is made in memory.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio_util::sync::CancellationToken;

use super::listen::ServeError;

/// How often given files are looked at. A mounted Secret is exchanged by a link, which no watch of a file would see.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Where the certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificate {
    /// Files in PEM, read again when they change: `--tls-cert-file` and `--tls-private-key-file`.
    Files {
        /// The certificate, followed by those that signed it.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// Made at start, in memory, for `localhost`, this host's name and the address that is listened on.
    SelfSigned {
        /// The host's name.
        host: String,
    },
}

/// The certificate that connections are made with, exchanged while others are served.
#[derive(Debug)]
pub struct Shown {
    current: ArcSwap<CertifiedKey>,
    source: Certificate,
}

impl Shown {
    /// Reads or makes the certificate.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub fn new(source: Certificate, address: IpAddr) -> Result<Self, ServeError> {
        let key = match &source {
            Certificate::Files { certificate, key } => Pem::read(certificate, key)?.parse()?,
            Certificate::SelfSigned { host } => self_signed(host, address)?,
        };
        let current = ArcSwap::from_pointee(key);
        Ok(Self { current, source })
    }

    /// Takes changed files over, until told to stop. Files that cannot be used are told of once, and change nothing.
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

    /// Takes a changed certificate over; what was seen last is not looked at again.
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
            Ok(key) if key.cert != self.current.load().cert => {
                self.current.store(Arc::new(key));
                tracing::info!("the serving certificate was exchanged");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("the serving certificate is kept as it was: {error}"),
        }
    }
}

#[cfg(test)]
impl Shown {
    /// The certificate that is shown now.
    pub(super) fn shown(&self) -> CertificateDer<'static> {
        self.current.load().cert[0].clone()
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.load_full())
    }
}

/// The bytes of a certificate's files. Not printable: one of them is a secret.
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

/// The cryptography of every connection.
pub(super) fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

fn self_signed(host: &str, address: IpAddr) -> Result<CertifiedKey, ServeError> {
    let failed = |error: rcgen::Error| ServeError::SelfSigned(Box::new(error));
    let mut names = vec!["localhost".to_owned(), host.to_owned(), address.to_string()];
    // What no certificate can hold: better without it than none.
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

/// An error and its causes, in one line.
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
