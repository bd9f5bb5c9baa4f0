//! The webhook: its replicas, and what the API server makes of a call.
//!
//! Source: spec/workloadspread §4.1, §4.7; the sentences are kube-apiserver's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use strew_api::workloadspread::review::{Decision, Review};
use strew_apiserver::ApiError;
use strew_apiserver::object::{Name, Object, Pod};
use strew_apiserver::server::{Called, LateAnswer, Server, uuid};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_workloadspread::admission::{Effect, RequestId};

use super::judge::Judge;
use super::replica::{Begun, Failure, Replica};
use super::sending::{Line, Weather};
use crate::fault::Crash;
use crate::scheduler::Blueprint;
use crate::slot::Slot;
use crate::timing::Between;

/// What the API server asks about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// A pod that is to be stored.
    Create(&'a Arc<Pod>),
    /// A pod that is to be deleted.
    Delete(&'a Arc<Pod>),
    /// A pod that is to be evicted, by its name.
    Evict(&'a Name),
}

/// A registration of the webhook.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hook {
    name: &'static str,
    path: &'static str,
}

impl Hook {
    /// New pods.
    const CREATE: Self = Self {
        name: "mpod.kb.io",
        path: "mutate-pod",
    };
    /// Deletions of pods.
    const DELETE: Self = Self {
        name: "vpod.kb.io",
        path: "validate-pod",
    };
    /// Evictions of pods.
    const EVICT: Self = Self {
        name: "vpodeviction.kb.io",
        path: "validate-pod",
    };
    /// New and changed WorkloadSpreads.
    pub(crate) const SPREAD: Self = Self {
        name: "vworkloadspread.kb.io",
        path: "validate-apps-kruise-io-workloadspread",
    };

    fn failed(self, why: &str) -> ApiError {
        let Self { name, path } = self;
        ApiError::Internal(
            format!(
                "Internal error occurred: failed calling webhook {name:?}: failed to call webhook: Post \
                 \"https://strew-webhook.strew-system.svc:443/{path}?timeout=10s\": {why}"
            )
            .into(),
        )
    }

    /// Nobody is there to be asked.
    pub(crate) fn unreachable(self) -> ApiError {
        self.failed("dial tcp: connect: connection refused")
    }

    /// Refused by the webhook itself.
    pub(crate) fn denied(self, message: &str) -> ApiError {
        let name = self.name;
        ApiError::Internal(
            format!("admission webhook {name:?} denied the request: {message}").into(),
        )
    }
}

/// How long the API server waits for an answer: `timeoutSeconds`, by default.
const TIMEOUT: Span = Span::from_secs(10);

/// A call about a new pod that is not answered yet.
struct Call {
    /// What its answer is told under.
    number: u64,
    /// The pod as it was sent.
    pod: Arc<Pod>,
    /// Who was called, and which request that is there; `None`: no answer will come.
    of: Option<(u64, RequestId)>,
    /// When the API server gives up.
    until: Instant,
}

/// All replicas of the webhook.
pub(crate) struct Webhook {
    replicas: Vec<Slot<Replica>>,
    blueprint: Blueprint,
    pub(crate) weather: Weather,
    dice: Prng,
    n_made: u64,
    n_calls: u64,
    /// Calls that are not answered yet, by the time when the API server gives up.
    calls: VecDeque<Call>,
    status_write: Between,
    /// What its answers were found to be; `None`: nobody judges.
    pub(crate) judge: Option<Judge>,
}

impl Webhook {
    /// So many replicas that begin by listing what there is.
    pub(crate) fn new(
        blueprint: Blueprint,
        n_replicas: usize,
        status_write: Between,
        dice: Prng,
        server: &Server,
    ) -> Self {
        let mut webhook = Self {
            replicas: Vec::new(),
            blueprint,
            weather: Weather::default(),
            dice,
            n_made: 0,
            n_calls: 0,
            calls: VecDeque::new(),
            status_write,
            judge: None,
        };
        for _ in 0..n_replicas {
            let replica = webhook.replica(server);
            webhook.replicas.push(Slot::new(replica));
        }
        webhook
    }

    fn replica(&mut self, server: &Server) -> Replica {
        let number = self.n_made;
        self.n_made += 1;
        Replica::new(&self.blueprint, number, self.dice.next_u64(), server)
    }

    /// Whether some replica is alive.
    pub(crate) fn is_alive(&self) -> bool {
        self.replicas.iter().any(|slot| slot.alive.is_some())
    }

    /// How many statuses the replicas that are alive have written.
    pub(crate) fn n_written(&self) -> u64 {
        let alive = self.replicas.iter().filter_map(|slot| slot.alive.as_ref());
        alive
            .map(|replica| replica.machine.counters().written)
            .sum()
    }

    /// When time alone gives it something to do.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let wakes = self.replicas.iter().flat_map(|slot| {
            let own = slot.alive.as_ref().and_then(Replica::next_wake);
            [own, slot.restart]
        });
        let gives_up = self.calls.front().map(|call| call.until);
        wakes.chain([gives_up]).flatten().min()
    }

    /// What is to be started anew is.
    pub(crate) fn pass_time(&mut self, now: Instant, server: &Server) {
        for index in 0..self.replicas.len() {
            if self.replicas[index].is_due(now) {
                self.replicas[index] = Slot::new(self.replica(server));
            }
        }
    }

    /// All replicas die, or one of them.
    pub(crate) fn crash(&mut self, now: Instant, crash: Crash, only_one: bool) {
        let alive = self.replicas.iter_mut().filter(|slot| slot.alive.is_some());
        for slot in alive.take(if only_one { 1 } else { usize::MAX }) {
            slot.crash(now, crash.after_writes, crash.down);
        }
    }

    /// No faults any more, and everybody is alive.
    pub(crate) fn calm(&mut self, now: Instant) {
        self.weather = Weather::default();
        self.replicas.iter_mut().for_each(|slot| slot.calm(now));
    }

    /// Replicas take in what their watches tell, and go on with calls that wait; whether that was anything.
    pub(crate) fn step(&mut self, now: Instant, server: &mut Server) -> bool {
        let mut acted = false;
        for slot in &mut self.replicas {
            let Some(replica) = &mut slot.alive else {
                continue;
            };
            let watch = self.weather.watch.as_ref();
            acted |= replica.listen(now, server, watch, &mut self.dice);
            let mut line = Line {
                now,
                server: &mut *server,
                weather: self.weather,
                dice: &mut self.dice,
                writes_left: slot.doomed.as_mut().map(|(left, _)| left),
                is_judged: self.judge.is_some(),
                status_write: self.status_write,
            };
            acted |= replica.go_on(&mut line);
            if let Some(judge) = &mut self.judge {
                judge.see(replica, server);
            }
            slot.meet_doom(now);
        }
        acted
    }

    /// The answers to calls that waited.
    pub(crate) fn late_answers(&mut self, now: Instant) -> Vec<LateAnswer> {
        let mut answers: BTreeMap<(u64, RequestId), Decision> = BTreeMap::new();
        let mut alive = BTreeSet::new();
        for replica in self.replicas.iter_mut().filter_map(|s| s.alive.as_mut()) {
            alive.insert(replica.number);
            for answered in replica.answered.drain(..) {
                if let Some(decision) = answered.decision {
                    answers.insert((replica.number, answered.request), decision);
                }
            }
        }
        let mut late = Vec::new();
        self.calls.retain(|call| {
            let decision = call.of.and_then(|of| answers.remove(&of));
            let is_dead = call.of.is_some_and(|(number, _)| !alive.contains(&number));
            let answer = match decision {
                Some(decision) => patch_of(Hook::CREATE, decision),
                None if is_dead => Err(Hook::CREATE.failed("EOF")),
                None if call.until <= now => {
                    let slots = self.replicas.iter_mut();
                    for replica in slots.filter_map(|slot| slot.alive.as_mut()) {
                        if let Some((_, id)) = call.of.filter(|of| of.0 == replica.number) {
                            replica.give_up(id, now);
                        }
                    }
                    Err(Hook::CREATE.failed(TIMED_OUT))
                }
                None => return true,
            };
            late.push(LateAnswer {
                number: call.number,
                pod: Arc::clone(&call.pod),
                answer,
            });
            false
        });
        late
    }

    /// One of the replicas that are alive.
    fn draw(&mut self, hook: Hook) -> Result<usize, ApiError> {
        let alive: Vec<usize> = (0..self.replicas.len())
            .filter(|&index| self.replicas[index].alive.is_some())
            .collect();
        match alive.is_empty() {
            true => Err(hook.unreachable()),
            false => Ok(*self.dice.pick(&alive)),
        }
    }

    /// Calls one of the replicas that are alive about a new pod, for somebody who can wait.
    pub(crate) fn call(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
    ) -> Result<Called, ApiError> {
        self.n_calls += 1;
        let number = self.n_calls;
        let (hook, review) = review_of(Asked::Create(pod), number);
        let fresh_uid = uuid(&mut self.dice);
        let index = self.draw(hook)?;
        let slot = &mut self.replicas[index];
        let Some(replica) = &mut slot.alive else {
            return Err(hook.unreachable());
        };
        let mut line = Line {
            now,
            server,
            weather: self.weather,
            dice: &mut self.dice,
            writes_left: slot.doomed.as_mut().map(|(left, _)| left),
            is_judged: self.judge.is_some(),
            status_write: self.status_write,
        };
        let lost = self.weather.call.map_or(0, |fault| fault.lost_ppm);
        let is_lost = line.strikes(lost);
        let mut of = None;
        if !is_lost || line.dice.chance(1, 2) {
            replica.listen(now, line.server, line.weather.watch.as_ref(), line.dice);
            let begun = replica.begin(review, fresh_uid, &mut line);
            let answered = match begun {
                Err(_) => Some(Err(hook.failed("EOF"))),
                Ok(Begun::Answered(decision)) => Some(patch_of(hook, decision)),
                Ok(Begun::Waits(id)) => {
                    of = Some((replica.number, id));
                    None
                }
            };
            if let Some(judge) = &mut self.judge {
                judge.see(replica, server);
            }
            slot.meet_doom(now);
            if let Some(answered) = answered.filter(|_| !is_lost) {
                return answered.map(Called::Answered);
            }
        }
        self.calls.push_back(Call {
            number,
            pod: Arc::clone(pod),
            of: of.filter(|_| !is_lost),
            until: now + TIMEOUT,
        });
        Ok(Called::Waits(number))
    }

    /// Calls one of the replicas that are alive, and has it answer within the instant. Of a new pod the JSON patch comes
    /// back, if there is one.
    pub(crate) fn review(
        &mut self,
        now: Instant,
        server: &mut Server,
        asked: Asked<'_>,
    ) -> Result<Option<Value>, ApiError> {
        self.n_calls += 1;
        let (hook, review) = review_of(asked, self.n_calls);
        let fresh_uid = uuid(&mut self.dice);
        let index = self.draw(hook)?;
        let slot = &mut self.replicas[index];
        let Some(replica) = &mut slot.alive else {
            return Err(hook.unreachable());
        };
        let mut line = Line {
            now,
            server,
            weather: self.weather,
            dice: &mut self.dice,
            writes_left: slot.doomed.as_mut().map(|(left, _)| left),
            is_judged: self.judge.is_some(),
            status_write: self.status_write,
        };
        let lost = self.weather.call.map_or(0, |fault| fault.lost_ppm);
        let is_lost = line.strikes(lost);
        if is_lost && line.dice.chance(1, 2) {
            return Err(hook.failed(TIMED_OUT));
        }
        replica.listen(now, line.server, line.weather.watch.as_ref(), line.dice);
        let ended = replica.ask(review, fresh_uid, &mut line);
        if let Some(judge) = &mut self.judge {
            if ended.as_ref().map_or(true, |ended| ended.is_counted) {
                judge.end_asked(asked, server);
            }
            judge.see(replica, server);
        }
        slot.meet_doom(now);
        match ended {
            Err(Failure::Died) => Err(hook.failed("EOF")),
            Err(Failure::TimedOut) => Err(hook.failed(TIMED_OUT)),
            Ok(_) if is_lost => Err(hook.failed(TIMED_OUT)),
            Ok(ended) => patch_of(hook, ended.decision),
        }
    }
}

/// How Go calls a deadline that has passed.
const TIMED_OUT: &str = "context deadline exceeded";

fn patch_of(hook: Hook, decision: Decision) -> Result<Option<Value>, ApiError> {
    match decision.refusal {
        Some((_, message)) => Err(hook.denied(&message)),
        None => Ok(decision.patch),
    }
}

impl Webhook {
    /// Calls each replica about a pod that nobody means to create; what that led to, and whether it wrote anything.
    pub(crate) fn dry_run(
        &mut self,
        now: Instant,
        server: &mut Server,
        pod: &Arc<Pod>,
    ) -> Vec<Vec<Effect>> {
        let (_, mut review) = review_of(Asked::Create(pod), 0);
        review.dry_run = true;
        let mut all = Vec::new();
        for slot in &mut self.replicas {
            let mut line = Line {
                now,
                server: &mut *server,
                weather: Weather::default(),
                dice: &mut self.dice,
                writes_left: None,
                is_judged: true,
                status_write: self.status_write,
            };
            let Some(replica) = &mut slot.alive else {
                continue;
            };
            if replica
                .ask(review.clone(), "dry-run".into(), &mut line)
                .is_ok()
            {
                all.push(std::mem::take(&mut replica.effects));
            }
        }
        all
    }
}

/// What the API server sends.
fn review_of(asked: Asked<'_>, number: u64) -> (Hook, Review) {
    let (hook, name) = match asked {
        Asked::Create(pod) => (Hook::CREATE, &pod.meta.name),
        Asked::Delete(pod) => (Hook::DELETE, &pod.meta.name),
        Asked::Evict(name) => (Hook::EVICT, name),
    };
    let json = |pod: &Arc<Pod>| Object::Pod(Arc::clone(pod)).to_json();
    let mut request = json!({
        "uid": format!("call-{number}"),
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": &*name.namespace,
        "name": &*name.name,
        "operation": "CREATE",
        "dryRun": false,
    });
    match asked {
        Asked::Create(pod) => request["object"] = json(pod),
        Asked::Delete(pod) => {
            request["operation"] = "DELETE".into();
            request["oldObject"] = json(pod);
        }
        Asked::Evict(_) => request["subResource"] = "eviction".into(),
    }
    let review = Review::read(&mut json!({ "request": request }));
    (hook, review.expect("it is a review about a pod"))
}
