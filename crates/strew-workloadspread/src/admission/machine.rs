//! The state of the machine, and its three functions.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use strew_model::{Instant, Interner, Prng, Span};
use strew_scheduler::Profile;

use super::counters::Counters;
use super::effect::{Answer, Denial, Effect, EffectId, Untouched, Verdict};
use super::input::{Input, Outcome};
use super::request::{Operation, Request, RequestId};
use super::spread_queue::{PendingRequest, SpreadQueue, State};
use crate::facts::kinds::Kinds;
use crate::facts::spec::{WorkloadSpread, WsKey};
use crate::facts::workload::{WorkloadFact, WorkloadKey};
use crate::inject::PodPatcher;
use crate::revision;
use crate::room::Room;
use crate::spreads::{Match, Spreads};
use crate::turns::KnownTurns;
use crate::workloads::Workloads;

/// Settings of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of requests that share one write.
    pub batch_max: usize,
    /// The largest number of requests that wait for one WorkloadSpread; further ones are refused.
    pub waiting_max: usize,
    /// An effect without an outcome for this long counts as failed: the API server's timeout for webhooks.
    pub lost_after: Span,
    /// While 16 requests for one WorkloadSpread come within this time, they share a status write, and none waits longer
    /// than this for the others. Zero: a request is written at once if no write is under way.
    pub gather_within: Span,
    /// A new pod that is one more than its target asks for shows that facts are outdated. It waits this long for newer
    /// facts before it passes over a full subset; zero: it does not wait. The newer fact may be the controller's next
    /// write, so this is longer than the pause that the controller makes after a write.
    pub news_within: Span,
    /// The number of new pod classes and terms after which unused objects are freed; or 8 times as many strings.
    pub sweep_min: usize,
}

impl Limits {
    /// The settings of `strew webhook`, and of simulations.
    ///
    /// If pods come faster than 200 per second, about 16 of them share a write.
    pub const fn production() -> Self {
        Self {
            batch_max: 1_000,
            waiting_max: 10_000,
            lost_after: Span::from_secs(10),
            gather_within: Span::from_millis(80),
            news_within: Span::from_secs(2),
            sweep_min: 512,
        }
    }
}

/// The admission machine.
pub struct Admission {
    pub(super) room: Room,
    pub(super) turns: KnownTurns,
    pub(super) kinds: Kinds,
    pub(super) workloads: Workloads,
    pub(super) spreads: Spreads,
    pub(super) queues: BTreeMap<WsKey, SpreadQueue>,
    /// Queues that may have a request to decide.
    pub(super) ready: VecDeque<WsKey>,
    pub(super) paused: BTreeSet<(Instant, WsKey)>,
    pub(super) effects: VecDeque<Effect>,
    pub(super) next_effect: u64,
    /// Effects without an outcome yet, oldest first.
    pub(super) pending: BTreeMap<EffectId, (WsKey, Instant)>,
    pub(super) counters: Counters,
    /// Since when no write has reached the API server; `None` if the last one did.
    pub(super) cut_off_since: Option<Instant>,
    pub(super) dice: Prng,
    pub(super) limits: Limits,
    pub(super) now: Instant,
}

impl Admission {
    /// A machine without facts. Facts must use symbols of `names`, or of [`names_mut`](Self::names_mut). The seed
    /// varies the pauses between attempts.
    pub fn new(names: Interner, profiles: Vec<Profile>, limits: Limits, seed: u64) -> Self {
        let mut room = Room::new(names, profiles);
        let kinds = Kinds::new(room.names_mut());
        // The symbols of profiles and kinds are not marked.
        room.names_mut().pin();
        Self {
            room,
            turns: KnownTurns::default(),
            kinds,
            workloads: Workloads::default(),
            spreads: Spreads::default(),
            queues: BTreeMap::new(),
            ready: VecDeque::new(),
            paused: BTreeSet::new(),
            effects: VecDeque::new(),
            next_effect: 1,
            pending: BTreeMap::new(),
            counters: Counters::default(),
            cut_off_since: None,
            dice: Prng::new(seed),
            limits,
            now: Instant(0),
        }
    }

    /// Takes an input, without choosing a subset. A time before the last one counts as the last one.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.now = self.now.max(now);
        self.pass_time();
        match input {
            Input::AdmitAsked(request) => self.asked(*request),
            Input::SpreadSet(ws) => self.set_spread(*ws),
            Input::SpreadGone(key) => {
                let old = self.spreads.remove(&key);
                self.kinds.follow(old.as_deref(), None);
                self.counters.forget(&key);
                if let Some(queue) = self.queues.get_mut(&key) {
                    queue.written = None;
                    queue.arrivals.clear();
                }
                self.news(&key);
                self.leave(&key);
            }
            Input::WorkloadSet(fact) => self.set_workload(*fact),
            Input::WorkloadGone(key) => {
                self.workloads.remove(key);
            }
            Input::KindsListed(listed) => self.kinds.set_listed(listed),
            Input::NodeSet(fact) => self.room.set_node(*fact),
            Input::NodeGone(name) => self.room.node_gone(name),
            Input::PodSet(fact, marker) => self.room.set_pod(*fact, marker.as_ref()),
            Input::PodGone(uid) => self.room.pod_gone(&uid),
            Input::ServiceSet(namespace, name, selector) => {
                let cluster = self.room.cluster_mut();
                cluster.set_service(namespace, name, selector);
            }
            Input::ControllerSet(namespace, owner, selector) => {
                let cluster = self.room.cluster_mut();
                cluster.set_controller(namespace, owner, selector);
            }
            Input::NamespaceSet(name, labels) => {
                self.room.cluster_mut().set_namespace(name, labels);
            }
            Input::GivenUp(id) => self.give_up(id),
            Input::Outcome(effect, outcome) => self.outcome(effect, outcome),
            Input::Tick => {}
        }
        self.sweep_if_due();
    }

    /// The next effect; decides waiting requests until there is one. `None`: nothing to do before the next input or
    /// [`next_wake`](Self::next_wake).
    pub fn poll_effect(&mut self, patcher: &mut dyn PodPatcher) -> Option<Effect> {
        loop {
            if let Some(effect) = self.effects.pop_front() {
                return Some(effect);
            }
            let key = self.ready.pop_front()?;
            self.run(&key, patcher);
        }
    }

    /// The time at which to call [`handle`](Self::handle) with a tick, if no input comes before; `None`: never.
    pub fn next_wake(&self) -> Option<Instant> {
        let paused = self.paused.first().map(|(until, _)| *until);
        let lost = self.pending.first_key_value();
        let lost = lost.map(|(_, (_, since))| *since + self.limits.lost_after);
        let all = [paused, lost, self.room.next_wake()];
        all.into_iter().flatten().min()
    }

    fn pass_time(&mut self) {
        self.room.expire(self.now);
        while let Some((&effect, &(_, since))) = self.pending.first_key_value() {
            if self.now < since + self.limits.lost_after {
                break;
            }
            self.settle(effect, Err(Denial::Lost));
        }
        while self.paused.first().is_some_and(|(t, _)| *t <= self.now) {
            if let Some((_, key)) = self.paused.pop_first() {
                self.resume(&key);
            }
        }
    }
}

// === state for metrics and pages ===

impl Admission {
    /// The strings of all facts and effects.
    pub fn names_mut(&mut self) -> &mut Interner {
        self.room.names_mut()
    }

    /// The strings of all facts and effects.
    pub fn names(&self) -> &Interner {
        self.room.names()
    }

    /// The nodes on which waiting pods are assumed.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// All WorkloadSpreads.
    pub fn spreads(&self) -> &Spreads {
        &self.spreads
    }

    /// The WorkloadSpreads that may have pods of a workload: they name it, its controller, or a workload that it
    /// controls.
    pub fn rivals(&self, key: WorkloadKey) -> impl Iterator<Item = &WsKey> {
        let workload = self.workloads.get(key);
        let owner = workload.and_then(|workload| workload.controller.as_ref());
        let owned = workload.map(|workload| self.workloads.controlled_by(&workload.uid));
        let owned = owned.into_iter().flatten().map(|owned| owned.key.target);
        let targets = [Some(key.target), owner.map(|owner| owner.target)];
        let targets = targets.into_iter().flatten().chain(owned);
        targets.flat_map(move |target| self.spreads.of_target(key.namespace, target))
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The number of requests that share a status write under way.
    pub fn sharing(&self, effect: EffectId) -> usize {
        let queue = self.pending.get(&effect);
        let queue = queue.and_then(|(key, _)| self.queues.get(key));
        match queue.map(|queue| &queue.state) {
            Some(State::Writing(batch)) => batch.sharing(),
            _ => 0,
        }
    }

    /// The number of requests without an answer.
    pub fn waiting(&self) -> usize {
        self.queues.values().map(SpreadQueue::waiting).sum()
    }
}

// === requests and facts ===

impl Admission {
    fn asked(&mut self, request: Request) {
        match self.find(&request) {
            Err(verdict) => self.answer_at_once(&request, verdict),
            Ok((key, revision)) => {
                let waiting_max = self.limits.waiting_max;
                let queue = self.queues.entry(key.clone()).or_default();
                if queue.waiting() >= waiting_max {
                    return self.answer_at_once(&request, Verdict::Deny(Denial::Overloaded));
                }
                if self.limits.gather_within > Span::default() {
                    queue.came(self.now);
                }
                let pending = PendingRequest::new(request, revision, self.now);
                queue.requests.push_back(pending);
                self.news(&key);
            }
        }
    }

    fn give_up(&mut self, id: RequestId) {
        for queue in self.queues.values_mut() {
            let found = queue.requests.iter().position(|t| t.request.id == id);
            if let Some(found) = found {
                queue.requests.remove(found);
                return;
            }
        }
    }

    /// The WorkloadSpread that handles a request with the pod's revision, or the answer.
    fn find(&self, request: &Request) -> Result<(WsKey, Arc<str>), Verdict> {
        let pod = &request.pod;
        let controller = pod.controller.as_ref();
        let not = |why| Err(Verdict::Untouched(why));
        if request.dry_run {
            return not(Untouched::DryRun);
        }
        if request.subresource {
            return not(Untouched::Subresource);
        }
        if !pod.active {
            return not(Untouched::Inactive);
        }
        let Some(owner) = controller else {
            return not(Untouched::NoController);
        };
        let key = match &request.operation {
            Operation::Create { .. } => {
                if !self.kinds.is_known(&owner.target) {
                    return not(Untouched::KindUnknown);
                }
                let chain = self.workloads.chain(pod.namespace, owner, &self.kinds);
                let top = self.workloads.top(pod.namespace, &chain);
                match self.spreads.find(pod.namespace, &chain, top, &pod.labels) {
                    Match::Of(key) => key,
                    Match::No => return not(Untouched::NoSpread),
                    Match::OwnerNotFound(owner) => {
                        return Err(Verdict::Deny(Denial::OwnerNotFound(owner)));
                    }
                }
            }
            Operation::Delete => {
                // The owner need not match any more.
                let Some(marker) = pod.marker.marker() else {
                    return not(Untouched::NoMarker);
                };
                let (namespace, name) = (pod.namespace, marker.workload_spread.clone());
                let key = WsKey { namespace, name };
                if self.spreads.get(&key).is_none() {
                    return not(Untouched::NoSpread);
                }
                key
            }
        };
        let scope = self.spreads.get(&key).map(|ws| ws.spec.limit_scope);
        let revision = revision::of_pod(
            scope.unwrap_or_default(),
            &pod.labels,
            controller,
            &self.kinds,
            self.room.names(),
        );
        Ok((key, revision))
    }

    fn answer_at_once(&mut self, request: &Request, verdict: Verdict) {
        self.counters.answered(None, &verdict, 0);
        self.effects.push_back(Effect::Answer(Box::new(Answer {
            request: request.id,
            verdict,
            spread: None,
            revision: None,
            choice: None,
            basis: None,
            conflicts: 0,
        })));
    }

    fn set_spread(&mut self, ws: WorkloadSpread) {
        if let Some(queue) = self.queues.get_mut(&ws.key)
            && queue
                .written
                .as_ref()
                .is_some_and(|w| w.version <= ws.version)
        {
            queue.written = None;
        }
        let key = ws.key.clone();
        let old = self.spreads.set(ws);
        self.news(&key);
        let new = self.spreads.get(&key);
        self.kinds.follow(old.as_deref(), new.map(|ws| &**ws));
    }

    fn set_workload(&mut self, fact: WorkloadFact) {
        let key = fact.key;
        let WorkloadKey { namespace, target } = key;
        self.workloads.set(fact);
        let named = self.spreads.of_target(namespace, target);
        let selecting = self.spreads.selecting(namespace, self.workloads.get(key));
        for key in named.chain(selecting).cloned().collect::<Vec<_>>() {
            self.news(&key);
        }
    }

    fn outcome(&mut self, effect: EffectId, outcome: Outcome) {
        self.counters.written += u64::from(matches!(outcome, Outcome::Written(_)));
        self.cut_off_since = match outcome {
            Outcome::Unsent => self.cut_off_since.or(Some(self.now)),
            // It may have been refused, or sent, or neither.
            Outcome::Failed | Outcome::Lost => self.cut_off_since,
            Outcome::Written(_) | Outcome::Conflict | Outcome::Read(_) | Outcome::Gone => None,
        };
        match outcome {
            Outcome::Failed => self.settle(effect, Err(Denial::Failed)),
            Outcome::Lost => self.settle(effect, Err(Denial::Lost)),
            outcome => self.settle(effect, Ok(outcome)),
        }
    }

    /// A new fact may end the wait of a queue.
    fn news(&mut self, key: &WsKey) {
        if let Some(queue) = self.queues.get_mut(key)
            && matches!(queue.state, State::Waiting)
        {
            queue.state = State::Idle;
        }
        self.wake_queue(key);
    }

    /// Notes that a queue may have something to decide.
    pub(super) fn wake_queue(&mut self, key: &WsKey) {
        if let Some(queue) = self.queues.get_mut(key)
            && matches!(queue.state, State::Idle)
            && !queue.requests.is_empty()
        {
            self.look_at(key);
        }
    }

    /// Schedules a queue to run, whatever it is waiting for.
    pub(super) fn look_at(&mut self, key: &WsKey) {
        if let Some(queue) = self.queues.get_mut(key)
            && !queue.queued
        {
            queue.queued = true;
            self.ready.push_back(key.clone());
        }
    }
}
