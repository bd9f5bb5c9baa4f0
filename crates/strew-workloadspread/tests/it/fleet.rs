//! Several replicas of admission and a controller on one API server: watches lag, writes conflict or are lost, machines
//! crash. Compared with a plain count of the pods.

mod lives;
mod settings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strew_model::{Instant, Labels, Prng, Span};
use strew_scheduler::Profile;
use strew_workloadspread::admission::{
    Admission, Effect, EffectId, Input, Operation, Outcome, Request, RequestId, Verdict,
};
use strew_workloadspread::controller::{self, SpreadController};
use strew_workloadspread::invariants;
use strew_workloadspread::{
    Finding, Marked, MaxReplicas, NoPatches, Phase, Pod, Status, Subset, UNLIMITED, WorkloadFact,
    WorkloadSpread,
};

use crate::desk;
use crate::world::*;
use settings::Settings;

/// A replica, with the facts that it has not received yet.
struct Replica {
    machine: Admission,
    feed: VecDeque<Input>,
    /// Effects under way, in any order.
    effects: Vec<Effect>,
    asked: BTreeMap<RequestId, Request>,
}

struct Keeper {
    machine: SpreadController,
    feed: VecDeque<controller::Input>,
    effects: Vec<controller::Effect>,
}

/// A pod in the plain model.
struct Known {
    pod: Pod,
    delete_asked: bool,
}

struct Fleet {
    settings: Settings,
    words: Words,
    web: WorkloadFact,
    dice: Prng,
    now: Instant,
    ws: WorkloadSpread,
    pods: BTreeMap<Arc<str>, Known>,
    replicas: Vec<Replica>,
    keeper: Keeper,
    /// Requests that are retried when time passes.
    refused: Vec<Request>,
    next: u64,
    /// True if there are no more faults.
    calm: bool,
    answered: usize,
    conflicts: u32,
}

impl Fleet {
    fn new(settings: Settings, seed: u64, subsets: Vec<Subset>, replicas: usize) -> Self {
        let words = words();
        let web = workload(words.web(), 20);
        let ws = spread(words.web(), subsets);
        let keeper = Keeper {
            machine: SpreadController::new(words.names.clone(), settings.controller),
            feed: VecDeque::new(),
            effects: Vec::new(),
        };
        let mut fleet = Self {
            settings,
            words,
            web,
            dice: Prng::new(seed),
            now: secs(50_000),
            ws,
            pods: BTreeMap::new(),
            replicas: Vec::new(),
            keeper,
            refused: Vec::new(),
            next: 0,
            calm: false,
            answered: 0,
            conflicts: 0,
        };
        for i in 0..replicas {
            let fresh = fleet.fresh(i as u64);
            fleet.replicas.push(fresh);
        }
        fleet.restart_keeper();
        fleet
    }

    /// A replica created from the facts.
    fn fresh(&mut self, seed: u64) -> Replica {
        let names = self.words.names.clone();
        let profiles = vec![Profile::default()];
        let mut machine = Admission::new(names, profiles, self.settings.admission, seed);
        machine.handle(self.now, Input::SpreadSet(Box::new(self.ws.clone())));
        machine.handle(self.now, Input::WorkloadSet(Box::new(self.web.clone())));
        Replica {
            machine,
            feed: VecDeque::new(),
            effects: Vec::new(),
            asked: BTreeMap::new(),
        }
    }

    fn restart_keeper(&mut self) {
        let names = self.words.names.clone();
        let mut machine = SpreadController::new(names, self.settings.controller);
        use controller::Input;
        machine.handle(self.now, Input::WorkloadSet(Box::new(self.web.clone())));
        for known in self.pods.values() {
            machine.handle(self.now, Input::PodSet(Box::new(known.pod.clone())));
        }
        machine.handle(self.now, Input::SpreadSet(Box::new(self.ws.clone())));
        self.keeper.machine = machine;
        self.keeper.feed.clear();
        self.keeper.effects.clear();
    }

    // === what the API server does ===

    fn publish_ws(&mut self) {
        for replica in &mut self.replicas {
            replica
                .feed
                .push_back(Input::SpreadSet(Box::new(self.ws.clone())));
        }
        let ws = Box::new(self.ws.clone());
        self.keeper.feed.push_back(controller::Input::SpreadSet(ws));
    }

    fn write(&mut self, version: u64, status: Arc<Status>) -> Option<u64> {
        if version != self.ws.version {
            return None;
        }
        self.ws.version += 1;
        self.ws.status = status;
        self.publish_ws();
        Some(self.ws.version)
    }

    fn publish_pod(&mut self, uid: &Arc<str>) {
        let input = match self.pods.get(uid) {
            Some(known) => controller::Input::PodSet(Box::new(known.pod.clone())),
            None => controller::Input::PodGone(uid.clone()),
        };
        self.keeper.feed.push_back(input);
    }

    // === steps ===

    fn ask_create(&mut self) {
        let at = self.dice.index(self.replicas.len());
        let id = self.next;
        self.next += 1;
        let name = format!("p{id}");
        let named = self.dice.chance(1, 2);
        let pod = asked(&self.web, named.then_some(name.as_str()), Labels::default());
        self.send(at, create(id, pod, None));
    }

    fn ask_delete(&mut self, uid: &Arc<str>) {
        let known = self.pods.get_mut(uid).expect("a pod that is there");
        known.delete_asked = true;
        let mut pod = asked(&self.web, Some(&known.pod.name), Labels::default());
        pod.marker = known.pod.marker.clone();
        let id = self.next;
        self.next += 1;
        let at = self.dice.index(self.replicas.len());
        let mut request = delete(id, pod, "");
        request.pod.marker = self.pods[uid].pod.marker.clone();
        request.pod.active = self.pods[uid].pod.is_active();
        self.send(at, request);
    }

    /// A retry: a request of its own, with a UUID of its own.
    fn ask_again(&mut self, request: Request) {
        let id = self.next;
        self.next += 1;
        let at = self.dice.index(self.replicas.len());
        let again = match request.operation {
            Operation::Create { .. } => create(id, request.pod, None),
            _ => Request {
                id: RequestId(id),
                ..request
            },
        };
        self.send(at, again);
    }

    fn send(&mut self, at: usize, request: Request) {
        let replica = &mut self.replicas[at];
        replica.asked.insert(request.id, request.clone());
        let input = Input::AdmitAsked(Box::new(request));
        replica.machine.handle(self.now, input);
    }

    fn answered(&mut self, at: usize, answer: &strew_workloadspread::admission::Answer) {
        let Some(request) = self.replicas[at].asked.remove(&answer.request) else {
            panic!("an answer to no request");
        };
        self.answered += 1;
        self.conflicts += answer.conflicts;
        match (&request.operation, &answer.verdict) {
            // A controller retries a little later.
            (_, Verdict::Deny(_)) => self.refused.push(request),
            (Operation::Create { .. }, verdict) => {
                if let Some(choice) = &answer.choice {
                    self.check_choice(choice);
                }
                let made_up = || Arc::from(format!("p{}", answer.request.0));
                let name = request.pod.name.clone().unwrap_or_else(made_up);
                let mut pod = desk::pod(&self.web, &name, None);
                pod.created = self.now;
                if let Verdict::Inject(injection) = verdict {
                    let sound = invariants::marker_is_sound(&self.ws.spec, "ws", &injection.marker);
                    sound.expect("I5");
                    pod.marker = Marked::As(injection.marker.clone());
                }
                // Sometimes a later check refuses the pod; its entry expires.
                if self.calm || self.dice.chance(19, 20) {
                    let uid = pod.uid.clone();
                    let delete_asked = false;
                    self.pods.insert(uid.clone(), Known { pod, delete_asked });
                    self.publish_pod(&uid);
                }
                self.check_limits();
            }
            _ => {
                let name = request.pod.name.clone().expect("deletes name their pod");
                let uid: Arc<str> = format!("uid-{name}").into();
                if self.pods.remove(&uid).is_some() {
                    self.publish_pod(&uid);
                }
            }
        }
    }

    /// I1 by a plain count.
    fn check_limits(&self) {
        let mut counts: BTreeMap<(Arc<str>, Arc<str>), i64> = BTreeMap::new();
        for known in self.pods.values() {
            let counted = known.pod.is_active() && !known.delete_asked;
            if let Some(marker) = known.pod.marker.marker().filter(|_| counted) {
                let key = ("versionIgnored".into(), marker.subset.clone());
                *counts.entry(key).or_default() += 1;
            }
        }
        invariants::within_limits(&self.ws.spec, 20, &counts).expect("I1");
    }

    /// I2 by the numbers of the choice.
    fn check_choice(&self, choice: &strew_workloadspread::Choice) {
        for step in &choice.steps {
            if let Finding::Full { expected } = step.finding {
                let place = self
                    .ws
                    .spec
                    .place(&step.subset)
                    .expect("a subset of the spec");
                let max = strew_workloadspread::quota::scaled(
                    self.ws.spec.subsets[place].max_replicas,
                    20,
                );
                let max = i64::from(max.expect("limits parse"));
                assert!(
                    expected >= max,
                    "{} is full with {expected} of {max}",
                    step.subset
                );
            }
        }
    }

    fn poll(&mut self) {
        for replica in &mut self.replicas {
            while let Some(effect) = replica.machine.poll_effect(&mut NoPatches) {
                replica.effects.push(effect);
            }
        }
        while let Some(effect) = self.keeper.machine.poll_effect(&mut NoPatches) {
            self.keeper.effects.push(effect);
        }
    }

    fn carry_out_one(&mut self, at: usize) {
        if self.replicas[at].effects.is_empty() {
            return;
        }
        let place = self.dice.index(self.replicas[at].effects.len());
        let effect = self.replicas[at].effects.swap_remove(place);
        match effect {
            Effect::Answer(answer) => self.answered(at, &answer),
            Effect::ReadSpread { id, .. } => {
                let read = Outcome::Read(Box::new(self.ws.clone()));
                self.outcome(at, id, read);
            }
            Effect::WriteStatus {
                id,
                version,
                status,
                ..
            } => {
                let fault = !self.calm && self.dice.chance(1, 15);
                // The write may have succeeded or not; that is known, unknown, or its outcome never comes.
                let lost = fault && self.dice.chance(1, 3);
                let done = !fault || self.dice.chance(1, 2);
                let written = done.then(|| self.write(version, status));
                match (fault, lost, written) {
                    (_, true, _) => {}
                    (true, _, None) if self.dice.chance(1, 2) => {
                        self.outcome(at, id, Outcome::Failed);
                    }
                    (true, ..) => self.outcome(at, id, Outcome::Lost),
                    (_, _, Some(Some(version))) => self.outcome(at, id, Outcome::Written(version)),
                    _ => self.outcome(at, id, Outcome::Conflict),
                }
            }
        }
    }

    fn outcome(&mut self, at: usize, id: EffectId, outcome: Outcome) {
        let input = Input::Outcome(id, outcome);
        self.replicas[at].machine.handle(self.now, input);
    }

    fn keep_one(&mut self) {
        if self.keeper.effects.is_empty() {
            return;
        }
        use controller::{Effect, Outcome};
        // Patches, then the status: in the order of the effects.
        let effect = self.keeper.effects.remove(0);
        let (id, outcome) = match effect {
            Effect::Event(_) => return,
            Effect::Adopt { id, .. } | Effect::DeletePod { id, .. } => (id, Outcome::Failed),
            Effect::SetCost { id, pod, cost } => match self.pods.get_mut(&pod.uid) {
                None => (id, Outcome::Gone),
                Some(known) => {
                    known.pod.cost = Some(cost.to_string().into());
                    self.publish_pod(&pod.uid);
                    (id, Outcome::Ok)
                }
            },
            Effect::WriteStatus {
                id,
                version,
                status,
                ..
            } => match self.write(version, status) {
                Some(_) => (id, Outcome::Ok),
                None => (id, Outcome::Conflict),
            },
        };
        let input = controller::Input::Outcome(id, outcome);
        self.keeper.machine.handle(self.now, input);
    }

    fn deliver(&mut self) {
        for at in 0..self.replicas.len() {
            let n = self.dice.between(0, self.replicas[at].feed.len() as u64);
            for input in self.replicas[at]
                .feed
                .drain(..n as usize)
                .collect::<Vec<_>>()
            {
                self.replicas[at].machine.handle(self.now, input);
            }
        }
        let n = self.dice.between(0, self.keeper.feed.len() as u64);
        for input in self.keeper.feed.drain(..n as usize).collect::<Vec<_>>() {
            self.keeper.machine.handle(self.now, input);
        }
    }

    fn crash(&mut self) {
        match self.dice.index(self.replicas.len() + 1) {
            0 => self.restart_keeper(),
            at => {
                let fresh = self.fresh(self.next);
                let before = std::mem::replace(&mut self.replicas[at - 1], fresh);
                // Writes that it sent still arrive; clients without an answer retry.
                for effect in before.effects {
                    if let Effect::WriteStatus {
                        version, status, ..
                    } = effect
                        && self.dice.chance(1, 2)
                    {
                        self.write(version, status);
                    }
                }
                for request in before.asked.into_values() {
                    self.ask_again(request);
                }
            }
        }
    }

    fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        for replica in &mut self.replicas {
            replica.machine.handle(self.now, Input::Tick);
        }
        self.keeper
            .machine
            .handle(self.now, controller::Input::Tick);
        for request in std::mem::take(&mut self.refused) {
            self.ask_again(request);
        }
    }

    fn step(&mut self) {
        match self.dice.index(12) {
            0..=3 => self.ask_create(),
            4 => {
                let free = self.pods.iter().filter(|(_, k)| !k.delete_asked);
                let uids: Vec<_> = free.map(|(uid, _)| uid.clone()).collect();
                if !uids.is_empty() {
                    let uid = self.dice.pick(&uids).clone();
                    self.ask_delete(&uid);
                }
            }
            5 if self.dice.chance(1, 4) => {
                // A pod ends by itself, without a call of the webhook. (A pod that ends while its deletion is under way
                // is counted off twice until the next sync; upstream, too.)
                let free = self.pods.iter().filter(|(_, k)| !k.delete_asked);
                let uids: Vec<_> = free.map(|(uid, _)| uid.clone()).collect();
                if !uids.is_empty() {
                    let uid = self.dice.pick(&uids).clone();
                    if let Some(known) = self.pods.get_mut(&uid) {
                        known.pod.phase = Phase::Succeeded;
                    }
                    self.publish_pod(&uid);
                }
            }
            6 if self.dice.chance(1, 8) => self.crash(),
            7 | 8 => self.deliver(),
            9 => {
                let span = Span::from_millis(self.dice.between(0, 60));
                self.pass(span);
            }
            10 => {
                self.poll();
                self.keep_one();
            }
            _ => {
                self.poll();
                let at = self.dice.index(self.replicas.len());
                self.carry_out_one(at);
            }
        }
    }

    /// No more faults: everything is delivered and carried out, all refused clients are answered, and timeouts pass.
    fn calm_down(&mut self) {
        self.calm = true;
        let mut round = 0;
        while round < 60 {
            for _ in 0..400 {
                for at in 0..self.replicas.len() {
                    while let Some(input) = self.replicas[at].feed.pop_front() {
                        self.replicas[at].machine.handle(self.now, input);
                    }
                }
                while let Some(input) = self.keeper.feed.pop_front() {
                    self.keeper.machine.handle(self.now, input);
                }
                self.poll();
                self.keep_one();
                for at in 0..self.replicas.len() {
                    self.carry_out_one(at);
                }
            }
            round += u32::from(self.refused.is_empty());
            let span = if round < 10 {
                Span::from_millis(300)
            } else {
                Span::from_secs(1)
            };
            self.pass(span);
        }
    }

    /// I3: the written status equals a plain count.
    fn check_truth(&self) {
        for (place, subset) in self.ws.spec.subsets.iter().enumerate() {
            let of_subset = |k: &&Known| {
                k.pod.is_active()
                    && k.pod
                        .marker
                        .marker()
                        .is_some_and(|m| m.subset == subset.name)
            };
            let active = self.pods.values().filter(of_subset).count() as i64;
            let missing = match subset.max_replicas {
                None => UNLIMITED,
                Some(MaxReplicas::Count(max)) => (i64::from(max) - active).max(0) as i32,
                Some(other) => panic!("{other:?} is not drawn"),
            };
            let status = &self.ws.status;
            let rows = [
                status.overall.get(place),
                status.rows("versionIgnored").get(place),
            ];
            for row in rows.into_iter().flatten() {
                assert_eq!(
                    (i64::from(row.replicas), row.missing),
                    (active, missing),
                    "I3: {row:?}"
                );
                assert!(
                    row.creating.is_empty() && row.deleting.is_empty(),
                    "I3: {row:?}"
                );
            }
            assert_eq!(status.overall.len(), self.ws.spec.subsets.len(), "I3");
        }
        let waiting: usize = self.replicas.iter().map(|r| r.machine.waiting()).sum();
        assert_eq!(waiting, 0, "everybody is answered");
    }
}
