//! `strew scheduler`: the very machine that a simulation drives, on a real API server.
//!
//! One loop owns the machine: it takes in what the watches tell and what became of requests, and lets the machine
//! decide while this replica leads and the cluster is known as a whole. All state is in the API server, or derived from
//! it: a process that ends at any moment loses nothing.
//!
//! Reading order: this file (the loop), `seen` (facts), `carrying` (effects on their way), [`permissions`]. What it
//! shares with other processes is in `work` and `signals`.

mod carrying;
pub mod permissions;
mod seen;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use strew_api::config::Configuration;
use strew_api::lease::Settings;
use strew_api::request::{Context, Series, outcome_of, requests_of};
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_runtime::outbox::failure;
use strew_runtime::watch::{Kind, Reading, Scope, Update, Watches};
use strew_runtime::{Answered, Begun, Machine, Moment, Next};
use strew_scheduler::machine::{Effect, Input, Outcome, PodName, Scheduler};
use strew_scheduler::metrics::Family;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, duration};
use crate::connect::Connection;
use crate::leading::Leading;
use crate::metrics::unreadable;
use crate::send::Patience;
use crate::serve::health::Awaited;
pub use crate::signals::About;
use crate::signals::Signals;
use crate::work::{Links, Worker};
use carrying::Carrying;
use seen::Seen;

/// Finished pods are no concern: the API server leaves them out.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// How long the end waits for what is on its way.
const END_WITHIN: Span = Span::from_secs(5);

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
    worker: Worker<Decider>,
    clock: Clock,
    leading: Leading,
    signals: Signals,
    is_synced: bool,
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
        let synced = Awaited::handlers_synchronized();
        let requests = &connection.requests;
        let (signals, pages) = Signals::new(lease, synced, clock, end, &about, requests);
        let leading = Leading::new(settings, client.clone(), clock, seed);
        let leads = leading.leads().clone();
        let links = Links {
            client: client.clone(),
            clock,
            leads,
            patience: Patience::default(),
        };
        let limits = configuration.limits();
        let mut machine = Scheduler::new(names, configuration.profiles, limits, clock.now());
        machine.measure_with(crate::clock::stopwatch);
        let decider = Decider {
            machine,
            seen: Seen::default(),
            series: Series::default(),
            hostname,
        };
        let process = Self {
            worker: Worker::new(decider, watches(), links),
            clock,
            leading,
            signals,
            is_synced: false,
        };
        (process, pages)
    }

    /// Works until it is told to end; then gives back the lease.
    pub async fn run(mut self, end: CancellationToken) {
        let mut is_over = std::pin::pin!(end.cancelled());
        loop {
            let wake = self.leading.wake();
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
        self.worker.tell(|Decider { machine, seen, .. }, watches| {
            let aside = seen.aside().map(|kind| (format!("{kind:?}").into(), 1));
            let kinds = watches.unreadable().chain(aside);
            let mut families = machine.metrics();
            families.push(unreadable(kinds));
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

/// The scheduler's machine.
struct Decider {
    machine: Scheduler,
    seen: Seen,
    series: Series,
    hostname: String,
}

impl Machine for Decider {
    type Effect = Effect;
    type Chain = Carrying;

    fn take_in(&mut self, now: Instant, update: Update, _: &mut Watches) {
        self.seen.take_in(&mut self.machine, now, update);
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        self.machine.poll_effect()
    }

    fn begin(&mut self, at: Moment, effect: Effect, leads: bool) -> Begun<Carrying> {
        let waiting = pod_of(&effect).map(|pod| self.seen.waiting(&pod.uid));
        let waiting = waiting.unwrap_or_default();
        let context = Context {
            names: &self.machine.cluster().names,
            now: at.wall,
            hostname: &self.hostname,
            generation: waiting.generation,
            unscheduled_since: waiting.unscheduled_since,
        };
        if let Effect::Event(event) = &effect {
            let request = self.series.request(event, &context);
            return request.map_or(Begun::Nothing, Begun::Event);
        }
        // A replica that was held up while it decided, and does not lead any more, has decided nothing.
        if leads {
            log(&effect, &context);
        }
        let id = effect.id();
        let begun = id.and_then(|id| Carrying::begin(id, requests_of(&effect, &context)));
        match (pod_of(&effect), begun) {
            (Some(pod), Some((chain, request))) => Begun::Chain {
                about: Arc::clone(&pod.uid),
                chain,
                request,
            },
            _ => Begun::Nothing,
        }
    }

    fn answered(&mut self, at: Moment, mut chain: Carrying, answered: &Answered) -> Next<Carrying> {
        let outcome = outcome_of(&answered.request, &answered.answer, answered.repeated);
        if outcome == Outcome::Ok
            && let Some(next) = chain.left.pop_front()
        {
            return Next::Send(chain, next);
        }
        let effect = chain.id;
        if let Some(text) = failure(&outcome) {
            tracing::warn!(effect = effect.0, "not carried out: {text}");
        }
        let input = Input::Outcome { effect, outcome };
        self.machine.handle(at.now, input);
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.next_wake()
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
fn watches() -> Watches {
    let mut watches = Watches::default();
    watches.start_all([
        Kind::of::<Namespace>(),
        Kind::of::<Node>(),
        Kind::of::<Service>(),
        Kind::of::<ReplicationController>(),
        Kind::of::<ReplicaSet>(),
        Kind::of::<StatefulSet>(),
        Kind::of::<PodDisruptionBudget>(),
        Kind::of::<PersistentVolumeClaim>(),
        Kind::of::<PersistentVolume>(),
        Kind::of::<StorageClass>(),
        Kind::of::<CSINode>(),
    ]);
    let unfinished = Scope {
        fields: Some(UNFINISHED.to_owned()),
        ..Scope::default()
    };
    watches.start(Kind::of::<Pod>(), Reading::Known, &unfinished);
    watches
}
