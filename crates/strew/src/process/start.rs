//! The start of a process: it waits for an API server that does not answer.
//!
//! A process that ended instead would be started again after longer and longer pauses, and would be missing after the
//! API server is back.

use std::time::Duration;

use strew_kube::Warning;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::serving::ServingArgs;
use crate::failure::Failure;

/// The pause between two attempts.
const EVERY: Duration = Duration::from_secs(1);

/// How often the log says that the API server still does not answer.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Connects, and checks what the process needs, until the API server answers. Meanwhile the process is alive and not
/// ready. `None`: a signal ended the wait.
///
/// # Errors
/// `begin` failed for another reason than an API server that does not answer; the port or the certificate of the pages.
pub(crate) async fn patiently<T>(
    begin: impl AsyncFn() -> Result<T, Failure>,
    (serving, port): (&ServingArgs, u16),
    end: &CancellationToken,
) -> Result<Option<T>, Failure> {
    let mut waiting = None;
    let mut said: Option<Instant> = None;
    let begun = loop {
        let failure = tokio::select! {
            () = end.cancelled() => break None,
            begun = begin() => match begun {
                Ok(begun) => break Some(begun),
                Err(failure) if failure.is_outage() => failure,
                Err(failure) => return Err(failure),
            },
        };
        if said.is_none_or(|said| said.elapsed() >= SAID_EVERY) {
            say(&failure.in_a_line());
            said = Some(Instant::now());
        }
        if waiting.is_none() {
            waiting = Some(serving.wait(port).await?);
        }
        tokio::select! {
            () = end.cancelled() => break None,
            () = sleep(EVERY) => {}
        }
    };
    if let Some(waiting) = waiting {
        // The port must be free before the process's own pages are served.
        waiting.end().await;
    }
    Ok(begun)
}

fn say(error: &str) {
    let warning = Warning {
        kind: "API server",
        namespace: "",
        name: "",
        node: None,
        action: "start",
        error: &error,
        next: "asked again every second; until it answers, this process is not ready",
    };
    warning.log();
}
