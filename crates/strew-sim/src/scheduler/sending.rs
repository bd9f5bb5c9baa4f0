//! Requests on their way: one after another, again where that is worth it, late where a fault says so.

use std::collections::{BTreeMap, VecDeque};

use strew_api::request::{Answer, Request, Verb, outcome_of};
use strew_api::retry::{Retry, Retrying};
use strew_model::time::{Instant, Span};
use strew_scheduler::machine::Outcome;

use super::{Surroundings, Waiting};
use crate::auditor::Sent;

/// No request is sent again after so long.
const PATIENCE: Span = Span::from_secs(60);

/// What an effect came to.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) effect: Waiting,
    pub(super) outcome: Outcome,
    /// The uid of the pod that was to be bound.
    pub(super) binds: Option<String>,
}

/// Who sends.
pub(super) struct Sender {
    pub(super) replica: String,
    /// Its own.
    pub(super) clock: Instant,
    pub(super) elects: bool,
    /// At this very moment.
    pub(super) leads: bool,
}

/// The requests of an effect that are not done.
#[derive(Debug)]
struct Batch {
    effect: Waiting,
    requests: VecDeque<Request>,
    retrying: Retrying,
}

/// Batches that wait for their moment.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: BTreeMap<(Instant, u64), Batch>,
    n_sent: u64,
}

impl Outbox {
    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Sends the requests of an effect; what they came to, unless that takes time.
    pub(super) fn send(
        &mut self,
        effect: Waiting,
        requests: Vec<Request>,
        sender: &Sender,
        around: &mut Surroundings<'_>,
    ) -> Option<Done> {
        let batch = Batch {
            effect,
            requests: requests.into(),
            retrying: Retrying::new(around.now + PATIENCE),
        };
        let is_bind = batch.requests.front().is_some_and(is_binding);
        let slow = around
            .bind_fault
            .filter(|_| is_bind)
            .map(|fault| fault.slow);
        match slow.filter(|slow| slow.0 > 0) {
            Some(slow) => {
                let at = around.now + Span(around.dice.between(0, slow.0));
                self.wait(at, batch);
                None
            }
            None => self.go_on(batch, sender, around),
        }
    }

    /// Sends one batch whose moment has come; `None`: there is none.
    pub(super) fn resend(
        &mut self,
        sender: &Sender,
        around: &mut Surroundings<'_>,
    ) -> Option<Option<Done>> {
        if self.next_wake()? > around.now {
            return None;
        }
        let (_, batch) = self.waiting.pop_first()?;
        if !sender.leads {
            // Another replica may act by now. Whether an earlier try was carried out, facts will tell.
            let binds = batch.requests.front().and_then(bound_uid);
            return Some(Some(Done {
                effect: batch.effect,
                outcome: Outcome::Failed("this replica does not lead any more".into()),
                binds,
            }));
        }
        Some(self.go_on(batch, sender, around))
    }

    fn wait(&mut self, at: Instant, batch: Batch) {
        self.n_sent += 1;
        self.waiting.insert((at, self.n_sent), batch);
    }

    fn go_on(
        &mut self,
        mut batch: Batch,
        sender: &Sender,
        around: &mut Surroundings<'_>,
    ) -> Option<Done> {
        loop {
            let request = batch.requests.front()?;
            let answer = deliver(request, sender, around);
            let dice = around.dice.next_u64();
            if let Retry::After(wait) = batch.retrying.next(request, &answer, around.now, dice) {
                self.wait(around.now + wait, batch);
                return None;
            }
            let outcome = outcome_of(request, &answer, batch.retrying.repeated());
            let binds = bound_uid(request);
            let is_ok = outcome == Outcome::Ok;
            batch.requests.pop_front();
            if !is_ok || batch.requests.is_empty() {
                return Some(Done {
                    effect: batch.effect,
                    outcome,
                    binds,
                });
            }
        }
    }
}

/// The pod that a request binds, by uid.
fn bound_uid(request: &Request) -> Option<String> {
    let uid = request.body["metadata"]["uid"].as_str();
    uid.filter(|_| is_binding(request)).map(str::to_owned)
}

fn is_binding(request: &Request) -> bool {
    request.subresource == "binding"
}

/// Brings a request to the server, through the faults of the moment.
fn deliver(request: &Request, sender: &Sender, around: &mut Surroundings<'_>) -> Answer {
    const MILLION: u64 = 1_000_000;
    if let Some(left) = &mut around.writes_left {
        if **left == 0 {
            return Answer::Refused("the scheduler has died".into());
        }
        **left -= 1;
    }
    if let Some(witness) = around.witness.as_deref_mut()
        && is_binding(request)
    {
        witness.sent(Sent {
            replica: &sender.replica,
            clock: sender.clock,
            elects: sender.elects,
            pod: &request.name,
        });
    }
    let fail = around
        .bind_fault
        .filter(|_| is_binding(request))
        .map_or(0, |fault| fault.fail_ppm);
    if fail > 0 && around.dice.chance(u64::from(fail), MILLION) {
        // Half of them were carried out all the same: only the answer was lost.
        if around.dice.chance(1, 2) {
            around.server.execute(around.now, request);
        }
        return Answer::Lost("the connection was cut".into());
    }
    let conflict = around.conflict_ppm;
    if conflict > 0
        && request.verb == Verb::Patch
        && around.dice.chance(u64::from(conflict), MILLION)
    {
        let body = br#"{"kind": "Status", "reason": "Conflict", "message": "the object has been modified"}"#;
        return Answer::of(409, None, body);
    }
    around.server.execute(around.now, request)
}
