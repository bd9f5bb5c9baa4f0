//! The address to listen on, and the errors of listening.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::certificate::Certificate;

/// Where to listen: `--bind-address`, `--secure-port`, `--tls-cert-file` and `--tls-private-key-file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    /// The address.
    pub address: IpAddr,
    /// The port; 0: nothing is served. Source: kube-scheduler's `--secure-port`.
    pub port: u16,
    /// What the server shows that it is itself with.
    pub certificate: Certificate,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Bind {
        /// Which.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// A file of the certificate cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A file that should hold certificates holds none, or something broken.
    #[error("{} holds no certificate in PEM", path.display())]
    NoCertificate {
        /// Which.
        path: PathBuf,
    },
    /// A file that should hold a private key holds none, or something broken.
    #[error("{} holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1, not encrypted)", path.display())]
    NoKey {
        /// Which.
        path: PathBuf,
    },
    /// The key cannot be used, or is not the certificate's.
    #[error("the key of {} does not go with the certificate of {}", key.display(), certificate.display())]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
    /// No certificate could be made.
    #[error("cannot make a self-signed certificate")]
    SelfSigned(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}
