//! Reads a live cluster.

use std::time::Duration;

use anyhow::anyhow;
use serde_json::{Value, json};
use strew_kube::connect::connect;
use strew_kube::snapshot::{Snapshot, take, take_hub};
use strew_manifest::snapshot::Scrubber;
use strew_wire::config::ClientConnection;

use super::Wanted;
use super::access::{self, AccessArgs};
use crate::failure::Failure;
use crate::terminal;

/// A runtime of one thread: it only waits.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::outside)
}

/// A cluster answers a short question within this time.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Asks a cluster a short question.
///
/// # Errors
/// The question's own; no answer in time.
pub(crate) fn ask<T>(question: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let asked = async { tokio::time::timeout(ANSWERS_WITHIN, question).await };
    runtime()?.block_on(asked).unwrap_or_else(|_| {
        let error = anyhow!("no answer within {} s", ANSWERS_WITHIN.as_secs());
        Err(Failure::outside(error))
    })
}

/// All objects of the cluster that decisions read, without secrets, as one `List`. Only reads.
pub(crate) fn fetch(access: &AccessArgs, quiet: bool) -> Result<Value, Failure> {
    fetch_wanted(access, Wanted::Everything, quiet)
}

/// The requested objects of the cluster, without secrets, as one `List`. Only reads.
pub(crate) fn fetch_wanted(
    access: &AccessArgs,
    wanted: Wanted,
    quiet: bool,
) -> Result<Value, Failure> {
    let Snapshot {
        mut objects,
        left_out,
    } = runtime()?.block_on(async {
        let connection = connect(&access.of(&ClientConnection::default()), "strew").await;
        let connection = connection.map_err(access::failure)?;
        let taken = match wanted {
            Wanted::Everything => take(&connection.client).await,
            Wanted::Hub => take_hub(&connection.client).await,
        };
        taken.map_err(Failure::outside)
    })?;
    if !quiet {
        for text in left_out {
            terminal::say(&format!("note: left out: {text}\n"));
        }
    }
    let mut scrubber = Scrubber::default();
    for object in &mut objects {
        scrubber.scrub(object);
    }
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": objects}))
}
