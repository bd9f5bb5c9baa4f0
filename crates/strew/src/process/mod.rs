//! What all commands that run until a signal share: flags, log, pages, and a check of permissions.
//!
//! Reading order: [`configuration`], [`log`], [`election`], [`start`], [`serving`], [`permissions`], [`signals`].

pub(crate) mod configuration;
pub(crate) mod election;
pub(crate) mod log;
pub(crate) mod permissions;
pub(crate) mod serving;
pub(crate) mod signals;
pub(crate) mod start;

use strew_kube::Warning;
use strew_kube::connect::{self, Connection};
use strew_kube::huge_pages;

use crate::cluster::{self, access};
use crate::failure::Failure;

/// Runs the work of a process that ends by a signal.
pub(crate) fn run(work: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    huge_pages::disable();
    cluster::runtime()?.block_on(work)
}

/// Connects to the API server as a part of strew, and logs which one it is.
pub(crate) async fn connected(
    access: &connect::Access,
    part: &'static str,
) -> Result<Connection, Failure> {
    let connection = connect::connect(access, part)
        .await
        .map_err(access::failure)?;
    tracing::info!(
        server = connection.server,
        version = connection.version,
        "connected"
    );
    if let Some(warning) = &connection.warning {
        let recognise = Warning {
            kind: "API server",
            namespace: "",
            name: &connection.server,
            node: None,
            action: "recognise version",
            error: warning,
            next: "none: it is asked all the same",
        };
        recognise.log();
    }
    Ok(connection)
}
