//! Client certificates signed by the cluster's CA for clients.
//!
//! TLS accepts any certificate whose key the client has. Whether it is signed by the cluster's CA is checked per page,
//! so that a client with another certificate and a valid token is not rejected. Source: k8s.io/apiserver,
//! `DelegatingAuthenticationOptions` and `authentication/request/x509`.
//!
//! The CA is read again while the process runs: it may be replaced. Users that a front proxy names in headers are not
//! supported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use strew_runtime::Warning;
use tokio_util::sync::CancellationToken;

use super::review::User;
use super::subject::Subject;
use crate::serve::certificate::{LOOK_EVERY, provider, whole_text};

/// How often the API server is asked for its CA again: a CA is replaced hours before the old one ends.
const ASK_EVERY: Duration = Duration::from_secs(60);

/// The ConfigMap in which the API server publishes its CA for clients.
const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";
const KEY: &str = "client-ca-file";

/// The group of all authenticated users.
const AUTHENTICATED: &str = "system:authenticated";

/// Why client certificates are not accepted.
#[derive(Debug, thiserror::Error)]
pub enum ClientsError {
    /// The ConfigMap does not exist.
    #[error(
        "ConfigMap {NAMESPACE}/{NAME} does not exist: the API server writes it when it runs with --client-ca-file or \
         --requestheader-client-ca-file"
    )]
    NoConfigMap,
    /// The process may not read it.
    #[error(
        "ConfigMap {NAMESPACE}/{NAME} may not be read (a RoleBinding in {NAMESPACE} to the Role \
         extension-apiserver-authentication-reader allows it)"
    )]
    Forbidden(#[source] Box<kube::Error>),
    /// The API server does not answer, or with another error.
    #[error("cannot read ConfigMap {NAMESPACE}/{NAME}")]
    NotRead(#[source] Box<kube::Error>),
    /// It names no CA.
    #[error("ConfigMap {NAMESPACE}/{NAME} has no {KEY}")]
    Absent,
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It names an invalid CA.
    #[error("{0} holds no certificates in PEM")]
    Broken(String),
}

impl ClientsError {
    fn of_read(error: kube::Error) -> Self {
        let code = match &error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        };
        match code {
            404 => Self::NoConfigMap,
            403 => Self::Forbidden(Box::new(error)),
            _ => Self::NotRead(Box::new(error)),
        }
    }
}

/// Where the CA stands.
#[derive(Clone)]
enum Source {
    /// In the ConfigMap of the cluster.
    Cluster(kube::Client),
    /// In a file in PEM.
    File(PathBuf),
    /// In the program: it stays.
    Given(String),
}

impl Source {
    fn name(&self) -> String {
        match self {
            Self::Cluster(_) => format!("{KEY} of ConfigMap {NAMESPACE}/{NAME}"),
            Self::File(path) => path.display().to_string(),
            Self::Given(_) => "the text".to_owned(),
        }
    }

    /// How often it is read; `None`: once.
    fn every(&self) -> Option<Duration> {
        match self {
            Self::Cluster(_) => Some(ASK_EVERY),
            Self::File(_) => Some(LOOK_EVERY),
            Self::Given(_) => None,
        }
    }

    /// The CA in PEM.
    async fn read(&self) -> Result<String, ClientsError> {
        match self {
            Self::Cluster(client) => {
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
                let read = api.get(NAME).await;
                let map = read.map_err(ClientsError::of_read)?;
                let pem = map.data.and_then(|mut data| data.remove(KEY));
                pem.ok_or(ClientsError::Absent)
            }
            Self::File(path) => {
                let (path, of) = (path.clone(), path.clone());
                let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(of)).await;
                let read = read.unwrap_or_else(|ended| Err(std::io::Error::other(ended)));
                read.map_err(|source| ClientsError::Unreadable { path, source })
            }
            Self::Given(pem) => Ok(pem.clone()),
        }
    }
}

/// A CA for clients.
struct Authority {
    pem: String,
    chains: Arc<dyn ClientCertVerifier>,
}

impl Authority {
    fn parse(pem: String, source: &Source) -> Result<Self, ClientsError> {
        let broken = || ClientsError::Broken(source.name());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|_| broken())?;
            roots.add(certificate).map_err(|_| broken())?;
        }
        let (roots, provider) = (Arc::new(roots), Arc::new(provider()));
        let chains = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        let chains = chains.map_err(|_| broken())?;
        Ok(Self { pem, chains })
    }
}

/// Identifies users by their certificates.
pub struct Clients {
    source: Source,
    authority: ArcSwap<Authority>,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clients({})", self.source.name())
    }
}

impl Clients {
    /// Reads the cluster's CA. The caller may continue without it, since tokens do not need it.
    ///
    /// # Errors
    /// There is no CA, or it cannot be read.
    pub async fn of_cluster(client: kube::Client) -> Result<Self, ClientsError> {
        Self::of(Source::Cluster(client)).await
    }

    /// Reads a CA from a file in PEM.
    ///
    /// # Errors
    /// The file cannot be read, has no certificate, or an invalid one.
    pub async fn of_file(path: PathBuf) -> Result<Self, ClientsError> {
        Self::of(Source::File(path)).await
    }

    /// With a CA in PEM.
    ///
    /// # Errors
    /// The text has no certificate, or an invalid one.
    pub fn of_authority(pem: &str) -> Result<Self, ClientsError> {
        Self::new(Source::Given(pem.to_owned()), pem.to_owned())
    }

    async fn of(source: Source) -> Result<Self, ClientsError> {
        let pem = source.read().await?;
        Self::new(source, pem)
    }

    fn new(source: Source, pem: String) -> Result<Self, ClientsError> {
        let authority = Authority::parse(pem, &source)?;
        Ok(Self {
            source,
            authority: ArcSwap::from_pointee(authority),
        })
    }

    /// Reads the CA again now and then until asked to stop. A CA that cannot be used is logged once and changes nothing.
    pub async fn follow(self: Arc<Self>, stop: CancellationToken) {
        let Some(every) = self.source.every() else {
            return;
        };
        let mut told = None;
        while stop
            .run_until_cancelled(tokio::time::sleep(every))
            .await
            .is_some()
        {
            let read = self.source.read().await;
            let error = self.take_over(read).err().map(|error| whole_text(&error));
            if let Some(error) = &error
                && told.as_ref() != Some(error)
            {
                let exchange = Warning {
                    kind: "certificate",
                    namespace: "",
                    name: &self.source.name(),
                    node: None,
                    action: "exchange",
                    error,
                    next: "it is read again; until then clients are known by the one before",
                };
                exchange.log();
            }
            told = error;
        }
    }

    fn take_over(&self, read: Result<String, ClientsError>) -> Result<(), ClientsError> {
        let pem = read?;
        if pem != self.authority.load().pem {
            let authority = Authority::parse(pem, &self.source)?;
            self.authority.store(Arc::new(authority));
            tracing::info!(
                authority = self.source.name(),
                "the CA of clients was exchanged"
            );
        }
        Ok(())
    }

    /// What TLS requests of clients.
    pub fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyOwner(Arc::clone(&self.authority.load().chains)))
    }

    /// The user of a certificate chain, the client's own certificate first; `None` if no known CA has signed it.
    pub fn user_of(&self, certificates: &[CertificateDer<'_>]) -> Option<User> {
        let (own, others) = certificates.split_first()?;
        let now = UnixTime::now();
        let authority = self.authority.load();
        (authority.chains)
            .verify_client_cert(own, others, now)
            .ok()?;
        let subject = Subject::of(own)?;
        let mut groups = subject.organizations;
        groups.push(AUTHENTICATED.to_owned());
        (!subject.common_name.is_empty()).then_some(User {
            name: subject.common_name,
            uid: String::new(),
            groups,
            extra: BTreeMap::new(),
        })
    }
}

/// Accepts every client that has the key of its certificate, or shows no certificate. The verifier inside only says how
/// signatures are made, which no CA changes.
#[derive(Debug)]
struct AnyOwner(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyOwner {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None: a client whose certificate another CA has signed would show nothing, and the CA may be replaced.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
pub(crate) mod tests;
