//! One replica of the webhook: the machine, what it was told, the calls that wait, and the writes that are under way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use strew_api::read::KubeObject;
use strew_api::request::Request;
use strew_api::workloadspread::Translator;
use strew_api::workloadspread::desk::{Desk, Patcher};
use strew_api::workloadspread::request::{Context, admission_outcome, of_admission};
use strew_api::workloadspread::review::{Decision, Review};
use strew_apiserver::object::{Name, WorkloadSpread as Stored};
use strew_apiserver::server::Server;
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_workloadspread::admission::{Answer, Effect, EffectId, Input, RequestId, Verdict};
use strew_workloadspread::{Admission, WsKey};

use super::seen::{Listener, Seen};
use super::sending::Line;
use crate::feed::WatchFault;
use crate::scheduler::Blueprint;

/// For so long a call goes on by the replica's own clock: all pauses between attempts, and more.
const PATIENCE: Span = Span::from_secs(2);

/// Why a call came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// No answer in time.
    TimedOut,
    /// The replica died over it.
    Died,
}

/// An answer of the machine, and what the API server is told.
pub(super) struct Answered {
    pub(super) request: RequestId,
    /// `None`: nobody waits for it any more.
    pub(super) decision: Option<Decision>,
    pub(super) answer: Box<Answer>,
    /// The object as it stood when the status that holds the answer was written upon it; kept for who judges.
    pub(super) base: Option<Arc<Stored>>,
    /// Whether somebody has judged it.
    pub(super) is_judged: bool,
}

/// How a call ended.
pub(super) struct Ended {
    pub(super) decision: Decision,
    /// Whether the end of a pod went into a ledger.
    pub(super) is_counted: bool,
}

impl Ended {
    /// The desk has decided by itself.
    fn at_the_desk(decision: Decision) -> Self {
        Self {
            decision,
            is_counted: false,
        }
    }
}

/// What comes of a call that is begun.
pub(super) enum Begun {
    /// It is answered already.
    Answered(Decision),
    /// It waits for a write.
    Waits(RequestId),
}

pub(super) struct Replica {
    /// None before had it.
    pub(super) number: u64,
    hostname: String,
    pub(super) machine: Admission,
    pub(super) translator: Translator,
    desk: Desk,
    pub(super) seen: Seen,
    /// Status writes under way, and when they are carried out.
    under_way: VecDeque<(Instant, Effect)>,
    /// The last answers.
    pub(super) answered: Vec<Answered>,
    /// The objects that the last statuses were written upon, until their answers are there.
    bases: BTreeMap<WsKey, Arc<Stored>>,
    /// What the last call led to, if it is judged.
    pub(super) effects: Vec<Effect>,
}

impl Replica {
    /// A replica that begins by listing what there is.
    pub(super) fn new(blueprint: &Blueprint, number: u64, seed: u64, server: &Server) -> Self {
        let (names, profiles) = (blueprint.names.clone(), blueprint.profiles.clone());
        Self {
            number,
            hostname: format!("webhook-{number}"),
            machine: Admission::new(names, profiles, blueprint.limits.admission, seed),
            translator: Translator::default(),
            desk: Desk::default(),
            seen: Seen::new(server),
            under_way: VecDeque::new(),
            answered: Vec::new(),
            bases: BTreeMap::new(),
            effects: Vec::new(),
        }
    }

    /// Takes in what its watch tells; whether that was anything.
    pub(super) fn listen(
        &mut self,
        now: Instant,
        server: &Server,
        fault: Option<&WatchFault>,
        dice: &mut Prng,
    ) -> bool {
        let (translator, machine) = (&mut self.translator, &mut self.machine);
        let watch = (server, fault);
        self.seen.listen(now, watch, dice, translator, machine)
    }

    /// When time alone gives it something to do.
    pub(super) fn next_wake(&self) -> Option<Instant> {
        let waits = self.machine.waiting() > 0;
        let machine = self.machine.next_wake().filter(|_| waits);
        let written = self.under_way.front().map(|(due, _)| *due);
        let all = [machine, written, self.seen.next_wake()];
        all.into_iter().flatten().min()
    }

    /// Begins a call, whose status write takes its time.
    pub(super) fn begin(
        &mut self,
        review: Review,
        fresh_uid: Arc<str>,
        line: &mut Line<'_>,
    ) -> Result<Begun, Failure> {
        let id = match self.put(review, fresh_uid, line.now) {
            Ok(id) => id,
            Err(decision) => return Ok(Begun::Answered(*decision)),
        };
        self.pump(line.now, line, true)?;
        Ok(match self.find(id) {
            Some(ended) => Begun::Answered(ended.decision),
            None => Begun::Waits(id),
        })
    }

    /// Asks, and carries out what the machine wants until it answers. Writes that are under way are carried out earlier
    /// than they would have been.
    pub(super) fn ask(
        &mut self,
        review: Review,
        fresh_uid: Arc<str>,
        line: &mut Line<'_>,
    ) -> Result<Ended, Failure> {
        let mut clock = line.now;
        let until = clock + PATIENCE;
        let id = match self.put(review, fresh_uid, clock) {
            Ok(id) => id,
            Err(decision) => return Ok(Ended::at_the_desk(*decision)),
        };
        let ended = self.answer_now(id, until, &mut clock, line);
        if ended.is_err() {
            self.give_up(id, clock);
        }
        ended
    }

    fn answer_now(
        &mut self,
        id: RequestId,
        until: Instant,
        clock: &mut Instant,
        line: &mut Line<'_>,
    ) -> Result<Ended, Failure> {
        loop {
            self.pump(*clock, line, false)?;
            if let Some(ended) = self.find(id) {
                return Ok(ended);
            }
            if let Some((_, effect)) = self.under_way.pop_front() {
                self.carry_out(&effect, *clock, line)?;
                continue;
            }
            match self.machine.next_wake().filter(|wake| *wake <= until) {
                Some(wake) => {
                    *clock = (*clock).max(wake);
                    self.machine.handle(*clock, Input::Tick);
                }
                None => return Err(Failure::TimedOut),
            }
        }
    }

    /// Nobody waits for a request any more.
    pub(super) fn give_up(&mut self, id: RequestId, now: Instant) {
        self.machine.handle(now, Input::GivenUp(id));
        self.desk.forget(id);
    }

    /// Goes on with calls that wait; whether there was anything to do.
    pub(super) fn go_on(&mut self, line: &mut Line<'_>) -> bool {
        if self.machine.waiting() == 0 && self.under_way.is_empty() {
            return false;
        }
        self.effects.clear();
        self.machine.handle(line.now, Input::Tick);
        let mut acted = false;
        while let Some((_, effect)) = self.under_way.pop_front_if(|(due, _)| *due <= line.now) {
            acted = true;
            if self.carry_out(&effect, line.now, line).is_err() {
                return true;
            }
        }
        // A replica that dies over it is found dead.
        self.pump(line.now, line, true).unwrap_or(true) || acted
    }

    /// A review as a request to the machine, which is told.
    fn put(
        &mut self,
        review: Review,
        fresh_uid: Arc<str>,
        now: Instant,
    ) -> Result<RequestId, Box<Decision>> {
        let names = self.machine.names_mut();
        let request = self.desk.ask(review, fresh_uid, &self.seen, names)?;
        let id = request.id;
        self.effects.clear();
        let input = Input::AdmitAsked(Box::new(request));
        self.machine.handle(now, input);
        Ok(id)
    }

    /// The answer to a request, if it is there.
    fn find(&self, id: RequestId) -> Option<Ended> {
        let mut answered = self.answered.iter().rev();
        let found = answered.find(|answered| answered.request == id)?;
        Some(Ended {
            decision: found.decision.clone()?,
            is_counted: matches!(found.answer.verdict, Verdict::Counted),
        })
    }

    /// Carries out what the machine wants until it wants nothing more; whether it wanted anything. `slow`: status writes
    /// take their time.
    fn pump(&mut self, clock: Instant, line: &mut Line<'_>, slow: bool) -> Result<bool, Failure> {
        let mut acted = false;
        loop {
            let mut patcher = Patcher {
                forms: &self.translator.forms,
                desk: Some(&self.desk),
                pods: &self.seen,
            };
            let Some(effect) = self.machine.poll_effect(&mut patcher) else {
                self.bases.clear();
                return Ok(acted);
            };
            acted = true;
            if line.is_judged {
                self.effects.push(effect.clone());
            }
            match effect {
                Effect::Answer(answer) => self.note(answer),
                effect @ Effect::WriteStatus { .. } if slow && line.is_slow() => {
                    let due = line.now + line.write_time();
                    let after = self.under_way.partition_point(|(other, _)| *other <= due);
                    self.under_way.insert(after, (due, effect));
                }
                effect => self.carry_out(&effect, clock, line)?,
            }
        }
    }

    fn note(&mut self, answer: Box<Answer>) {
        let (forms, names) = (&self.translator.forms, self.machine.names());
        let decision = self.desk.answer(&answer, forms, names);
        let base = answer.spread.as_ref().and_then(|key| self.bases.get(key));
        self.answered.push(Answered {
            request: answer.request,
            decision,
            base: base.map(Arc::clone),
            answer,
            is_judged: false,
        });
    }

    fn carry_out(
        &mut self,
        effect: &Effect,
        clock: Instant,
        line: &mut Line<'_>,
    ) -> Result<(), Failure> {
        let context = Context {
            names: self.machine.names(),
            now: clock,
            hostname: &self.hostname,
        };
        let sent: Option<(EffectId, Request)> = of_admission(effect, &context);
        let Some((id, request)) = sent else {
            return Ok(());
        };
        let before = self.stored(effect, line.server);
        let answer = line.send(&request);
        let is_written = answer.as_ref().and_then(|answer| answer.code()) == Some(200);
        if line.is_judged
            && is_written
            && let Some((key, before)) = before
        {
            self.bases.insert(key, before);
        }
        if line.is_dead() {
            return Err(Failure::Died);
        }
        if let Some(answer) = answer {
            let names = self.machine.names_mut();
            let outcome = admission_outcome(&request, &answer, &mut self.translator, names);
            self.machine.handle(clock, Input::Outcome(id, outcome));
        }
        Ok(())
    }

    /// The object that a status is to be written upon.
    fn stored(&self, effect: &Effect, server: &Server) -> Option<(WsKey, Arc<Stored>)> {
        let Effect::WriteStatus { key, .. } = effect else {
            return None;
        };
        let namespace = self.machine.names().text(key.namespace);
        let name = Name::new(namespace, Arc::clone(&key.name));
        let stored = server.tables().get::<Stored>(&name)?;
        Some((key.clone(), Arc::clone(stored)))
    }
}

impl Listener for Admission {
    fn set(&mut self, now: Instant, object: &KubeObject, translator: &mut Translator) {
        for input in translator.admission(object, self.names_mut()) {
            self.handle(now, input);
        }
    }

    fn gone(&mut self, now: Instant, object: &KubeObject, translator: &mut Translator) {
        for input in translator.admission_gone(object, self.names_mut()) {
            self.handle(now, input);
        }
    }
}
