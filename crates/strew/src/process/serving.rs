//! The flags of the HTTPS server. Source: spec/scheduler §5.4, §5.5.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use axum::Router;
use clap::Args;
use strew_kube::Client;
use strew_kube::identity;
use strew_kube::permission::Permission;
use strew_kube::scheduler::permissions::OF_PAGES;
use strew_kube::serve::access::{Clients, Paths};
use strew_kube::serve::health::Awaited;
use strew_kube::serve::pages::guarded;
use strew_kube::serve::{Access, Certificate, Health, Limits, Listen, ServeError, Server};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// Arguments of the HTTPS server.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Health and metrics, over HTTPS")]
pub(crate) struct ServingArgs {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    bind_address: IpAddr,
    /// The port; 0: no server
    #[arg(long, value_name = "PORT")]
    secure_port: Option<u16>,
    /// A certificate in PEM with its chain; read again when it changes [default: one that is made at the start]
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// Paths that need no authorization; for all others the API server is asked
    #[arg(long, value_name = "PATH,...", default_value = "/healthz,/readyz,/livez", value_parser = Paths::parse)]
    authorization_always_allow_paths: Paths,
}

impl ServingArgs {
    /// The rights that it takes to serve: to ask who a client is, and what it may see. Empty for port 0.
    pub(crate) fn needed(&self) -> &'static [Permission] {
        match self.secure_port {
            Some(0) => &[],
            _ => OF_PAGES,
        }
    }

    /// Serves the health of a process that waits for the API server: alive and not ready. These
    /// pages need no authorization: the API server, which would decide, does not answer, and they tell only that.
    ///
    /// # Errors
    /// The address, or the certificate's files.
    pub(crate) async fn wait(&self, own_port: u16) -> Result<Waiting, Failure> {
        let port = self.secure_port.unwrap_or(own_port);
        let listen = self.listen(port, &identity::hostname());
        let server = Server::bind(listen, None, Limits::default()).await;
        let stop = CancellationToken::new();
        let served = server.map_err(not_served)?.map(|server| {
            let why = "the API server does not answer";
            let health = Health {
                ready: vec![Arc::new(Awaited::new("api-server", why))],
                ..Health::default()
            };
            tokio::spawn(server.run(health.pages(), stop.clone()))
        });
        Ok(Waiting { stop, served })
    }

    fn listen(&self, port: u16, hostname: &str) -> Listen {
        let certificate = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => Certificate::Files {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            _ => Certificate::SelfSigned {
                host: hostname.to_owned(),
            },
        };
        Listen {
            address: self.bind_address,
            port,
            certificate,
        }
    }

    /// Listens, on the program's own port unless another is given; `None` for port 0.
    ///
    /// # Errors
    /// The address, or the certificate's files.
    pub(crate) async fn bind(
        &self,
        own_port: u16,
        hostname: &str,
        client: &Client,
    ) -> Result<Option<Serving>, Failure> {
        let port = self.secure_port.unwrap_or(own_port);
        if port == 0 {
            return Ok(None);
        }
        let clients = match Clients::of_cluster(client.clone()).await {
            Ok(clients) => Some(Arc::new(clients)),
            Err(error) => {
                tracing::info!("certificates of clients are not accepted, only tokens: {error}");
                None
            }
        };
        let verifier = clients.as_ref().map(|clients| clients.verifier());
        let server = Server::bind(self.listen(port, hostname), verifier, Limits::default()).await;
        let server = server.map_err(not_served)?;
        let Some(server) = server else {
            return Ok(None);
        };
        let allowed = self.authorization_always_allow_paths.clone();
        Ok(Some(Serving {
            server,
            access: Access::new(client.clone(), allowed, clients.clone()),
            clients,
        }))
    }
}

fn not_served(error: ServeError) -> Failure {
    match error {
        ServeError::Bind { .. } => Failure::outside(error)
            .with_hint("--secure-port takes another port, and 0 serves nothing"),
        error => Failure::input(anyhow!(error)),
    }
}

/// The pages of a process that waits for the API server.
pub(crate) struct Waiting {
    stop: CancellationToken,
    /// `None` for port 0.
    served: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Ends the pages, and frees their port.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        if let Some(served) = self.served {
            drop(served.await);
        }
    }
}

/// A listening server, with the access rules of its pages.
pub(crate) struct Serving {
    server: Server,
    access: Access,
    /// Whose CA is followed; `None`: clients have tokens only.
    clients: Option<Arc<Clients>>,
}

impl Serving {
    /// The same, but the handlers of these paths check access themselves.
    pub(crate) fn judged_there(self, paths: Paths) -> Self {
        Self {
            access: self.access.judged_there(paths),
            ..self
        }
    }

    /// Serves the pages until the end, to clients with access: on a thread of their own, because a probe must be answered
    /// while the machine is busy with a pod that takes seconds.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(self, pages: Router, end: CancellationToken) -> Result<(), Failure> {
        let Self {
            server,
            access,
            clients,
        } = self;
        tracing::info!("health and metrics on https://{}", server.address());
        if let Some(clients) = clients {
            tokio::spawn(clients.follow(end.clone()));
        }
        let served = server.run_apart(guarded([pages], access), end);
        served.map_err(Failure::outside)
    }
}
