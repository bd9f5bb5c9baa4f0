//! Client certificates signed by the cluster's CA for clients.
//!
//! TLS accepts any certificate whose key the client has. Whether it is signed by the cluster's CA is checked per page,
//! so that a client with another certificate and a valid token is not rejected. Source: k8s.io/apiserver,
//! `DelegatingAuthenticationOptions` and `authentication/request/x509`.
//!
//! The CA is read once, at the start. Users that a front proxy names in headers are not supported.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};

use super::review::User;
use super::subject::Subject;
use crate::serve::certificate::provider;

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
    /// It names an invalid CA.
    #[error("{KEY} of ConfigMap {NAMESPACE}/{NAME} holds no certificates in PEM")]
    Broken,
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

/// Identifies users by their certificates.
#[derive(Debug)]
pub struct Clients {
    chains: Arc<dyn ClientCertVerifier>,
}

impl Clients {
    /// Reads the cluster's CA. The caller may continue without it, since tokens do not need it.
    ///
    /// # Errors
    /// There is no CA, or it cannot be read.
    pub async fn of_cluster(client: kube::Client) -> Result<Self, ClientsError> {
        let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let read = api.get(NAME).await;
        let map = read.map_err(ClientsError::of_read)?;
        let data = map.data.unwrap_or_default();
        let pem = data.get(KEY).ok_or(ClientsError::Absent)?;
        Self::of_authority(pem)
    }

    /// With a CA in PEM.
    ///
    /// # Errors
    /// The text has no certificate, or an invalid one.
    pub fn of_authority(pem: &str) -> Result<Self, ClientsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|_| ClientsError::Broken)?;
            roots.add(certificate).map_err(|_| ClientsError::Broken)?;
        }
        let (roots, provider) = (Arc::new(roots), Arc::new(provider()));
        let chains = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        let chains = chains.map_err(|_| ClientsError::Broken)?;
        Ok(Self { chains })
    }

    /// What TLS requests of clients.
    pub fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyOwner(Arc::clone(&self.chains)))
    }

    /// The user of a certificate chain, the client's own certificate first; `None` if no known CA has signed it.
    pub fn user_of(&self, certificates: &[CertificateDer<'_>]) -> Option<User> {
        let (own, others) = certificates.split_first()?;
        let now = UnixTime::now();
        self.chains.verify_client_cert(own, others, now).ok()?;
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

/// Accepts every client that has the key of its certificate, or shows no certificate.
#[derive(Debug)]
struct AnyOwner(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyOwner {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
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
