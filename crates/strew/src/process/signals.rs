//! Ends a process by a signal.

use anyhow::anyhow;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::platform::EndSignals;

/// Cancelled by the first SIGINT or SIGTERM; the second one kills the process.
///
/// # Errors
/// The system has no such signals.
pub(crate) fn until_signal() -> Result<CancellationToken, Failure> {
    let mut signals = EndSignals::new().map_err(refused)?;
    let end = CancellationToken::new();
    let told = end.clone();
    tokio::spawn(async move {
        signals.recv().await;
        tracing::info!("ending");
        told.cancel();
        signals.recv().await;
        std::process::exit(130);
    });
    Ok(end)
}

fn refused(error: std::io::Error) -> Failure {
    match error.kind() {
        std::io::ErrorKind::Unsupported => Failure::input(anyhow!("{error}"))
            .with_hint("strew install prints manifests that run it in the cluster"),
        _ => Failure::outside(error),
    }
}
