//! One replica of the webhook: the machine, what it was told, and one call of it.

use std::sync::Arc;

use strew_api::read::KubeObject;
use strew_api::request::Request;
use strew_api::workloadspread::Translator;
use strew_api::workloadspread::desk::{Desk, Patcher};
use strew_api::workloadspread::request::{Context, admission_outcome, of_admission};
use strew_api::workloadspread::review::{Decision, Review};
use strew_controllers::object::{Name, WorkloadSpread as Stored};
use strew_model::Prng;
use strew_model::time::{Instant, Span};
use strew_workloadspread::Admission;
use strew_workloadspread::admission::{Answer, Effect, EffectId, Input, Limits};

use super::seen::{Listener, Seen};
use super::sending::Line;
use crate::feed::WatchFault;
use crate::scheduler::Blueprint;
use crate::server::Server;

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
    pub(super) decision: Decision,
    /// `None`: the machine was not asked.
    pub(super) answer: Option<Box<Answer>>,
    /// All that it led to, the answer included; empty unless somebody judges.
    pub(super) effects: Vec<Effect>,
}

pub(super) struct Replica {
    hostname: String,
    pub(super) machine: Admission,
    pub(super) translator: Translator,
    desk: Desk,
    pub(super) seen: Seen,
    /// The object as it stood when the last status was written upon it; kept for who judges.
    pub(super) base: Option<Arc<Stored>>,
}

impl Replica {
    /// A replica that begins by listing what there is.
    pub(super) fn new(blueprint: &Blueprint, hostname: String, seed: u64, server: &Server) -> Self {
        let (names, profiles) = (blueprint.names.clone(), blueprint.profiles.clone());
        Self {
            hostname,
            machine: Admission::new(names, profiles, Limits::default(), seed),
            translator: Translator::default(),
            desk: Desk::default(),
            seen: Seen::new(server),
            base: None,
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
        [machine, self.seen.next_wake()].into_iter().flatten().min()
    }

    /// Asks, and carries out what the machine wants until it answers.
    pub(super) fn ask(
        &mut self,
        review: Review,
        fresh_uid: Arc<str>,
        line: &mut Line<'_>,
    ) -> Result<Answered, Failure> {
        let names = self.machine.names_mut();
        let request = match self.desk.ask(review, fresh_uid, &self.seen, names) {
            Ok(request) => request,
            Err(decision) => {
                return Ok(Answered {
                    decision: *decision,
                    answer: None,
                    effects: Vec::new(),
                });
            }
        };
        let id = request.id;
        let mut clock = line.now;
        let until = clock + PATIENCE;
        let mut effects = Vec::new();
        self.base = None;
        self.machine
            .handle(clock, Input::AdmitAsked(Box::new(request)));
        loop {
            let mut patcher = Patcher {
                forms: &self.translator.forms,
                desk: Some(&self.desk),
                pods: &self.seen,
            };
            let effect = self.machine.poll_effect(&mut patcher);
            if line.is_judged {
                effects.extend(effect.clone());
            }
            match effect {
                Some(Effect::Answer(answer)) => {
                    let (forms, names) = (&self.translator.forms, self.machine.names());
                    // Of an earlier call that had been given up nobody waits for the answer.
                    let decision = self.desk.answer(&answer, forms, names);
                    if let Some(decision) = decision.filter(|_| answer.request == id) {
                        return Ok(Answered {
                            decision,
                            answer: Some(answer),
                            effects,
                        });
                    }
                }
                Some(effect) => self.carry_out(&effect, clock, line)?,
                None => match self.machine.next_wake().filter(|wake| *wake <= until) {
                    Some(wake) => {
                        clock = clock.max(wake);
                        self.machine.handle(clock, Input::Tick);
                    }
                    None => return Err(Failure::TimedOut),
                },
            }
        }
    }

    /// Goes on with calls that nobody waits for any more; whether there was anything to do.
    pub(super) fn settle(&mut self, line: &mut Line<'_>) -> bool {
        if self.machine.waiting() == 0 {
            return false;
        }
        let mut acted = false;
        self.machine.handle(line.now, Input::Tick);
        loop {
            let mut patcher = Patcher {
                forms: &self.translator.forms,
                desk: Some(&self.desk),
                pods: &self.seen,
            };
            let Some(effect) = self.machine.poll_effect(&mut patcher) else {
                return acted;
            };
            acted = true;
            if let Effect::Answer(answer) = &effect {
                let (forms, names) = (&self.translator.forms, self.machine.names());
                self.desk.answer(answer, forms, names);
            } else if self.carry_out(&effect, line.now, line).is_err() {
                return acted;
            }
        }
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
        if line.is_judged && is_written {
            self.base = before;
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
    fn stored(&self, effect: &Effect, server: &Server) -> Option<Arc<Stored>> {
        let Effect::WriteStatus { key, .. } = effect else {
            return None;
        };
        let namespace = self.machine.names().text(key.namespace);
        let name = Name::new(namespace, Arc::clone(&key.name));
        server.tables().get::<Stored>(&name).cloned()
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
