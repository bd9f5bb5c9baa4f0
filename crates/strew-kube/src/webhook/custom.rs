//! Which kinds there are: looked at again and again, so that a definition that is installed later is found.

use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;

use crate::discovery::{Discovery, Served};

/// Definitions are looked for again after so long.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The same while nothing is known.
const FIRST_AGAIN: Duration = Duration::from_secs(1);

/// Looks which kinds there are, again and again; what is new comes by the channel.
pub(super) fn look(client: Client) -> mpsc::Receiver<Served> {
    let (to, served) = mpsc::channel(1);
    tokio::spawn(look_again(Discovery::new(client), to));
    served
}

async fn look_again(mut discovery: Discovery, to: mpsc::Sender<Served>) {
    let (mut told, mut failure) = (false, None);
    loop {
        match discovery.ask().await {
            Ok(is_new) => {
                failure = None;
                if (is_new || !told) && to.send(discovery.served()).await.is_err() {
                    return;
                }
                told = true;
            }
            Err(error) => {
                let text = error.to_string();
                if failure.as_ref() != Some(&text) {
                    tracing::warn!("{text}");
                    failure = Some(text);
                }
            }
        }
        tokio::time::sleep(if told { LOOK_EVERY } else { FIRST_AGAIN }).await;
    }
}
