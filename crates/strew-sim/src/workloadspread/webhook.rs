//! The webhook: its replicas, and the calls of the API server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use strew_apiserver::object::Pod;
use strew_apiserver::server::{Called, LateAnswer, Server, uuid};
use strew_apiserver::{ApiError, Tables};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_runtime::CallId;
use strew_runtime::admission::{Call, Crowded};
use strew_wire::workloadspread::review::Decision;
use strew_workloadspread::admission::Effect;

use super::calling::{Asked, Hook, TIMED_OUT, patch_of, review_of};
use super::judge::Judge;
use super::replica::{Eyes, Replica};
use crate::component::Surroundings;
use crate::fault::{Crash, Faults, Hits};
use crate::network::Draws;
use crate::scheduler::Blueprint;
use crate::slot::Slot;
use crate::timing::Between;

/// How long the API server waits for an answer: the default of `timeoutSeconds`.
const TIMEOUT: Span = Span::from_secs(10);

/// A fault of webhook calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebhookFault {
    /// Of a million calls, the number that time out; half of these are carried out.
    pub lost_ppm: u32,
    /// Of a million writes, the number that get no answer; half of these are carried out.
    pub write_lost_ppm: u32,
    /// The longest delay of each write, half of it on the way back.
    pub slower: Span,
}

/// A call about a new pod that has no answer yet.
struct Waiting {
    id: CallId,
    /// The pod as it was sent.
    pod: Arc<Pod>,
    /// The number of the called replica; `None`: no answer will come.
    replica: Option<u64>,
    /// When the API server stops waiting.
    until: Instant,
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// No answer in time.
    TimedOut,
    /// The replica crashed during the call.
    Died,
    /// Too many reviews of the namespace wait.
    Crowded,
}

/// The transport of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Call and answer arrive.
    Sound,
    /// The call does not arrive.
    Lost,
    /// The call arrives, its answer does not.
    AnswerLost,
}

/// All replicas of the webhook.
pub(crate) struct Webhook {
    replicas: Vec<Slot<Replica>>,
    blueprint: Blueprint,
    /// The active faults.
    pub(crate) faults: Faults,
    rng: Prng,
    /// Which request in transit comes first.
    order: Prng,
    n_made: u64,
    n_calls: u64,
    /// Open calls, by the time when the API server stops waiting.
    calls: VecDeque<Waiting>,
    /// Answers that have not reached the API server.
    replies: BTreeMap<CallId, Decision>,
    status_write: Between,
    /// Judges its answers; `None` without a witness.
    pub(crate) judge: Option<Judge>,
    /// The faults that hit it.
    pub(crate) hits: Hits,
}

impl Webhook {
    /// Starts this many replicas, which list the store first.
    pub(crate) fn new(
        blueprint: Blueprint,
        n_replicas: usize,
        status_write: Between,
        rng: Prng,
        (now, server): (Instant, &Server),
    ) -> Self {
        let mut webhook = Self {
            replicas: Vec::new(),
            blueprint,
            faults: Faults::default(),
            order: Prng::new(0),
            rng,
            n_made: 0,
            n_calls: 0,
            calls: VecDeque::new(),
            replies: BTreeMap::new(),
            status_write,
            judge: None,
            hits: Hits::default(),
        };
        for _ in 0..n_replicas {
            let replica = webhook.replica(now, server);
            webhook.replicas.push(Slot::new(replica));
        }
        webhook.order = Prng::new(webhook.rng.next_u64());
        webhook
    }

    fn replica(&mut self, now: Instant, server: &Server) -> Replica {
        let number = self.n_made;
        self.n_made += 1;
        let seed = self.rng.next_u64();
        Replica::new(
            &self.blueprint,
            number,
            seed,
            self.status_write,
            (now, server),
        )
    }

    fn alive(&self) -> impl Iterator<Item = &Replica> {
        self.replicas.iter().filter_map(|slot| slot.alive.as_ref())
    }

    /// True if at least one replica is alive.
    pub(crate) fn is_alive(&self) -> bool {
        self.alive().next().is_some()
    }

    /// The number of status writes by the live replicas.
    pub(crate) fn n_written(&self) -> u64 {
        self.alive().map(Replica::n_written).sum()
    }

    /// For each live replica: what its watches have delivered, and what they would deliver of the store.
    pub(crate) fn caches<'a>(
        &'a self,
        stored: &'a Tables,
    ) -> impl Iterator<Item = (&'a Tables, Tables)> {
        self.alive()
            .map(|replica| (replica.seen(), replica.watched(stored)))
    }

    /// The next time at which it has something to do without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let wakes = self.alive().map(Replica::next_wake);
        let restarts = self.replicas.iter().map(|slot| slot.restart);
        let gives_up = self.calls.front().map(|call| call.until);
        wakes.chain(restarts).chain([gives_up]).flatten().min()
    }

    /// Restarts replicas that are due.
    pub(crate) fn pass_time(&mut self, now: Instant, server: &Server) {
        for index in 0..self.replicas.len() {
            if self.replicas[index].is_due(now) {
                self.replicas[index] = Slot::new(self.replica(now, server));
            }
        }
    }

    /// Crashes all replicas, or one of them.
    pub(crate) fn crash(&mut self, now: Instant, crash: Crash, only_one: bool) {
        let alive = self.replicas.iter_mut().filter(|slot| slot.alive.is_some());
        for slot in alive.take(if only_one { 1 } else { usize::MAX }) {
            slot.crash(now, crash.after_writes, crash.down);
        }
    }

    /// Ends all faults and restarts all replicas.
    pub(crate) fn calm(&mut self, now: Instant) {
        self.faults = Faults::default();
        self.replicas.iter_mut().for_each(|slot| slot.calm(now));
    }

    /// Lets replicas take in watch events and continue open calls. Returns false if there was nothing to do.
    pub(crate) fn step(&mut self, now: Instant, server: &mut Server) -> bool {
        let mut acted = false;
        for index in 0..self.replicas.len() {
            acted |= self.step_replica(index, (now, now), server, None);
        }
        acted
    }

    /// Lets one replica take one step at this time of its own `clock`. Returns false if there was nothing to do.
    fn step_replica(
        &mut self,
        index: usize,
        (now, clock): (Instant, Instant),
        server: &mut Server,
        effects: Option<&mut Vec<Effect>>,
    ) -> bool {
        let slot = &mut self.replicas[index];
        let Some(replica) = &mut slot.alive else {
            return false;
        };
        let mut around = Surroundings {
            now: clock,
            server,
            faults: &self.faults,
            draws: Draws {
                faults: &mut self.rng,
                order: &mut self.order,
                writes_left: slot.doomed.as_mut().map(|(left, _)| left),
            },
        };
        let eyes = Eyes {
            judge: self.judge.as_mut(),
            effects,
        };
        let acted = replica.step(&mut around, eyes);
        for (id, decision) in replica.take_replies(clock) {
            self.replies.insert(id, *decision);
        }
        for (kind, n) in replica.take_hits() {
            *self.hits.entry(kind).or_default() += n;
        }
        slot.meet_doom(now);
        if slot.alive.is_none() {
            self.hit("died over a request");
        }
        acted
    }

    fn hit(&mut self, kind: &'static str) {
        *self.hits.entry(kind).or_default() += 1;
    }

    /// The answers to calls that were open.
    pub(crate) fn late_answers(&mut self, now: Instant) -> Vec<LateAnswer> {
        let mut late = Vec::new();
        for call in std::mem::take(&mut self.calls) {
            let answer = match self.late_answer(&call, now) {
                None => {
                    self.calls.push_back(call);
                    continue;
                }
                Some(Ok(decision)) => patch_of(Hook::CREATE, decision),
                Some(Err(failure)) => Err(self.failed(Hook::CREATE, failure)),
            };
            late.push(LateAnswer {
                number: call.id.0,
                pod: call.pod,
                answer,
            });
        }
        // The remaining answers belong to calls that timed out or whose answers are lost.
        self.replies.clear();
        late
    }

    /// The result of an open call; `None` if it stays open.
    fn late_answer(&mut self, call: &Waiting, now: Instant) -> Option<Result<Decision, Failure>> {
        if let Some(number) = call.replica {
            if let Some(decision) = self.replies.remove(&call.id) {
                return Some(Ok(decision));
            }
            if self.alive().all(|replica| replica.number != number) {
                return Some(Err(Failure::Died));
            }
        }
        if call.until > now {
            return None;
        }
        let alive = self.replicas.iter_mut();
        for replica in alive.filter_map(|slot| slot.alive.as_mut()) {
            replica.give_up(now, call.id);
        }
        Some(Err(Failure::TimedOut))
    }

    fn failed(&mut self, hook: Hook, failure: Failure) -> ApiError {
        match failure {
            Failure::TimedOut => {
                self.hit("call timed out");
                hook.failed(TIMED_OUT)
            }
            Failure::Died => {
                self.hit("call of a replica that died");
                hook.failed("EOF")
            }
            Failure::Crowded => {
                self.hit("call of a crowded namespace");
                hook.failed("too many reviews of its namespace wait")
            }
        }
    }

    // === calls ===

    /// Draws one of the live replicas.
    fn draw(&mut self, hook: Hook) -> Result<usize, ApiError> {
        let alive: Vec<usize> = (0..self.replicas.len())
            .filter(|&index| self.replicas[index].alive.is_some())
            .collect();
        match alive.is_empty() {
            true => {
                self.hit("call of nobody");
                Err(hook.unreachable())
            }
            false => Ok(*self.rng.pick(&alive)),
        }
    }

    fn draw_way(&mut self) -> Way {
        let ppm = self.faults.webhook().map_or(0, |fault| fault.lost_ppm);
        if ppm == 0 || !self.rng.chance(u64::from(ppm), 1_000_000) {
            return Way::Sound;
        }
        self.hit("call lost");
        match self.rng.chance(1, 2) {
            true => Way::AnswerLost,
            false => Way::Lost,
        }
    }

    fn new_call(&mut self, asked: Asked<'_>) -> (CallId, Hook, Box<Call>) {
        self.n_calls += 1;
        let (hook, review) = review_of(asked, self.n_calls);
        let call = Call {
            review,
            fresh_uid: uuid(&mut self.rng),
            is_simulated: true,
        };
        (CallId(self.n_calls), hook, Box::new(call))
    }

    fn ask(
        &mut self,
        index: usize,
        now: Instant,
        id: CallId,
        call: Box<Call>,
    ) -> Result<(), Failure> {
        let replica = self.replicas[index].alive.as_mut();
        let asked = replica.map_or(Ok(()), |replica| replica.ask(now, id, call));
        asked.map_err(|Crowded| Failure::Crowded)
    }

    /// Calls a live replica about a new pod, for a client that can wait.
    pub(crate) fn call(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
    ) -> Result<Called, ApiError> {
        let (id, hook, call) = self.new_call(Asked::Create(pod));
        let (index, way) = (self.draw(hook)?, self.draw_way());
        let mut replica = None;
        if way != Way::Lost {
            replica = self.number_of(index).filter(|_| way == Way::Sound);
            if let Err(failure) = self.ask(index, now, id, call) {
                return Err(self.failed(hook, failure));
            }
            while self.step_replica(index, (now, now), server, None) {}
            if way == Way::Sound {
                if let Some(decision) = self.replies.remove(&id) {
                    return patch_of(hook, decision).map(Called::Answered);
                }
                if self.number_of(index).is_none() {
                    return Err(self.failed(hook, Failure::Died));
                }
            }
        }
        self.calls.push_back(Waiting {
            id,
            pod: Arc::clone(pod),
            replica,
            until: now + TIMEOUT,
        });
        Ok(Called::Waits(id.0))
    }

    /// The number of a replica; `None` if it is down.
    fn number_of(&self, index: usize) -> Option<u64> {
        let replica = self.replicas[index].alive.as_ref();
        replica.map(|replica| replica.number)
    }

    /// Calls a live replica, which answers within the instant. For a new pod, returns the JSON patch, if there is one.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        server: &mut Server,
        asked: Asked<'_>,
    ) -> Result<Option<Value>, ApiError> {
        let (id, hook, call) = self.new_call(asked);
        let (index, way) = (self.draw(hook)?, self.draw_way());
        if way == Way::Lost {
            return Err(self.failed(hook, Failure::TimedOut));
        }
        let answer = match self.ask(index, now, id, call) {
            Ok(()) => self.wait(index, id, now, server, None),
            Err(failure) => Err(failure),
        };
        if let Some(judge) = &mut self.judge {
            // The outcome of a failed call is not known.
            if judge.take_counted(id) || answer.is_err() {
                judge.end_asked(asked);
            }
        }
        match answer {
            Ok(_) if way == Way::AnswerLost => Err(self.failed(hook, Failure::TimedOut)),
            Ok(decision) => patch_of(hook, decision),
            Err(failure) => Err(self.failed(hook, failure)),
        }
    }

    /// Steps a replica on its own clock until it answers, or until the API server stops waiting.
    fn wait(
        &mut self,
        index: usize,
        id: CallId,
        now: Instant,
        server: &mut Server,
        mut effects: Option<&mut Vec<Effect>>,
    ) -> Result<Decision, Failure> {
        let (mut clock, until) = (now, now + TIMEOUT);
        loop {
            let acted = self.step_replica(index, (now, clock), server, effects.as_deref_mut());
            if let Some(decision) = self.replies.remove(&id) {
                return Ok(decision);
            }
            let Some(replica) = &mut self.replicas[index].alive else {
                return Err(Failure::Died);
            };
            if acted {
                continue;
            }
            let wake = replica.next_wake();
            match wake.filter(|wake| *wake > clock && *wake <= until) {
                Some(wake) => clock = wake,
                None => {
                    replica.give_up(clock, id);
                    return Err(Failure::TimedOut);
                }
            }
        }
    }

    /// Calls each replica about a pod that is not going to be created; returns each answer.
    pub(crate) fn dry_run(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
    ) -> Vec<Vec<Effect>> {
        let mut all = Vec::new();
        for index in 0..self.replicas.len() {
            if self.number_of(index).is_none() {
                continue;
            }
            let (id, _, mut call) = self.new_call(Asked::Create(pod));
            call.review.dry_run = true;
            if self.ask(index, now, id, call).is_err() {
                continue;
            }
            let mut effects = Vec::new();
            if self
                .wait(index, id, now, server, Some(&mut effects))
                .is_ok()
            {
                all.push(effects);
            }
        }
        all
    }
}
