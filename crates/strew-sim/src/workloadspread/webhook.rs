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
use crate::auditor::Rule;
use crate::component::Surroundings;
use crate::fault::{Crash, Faults, Hits, Sabotage};
use crate::network::Draws;
use crate::registration::{HookDeed, Member, Registered, RegistrationPlan, ReviewOutcome, Terms};
use crate::scheduler::Blueprint;
use crate::slot::Slot;
use crate::timing::Between;

/// How long the API server waits for an answer: the default of `timeoutSeconds`.
const TIMEOUT: Span = Span::from_secs(10);

/// Go's message for a certificate that no trusted CA has signed.
const UNTRUSTED: &str =
    "tls: failed to verify certificate: x509: certificate signed by unknown authority";

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
    /// True if the pod is not created without an answer.
    is_needed: bool,
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
    /// No replica is reached.
    NoReplica,
    /// The API server does not trust the replica's certificate.
    Untrusted,
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
    /// Which of them are asked; `None`: all, always.
    registered: Option<Registered>,
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
        plan: Option<(RegistrationPlan, Option<Sabotage>)>,
        (now, server): (Instant, &mut Server),
    ) -> Self {
        let mut webhook = Self {
            replicas: Vec::new(),
            registered: None,
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
        if let Some((plan, sabotage)) = plan {
            let rng = Prng::new(webhook.rng.next_u64());
            let world = (now, &mut *server);
            webhook.registered = Some(Registered::new(plan, rng, sabotage, world));
        }
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
        let mut replica = Replica::new(
            &self.blueprint,
            number,
            seed,
            self.status_write,
            (now, server),
        );
        let registered = self.registered.as_ref();
        replica.registering = registered.map(|registered| registered.registering(number, now));
        replica
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
        let slots = self.replicas.iter().enumerate();
        let working = slots.filter(|(index, _)| !self.is_cut(*index));
        let wakes = working.map(|(_, slot)| slot.alive.as_ref()?.next_wake());
        let registering = self.alive().map(|replica| {
            let registering = replica.registering.as_ref()?;
            registering.next_wake()
        });
        let registered = self.registered.as_ref().map(Registered::next_wake);
        let wakes = wakes.chain(registering).chain(registered);
        let restarts = self.replicas.iter().map(|slot| slot.restart);
        let gives_up = self.calls.front().map(|call| call.until);
        wakes.chain(restarts).chain([gives_up]).flatten().min()
    }

    /// Restarts replicas that are due.
    pub(crate) fn pass_time(&mut self, now: Instant, server: &mut Server) {
        if let Some(registered) = &mut self.registered {
            registered.pass_time(now, server);
        }
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
    pub(crate) fn calm(&mut self, now: Instant, server: &mut Server) {
        self.faults = Faults::default();
        if let Some(registered) = &mut self.registered {
            registered.calm(now, server);
        }
        self.replicas.iter_mut().for_each(|slot| slot.calm(now));
    }

    /// Lets replicas take in watch events and continue open calls. Returns false if there was nothing to do.
    pub(crate) fn step(&mut self, now: Instant, server: &mut Server) -> bool {
        let mut acted = false;
        for index in 0..self.replicas.len() {
            acted |= self.step_replica(index, (now, now), server, None);
        }
        self.step_registration(now, server) || acted
    }

    // === registration ===

    /// Crashes the controllers that take out what no replica serves.
    pub(crate) fn crash_guards(&mut self, now: Instant, crash: Crash) {
        if let Some(registered) = &mut self.registered {
            registered.crash_guards(now, crash);
        }
    }

    /// Does something to the registration; nothing if replicas do not register themselves.
    pub(crate) fn act(&mut self, now: Instant, server: &mut Server, deed: HookDeed) {
        if let Some(registered) = &mut self.registered {
            registered.act(now, server, members(&mut self.replicas), deed);
        }
    }

    /// The broken promises of the registration since the last call.
    pub(crate) fn take_found(&mut self) -> Vec<(Rule, String, String)> {
        let registered = self.registered.as_mut();
        registered.map_or_else(Vec::new, Registered::take_found)
    }

    /// What is wrong with the registration at rest; `None`: nothing.
    pub(crate) fn fault_at_rest(&mut self, now: Instant, server: &Server) -> Option<&'static str> {
        let registered = self.registered.as_ref()?;
        registered.fault_at_rest(now, server, &members(&mut self.replicas))
    }

    fn step_registration(&mut self, now: Instant, server: &mut Server) -> bool {
        let Some(registered) = &mut self.registered else {
            return false;
        };
        let members = members(&mut self.replicas);
        let (acted, ended) = registered.step(now, server, members, &self.faults);
        for (index, down) in ended {
            self.replicas[index].die(now + down);
            self.hit("replica ended");
        }
        acted
    }

    /// True if the replica at this place does not reach the API server.
    fn is_cut(&self, index: usize) -> bool {
        let registered = self.registered.as_ref();
        registered.is_some_and(|registered| registered.is_cut(index))
    }

    /// How the API server asks about a new pod; `None` if it does not.
    fn terms(&mut self, now: Instant, server: &Server) -> Option<Terms> {
        let Some(registered) = &mut self.registered else {
            return Some(Terms::always(TIMEOUT));
        };
        let terms = registered.terms(now, server);
        if terms.is_none() {
            registered.called(now, ReviewOutcome::Unreviewed);
            self.hit("pod created without a review");
        }
        terms
    }

    /// Lets one replica take one step at this time of its own `clock`. Returns false if there was nothing to do.
    fn step_replica(
        &mut self,
        index: usize,
        (now, clock): (Instant, Instant),
        server: &mut Server,
        effects: Option<&mut Vec<Effect>>,
    ) -> bool {
        if self.is_cut(index) {
            return false;
        }
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
                Some(Err(failure)) => self.failed(Hook::CREATE, failure, call.is_needed),
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

    /// The end of a call without an answer: without `is_needed` the request is carried out as it is.
    fn failed(
        &mut self,
        hook: Hook,
        failure: Failure,
        is_needed: bool,
    ) -> Result<Option<Value>, ApiError> {
        let (kind, error) = match failure {
            Failure::TimedOut => ("call timed out", hook.failed(TIMED_OUT)),
            Failure::Died => ("call of a replica that died", hook.failed("EOF")),
            Failure::Crowded => (
                "call of a crowded namespace",
                hook.failed("too many reviews of its namespace wait"),
            ),
            Failure::NoReplica => ("call without a replica", hook.unreachable()),
            Failure::Untrusted => ("call of an untrusted replica", hook.failed(UNTRUSTED)),
        };
        self.hit(kind);
        if is_needed { Err(error) } else { Ok(None) }
    }

    // === calls ===

    /// Draws one of the live replicas, among those that the API server reaches.
    fn draw(&mut self, now: Instant, terms: &Terms) -> Result<usize, Failure> {
        if let Some(registered) = &mut self.registered {
            let chosen = registered.choose(now, &members(&mut self.replicas), terms);
            registered.called(now, chosen.err().unwrap_or(ReviewOutcome::Reached));
            return chosen.map_err(|outcome| match outcome {
                ReviewOutcome::Untrusted => Failure::Untrusted,
                _ => Failure::NoReplica,
            });
        }
        let alive: Vec<usize> = (0..self.replicas.len())
            .filter(|&index| self.replicas[index].alive.is_some())
            .collect();
        match alive.is_empty() {
            true => Err(Failure::NoReplica),
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
        let Some(terms) = self.terms(now, server) else {
            return Ok(Called::Answered(None));
        };
        match self.begin_call(now, server, pod, &terms) {
            Ok(called) => called,
            Err(failure) => {
                let answer = self.failed(Hook::CREATE, failure, terms.is_needed);
                answer.map(Called::Answered)
            }
        }
    }

    fn begin_call(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
        terms: &Terms,
    ) -> Result<Result<Called, ApiError>, Failure> {
        let (id, hook, call) = self.new_call(Asked::Create(pod));
        let (index, way) = (self.draw(now, terms)?, self.draw_way());
        let mut replica = None;
        if way != Way::Lost {
            replica = self.number_of(index).filter(|_| way == Way::Sound);
            self.ask(index, now, id, call)?;
            while self.step_replica(index, (now, now), server, None) {}
            if way == Way::Sound {
                if let Some(decision) = self.replies.remove(&id) {
                    return Ok(patch_of(hook, decision).map(Called::Answered));
                }
                if self.number_of(index).is_none() {
                    return Err(Failure::Died);
                }
            }
        }
        self.calls.push_back(Waiting {
            id,
            pod: Arc::clone(pod),
            replica,
            until: now + terms.timeout,
            is_needed: terms.is_needed,
        });
        Ok(Ok(Called::Waits(id.0)))
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
        let terms = match (asked, &self.registered) {
            // A pod is deleted whether or not a webhook answers.
            (Asked::Delete(_), Some(registered)) => registered.terms_of_deletions(server),
            _ => match self.terms(now, server) {
                Some(terms) => terms,
                None => return Ok(None),
            },
        };
        let (id, hook, call) = self.new_call(asked);
        let (index, way) = match self.draw(now, &terms) {
            Ok(index) => (index, self.draw_way()),
            Err(failure) => return self.failed(hook, failure, terms.is_needed),
        };
        if way == Way::Lost {
            return self.failed(hook, Failure::TimedOut, terms.is_needed);
        }
        let answer = match self.ask(index, now, id, call) {
            Ok(()) => self.wait(index, id, (now, terms.timeout), server, None),
            Err(failure) => Err(failure),
        };
        if let Some(judge) = &mut self.judge {
            // The outcome of a failed call is not known.
            if judge.take_counted(id) || answer.is_err() {
                judge.end_asked(asked);
            }
        }
        match answer {
            Ok(_) if way == Way::AnswerLost => {
                self.failed(hook, Failure::TimedOut, terms.is_needed)
            }
            Ok(decision) => patch_of(hook, decision),
            Err(failure) => self.failed(hook, failure, terms.is_needed),
        }
    }

    /// Steps a replica on its own clock until it answers, or until the API server stops waiting.
    fn wait(
        &mut self,
        index: usize,
        id: CallId,
        (now, timeout): (Instant, Span),
        server: &mut Server,
        mut effects: Option<&mut Vec<Effect>>,
    ) -> Result<Decision, Failure> {
        let (mut clock, until) = (now, now + timeout);
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
                .wait(index, id, (now, TIMEOUT), server, Some(&mut effects))
                .is_ok()
            {
                all.push(effects);
            }
        }
        all
    }
}

/// The replicas that take part in the registration, with their places.
fn members(replicas: &mut [Slot<Replica>]) -> Vec<(usize, Member<'_>)> {
    let alive = replicas.iter_mut().enumerate().filter_map(|(index, slot)| {
        let replica = slot.alive.as_mut()?;
        let number = replica.number;
        let registering = replica.registering.as_mut()?;
        let member = Member {
            number,
            registering,
        };
        Some((index, member))
    });
    alive.collect()
}
