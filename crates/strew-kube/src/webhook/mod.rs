//! `strew webhook`: reviews of pods and WorkloadSpreads, and conversion of versions.
//!
//! One loop owns the driver of admission, on its own thread. Watches fill its caches, and each review waits there for
//! an answer. Every replica writes statuses, without a leader: if two write at once, the resourceVersion lets one win,
//! and the other one retries. Validation and conversion do not wait for the loop, because the first list of
//! WorkloadSpreads may need the conversion.
//!
//! Memory: the machine keeps a class and a row for each pod on a node, and no text. The text of a pod is kept only
//! while its review waits.
//!
//! Reading order: `hooks` (HTTP), `door` and `rights` (which clients and users), `bodies` (limits), `calls` (waiting
//! reviews), `judge` (validation), `evictions` (budgets by zone), `lookup` (reads for a review), `decider` (the loop around
//! [`strew_runtime::admission`]), this file, `pages`, `meter` and [`metrics`], [`permissions`].

mod bodies;
mod calls;
mod costs;
mod decider;
mod door;
mod evictions;
mod hooks;
mod judge;
mod lookup;
mod meter;
pub mod metrics;
mod pages;
pub mod permissions;
mod rights;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use kube::Client;
use strew_model::Interner;
use strew_runtime::admission::{self, AdmissionMachine, Turns};
use strew_scheduler::Profile;
use strew_workloadspread::admission::Limits as AdmissionLimits;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use crate::authority::CertificateRotator;
use crate::clock::{Clock, thread_cpu};
use crate::connect::Connection;
use crate::discovery;
use crate::identity;
use crate::leading::Leads;
use crate::panics::vital;
use crate::registration::{self, Registrar};
use crate::send::Patience;
use crate::serve::{Exchange, Limits};
pub use crate::signals::About;
use crate::work::{Links, Worker};
use calls::{Connections, ToDecider};
use costs::Costs;
use decider::Decider;
pub use door::Callers;
use hooks::Hooks;
use judge::Rules;
use meter::Meter;
use pages::Pages;

/// The lease of the replica that renews the certificates.
pub const LEASE: &str = "strew-webhook";

/// The Service of the hooks.
pub const SERVICE: &str = "strew-webhook";

/// The number of queued events for the loop; with more, connections wait.
const CALL_EVENTS_MAX: usize = 1024;

/// The time limits of the machine's requests.
const PATIENCE: Patience = Patience {
    in_all: admission::PATIENCE,
    answer: Duration::from_secs(9),
};

/// The limits of the hooks' server.
pub fn limits() -> Limits {
    Limits {
        // With HTTP/2 an API server sends all reviews on one connection. With HTTP/1.1 it would open one per concurrent
        // review and keep only 25, and handshakes cost more than reviews.
        requests_at_once: 64,
        connections_max: 512,
        // More than an API server sends at once by default (600), for each peer.
        requests_max: 4096,
        refusals_max: Some(200),
        // Longer than an API server keeps an idle connection (90 s in Go), so that the server never closes one that is
        // about to be used.
        headers: Duration::from_secs(100),
        // Longer than the API server's longest timeout.
        request: Duration::from_secs(35),
        body_bytes_max: bodies::BODY_MAX,
        ..Limits::default()
    }
}

/// The settings of a webhook.
pub struct Blueprint {
    /// The scheduler profiles, for simulated scheduling.
    pub profiles: Vec<Profile>,
    /// The interner of the profiles.
    pub names: Interner,
    /// The webhook's own namespace, which has the list of custom kinds.
    pub namespace: String,
    /// Guarded fields that patches of WorkloadSpreads may change
    /// ([`GUARDED`](strew_wire::workloadspread::validation::GUARDED)).
    pub allowed_patches: Vec<String>,
    /// True if the webhook is registered for pods of DaemonSets, which then may be targets.
    pub daemon_sets: bool,
    /// A client with connections of its own, so that status writes wait for no other request; `None`: the same client.
    pub writes: Option<Client>,
    /// The clients whose reviews are answered; `None`: all.
    pub callers: Option<Callers>,
    /// The seed of pauses and of pod names.
    pub seed: u64,
    /// Version and configuration, for its pages.
    pub about: About,
    /// The holder of the hooks' certificate.
    pub exchange: Exchange,
    /// Renews the certificate; `None` if the user gave one.
    pub rotator: Option<CertificateRotator>,
    /// How the webhook is registered; `None`, or without a rotator: another program registers it.
    pub registration: Option<registration::Setup>,
}

/// The pages of a webhook; each router needs a port of its own.
pub struct Served {
    /// The hooks, for the API server.
    pub hooks: Router,
    /// Health and metrics.
    pub pages: Router,
}

/// A running webhook.
pub struct Process {
    decides: JoinHandle<()>,
    rotator: Option<CertificateRotator>,
}

impl Process {
    /// Starts the webhook, which lists its objects first. It decides on its own thread until `end`.
    pub fn start(
        blueprint: Blueprint,
        connection: &Connection,
        clock: Clock,
        end: CancellationToken,
    ) -> (Self, Served) {
        let client = &connection.client;
        let Blueprint {
            profiles,
            names,
            namespace,
            allowed_patches,
            daemon_sets,
            writes,
            callers,
            seed,
            about,
            exchange,
            rotator,
            registration,
        } = blueprint;
        let (to_decider, events) = mpsc::channel(CALL_EVENTS_MAX);
        let (ready, is_ready) = watch::channel(false);
        let zones = evictions::start(client, writes.as_ref(), clock);
        let secret: Arc<str> = identity::uuid(identity::random()).into();
        let registrar = rotator.as_ref().zip(registration).map(|(rotator, setup)| {
            let (client, ready) = (client.clone(), is_ready.clone());
            let own = Arc::clone(&secret);
            Registrar::new(setup, client, clock, ready, rotator.bundle(), own)
        });
        let meter = Arc::new(Meter::default());
        let hooks = Hooks::new(hooks::Setup {
            decider: ToDecider {
                events: to_decider,
                ready: is_ready,
            },
            zones,
            client: client.clone(),
            namespace: &namespace,
            rules: Rules {
                allowed_patches,
                daemon_sets,
                is_authenticated: callers.is_some(),
            },
            secret,
            meter: Arc::clone(&meter),
        });
        let shown = (
            rotator.as_ref().map(|rotator| rotator.standing().clone()),
            registrar.as_ref().map(Registrar::shown),
        );
        let requests = &connection.requests;
        let stopping = end.clone();
        let (pages, router) = Pages::new(LEASE, shown, exchange, clock, stopping, &about, requests);
        let links = Links {
            client: client.clone(),
            writes: writes.unwrap_or_else(|| client.clone()),
            clock,
            leads: Leads::always(clock),
            patience: PATIENCE,
        };
        let registering = match registrar {
            Some(registrar) => tokio::spawn(registrar.run(end.clone())),
            None => tokio::spawn(std::future::ready(())),
        };
        let served = discovery::look(client.clone());
        let runtime = Handle::current();
        // The new thread logs to the same subscriber as this one.
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let decides = spawn_blocking(move || {
            let _logs = tracing::dispatcher::set_default(&dispatch);
            runtime.block_on(async move {
                let limits = AdmissionLimits::production();
                let machine = AdmissionMachine::new(names, profiles, limits, seed);
                let decider = Decider {
                    worker: Worker::observed(
                        machine,
                        admission::watches(&namespace),
                        links,
                        Costs::new(thread_cpu),
                    ),
                    reviews: Turns::new(admission::LIMITS),
                    connections: Connections::default(),
                    events,
                    served,
                    ready,
                    meter,
                    pages,
                };
                decider.run(end, registering).await;
            });
        });
        let served = Served {
            hooks: hooks.routes(callers),
            pages: router,
        };
        (Self { decides, rotator }, served)
    }

    /// Runs until `end`, which must be the one given to [`start`](Self::start); then until every earlier review is
    /// answered and no further one can arrive.
    pub async fn run(self, end: CancellationToken) {
        let rotator = self.rotator;
        let rotator = rotator.map(|rotator| vital(end.clone(), rotator.run(end)));
        if let Err(error) = self.decides.await
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
        if let Some(rotator) = rotator {
            drop(rotator.await);
        }
        tracing::info!("ended");
    }
}
