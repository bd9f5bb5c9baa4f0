//! Watches: one task per watch, all into one channel.
//!
//! A watch that ends resumes at its last resourceVersion; one that is too old (410) starts again with a list. kube's
//! `watcher` does both; [`strew_runtime::watch::Watches`] interprets the events.
//!
//! Objects are read as JSON first and then decoded object by object, because one object that a foreign schema let
//! through must not stop the watch.
//!
//! Reading order: [`Streams`], `stream` (one watch), `patience` (pauses after failures).

mod patience;
mod stream;

use std::collections::BTreeMap;

use kube::Client;
use strew_runtime::watch::{WatchAction, WatchEvent, WatchId};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::panics::{caught, kept};
use crate::waits::Waits;

pub(crate) use patience::patiently;
pub(crate) use stream::decoded;
pub use strew_runtime::watch::Kind;

/// The number of queued events; with more, the watches wait.
const EVENTS_MAX: usize = 256;

/// The streams of one loop's watches. They end when it is dropped.
pub struct Streams {
    client: Client,
    to: mpsc::Sender<(WatchId, WatchEvent)>,
    from: mpsc::Receiver<(WatchId, WatchEvent)>,
    running: BTreeMap<WatchId, Running>,
    /// Tasks that read a list once.
    reading: JoinSet<()>,
}

/// The task of a watch; dropping it ends the task.
struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Streams {
    /// Without any watch.
    pub fn new(client: Client) -> Self {
        let (to, from) = mpsc::channel(EVENTS_MAX);
        Self {
            client,
            to,
            from,
            running: BTreeMap::new(),
            reading: JoinSet::new(),
        }
    }

    /// Begins or ends a watch, or reads a namespace again.
    pub fn carry_out(&mut self, action: WatchAction) {
        match action {
            WatchAction::Begin {
                id,
                kind,
                reading,
                scope,
            } => {
                let (client, to) = (self.client.clone(), self.to.clone());
                let task = kept(move || {
                    let events = stream::events(client.clone(), &kind, reading, &scope);
                    stream::run(events, id, to.clone())
                });
                self.running.insert(id, Running(task.abort_handle()));
            }
            WatchAction::End(id) => {
                self.running.remove(&id);
            }
            WatchAction::ReadAgain {
                id,
                kind,
                namespace,
            } => {
                while self.reading.try_join_next().is_some() {}
                let (client, to) = (self.client.clone(), self.to.clone());
                self.reading.spawn(async move {
                    let mut waits = Waits::default();
                    let objects = loop {
                        let read = stream::list(client.clone(), &kind, &namespace);
                        match caught(read).await {
                            Ok(objects) => break objects,
                            Err(_) => tokio::time::sleep(waits.next(true)).await,
                        }
                    };
                    // The receiver is dropped: the process ends.
                    let _ = to.send((id, WatchEvent::Again(namespace, objects))).await;
                });
            }
        }
    }

    /// The next event. Cancel-safe.
    pub async fn next(&mut self) -> (WatchId, WatchEvent) {
        loop {
            // The channel never closes: `self` holds a sender.
            if let Some(event) = self.from.recv().await {
                return event;
            }
        }
    }

    /// The next event, if one has arrived.
    pub fn try_next(&mut self) -> Option<(WatchId, WatchEvent)> {
        self.from.try_recv().ok()
    }
}
