//! `strew controller`: the controllers of WorkloadSpreads, of Placements and of deletion costs, the audit, and
//! rebalancing, under one lease.
//!
//! Each controller is a machine with its own watches and requests (see `work`). This module runs them in turn, with the
//! election, the discovery of CustomResourceDefinitions, and the HTTPS pages.
//!
//! Reading order: [`name`] (the controllers and how they are selected), [`scout`] (which of them can run), this file,
//! then [`workloadspread`], [`placement`], [`keep`], [`audit`] and [`rebalance`] (both in the frame of `survey`);
//! [`permissions`].

pub mod audit;
pub mod keep;
pub mod name;
pub mod permissions;
pub mod placement;
pub mod rebalance;
pub mod scout;
mod survey;
pub mod workloadspread;

use std::future::pending;
use std::sync::Arc;

use axum::Router;
use futures::FutureExt;
use futures::future::{Fuse, LocalBoxFuture};
use kube::Client;
use strew_model::time::Span;
use strew_runtime::Machine;
use strew_runtime::keep::Keeping;
use strew_runtime::placement::Placements;
use strew_runtime::watch::Watches;
use strew_runtime::workloadspread::Spreads;
use strew_scheduler::metrics::Family;
use strew_wire::config::LeaderElection;
use strew_wire::lease::Settings;
use strew_workloadspread::facts::status::Webhook;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, duration};
use crate::connect::Connection;
use crate::discovery::Served;
use crate::leading::Leading;
use crate::metrics::unreadable;
use crate::registration::{Guard, guard};
use crate::send::Patience;
use crate::serve::health::Awaited;
pub use crate::signals::About;
use crate::signals::{Signals, TURNS_EVERY};
use crate::work::{Links, Worker};
pub use name::{Choice, Name, UnknownController};
pub use placement::debug::PATHS as DEBUG_PATHS;
use placement::debug::{self, Questions};
use scout::Found;
pub use scout::Scout;

/// How long the shutdown waits for requests in transit.
const END_WITHIN: Span = Span::from_secs(5);

/// The settings of the process.
pub struct Blueprint {
    /// Whether replicas elect a leader, and how.
    pub election: LeaderElection,
    /// The name of this host or instance.
    pub hostname: String,
    /// This replica's name in the election; a new one after each restart.
    pub identity: String,
    /// The seed of jitter.
    pub seed: u64,
    /// When the guard removes the webhook of WorkloadSpreads.
    pub guard: guard::Settings,
    /// How the cluster is audited, if it is.
    pub audit: audit::Settings,
    /// How the cluster is rebalanced, if it is.
    pub rebalance: rebalance::Settings,
    /// Version and configuration, for its pages.
    pub about: About,
}

/// The process with its running controllers.
pub struct Process {
    client: Client,
    clock: Clock,
    hostname: String,
    /// The namespace of the ConfigMap that names custom kinds.
    namespace: String,
    leading: Leading,
    guard: guard::Settings,
    audit: audit::Settings,
    rebalance: rebalance::Settings,
    /// The state of the webhook of WorkloadSpreads; `None` if their controller does not run.
    webhook: Option<watch::Receiver<Webhook>>,
    signals: Signals,
    questions: Questions,
    /// Looks for CustomResourceDefinitions; never completes.
    scouting: Fuse<LocalBoxFuture<'static, ()>>,
    found: mpsc::Receiver<Found>,
    served: Arc<Served>,
    spreads: Option<Worker<Spreads>>,
    placements: Option<Worker<Placements>>,
    keeping: Option<Worker<Keeping>>,
    audits: Option<audit::Audits>,
    rebalances: Option<rebalance::Rebalances>,
}

impl Process {
    /// Starts the controllers that can run, each of which lists its objects first. Returns the process and all its
    /// pages, for a [`Server`](crate::serve::Server). Give the same `end` to [`run`](Self::run).
    pub fn start(
        blueprint: Blueprint,
        mut scout: Scout,
        connection: &Connection,
        end: CancellationToken,
    ) -> (Self, Router) {
        let Blueprint {
            election,
            hostname,
            identity,
            seed,
            guard,
            audit,
            rebalance,
            about,
        } = blueprint;
        let (client, clock) = (connection.client.clone(), Clock::new());
        let settings = election
            .leader_elect
            .then(|| Settings::of(&election, identity));
        let lease = settings
            .as_ref()
            .map(|s| (s.name.clone(), s.lease_duration));
        let synced = Awaited::new("informer-sync", "a controller has not read the cluster yet");
        let requests = &connection.requests;
        let (signals, pages) = Signals::new(lease, synced, clock, end, &about, requests);
        let (questions, debug_pages) = debug::pages(client.clone());
        let leading = Leading::new(settings, client.clone(), clock, seed);
        let (to_found, found) = mpsc::channel(4);
        let ready = scout.ready();
        scout.start(&ready);
        let mut process = Self {
            client,
            clock,
            hostname,
            namespace: scout.namespace().to_owned(),
            leading,
            guard,
            audit,
            rebalance,
            webhook: None,
            signals,
            questions,
            found,
            served: scout.served(),
            scouting: pending().boxed_local().fuse(),
            spreads: None,
            placements: None,
            keeping: None,
            audits: None,
            rebalances: None,
        };
        for name in ready {
            process.begin(name);
        }
        process.scouting = scout.run(to_found).boxed_local().fuse();
        (process, pages.merge(debug_pages))
    }

    fn begin(&mut self, name: Name) {
        let links = Links {
            client: self.client.clone(),
            writes: self.client.clone(),
            clock: self.clock,
            leads: self.leading.leads().clone(),
            patience: Patience::default(),
        };
        let hostname = self.hostname.clone();
        match name {
            Name::WorkloadSpread => {
                let (client, clock) = (self.client.clone(), self.clock);
                let leads = self.leading.leads().clone();
                let (guard, webhook) =
                    Guard::new(self.guard, client, &self.namespace, clock, leads);
                tokio::spawn(guard.run());
                self.webhook = Some(webhook);
                let of = workloadspread::Origin {
                    hostname,
                    namespace: self.namespace.clone(),
                    served: Arc::clone(&self.served),
                };
                self.spreads = Some(workloadspread::begin(links, of));
            }
            Name::Placement => self.placements = Some(placement::begin(links, hostname)),
            Name::Keep => self.keeping = Some(keep::begin(links)),
            Name::Audit => {
                let Links {
                    client,
                    clock,
                    leads,
                    ..
                } = links;
                self.audits = Some(audit::begin(client, clock, leads, self.audit.clone()));
            }
            Name::Rebalance => {
                let Links {
                    client,
                    clock,
                    leads,
                    ..
                } = links;
                let settings = self.rebalance.clone();
                self.rebalances = Some(rebalance::begin(client, clock, leads, settings));
            }
        }
    }

    /// Runs until it is asked to stop; then releases the lease.
    pub async fn run(mut self, end: CancellationToken) {
        let mut is_over = std::pin::pin!(end.cancelled());
        self.tell_synced();
        loop {
            let wake = self.leading.wake().min(TURNS_EVERY);
            tokio::select! {
                biased;
                () = &mut is_over => break,
                () = self.leading.answered() => {}
                () = &mut self.scouting => {}
                Some(found) = self.found.recv() => self.take_found(found),
                Some(asked) = self.signals.asked.next() => asked.answer(self.families()),
                Some(question) = self.questions.next() => {
                    question.answer(self.placements.as_mut().filter(|worker| worker.driver().is_ready()));
                }
                Some(webhook) = said(&mut self.webhook) => self.tell_webhook(webhook),
                () = work(&mut self.spreads, &mut self.placements, &mut self.keeping) => {}
                () = tokio::time::sleep(wake) => {}
            }
            self.signals.turn(&mut self.leading);
            self.tell_synced();
        }
        let over = self.clock.now() + END_WITHIN;
        if let Some(worker) = &mut self.spreads {
            worker.end(over).await;
        }
        if let Some(worker) = &mut self.placements {
            worker.end(over).await;
        }
        if let Some(worker) = &mut self.keeping {
            worker.end(over).await;
        }
        self.leading.give_back(duration(END_WITHIN)).await;
        tracing::info!("ended");
    }

    fn take_found(&mut self, found: Found) {
        match found {
            Found::Ready(name) => self.begin(name),
            Found::Served(served) => {
                self.served = Arc::clone(&served);
                if let Some(worker) = &mut self.spreads {
                    worker.tell(|spreads, watches| spreads.serve(served, watches));
                }
            }
        }
    }

    fn tell_webhook(&mut self, webhook: Webhook) {
        if let Some(worker) = &mut self.spreads {
            let now = worker.now();
            worker.tell(|spreads, _| spreads.set_webhook(now, webhook));
        }
    }

    fn tell_synced(&self) {
        let spreads = self.spreads.as_ref();
        let placements = self.placements.as_ref();
        let keeping = self.keeping.as_ref();
        let is_ready = spreads.is_none_or(|worker| worker.driver().is_ready())
            && placements.is_none_or(|worker| worker.driver().is_ready())
            && keeping.is_none_or(|worker| worker.driver().is_ready());
        self.signals.synced(is_ready);
    }

    fn families(&self) -> Vec<Family> {
        let spreads = self.spreads.as_ref().map(Worker::driver);
        let placements = self.placements.as_ref().map(Worker::driver);
        let keeping = self.keeping.as_ref().map(Worker::driver);
        let unreadable = unreadable(
            [
                spreads.map(|driver| driver.watches()),
                placements.map(|driver| driver.watches()),
                keeping.map(|driver| driver.watches()),
            ]
            .into_iter()
            .flatten()
            .flat_map(Watches::unreadable),
        );
        let spreads = spreads.map(|driver| {
            workloadspread::metrics::families(driver.machine(), driver.outbox().waiting())
        });
        let placements = placements.map(|driver| {
            placement::metrics::families(driver.machine(), driver.outbox().waiting())
        });
        let keeping = keeping
            .map(|driver| keep::metrics::families(driver.machine(), driver.outbox().waiting()));
        let audits = self.audits.as_ref().map(audit::Audits::families);
        let rebalances = { self.rebalances.as_ref() }.map(rebalance::Rebalances::families);
        let told = [spreads, placements, keeping, audits, rebalances]
            .into_iter()
            .flatten()
            .flatten();
        told.chain([unreadable]).collect()
    }
}

/// Waits until the guard reports a change; `None`: there is no guard, or it has ended.
async fn said(webhook: &mut Option<watch::Receiver<Webhook>>) -> Option<Webhook> {
    let webhook = webhook.as_mut()?;
    webhook.changed().await.ok()?;
    Some(*webhook.borrow_and_update())
}

/// Waits until one of the workers has work, and lets it do the work.
async fn work<A: Machine, B: Machine, C: Machine>(
    a: &mut Option<Worker<A>>,
    b: &mut Option<Worker<B>>,
    c: &mut Option<Worker<C>>,
) {
    // The choice is random: a fixed order would starve the others.
    tokio::select! {
        () = one(a) => {}
        () = one(b) => {}
        () = one(c) => {}
    }
}

async fn one<M: Machine>(worker: &mut Option<Worker<M>>) {
    match worker {
        Some(worker) => worker.work().await,
        None => pending().await,
    }
}
