//! Watches: one a kind of objects, all into one channel.
//!
//! A watch that ends goes on where it stopped; one that the API server has forgotten (410) begins anew with a list.
//! Both is kube's `watcher`; what a list does not tell any more is found by [`strew_api::watch::Stock`].

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::{Backoff, ResetTimerBackoff};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use strew_api::facts::{Watched, identity};
use strew_api::read::KubeObject;
use strew_api::watch::Named;
use tokio::sync::mpsc;

/// So many objects a page of a list: a page is held as a whole.
const PAGE: u32 = 500;

/// The first wait after a failure.
const FIRST_WAIT: Duration = Duration::from_millis(200);

/// The longest: an API server that comes back must be seen soon.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Waits begin anew when nothing has failed for so long.
const CALM: Duration = Duration::from_secs(60);

/// What a watch tells.
#[derive(Debug)]
pub enum Told {
    /// A list begins.
    ListBegins(Watched),
    /// An object is there, and like this.
    Set(Watched, Box<KubeObject>),
    /// An object is gone.
    Gone(Watched, Named),
    /// A list ends: what it did not tell is gone.
    ListEnds(Watched),
    /// The API server does not answer as it should. It is asked again.
    Failed {
        /// Which watch.
        kind: Watched,
        /// In words.
        text: String,
        /// The status code, if it answered.
        code: Option<u16>,
    },
}

/// Watches one kind of objects until the other end of the channel is gone; `fields`: a field selector.
pub async fn watch<K>(client: Client, kind: Watched, fields: Option<&str>, to: mpsc::Sender<Told>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default,
    KubeObject: From<K>,
{
    let mut config = watcher::Config::default().page_size(PAGE);
    if let Some(fields) = fields {
        config = config.fields(fields);
    }
    let waits = ResetTimerBackoff::new(Waits::default(), CALM);
    let events = watcher::watcher(Api::<K>::all(client), config).backoff(waits);
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let pause = event.as_ref().err().and_then(asked_to_wait);
        if to.send(told(kind, event)).await.is_err() {
            return;
        }
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }
}

fn told<K>(kind: Watched, event: Result<Event<K>, watcher::Error>) -> Told
where
    K: Resource,
    KubeObject: From<K>,
{
    match event {
        Ok(Event::Init) => Told::ListBegins(kind),
        Ok(Event::InitApply(object) | Event::Apply(object)) => {
            Told::Set(kind, Box::new(KubeObject::from(object)))
        }
        Ok(Event::Delete(object)) => Told::Gone(kind, identity(object.meta())),
        Ok(Event::InitDone) => Told::ListEnds(kind),
        Err(error) => Told::Failed {
            kind,
            text: crate::connect::chain(&error),
            code: status(&error).map(|status| status.code),
        },
    }
}

/// How long a busy API server asks to wait.
fn asked_to_wait(error: &watcher::Error) -> Option<Duration> {
    let seconds = status(error)?.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(u64::from(seconds)))
}

fn status(error: &watcher::Error) -> Option<&kube::core::Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

/// Waits after failures, each twice as long as the one before.
#[derive(Debug)]
struct Waits {
    next: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self { next: FIRST_WAIT }
    }
}

impl Iterator for Waits {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST_WAIT);
        Some(wait)
    }
}

impl Backoff for Waits {
    fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_longest_and_begin_anew() {
        let mut waits = Waits::default();
        let millis: Vec<_> = waits
            .by_ref()
            .take(7)
            .map(|wait| wait.as_millis())
            .collect();
        assert_eq!(millis, [200, 400, 800, 1600, 3200, 5000, 5000]);
        waits.reset();
        assert_eq!(waits.next(), Some(FIRST_WAIT));
    }
}
