//! Health, metrics, configuration and version pages of a process that leads or follows.

use std::sync::Arc;

use axum::Router;
use strew_model::time::{Instant, Span};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::leading::{Leading, Turn};
use crate::metrics::process::build;
use crate::metrics::{Leader, Metrics, MetricsRequests, Requests, channel};
use crate::serve::health::{Awaited, LeaderWatchdog, Ping, Shutdown};
use crate::serve::pages::json_page;
use crate::serve::{Check, Health};

/// The loop's side: its metrics, and the pages that ask for them.
pub(crate) struct Signals {
    synced: Arc<Awaited>,
    watchdog: Option<Arc<LeaderWatchdog>>,
    leader: Leader,
    pub(crate) asked: MetricsRequests,
}

/// Metrics beside those of the loop.
#[derive(Debug, Clone)]
pub struct About {
    /// The version of strew.
    pub version: String,
    /// The version of Kubernetes whose rules are kept.
    pub kubernetes: String,
    /// The configuration, as JSON.
    pub configuration: String,
}

impl About {
    /// `/configz` and `/version`.
    pub(crate) fn pages(&self) -> Router {
        let version = serde_json::json!({
            "gitVersion": self.version,
            "kubernetes": self.kubernetes,
        });
        json_page("/configz", self.configuration.as_str().into())
            .merge(json_page("/version", version.to_string().into()))
    }
}

impl Signals {
    /// Both ends; `lease`: its name and how long it holds, if there is an election; `synced`: the check of what must be
    /// known before anything is done.
    pub(crate) fn new(
        lease: Option<(String, Span)>,
        synced: Awaited,
        clock: Clock,
        end: CancellationToken,
        about: &About,
        requests: &Requests,
    ) -> (Self, Router) {
        let (source, asked) = channel();
        let synced = Arc::new(synced);
        let name = lease.as_ref().map_or("", |(name, _)| name.as_str());
        let leader = Leader::new(name);
        let watchdog = lease.map(|(name, holds)| {
            let now: Box<dyn Fn() -> Instant + Send + Sync> = Box::new(move || clock.now());
            Arc::new(LeaderWatchdog::new(name, holds, now))
        });
        let ping: Arc<dyn Check> = Arc::new(Ping);
        let dog = watchdog.clone().map(|dog| dog as Arc<dyn Check>);
        let health = Health {
            live: vec![Arc::clone(&ping)],
            ready: [
                dog.clone(),
                Some(Arc::new(Shutdown(end)) as Arc<dyn Check>),
                Some(Arc::clone(&synced) as Arc<dyn Check>),
            ]
            .into_iter()
            .flatten()
            .collect(),
            health: [Some(ping), dog].into_iter().flatten().collect(),
        };
        let (led, requests) = (leader.clone(), requests.clone());
        let (version, kubernetes) = (about.version.clone(), about.kubernetes.clone());
        let metrics = Metrics::new(source)
            .with(move || led.families())
            .with(move || requests.families())
            .with(move || build(&version, &kubernetes));
        let pages = health.pages().merge(metrics.pages()).merge(about.pages());
        let signals = Self {
            synced,
            watchdog,
            leader,
            asked,
        };
        (signals, pages)
    }

    /// Whether all that decides is known.
    pub(crate) fn synced(&self, is_synced: bool) {
        self.synced.set(is_synced);
    }

    /// Advances the election to now, and returns what has changed.
    pub(crate) fn turn(&self, leading: &mut Leading) {
        let turn = leading.turn();
        self.leads(leading);
        match turn {
            Some(Turn::Begins) => tracing::info!("this replica leads"),
            Some(Turn::Ends(holder)) => {
                let why = match holder {
                    Some(holder) => format!("{holder} leads"),
                    None => "no replica leads".to_owned(),
                };
                leading.warn(
                    "keep the lead",
                    &why,
                    "when the lease is free; until then this replica follows",
                );
            }
            None => {}
        }
    }

    /// Whether this replica leads.
    fn leads(&self, leading: &Leading) {
        let renewed = leading.renewed();
        let leads = leading.leads().now();
        self.leader.set(leads);
        if let Some(watchdog) = &self.watchdog {
            match renewed {
                Some(at) if leads => watchdog.renewed(at),
                _ => watchdog.follows(),
            }
        }
    }
}
