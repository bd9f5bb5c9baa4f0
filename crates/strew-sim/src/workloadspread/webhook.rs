//! The webhook: its replicas, and the calls of the API server.

use std::collections::VecDeque;
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
use crate::fault::{Crash, Sabotage};
use crate::registration::{HookDeed, Member, Registered, RegistrationPlan, ReviewOutcome, Terms};
use crate::replicas::{Callee, Replicas, Unanswered};
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
    /// A replica was called.
    Unanswered(Unanswered),
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
    pub(crate) replicas: Replicas<Replica>,
    /// Which of them are asked; `None`: all, always.
    registered: Option<Registered>,
    blueprint: Blueprint,
    n_made: u64,
    /// Open calls, by the time when the API server stops waiting.
    calls: VecDeque<Waiting>,
    status_write: Between,
    /// Judges its answers; `None` without a witness.
    pub(crate) judge: Option<Judge>,
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
            replicas: Replicas::new(rng, Prng::new(0)),
            registered: None,
            blueprint,
            n_made: 0,
            calls: VecDeque::new(),
            status_write,
            judge: None,
        };
        if let Some((plan, sabotage)) = plan {
            let rng = Prng::new(webhook.replicas.rng.next_u64());
            let world = (now, &mut *server);
            webhook.registered = Some(Registered::new(plan, rng, sabotage, world));
        }
        for _ in 0..n_replicas {
            let replica = webhook.replica(now, server);
            webhook.replicas.slots.push(Slot::new(replica));
        }
        webhook.replicas.order = Prng::new(webhook.replicas.rng.next_u64());
        webhook
    }

    fn replica(&mut self, now: Instant, server: &Server) -> Replica {
        let number = self.n_made;
        self.n_made += 1;
        let seed = self.replicas.rng.next_u64();
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

    /// True if at least one replica is alive.
    pub(crate) fn is_alive(&self) -> bool {
        self.replicas.alive().next().is_some()
    }

    /// The number of status writes by the live replicas.
    pub(crate) fn n_written(&self) -> u64 {
        self.replicas.alive().map(Replica::n_written).sum()
    }

    /// For each live replica: what its watches have delivered, and what they would deliver of the store.
    pub(crate) fn caches<'a>(
        &'a self,
        stored: &'a Tables,
    ) -> impl Iterator<Item = (&'a Tables, Tables)> {
        self.replicas
            .alive()
            .map(|replica| (replica.seen(), replica.watched(stored)))
    }

    /// The next time at which it has something to do without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let slots = self.replicas.slots.iter().enumerate();
        let working = slots.filter(|(index, _)| !self.is_cut(*index));
        let wakes = working.map(|(_, slot)| slot.alive.as_ref()?.next_wake());
        let registering = self.replicas.alive().map(|replica| {
            let registering = replica.registering.as_ref()?;
            registering.next_wake()
        });
        let registered = self.registered.as_ref().map(Registered::next_wake);
        let wakes = wakes.chain(registering).chain(registered);
        let restarts = self.replicas.slots.iter().map(|slot| slot.restart);
        let gives_up = self.calls.front().map(|call| call.until);
        wakes.chain(restarts).chain([gives_up]).flatten().min()
    }

    /// Restarts replicas that are due.
    pub(crate) fn pass_time(&mut self, now: Instant, server: &mut Server) {
        if let Some(registered) = &mut self.registered {
            registered.pass_time(now, server);
        }
        for index in self.replicas.due(now) {
            self.replicas.slots[index] = Slot::new(self.replica(now, server));
        }
    }

    /// Ends all faults and restarts all replicas.
    pub(crate) fn calm(&mut self, now: Instant, server: &mut Server) {
        if let Some(registered) = &mut self.registered {
            registered.calm(now, server);
        }
        self.replicas.calm(now);
    }

    /// Lets replicas take in watch events and continue open calls. Returns false if there was nothing to do.
    pub(crate) fn step(&mut self, now: Instant, server: &mut Server) -> bool {
        let mut acted = false;
        for index in 0..self.replicas.slots.len() {
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
            registered.act(now, server, members(&mut self.replicas.slots), deed);
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
        registered.fault_at_rest(now, server, &members(&mut self.replicas.slots))
    }

    fn step_registration(&mut self, now: Instant, server: &mut Server) -> bool {
        let Some(registered) = &mut self.registered else {
            return false;
        };
        let members = members(&mut self.replicas.slots);
        let (acted, ended) = registered.step(now, server, members, &self.replicas.faults);
        for (index, down) in ended {
            self.replicas.slots[index].die(now + down);
            self.replicas.hit("replica ended");
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
            self.replicas.hit("pod created without a review");
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
        let judge = self.judge.as_mut();
        let step = |replica: &mut Replica, around: &mut Surroundings<'_>| {
            replica.step(around, Eyes { judge, effects })
        };
        self.replicas.step(index, (now, clock), server, step)
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
        self.replicas.replies.clear();
        late
    }

    /// The result of an open call; `None` if it stays open.
    fn late_answer(&mut self, call: &Waiting, now: Instant) -> Option<Result<Decision, Failure>> {
        if let Some(number) = call.replica {
            if let Some(decision) = self.replicas.replies.remove(&call.id) {
                return Some(Ok(decision));
            }
            if self
                .replicas
                .alive()
                .all(|replica| replica.number != number)
            {
                return Some(Err(Failure::Unanswered(Unanswered::Died)));
            }
        }
        if call.until > now {
            return None;
        }
        let alive = self.replicas.slots.iter_mut();
        for replica in alive.filter_map(|slot| slot.alive.as_mut()) {
            replica.give_up(now, call.id);
        }
        Some(Err(Failure::Unanswered(Unanswered::TimedOut)))
    }

    /// The end of a call without an answer: without `is_needed` the request is carried out as it is.
    fn failed(
        &mut self,
        hook: Hook,
        failure: Failure,
        is_needed: bool,
    ) -> Result<Option<Value>, ApiError> {
        let (kind, error) = match failure {
            Failure::Unanswered(Unanswered::TimedOut) => ("call timed out", hook.failed(TIMED_OUT)),
            Failure::Unanswered(Unanswered::Died) => {
                ("call of a replica that died", hook.failed("EOF"))
            }
            Failure::Crowded => (
                "call of a crowded namespace",
                hook.failed("too many reviews of its namespace wait"),
            ),
            Failure::NoReplica => ("call without a replica", hook.unreachable()),
            Failure::Untrusted => ("call of an untrusted replica", hook.failed(UNTRUSTED)),
        };
        self.replicas.hit(kind);
        if is_needed { Err(error) } else { Ok(None) }
    }

    // === calls ===

    /// Draws one of the live replicas, among those that the API server reaches.
    fn draw(&mut self, now: Instant, terms: &Terms) -> Result<usize, Failure> {
        if let Some(registered) = &mut self.registered {
            let chosen = registered.choose(now, &members(&mut self.replicas.slots), terms);
            registered.called(now, chosen.err().unwrap_or(ReviewOutcome::Reached));
            return chosen.map_err(|outcome| match outcome {
                ReviewOutcome::Untrusted => Failure::Untrusted,
                _ => Failure::NoReplica,
            });
        }
        self.replicas.draw().ok_or(Failure::NoReplica)
    }

    fn draw_way(&mut self) -> Way {
        if !self.replicas.draw_loss() {
            return Way::Sound;
        }
        self.replicas.hit("call lost");
        match self.replicas.rng.chance(1, 2) {
            true => Way::AnswerLost,
            false => Way::Lost,
        }
    }

    fn new_call(&mut self, asked: Asked<'_>) -> (CallId, Hook, Box<Call>) {
        let id = self.replicas.new_call();
        let (hook, review) = review_of(asked, id.0);
        let call = Call {
            review,
            fresh_uid: uuid(&mut self.replicas.rng),
            is_simulated: true,
        };
        (id, hook, Box::new(call))
    }

    fn ask(
        &mut self,
        index: usize,
        now: Instant,
        id: CallId,
        call: Box<Call>,
    ) -> Result<(), Failure> {
        let replica = self.replicas.slots[index].alive.as_mut();
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
                if let Some(decision) = self.replicas.replies.remove(&id) {
                    return Ok(patch_of(hook, decision).map(Called::Answered));
                }
                if self.number_of(index).is_none() {
                    return Err(Failure::Unanswered(Unanswered::Died));
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
        let replica = self.replicas.slots[index].alive.as_ref();
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
            return self.failed(
                hook,
                Failure::Unanswered(Unanswered::TimedOut),
                terms.is_needed,
            );
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
            Ok(_) if way == Way::AnswerLost => self.failed(
                hook,
                Failure::Unanswered(Unanswered::TimedOut),
                terms.is_needed,
            ),
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
        let is_cut = self.is_cut(index);
        let judge = &mut self.judge;
        let step = |replica: &mut Replica, around: &mut Surroundings<'_>| {
            let (judge, effects) = (judge.as_mut(), effects.as_deref_mut());
            !is_cut && replica.step(around, Eyes { judge, effects })
        };
        let answer = self.replicas.wait(index, id, (now, timeout), server, step);
        answer.map_err(Failure::Unanswered)
    }

    /// Calls each replica about a pod that is not going to be created; returns each answer.
    pub(crate) fn dry_run(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
    ) -> Vec<Vec<Effect>> {
        let mut all = Vec::new();
        for index in 0..self.replicas.slots.len() {
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
