//! `strew scheduler`: the very machine that a simulation drives, on a real API server.
//!
//! One loop owns the machine: it takes in what the watches tell and what became of requests, and lets the machine
//! decide while this replica leads and the cluster is known as a whole. All state is in the API server, or derived from
//! it: a process that ends at any moment loses nothing.
//!
//! Reading order: this file (the loop), `seen` (facts), `pages` (what it tells over HTTPS), [`permissions`].

mod pages;
pub mod permissions;
mod seen;

use std::time::Duration;

use axum::Router;
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::Client;
use strew_api::config::Configuration;
use strew_api::facts::Watched;
use strew_api::lease::Settings;
use strew_api::request::{Context, Series, requests_of};
use strew_model::Interner;
use strew_model::time::Span;
use strew_scheduler::machine::{Effect, Input, Limits, PodName, Scheduler};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::connect::Connection;
use crate::leading::{Leading, Turn};
use crate::send::{Done, Outbox, failure};
use crate::watch::{Told, watch};
pub use pages::About;
use pages::Signals;
use seen::Seen;

/// Finished pods are no concern: the API server leaves them out.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// So many tellings wait for the loop; more make the watches wait.
const TOLD_MAX: usize = 256;

/// So much is taken in before the machine decides again.
const TAKEN_MAX: usize = 512;

/// So many effects are carried out before the loop looks at what has arrived.
const EFFECTS_MAX: usize = 32;

/// How long the end waits for what is on its way.
const END_WITHIN: Duration = Duration::from_secs(5);

/// What a scheduler is made of.
pub struct Blueprint {
    /// How it decides and works.
    pub configuration: Configuration,
    /// The names that its profiles use.
    pub names: Interner,
    /// The name of this host, or of this instance.
    pub hostname: String,
    /// This replica's name in the election; another one after each restart.
    pub identity: String,
    /// What jitter is drawn from.
    pub seed: u64,
    /// What it tells of itself.
    pub about: About,
}

/// A scheduler at work.
pub struct Process {
    machine: Scheduler,
    seen: Seen,
    clock: Clock,
    series: Series,
    leading: Leading,
    outbox: Outbox,
    signals: Signals,
    told: mpsc::Receiver<Told>,
    hostname: String,
    is_ready: bool,
    /// Whether the machine has more to decide on at once.
    has_more: bool,
}

impl Process {
    /// A scheduler that begins by listing what there is, and its pages, for a [`Server`](crate::serve::Server). Its
    /// watches live as long as it does; `end` is told to [`run`](Self::run), too.
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
        let (signals, pages) = Signals::new(lease, clock, end, &about, &connection.requests);
        let leading = Leading::new(settings, client.clone(), clock, seed);
        let outbox = Outbox::new(client.clone(), clock, leading.leads().clone());
        let mut limits = Limits::default();
        limits.queue.backoff.initial = Span::from_secs(configuration.pod_initial_backoff_s);
        limits.queue.backoff.max = Span::from_secs(configuration.pod_max_backoff_s);
        let (told, kinds) = start_watches(client);
        let mut machine = Scheduler::new(names, configuration.profiles, limits, clock.now());
        machine.measure_with(crate::clock::stopwatch);
        let process = Self {
            machine,
            seen: Seen::of(kinds),
            clock,
            series: Series::default(),
            leading,
            outbox,
            told,
            hostname,
            is_ready: false,
            has_more: false,
            signals,
        };
        (process, pages)
    }

    /// Works until it is told to end; then gives back the lease.
    pub async fn run(mut self, end: CancellationToken) {
        let mut is_over = std::pin::pin!(end.cancelled());
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                () = &mut is_over => break,
                () = self.leading.answered() => {}
                done = self.outbox.done() => self.take_done(done),
                // Never closed while a watch lives, and watches live until this end is gone.
                Some(told) = self.told.recv() => self.take_told(told),
                Some(asked) = self.signals.asked.next() => asked.answer(self.machine.metrics()),
                () = tokio::time::sleep(wake) => {}
            }
            self.take_in();
            self.turn();
            self.has_more = self.decide();
            if self.has_more {
                // What carries requests and watches has its turn.
                tokio::task::yield_now().await;
            }
        }
        self.end().await;
    }

    /// How long nothing needs to be done, if nothing arrives.
    fn next_wake(&self) -> Duration {
        const AT_MOST: Duration = Duration::from_secs(60);
        if self.has_more {
            return Duration::ZERO;
        }
        let machine = self.machine.next_wake().filter(|_| self.may_decide());
        let wakes = [self.leading.next_wake(), machine];
        let first = wakes.into_iter().flatten().min();
        first.map_or(AT_MOST, |at| self.clock.until(at).min(AT_MOST))
    }

    fn may_decide(&self) -> bool {
        self.is_ready && self.leading.leads().now()
    }

    /// Takes in what has arrived, without waiting.
    fn take_in(&mut self) {
        for _ in 0..TAKEN_MAX {
            let done = self.outbox.try_done();
            let told = self.told.try_recv().ok();
            if done.is_none() && told.is_none() {
                return;
            }
            if let Some(done) = done {
                self.take_done(done);
            }
            if let Some(told) = told {
                self.take_told(told);
            }
        }
    }

    fn take_told(&mut self, told: Told) {
        let now = self.clock.now();
        self.seen.take_in(&mut self.machine, now, told);
        if !self.is_ready && self.seen.is_whole() {
            self.is_ready = true;
            self.signals.synced();
            tracing::info!(
                nodes = self.seen.len(Watched::Node),
                pods = self.seen.len(Watched::Pod),
                "the cluster is known"
            );
        }
    }

    fn take_done(&mut self, done: Done) {
        let Done {
            effect, outcome, ..
        } = done;
        if let Some(text) = failure(&outcome) {
            tracing::warn!(effect = effect.0, "not carried out: {text}");
        }
        let input = Input::Outcome { effect, outcome };
        self.machine.handle(self.clock.now(), input);
    }

    fn turn(&mut self) {
        let turn = self.leading.turn();
        self.signals.leads(&self.leading);
        match turn {
            Some(Turn::Begins) => tracing::info!("this replica leads"),
            Some(Turn::Ends(holder)) => {
                let holder = holder.unwrap_or_else(|| "nobody".to_owned());
                tracing::warn!("this replica does not lead any more: {holder} does");
            }
            None => {}
        }
    }

    /// Lets the machine decide for a while. Whether there is more to do.
    fn decide(&mut self) -> bool {
        if !self.may_decide() {
            return false;
        }
        self.machine.handle(self.clock.now(), Input::Tick);
        for _ in 0..EFFECTS_MAX {
            if self.outbox.is_full() {
                return false;
            }
            let Some(effect) = self.machine.poll_effect() else {
                return false;
            };
            self.carry_out(&effect);
        }
        true
    }

    fn carry_out(&mut self, effect: &Effect) {
        let names = &self.machine.cluster().names;
        let waiting = pod_of(effect).map(|pod| self.seen.waiting(&pod.uid));
        let waiting = waiting.unwrap_or_default();
        let context = Context {
            names,
            now: self.clock.wall(),
            hostname: &self.hostname,
            generation: waiting.generation,
            unscheduled_since: waiting.unscheduled_since,
        };
        match (effect, effect.id()) {
            (Effect::Event(event), _) => {
                if let Some(request) = self.series.request(event, &context) {
                    self.outbox.tell(request);
                }
            }
            (effect, Some(id)) => {
                log(effect, &context);
                let requests = requests_of(effect, &context);
                if let Some(pod) = pod_of(effect) {
                    self.outbox.send(id, &pod.uid, requests);
                }
            }
            (_, None) => {}
        }
    }

    /// Sends nothing new, waits for what is on its way, and gives back the lease.
    async fn end(mut self) {
        let over = self.clock.now() + Span::from_secs(END_WITHIN.as_secs());
        while self.outbox.waiting() > 0 && self.clock.now() < over {
            let left = self.clock.until(over);
            if let Ok(done) = tokio::time::timeout(left, self.outbox.done()).await {
                self.take_done(done);
            }
        }
        if self.outbox.dropped() > 0 {
            tracing::warn!(events = self.outbox.dropped(), "events were dropped");
        }
        self.leading.give_back(END_WITHIN).await;
        tracing::info!("ended");
    }
}

/// What was decided, for those who want to know each.
fn log(effect: &Effect, cx: &Context<'_>) {
    match effect {
        Effect::Bind { id, pod, node } => tracing::debug!(
            target: "strew::decision",
            effect = id.0,
            uid = &*pod.uid,
            pod = format_args!("{}/{}", cx.names.text(pod.namespace), pod.name),
            node = cx.names.text(*node),
            "bind"
        ),
        Effect::DeleteVictim { id, victim, .. } => tracing::debug!(
            target: "strew::decision",
            effect = id.0,
            uid = &*victim.uid,
            pod = format_args!("{}/{}", cx.names.text(victim.namespace), victim.name),
            "preempt"
        ),
        _ => {}
    }
}

fn pod_of(effect: &Effect) -> Option<&PodName> {
    match effect {
        Effect::Bind { pod, .. }
        | Effect::PodCondition { pod, .. }
        | Effect::Nominate { pod, .. } => Some(pod),
        Effect::DeleteVictim { victim, .. } => Some(victim),
        Effect::Event(_) => None,
    }
}

/// A watch for each kind that decisions look at.
fn start_watches(client: &Client) -> (mpsc::Receiver<Told>, Vec<Watched>) {
    let (to, told) = mpsc::channel(TOLD_MAX);
    let mut kinds = Vec::new();
    macro_rules! start {
        ($kind:ident, $fields:expr) => {
            kinds.push(Watched::$kind);
            tokio::spawn(watch::<$kind>(
                client.clone(),
                Watched::$kind,
                $fields,
                to.clone(),
            ));
        };
    }
    start!(Namespace, None);
    start!(Node, None);
    start!(Service, None);
    start!(ReplicationController, None);
    start!(ReplicaSet, None);
    start!(StatefulSet, None);
    start!(PodDisruptionBudget, None);
    start!(PersistentVolumeClaim, None);
    start!(PersistentVolume, None);
    start!(StorageClass, None);
    start!(CSINode, None);
    start!(Pod, Some(UNFINISHED));
    (told, kinds)
}
