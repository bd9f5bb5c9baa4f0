//! Health, metrics, configuration and version pages of the webhook.

use std::sync::Arc;

use axum::Router;
use strew_model::time::{Instant, Span};
use tokio_util::sync::CancellationToken;

use super::metrics;
use crate::authority::rotator::CertificateState;
use crate::clock::Clock;
use crate::der::Fields;
use crate::metrics::process::build;
use crate::metrics::{Leader, Metrics, MetricsRequests, Requests, channel};
use crate::serve::health::{Awaited, Heartbeat, Ping, Shown, Shutdown};
use crate::serve::{Check, Exchange, Health};
use crate::signals::About;

/// A leader hangs if it has not renewed its lease for this long: twice the duration of the lease with its tolerance.
const LEADER_HANGS_AFTER: Span = Span::from_secs(60);

/// The loop's end: metrics, and the questions of pages.
pub(super) struct Pages {
    synced: Arc<Awaited>,
    /// The heartbeat of the loop.
    pub(super) turns: Arc<Heartbeat>,
    pub(super) asked: MetricsRequests,
}

/// Healthy while the certificate is valid: without one, no connection can be made.
struct Certificate {
    exchange: Exchange,
    clock: Clock,
}

impl Check for Certificate {
    fn name(&self) -> &str {
        "certificate"
    }

    fn check(&self) -> Result<(), String> {
        match until(&self.exchange) {
            None => Err("there is no certificate yet".to_owned()),
            Some(until) if self.clock.wall() >= until => {
                Err("the certificate has ended".to_owned())
            }
            Some(_) => Ok(()),
        }
    }
}

/// Unhealthy if this process believes to lead the rotation and has not renewed its lease for long.
struct Keeping {
    standing: CertificateState,
    clock: Clock,
}

impl Check for Keeping {
    fn name(&self) -> &str {
        "leaderElection"
    }

    fn check(&self) -> Result<(), String> {
        match self.standing.renewed() {
            Some(at) if self.clock.now() > at + LEADER_HANGS_AFTER => {
                Err("the lease was not renewed for a minute".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// When the serving certificate expires.
fn until(exchange: &Exchange) -> Option<Instant> {
    let certificate = exchange.certificate()?;
    let [_, until] = Fields::of(&certificate)?.dates()?;
    Some(until)
}

impl Pages {
    /// The loop's end and the pages. `standing`: the state of the rotator; `None` if the certificate was given.
    /// `registration`: why the webhook is not registered; `None` if another program registers it.
    pub(super) fn new(
        lease: &str,
        (standing, registration): (Option<CertificateState>, Option<Arc<Shown>>),
        exchange: Exchange,
        clock: Clock,
        end: CancellationToken,
        about: &About,
        requests: &Requests,
    ) -> (Self, Router) {
        let (source, asked) = channel();
        let synced = Arc::new(Awaited::new("watches", "the cluster is not known yet"));
        let ping: Arc<dyn Check> = Arc::new(Ping);
        let turns = Arc::new(Heartbeat::of_decisions());
        let keeping = standing.clone();
        let keeping =
            keeping.map(|standing| Arc::new(Keeping { standing, clock }) as Arc<dyn Check>);
        let certificate = Certificate {
            exchange: exchange.clone(),
            clock,
        };
        let mut ready: Vec<Arc<dyn Check>> = vec![
            Arc::new(Shutdown(end)),
            Arc::clone(&synced) as _,
            Arc::new(certificate),
        ];
        ready.extend(registration.map(|shown| shown as Arc<dyn Check>));
        let decisions = Arc::clone(&turns) as Arc<dyn Check>;
        let live = [Some(ping), Some(decisions), keeping];
        let live: Vec<Arc<dyn Check>> = live.into_iter().flatten().collect();
        let health = Health {
            live: live.clone(),
            ready,
            health: live,
        };
        let requests = requests.clone();
        let (version, kubernetes) = (about.version.clone(), about.kubernetes.clone());
        let leader = Leader::new(lease);
        let metrics = Metrics::new(source)
            .with(move || {
                let authority = standing
                    .as_ref()
                    .and_then(CertificateState::authority_until);
                let mut families = metrics::of_certificates(until(&exchange), authority);
                if let Some(standing) = &standing {
                    leader.set(standing.renewed().is_some());
                    families.extend(leader.families());
                }
                families
            })
            .with(move || requests.families())
            .with(move || build(&version, &kubernetes));
        let pages = health.pages().merge(metrics.pages()).merge(about.pages());
        let pages_end = Self {
            synced,
            turns,
            asked,
        };
        (pages_end, pages)
    }

    /// Reports ready: the cluster is known, or the API server needs this process to list the WorkloadSpreads.
    pub(super) fn synced(&self) {
        self.synced.set(true);
    }
}
