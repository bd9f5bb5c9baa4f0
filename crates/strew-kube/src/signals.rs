//! Health, metrics, configuration and version pages of a process with an election.

use std::sync::Arc;

use axum::Router;
use strew_model::time::{Instant, Span};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::leading::{Leading, Turn};
use crate::metrics::process::build;
use crate::metrics::{Leader, Metrics, MetricsRequests, Requests, channel};
pub(crate) use crate::serve::health::TURNS_EVERY;
use crate::serve::health::{Awaited, Heartbeat, LeaderWatchdog, Ping, Shutdown};
use crate::serve::pages::json_page;
use crate::serve::{Check, Health};

/// The loop's end: health, metrics, and the questions of pages.
pub(crate) struct Signals {
    synced: Arc<Awaited>,
    watchdog: Option<Arc<LeaderWatchdog>>,
    turns: Arc<Heartbeat>,
    leader: Leader,
    pub(crate) asked: MetricsRequests,
}

/// Version and configuration of a process, for its pages.
#[derive(Debug, Clone)]
pub struct About {
    /// The version of strew.
    pub version: String,
    /// The version of Kubernetes that strew implements.
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
    /// The loop's end and the pages. `lease`: its name and duration, if there is an election; `synced`: the check for
    /// the initial lists.
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
        let turns = Arc::new(Heartbeat::of_decisions());
        let decisions = Arc::clone(&turns) as Arc<dyn Check>;
        let dog = watchdog.clone().map(|dog| dog as Arc<dyn Check>);
        let health = Health {
            live: vec![Arc::clone(&ping), Arc::clone(&decisions)],
            ready: [
                dog.clone(),
                Some(Arc::new(Shutdown(end)) as Arc<dyn Check>),
                Some(Arc::clone(&synced) as Arc<dyn Check>),
            ]
            .into_iter()
            .flatten()
            .collect(),
            health: [Some(ping), Some(decisions), dog]
                .into_iter()
                .flatten()
                .collect(),
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
            turns,
            leader,
            asked,
        };
        (signals, pages)
    }

    /// Sets whether all watched kinds have been listed.
    pub(crate) fn synced(&self, is_synced: bool) {
        self.synced.set(is_synced);
    }

    /// Records a turn of the loop, which comes at least every [`TURNS_EVERY`]. Advances the election to now, and reports
    /// what has changed.
    pub(crate) fn turn(&self, leading: &mut Leading) {
        self.turns.beat();
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

    /// Reports whether this replica leads.
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
