//! The flags of what is served over HTTPS. Source: spec/scheduler §5.4, §5.5.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use anyhow::anyhow;
use axum::Router;
use clap::Args;
use strew_kube::Client;
use strew_kube::serve::access::Paths;
use strew_kube::serve::pages::guarded;
use strew_kube::serve::{Access, Certificate, Limits, Listen, ServeError, Server};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// Arguments of what is served.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Health and metrics, over HTTPS")]
pub(super) struct ServingArgs {
    /// The address that is listened on
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED))]
    bind_address: IpAddr,
    /// The port; 0: nothing is served
    #[arg(long, value_name = "PORT", default_value_t = 10259)]
    secure_port: u16,
    /// A certificate in PEM, and those that signed it; read again when it changes [default: one that is made at the start]
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,
    /// What everybody may see; all else is asked of the API server
    #[arg(long, value_name = "PATH,...", default_value = "/healthz,/readyz,/livez", value_parser = Paths::parse)]
    authorization_always_allow_paths: Paths,
}

impl ServingArgs {
    /// Listens; `None` for port 0.
    ///
    /// # Errors
    /// The address, or the certificate's files.
    pub(super) async fn bind(&self, hostname: &str) -> Result<Option<Server>, Failure> {
        let certificate = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => Certificate::Files {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            _ => Certificate::SelfSigned {
                host: hostname.to_owned(),
            },
        };
        let listen = Listen {
            address: self.bind_address,
            port: self.secure_port,
            certificate,
        };
        let server = Server::bind(listen, None, Limits::default()).await;
        server.map_err(|error| {
            let is_address = matches!(error, ServeError::Bind { .. });
            let failure = match is_address {
                true => Failure::outside(error),
                false => Failure::input(anyhow!(error)),
            };
            match is_address {
                true => failure.with_hint("--secure-port takes another port, and 0 serves nothing"),
                false => failure,
            }
        })
    }

    /// Serves the pages until the end, each for those who may see it.
    pub(super) fn serve(
        &self,
        server: Option<Server>,
        pages: Router,
        client: &Client,
        end: CancellationToken,
    ) {
        let Some(server) = server else {
            return;
        };
        tracing::info!("health and metrics on https://{}", server.address());
        let access = Access::new(
            client.clone(),
            self.authorization_always_allow_paths.clone(),
        );
        tokio::spawn(server.run(guarded([pages], access), end));
    }
}
