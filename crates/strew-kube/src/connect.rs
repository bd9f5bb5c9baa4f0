//! Connects to the API server and checks that its version is one that strew supports.

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use kube::Client;
use kube::Config;
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use thiserror::Error;

use crate::agent::Agent;
use crate::causes::in_a_line;
use crate::discovery::DiscoveryError;
use crate::metrics::Requests;

/// The oldest accepted minor version of Kubernetes 1: since then scheduling gates and matchLabelKeys, as strew reads
/// them, are stable.
pub const OLDEST_MINOR: u32 = 30;

/// The minor version whose decisions and types strew knows.
pub const KNOWN_MINOR: u32 = 36;

/// The time limit for opening a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How to reach the API server, as the user gave it.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// A kubeconfig file. `None`: `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// The context to use, other than the current one.
    pub context: Option<String>,
    /// The URL of the API server, in place of the kubeconfig's.
    pub master: Option<String>,
}

/// A connection to an API server that has answered.
#[derive(Clone)]
pub struct Connection {
    /// The client. It never retries by itself: [`strew_wire::retry`] decides about retries.
    pub client: Client,
    /// Counts the client's requests.
    pub requests: Requests,
    /// Its URL.
    pub server: String,
    /// The version that it reports.
    pub version: String,
    /// The namespace of the context.
    pub namespace: String,
    /// A warning if strew does not know the version.
    pub warning: Option<String>,
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// A kubeconfig file cannot be used.
    #[error("kubeconfig {path}: {text}")]
    Kubeconfig {
        /// Its path.
        path: String,
        /// The fault.
        text: String,
        /// True if the file could not be read; false if what it says, or what was chosen of it, is wrong.
        is_unread: bool,
    },
    /// Neither a kubeconfig nor a service account names an API server.
    #[error("found neither a kubeconfig nor a service account: {0}")]
    Nowhere(String),
    /// The value of `--master` is not a URL.
    #[error("--master {0:?} is not a URL such as https://10.0.0.1:6443")]
    Master(String),
    /// The client cannot be made, because of certificates, keys, or a credential plugin.
    #[error("cannot set up a client for the API server {server}: {text}")]
    Client {
        /// The API server's URL.
        server: String,
        /// The error.
        text: String,
        /// True if the kubeconfig has no certificate authority, so that those of the machine are needed.
        names_no_ca: bool,
    },
    /// The API server does not answer.
    #[error("the API server {server} does not answer: {text}")]
    Unreachable {
        /// The API server's URL.
        server: String,
        /// The error.
        text: String,
        /// True if it may answer later; false if its certificate or the user's credentials are wrong.
        is_outage: bool,
    },
    /// The API server does not know the user (401).
    #[error("the API server {server} does not accept the credentials ({text})")]
    Unauthorized {
        /// The API server's URL.
        server: String,
        /// Its answer.
        text: String,
    },
    /// The API server is too old.
    #[error("the API server {server} is Kubernetes {version}; 1.{OLDEST_MINOR} or later is needed")]
    TooOld {
        /// The API server's URL.
        server: String,
        /// Its version.
        version: String,
    },
}

/// Asks the API server for its version. Every request of the client has `part`, a process of strew such as
/// `strew-scheduler`, as its user agent, and every write has it as the field manager.
///
/// # Errors
/// No API server is configured, it does not answer, or strew cannot work with it.
pub async fn connect(access: &Access, part: &'static str) -> Result<Connection, ConnectError> {
    let config = configuration(access).await?;
    let server = config.cluster_url.to_string();
    let namespace = config.default_namespace.clone();
    let authority = config.cluster_url.authority();
    let requests = Requests::to(authority.map_or("", |authority| authority.as_str()));
    let client = client(config, part, &requests)?;
    let found = match client.apiserver_version().await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
            let text = status.message.clone();
            return Err(ConnectError::Unauthorized { server, text });
        }
        Err(error) => {
            let (text, is_outage) = (in_a_line(&error), is_outage(&error));
            return Err(ConnectError::Unreachable {
                server,
                text,
                is_outage,
            });
        }
    };
    let version = found.git_version;
    let minor = minor_of(&found.major, &found.minor);
    if minor.is_some_and(|minor| minor < OLDEST_MINOR) {
        return Err(ConnectError::TooOld { server, version });
    }
    let warning = match minor {
        Some(minor) if minor > KNOWN_MINOR + 1 => Some(format!(
            "the API server is Kubernetes {version}; strew knows the fields of 1.{KNOWN_MINOR}, and what later \
             versions added is ignored"
        )),
        Some(_) => None,
        None => Some(format!(
            "the API server tells no version that is known: {version:?}"
        )),
    };
    Ok(Connection {
        client,
        requests,
        server,
        version,
        namespace,
        warning,
    })
}

/// A further client, with connections of its own, whose requests are counted with those of a [`Connection`].
///
/// # Errors
/// No API server is configured.
pub async fn apart(
    access: &Access,
    part: &'static str,
    requests: &Requests,
) -> Result<Client, ConnectError> {
    client(configuration(access).await?, part, requests)
}

fn client(config: Config, part: &'static str, requests: &Requests) -> Result<Client, ConnectError> {
    let server = config.cluster_url.to_string();
    let names_no_ca = config.root_cert.is_none();
    let builder = ClientBuilder::try_from(config).map_err(|error| ConnectError::Client {
        server,
        names_no_ca,
        text: in_a_line(&error),
    })?;
    let builder = builder.with_layer(requests).with_layer(&Agent::of(part));
    Ok(builder.build())
}

async fn configuration(access: &Access) -> Result<Config, ConnectError> {
    let options = KubeConfigOptions {
        context: access.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match &access.kubeconfig {
        Some(path) => of_file(path, &options).await?,
        None => inferred(&options).await?,
    };
    if let Some(master) = &access.master {
        let is_whole = |uri: &http::Uri| uri.scheme().is_some() && uri.host().is_some();
        let uri: Option<http::Uri> = master.parse().ok().filter(is_whole);
        config.cluster_url = uri.ok_or_else(|| ConnectError::Master(master.clone()))?;
    }
    let is_checked =
        config.cluster_url.scheme_str() == Some("https") && !config.accept_invalid_certs;
    if !is_checked {
        // Without this the certificates of the machine are loaded, and an image from scratch has none.
        config.root_cert.get_or_insert_default();
    }
    config.connect_timeout = Some(CONNECT_WITHIN);
    // strew-wire decides about retries, for simulations and real clusters alike.
    config.default_retry = false;
    // Compression costs the API server more CPU than the network saves.
    config.disable_compression = true;
    Ok(config)
}

async fn of_file(path: &Path, options: &KubeConfigOptions) -> Result<Config, ConnectError> {
    let wrong = |error| unusable(path.display().to_string(), &error);
    let file = Kubeconfig::read_from(path).map_err(wrong)?;
    let config = Config::from_custom_kubeconfig(file, options).await;
    config.map_err(wrong)
}

fn unusable(path: String, error: &KubeconfigError) -> ConnectError {
    ConnectError::Kubeconfig {
        path,
        text: in_a_line(error),
        is_unread: matches!(error, KubeconfigError::ReadConfig(..)),
    }
}

async fn inferred(options: &KubeConfigOptions) -> Result<Config, ConnectError> {
    let is_in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    match Config::from_kubeconfig(options).await {
        Ok(config) => Ok(config),
        Err(_) if is_in_pod && options.context.is_none() => {
            Config::incluster().map_err(|error| ConnectError::Nowhere(in_a_line(&error)))
        }
        Err(error) => match std::env::var("KUBECONFIG") {
            Ok(path) if !path.is_empty() => Err(unusable(path, &error)),
            _ => Err(ConnectError::Nowhere(in_a_line(&error))),
        },
    }
}

/// The minor version of Kubernetes 1; some vendors write `36+`.
fn minor_of(major: &str, minor: &str) -> Option<u32> {
    let digits = minor.trim_end_matches(|c: char| !c.is_ascii_digit());
    digits.parse().ok().filter(|_| major == "1")
}

/// True if the API server may answer the same request later.
fn is_outage(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::Service(_) | kube::Error::HyperError(_) => !is_certificate_wrong(error),
        _ => false,
    }
}

/// True if the connection ended because the client does not trust the server's certificate.
fn is_certificate_wrong(error: &kube::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<std::io::Error>();
        let inner = inner.and_then(std::io::Error::get_ref);
        let found = match inner {
            Some(inner) => inner.downcast_ref::<rustls::Error>(),
            None => cause.downcast_ref::<rustls::Error>(),
        };
        if matches!(found, Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        next = cause.source();
    }
    false
}

/// True if one of these causes is an API server that may answer later: the start of a process is tried again.
pub fn is_outage_in<'a>(
    mut causes: impl Iterator<Item = &'a (dyn std::error::Error + 'static)>,
) -> bool {
    causes.any(|cause| {
        let connecting = cause.downcast_ref::<ConnectError>();
        let is_unreachable = |error: &ConnectError| {
            matches!(
                error,
                ConnectError::Unreachable {
                    is_outage: true,
                    ..
                }
            )
        };
        connecting.is_some_and(is_unreachable)
            || cause.is::<DiscoveryError>()
            || cause.downcast_ref::<kube::Error>().is_some_and(is_outage)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minors_are_read_as_vendors_write_them() {
        assert_eq!(minor_of("1", "36"), Some(36));
        assert_eq!(minor_of("1", "36+"), Some(36));
        assert_eq!(minor_of("2", "1"), None);
        assert_eq!(minor_of("1", ""), None);
    }

    #[tokio::test]
    async fn a_wrong_kubeconfig_is_named() {
        let at = |path: &str| Access {
            kubeconfig: Some(path.into()),
            ..Access::default()
        };
        let told = |result: Result<Connection, ConnectError>| match result {
            Ok(_) => panic!("there is no such API server"),
            Err(error) => error.to_string(),
        };
        let missing = told(connect(&at("/nowhere/config"), "strew").await);
        assert!(
            missing.starts_with("kubeconfig /nowhere/config: "),
            "{missing}"
        );
        assert!(missing.contains("No such file"), "{missing}");
    }
}
