//! `strew webhook`: reviews of pods and WorkloadSpreads, and conversion of versions.
//!
//! One loop owns the driver of admission, on its own thread. Watches fill its caches, and each review waits in it for
//! an answer. Status writes go out as those of every machine, without a leader: the resourceVersion keeps replicas
//! apart, and a replica that gets a conflict retries. Validation and conversion do not wait for the loop, because the
//! first list of WorkloadSpreads may need the conversion.
//!
//! Memory: of a pod on a node the room has its class and a row, and no text. The text of a pod is here while its review
//! waits.
//!
//! Reading order: `hooks` (HTTP), `door` and `rights` (who may ask), `bodies` (limits), `calls` (waiting reviews),
//! `judge` (validation), `lookup` (reads for a review), `decider` (the loop around [`strew_runtime::admission`]), this
//! file, `pages`, `meter` and [`metrics`], [`permissions`].

mod bodies;
mod calls;
mod costs;
mod decider;
mod door;
mod hooks;
mod judge;
mod lookup;
mod meter;
pub mod metrics;
mod pages;
pub mod permissions;
mod queue;
mod rights;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use strew_model::Interner;
use strew_runtime::admission::{self, AdmissionMachine};
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
use calls::Connections;
use costs::Costs;
use decider::Decider;
pub use door::Callers;
use hooks::Hooks;
use judge::Rules;
use meter::Meter;
use pages::Pages;
use queue::{FairQueue, Shares};

/// The lease of the replica that maintains the certificates.
pub const LEASE: &str = "strew-webhook";

/// The Service of the hooks.
pub const SERVICE: &str = "strew-webhook";

/// How many events can wait for the loop; further ones make their connections wait.
const CALL_EVENTS_MAX: usize = 1024;

/// How long requests of the machine are waited for.
const PATIENCE: Patience = Patience {
    in_all: admission::PATIENCE,
    answer: Duration::from_secs(9),
};

/// What the API server may take of the server of the hooks.
pub fn limits() -> Limits {
    Limits {
        // By HTTP/2 an API server asks all on one connection; by HTTP/1.1 it would make one for each review that it has
        // under way and keep 25, and handshakes cost more than reviews.
        requests_at_once: 64,
        connections_max: 512,
        // Longer than an API server keeps an idle connection (90 s in Go), so that the server never closes one that is
        // about to be used.
        headers: Duration::from_secs(100),
        // Longer than the API server waits for an answer.
        request: Duration::from_secs(35),
        body_bytes_max: bodies::BODY_MAX,
        ..Limits::default()
    }
}

/// What a webhook is made of.
pub struct Blueprint {
    /// How pods are put onto nodes, to see whether a subset takes them.
    pub profiles: Vec<Profile>,
    /// The names that the profiles use.
    pub names: Interner,
    /// The webhook's own namespace: of the list of custom kinds.
    pub namespace: String,
    /// Guarded fields that patches of WorkloadSpreads may touch
    /// ([`GUARDED`](strew_api::workloadspread::validation::GUARDED)).
    pub allowed_patches: Vec<String>,
    /// Whether the webhook is registered for pods of DaemonSets, which then may be targets.
    pub daemon_sets: bool,
    /// Clients whose reviews are answered; `None`: all.
    pub callers: Option<Callers>,
    /// What pauses and names of pods are drawn from.
    pub seed: u64,
    /// Its metrics.
    pub about: About,
    /// Where the certificate of the hooks lies.
    pub exchange: Exchange,
    /// Maintains the certificate; `None` if one was given.
    pub rotator: Option<CertificateRotator>,
    /// How the webhook is registered; `None`, or without a rotator: by another program.
    pub registration: Option<registration::Setup>,
}

/// A webhook's pages: each is to be served on a port of its own.
pub struct Served {
    /// For the API server.
    pub hooks: Router,
    /// Health and metrics.
    pub pages: Router,
}

/// A webhook at work.
pub struct Process {
    decides: JoinHandle<()>,
    rotator: Option<CertificateRotator>,
}

impl Process {
    /// A webhook that begins by listing what there is, and what it serves. It decides on a thread of its own, until `end`.
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
            callers,
            seed,
            about,
            exchange,
            rotator,
            registration,
        } = blueprint;
        let (to_decider, events) = mpsc::channel(CALL_EVENTS_MAX);
        let (ready, is_ready) = watch::channel(false);
        let secret: Arc<str> = identity::uuid(identity::random()).into();
        let registrar = rotator.as_ref().zip(registration).map(|(rotator, setup)| {
            let (client, ready) = (client.clone(), is_ready.clone());
            let own = Arc::clone(&secret);
            Registrar::new(setup, client, clock, ready, rotator.bundle(), own)
        });
        let meter = Arc::new(Meter::default());
        let hooks = Hooks::new(hooks::Setup {
            to_decider,
            ready: is_ready,
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
        let standing = rotator.as_ref().map(|rotator| rotator.standing().clone());
        let requests = &connection.requests;
        let stopping = end.clone();
        let (pages, router) =
            Pages::new(LEASE, standing, exchange, clock, stopping, &about, requests);
        let links = Links {
            client: client.clone(),
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
        // It logs where this thread does.
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
                    queue: FairQueue::new(Shares::production()),
                    n_beyond_budget: 0,
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

    /// Works until `end`, which [`start`](Self::start) knows too, and then until every review that came before is answered
    /// and none comes any more.
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
