//! Connects the scheduler's machine to the wire.
//!
//! Reading order: this file, `known` (watch events), `chain` (requests in flight).

mod chain;
mod known;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use strew_model::time::Instant;
use strew_scheduler::machine::{Effect, Input, Outcome, PodName, Scheduler};
use strew_wire::request::{Context, Series, outcome_of, requests_of};

use crate::driver::Moment;
use crate::machine::{Begun, Machine, Next};
use crate::outbox::{Answered, failure};
use crate::reads::Reads;
use crate::warning::Warning;
use crate::watch::{Update, Watches};
pub use chain::Chain;
use known::Known;

/// The scheduler's machine with its translation.
pub struct SchedulerMachine {
    machine: Scheduler,
    known: Known,
    series: Series,
    hostname: String,
}

impl SchedulerMachine {
    /// `hostname` becomes part of the names of events.
    pub fn new(machine: Scheduler, hostname: String) -> Self {
        Self {
            machine,
            known: Known::default(),
            series: Series::default(),
            hostname,
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Scheduler {
        &self.machine
    }

    /// The machine, for inputs that come from no watch or request.
    pub fn machine_mut(&mut self) -> &mut Scheduler {
        &mut self.machine
    }

    /// The kind of each object on which no decision can be based.
    pub fn aside(&self) -> impl Iterator<Item = Arc<str>> {
        self.known.aside()
    }
}

/// The kinds that decisions read.
pub const READS: &[Reads] = &[
    Reads::of::<Node>("the nodes to choose from"),
    Reads::of::<Pod>("the pods to place and those that count for a skew").unfinished(),
    Reads::of::<Namespace>("namespace selectors of pod affinity terms"),
    Reads::of::<Service>("default constraints: the pods that a Service selects"),
    Reads::of::<ReplicationController>("default constraints: the pods of a ReplicationController"),
    Reads::of::<ReplicaSet>("default constraints: the pods of a ReplicaSet"),
    Reads::of::<StatefulSet>("default constraints: the pods of a StatefulSet"),
    Reads::of::<PodDisruptionBudget>("preemption spares pods that a budget protects"),
    Reads::of::<PersistentVolumeClaim>("the volumes of a pod"),
    Reads::of::<PersistentVolume>("the nodes that reach a volume"),
    Reads::of::<StorageClass>("whether a claim waits for the pod's first node"),
    Reads::of::<CSINode>("how many volumes a node can attach"),
];

/// The machine's watches.
pub fn watches() -> Watches {
    Watches::of(READS)
}

impl Machine for SchedulerMachine {
    type Effect = Effect;
    type Chain = Chain;
    type Call = Infallible;
    type Reply = Infallible;

    fn take_in(&mut self, now: Instant, update: Update, _: &mut Watches) {
        self.known.take_in(&mut self.machine, now, update);
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        self.machine.poll_effect()
    }

    fn begin(&mut self, at: Moment, effect: Effect, leads: bool) -> Begun<Chain> {
        let waiting = pod_of(&effect).map(|pod| self.known.waiting(&pod.uid));
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
        // A replica that was suspended while it decided, and no longer leads, must not log a decision.
        if leads {
            log(&effect, &context);
        }
        let id = effect.id();
        let begun = id.and_then(|id| Chain::begin(&effect, id, requests_of(&effect, &context)));
        match (pod_of(&effect), begun) {
            (Some(pod), Some((chain, request))) => Begun::Chain {
                about: Arc::clone(&pod.uid),
                chain,
                request,
            },
            _ => Begun::Nothing,
        }
    }

    fn answered(&mut self, at: Moment, mut chain: Chain, answered: &Answered) -> Next<Chain> {
        let outcome = outcome_of(&answered.request, &answered.answer, answered.repeated);
        if outcome == Outcome::Ok
            && let Some(next) = chain.left.pop_front()
        {
            return Next::Send(chain, Box::new(next));
        }
        let effect = chain.id;
        if let Some(text) = failure(&outcome)
            && !answered.is_held_back
        {
            let next = match outcome {
                Outcome::Gone => "none: the pod is gone",
                _ => chain.next,
            };
            Warning::of(&answered.request, chain.action, &text, next).log();
        }
        let input = Input::Outcome { effect, outcome };
        self.machine.handle(at.now, input);
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.next_wake()
    }
}

/// The decision log.
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
        Effect::PodCondition { id, pod, condition } => tracing::debug!(
            target: "strew::decision",
            effect = id.0,
            uid = &*pod.uid,
            pod = format_args!("{}/{}", cx.names.text(pod.namespace), pod.name),
            reason = ?condition.reason,
            why = &*condition.message,
            "leave pending"
        ),
        Effect::Nominate { id, pod, node } => tracing::debug!(
            target: "strew::decision",
            effect = id.0,
            uid = &*pod.uid,
            pod = format_args!("{}/{}", cx.names.text(pod.namespace), pod.name),
            node = node.map(|node| cx.names.text(node)),
            "nominate"
        ),
        Effect::Event(_) => {}
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
