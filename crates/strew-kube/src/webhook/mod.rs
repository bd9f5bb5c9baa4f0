//! `strew webhook`: pods on their way in and out, WorkloadSpreads that are written, and their versions.
//!
//! One loop owns the driver of admission; watches tell it what there is, and reviews reach it as calls that wait for
//! their answer. Status writes go out as they do for every machine, and nobody has to lead for that: the
//! resourceVersion keeps replicas apart, and whoever loses a race tries again. Validation and conversion ask neither
//! the loop nor anybody else for leave: without them the watches might never be whole.
//!
//! Memory: of a pod on a node the room has its class and a row, and no text. The text of a pod is here while its review
//! waits. An eviction does not bring its pod, which is read from the API server then: a copy of all pods would be the
//! greater part of this process, for a few evictions a day.
//!
//! Reading order: `hooks` (HTTP), `bodies` (their limits), `calls` (connections that wait), `judge` (validation), `lookup` (what is asked while somebody waits), this file (the loop around
//! [`strew_runtime::admission`]), `pages`, `meter` and [`metrics`], [`permissions`].

mod bodies;
mod calls;
mod hooks;
mod judge;
mod lookup;
mod meter;
pub mod metrics;
mod pages;
pub mod permissions;

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use k8s_openapi::api::core::v1::{Node, Pod};
use strew_model::Interner;
use strew_runtime::Event;
use strew_runtime::admission::{self, AdmissionMachine};
use strew_scheduler::Profile;
use strew_scheduler::metrics::Family;
use strew_workloadspread::admission::Limits as AdmissionLimits;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::authority::Keeper;
use crate::clock::Clock;
use crate::connect::Connection;
use crate::discovery;
use crate::leading::Leads;
use crate::metrics::unreadable;
use crate::panics::vital;
use crate::registration::{self, Registrar};
use crate::send::Patience;
use crate::serve::{Exchange, Limits};
pub use crate::signals::About;
use crate::watch::Kind;
use crate::work::{Links, Worker};
use calls::{Connections, Say};
use hooks::Hooks;
use meter::Meter;
use pages::Pages;

/// The lease of who keeps the certificates.
pub const LEASE: &str = "strew-webhook";

/// The Service of the hooks.
pub const SERVICE: &str = "strew-webhook";

/// The code by which the API server says that it cannot make a list, whatever the reason: perhaps that no webhook
/// converts its objects.
const CANNOT_LIST: u16 = 500;

/// So many sayings wait for the loop; more make their connections wait.
const SAYINGS_MAX: usize = 1024;

/// So much is taken in before the machine decides again.
const TAKEN_MAX: usize = 512;

/// How long requests of the machine are waited for.
const PATIENCE: Patience = Patience {
    in_all: admission::PATIENCE,
    answer: Duration::from_secs(9),
};

/// Until the cluster is known, what keeps it from being known is looked at so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long the end waits for calls that are not answered, and for slots to be given back.
const END_WITHIN: Duration = Duration::from_secs(8);

/// What the API server may take of the server of the hooks.
pub fn limits() -> Limits {
    Limits {
        // By HTTP/2 an API server asks all on one connection; by HTTP/1.1 it would make one for each review that it has
        // under way and keep 25, and handshakes cost more than reviews.
        requests_at_once: 64,
        connections_max: 512,
        // Longer than an API server keeps a connection without use (90 s, Go's): who ends it must not be asked just then.
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
    /// What pauses and names of pods are drawn from.
    pub seed: u64,
    /// What it tells of itself.
    pub about: About,
    /// Where the certificate of the hooks lies.
    pub exchange: Exchange,
    /// Who keeps the certificate; `None`: it was given.
    pub keeper: Option<Keeper>,
    /// How the webhook is registered; `None`, or without a keeper: by another program.
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
    worker: Worker<AdmissionMachine>,
    connections: Connections,
    said: mpsc::Receiver<Say>,
    served: mpsc::Receiver<discovery::Served>,
    keeper: Option<Keeper>,
    registrar: Option<Registrar>,
    ready: watch::Sender<bool>,
    meter: Arc<Meter>,
    pages: Pages,
}

impl Process {
    /// A webhook that begins by listing what there is, and what it serves. Its watches live as long as it does; `end` is
    /// told to [`run`](Self::run), too.
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
            seed,
            about,
            exchange,
            keeper,
            registration,
        } = blueprint;
        let (say, said) = mpsc::channel(SAYINGS_MAX);
        let (ready, is_ready) = watch::channel(false);
        let registrar = keeper.as_ref().zip(registration).map(|(keeper, setup)| {
            let (client, ready) = (client.clone(), is_ready.clone());
            Registrar::new(setup, client, clock, ready, keeper.bundle())
        });
        let meter = Arc::new(Meter::default());
        let hooks = Hooks::new(
            say,
            is_ready,
            client.clone(),
            &namespace,
            allowed_patches,
            Arc::clone(&meter),
        );
        let standing = keeper.as_ref().map(|keeper| keeper.standing().clone());
        let requests = &connection.requests;
        let (pages, router) = Pages::new(LEASE, standing, exchange, clock, end, &about, requests);
        let machine = AdmissionMachine::new(names, profiles, AdmissionLimits::production(), seed);
        let links = Links {
            client: client.clone(),
            clock,
            leads: Leads::always(clock),
            patience: PATIENCE,
        };
        let process = Self {
            worker: Worker::new(machine, admission::watches(&namespace), links),
            connections: Connections::default(),
            said,
            served: discovery::look(client.clone()),
            keeper,
            registrar,
            ready,
            meter,
            pages,
        };
        let hooks = hooks.routes();
        let served = Served {
            hooks,
            pages: router,
        };
        (process, served)
    }

    /// Works until `end`, and then until every review that came before is answered, and none comes any more.
    pub async fn run(mut self, end: CancellationToken) {
        let keeper = self.keeper.take();
        let keeper = keeper.map(|keeper| vital(end.clone(), keeper.run(end.clone())));
        let registrar = self.registrar.take();
        let mut registering = match registrar {
            Some(registrar) => tokio::spawn(registrar.run(end.clone())),
            None => tokio::spawn(ready(())),
        };
        let mut is_settled = false;
        while !end.is_cancelled() {
            self.turn(&end).await;
        }
        let over = tokio::time::sleep(END_WITHIN);
        let mut over = std::pin::pin!(over);
        let now = CancellationToken::new();
        while (!is_settled || !self.connections.is_empty()) && !over.is_elapsed() {
            tokio::select! {
                () = &mut over => {}
                _ = &mut registering, if !is_settled => is_settled = true,
                () = self.turn(&now) => {}
            }
        }
        if let Some(keeper) = keeper {
            drop(keeper.await);
        }
        tracing::info!("ended");
    }

    /// Waits until there is something to do, and does it.
    async fn turn(&mut self, end: &CancellationToken) {
        tokio::select! {
            () = end.cancelled() => return,
            Some(asked) = self.pages.asked.next() => asked.answer(self.families()),
            Some(say) = self.said.recv() => self.listen(say),
            Some(served) = self.served.recv() => {
                self.worker.tell(|machine, watches| machine.serve(served, watches));
            }
            () = tokio::time::sleep(LOOK_EVERY), if !*self.ready.borrow() => {}
            () = self.worker.work() => {}
        }
        self.reply();
        self.tell_ready();
    }

    /// Takes in what is said, and has the machine decide at once: somebody waits.
    fn listen(&mut self, first: Say) {
        self.hear(first);
        for _ in 0..TAKEN_MAX {
            let Ok(say) = self.said.try_recv() else {
                break;
            };
            self.hear(say);
        }
        self.worker.act();
    }

    fn hear(&mut self, say: Say) {
        let event = match say {
            Say::Ask(id, call, answer) => {
                self.connections.put(id, answer);
                Event::Asked(id, call)
            }
            Say::GiveUp(id) => {
                self.connections.give_up(id);
                Event::GaveUp(id)
            }
        };
        self.worker.handle(event);
    }

    fn reply(&mut self) {
        for (id, decision) in self.worker.take_replies() {
            self.connections.reply(id, *decision);
        }
    }

    fn tell_ready(&mut self) {
        if *self.ready.borrow() {
            return;
        }
        let driver = self.worker.driver();
        let watches = driver.watches();
        if !driver.is_ready() {
            // No API server calls a process that is not ready. If all that is left is a list of WorkloadSpreads that the
            // API server cannot make, it may be this process that it needs for it.
            let spreads = admission::spreads();
            let failure = watches.failure(&spreads);
            let cannot = failure.is_some_and(|failure| failure.code == Some(CANNOT_LIST));
            if cannot && watches.are_listed(|kind| *kind != spreads) {
                self.pages.synced();
            }
            return;
        }
        let [nodes, pods, spreads] = [Kind::of::<Node>(), Kind::of::<Pod>(), admission::spreads()]
            .map(|kind| watches.len(&kind));
        self.ready.send_replace(true);
        self.pages.synced();
        tracing::info!(
            nodes,
            pods,
            workload_spreads = spreads,
            "the cluster is known"
        );
    }

    fn families(&self) -> Vec<Family> {
        let mut families = metrics::of_machine(self.worker.driver().machine());
        families.extend(self.meter.families());
        families.push(unreadable(self.worker.driver().watches().unreadable()));
        families
    }
}
