//! Ends a process by a signal.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// Cancelled by the first SIGINT or SIGTERM; the second one kills the process.
pub(crate) fn until_signal() -> Result<CancellationToken, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::outside)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::outside)?;
    let end = CancellationToken::new();
    let told = end.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("ending");
        told.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        std::process::exit(130);
    });
    Ok(end)
}
