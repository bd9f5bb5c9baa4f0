//! `strew scheduler`: the machine that simulations run, on a real API server.
//!
//! One loop owns the machine. It handles watch events and answers to requests, and lets the machine decide while this
//! replica leads and all kinds have been listed. All state is in the API server or derived from it, so a process can
//! end at any moment.
//!
//! Reading order: this file (the loop), [`permissions`]. [`strew_runtime::scheduler`] connects the machine to the wire;
//! [`work`](crate::work) and `signals` are shared with other processes.

pub mod permissions;

use axum::Router;
use k8s_openapi::api::core::v1::{Node, Pod};
use strew_model::Interner;
use strew_model::time::Span;
use strew_runtime::scheduler::{SchedulerMachine, watches};
use strew_runtime::watch::Kind;
use strew_scheduler::machine::Scheduler;
use strew_scheduler::metrics::Family;
use strew_wire::config::Configuration;
use strew_wire::lease::Settings;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, duration};
use crate::connect::Connection;
use crate::leading::Leading;
use crate::metrics::unreadable;
use crate::send::Patience;
use crate::serve::health::Awaited;
pub use crate::signals::About;
use crate::signals::{Signals, TURNS_EVERY};
use crate::work::{Links, Worker};

/// How long the shutdown waits for requests in transit.
const END_WITHIN: Span = Span::from_secs(5);

/// The settings of a scheduler.
pub struct Blueprint {
    /// Its configuration.
    pub configuration: Configuration,
    /// The interner of its profiles.
    pub names: Interner,
    /// The name of this host or instance.
    pub hostname: String,
    /// This replica's name in the election; a new one after each restart.
    pub identity: String,
    /// The seed of jitter.
    pub seed: u64,
    /// Version and configuration, for its pages.
    pub about: About,
}

/// A running scheduler.
pub struct Process {
    worker: Worker<SchedulerMachine>,
    clock: Clock,
    leading: Leading,
    signals: Signals,
    is_synced: bool,
}

impl Process {
    /// Starts the scheduler, which lists its objects first. Returns it with its pages, for a
    /// [`Server`](crate::serve::Server). Its watches live as long as it does. Give the same `end` to
    /// [`run`](Self::run).
    pub fn start(
        blueprint: Blueprint,
        connection: &Connection,
        end: CancellationToken,
    ) -> (Self, Router) {
        let client = &connection.client;
        let Blueprint {
            configuration,
            names,
            hostname,
            identity,
            seed,
            about,
        } = blueprint;
        let clock = Clock::new();
        let election = &configuration.leader_election;
        let settings = election
            .leader_elect
            .then(|| Settings::of(election, identity));
        let lease = settings
            .as_ref()
            .map(|s| (s.name.clone(), s.lease_duration));
        let synced = Awaited::handlers_synchronized();
        let requests = &connection.requests;
        let (signals, pages) = Signals::new(lease, synced, clock, end, &about, requests);
        let leading = Leading::new(settings, client.clone(), clock, seed);
        let leads = leading.leads().clone();
        let links = Links {
            client: client.clone(),
            writes: client.clone(),
            clock,
            leads,
            patience: Patience::default(),
        };
        let limits = configuration.limits();
        let mut machine = Scheduler::new(names, configuration.profiles, limits, clock.now());
        machine.measure_with(crate::clock::stopwatch);
        let machine = SchedulerMachine::new(machine, hostname);
        let process = Self {
            worker: Worker::new(machine, watches(), links),
            clock,
            leading,
            signals,
            is_synced: false,
        };
        (process, pages)
    }

    /// Runs until it is asked to stop; then releases the lease.
    pub async fn run(mut self, end: CancellationToken) {
        let mut is_over = std::pin::pin!(end.cancelled());
        loop {
            let wake = self.leading.wake().min(TURNS_EVERY);
            tokio::select! {
                biased;
                () = &mut is_over => break,
                () = self.leading.answered() => {}
                Some(asked) = self.signals.asked.next() => {
                    asked.answer(self.families());
                }
                () = self.worker.work() => {}
                () = tokio::time::sleep(wake) => {}
            }
            self.signals.turn(&mut self.leading);
            self.tell_synced();
        }
        self.worker.end(self.clock.now() + END_WITHIN).await;
        self.leading.give_back(duration(END_WITHIN)).await;
        tracing::info!("ended");
    }

    fn families(&mut self) -> Vec<Family> {
        self.worker.tell(|scheduler, watches| {
            let aside = scheduler.aside();
            let aside = aside.map(|kind| (kind, 1));
            let unreadable = unreadable(watches.unreadable().chain(aside));
            let mut families = scheduler.machine_mut().metrics();
            families.push(unreadable);
            families
        })
    }

    fn tell_synced(&mut self) {
        if !self.is_synced && self.worker.driver().is_ready() {
            self.is_synced = true;
            self.signals.synced(true);
            tracing::info!(
                nodes = self.worker.driver().watches().len(&Kind::of::<Node>()),
                pods = self.worker.driver().watches().len(&Kind::of::<Pod>()),
                "the cluster is known"
            );
        }
    }
}
