//! The address to listen on, and the errors of listening.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::certificate::Certificate;

/// Where to listen: `--bind-address`, `--secure-port`, `--tls-cert-file` and `--tls-private-key-file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address.
    pub address: IpAddr,
    /// The port; 0: the server does not listen. Source: kube-scheduler's `--secure-port`.
    pub port: u16,
    /// The serving certificate.
    pub certificate: Certificate,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be used.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error.
        source: std::io::Error,
    },
    /// A file of the certificate cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A file that should hold certificates has none, or an invalid one.
    #[error("{} holds no certificate in PEM", path.display())]
    NoCertificate {
        /// Its path.
        path: PathBuf,
    },
    /// A file that should hold a private key has none, or an invalid one.
    #[error("{} holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1, not encrypted)", path.display())]
    NoKey {
        /// Its path.
        path: PathBuf,
    },
    /// The key is unusable, or does not belong to the certificate.
    #[error("the key of {} does not go with the certificate of {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// The error.
        source: rustls::Error,
    },
    /// The self-signed certificate cannot be made.
    #[error("cannot make a self-signed certificate")]
    SelfSigned(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}
