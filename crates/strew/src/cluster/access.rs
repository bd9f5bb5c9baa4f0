//! Which API server to use, as for kubectl and kube-scheduler.

use std::path::PathBuf;

#[cfg(feature = "cluster")]
use anyhow::anyhow;
use clap::Args;
#[cfg(feature = "cluster")]
use strew_kube::connect::{Access, ConnectError};
#[cfg(feature = "cluster")]
use strew_wire::config::ClientConnection;

#[cfg(feature = "cluster")]
use crate::failure::Failure;

/// Arguments that name an API server.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Which API server")]
pub(crate) struct AccessArgs {
    /// A kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig other than the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The URL of the API server, in place of the kubeconfig's
    #[arg(long, value_name = "URL")]
    master: Option<String>,
}

impl AccessArgs {
    /// True if the user named an API server, or if its default place exists.
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.master.is_some()
    }

    /// A flag takes precedence over the configuration.
    #[cfg(feature = "cluster")]
    pub(crate) fn of(&self, connection: &ClientConnection) -> Access {
        let configured = Some(&connection.kubeconfig).filter(|path| !path.is_empty());
        Access {
            kubeconfig: self.kubeconfig.clone().or(configured.map(PathBuf::from)),
            context: self.context.clone(),
            master: self.master.clone(),
        }
    }
}

/// No API server could be found: the error, with what to do.
#[cfg(feature = "cluster")]
pub(crate) fn failure(error: ConnectError) -> Failure {
    let hint = match &error {
        ConnectError::Kubeconfig { .. } | ConnectError::Master(_) => None,
        ConnectError::Nowhere(_) => Some("name one with --kubeconfig, or set KUBECONFIG"),
        ConnectError::Client {
            names_no_ca: true, ..
        } => Some(
            "the kubeconfig has no certificate-authority-data: add it, or the CA certificates that this machine lacks",
        ),
        ConnectError::Client { .. } => Some("look at the user's entry in the kubeconfig"),
        ConnectError::Unreachable { .. } => Some("does `kubectl version` reach it from here?"),
        ConnectError::Unauthorized { .. } => {
            Some("the token or certificate may have expired: does `kubectl auth whoami` know you?")
        }
        ConnectError::TooOld { .. } => Some("`strew simulate` decides on dumps of any version"),
    };
    let is_input = match &error {
        ConnectError::Kubeconfig { is_unread, .. } => !is_unread,
        error => matches!(error, ConnectError::Master(_) | ConnectError::Nowhere(_)),
    };
    let failure = match is_input {
        true => Failure::input(anyhow!(error)),
        false => Failure::outside(anyhow!(error)),
    };
    match hint {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
