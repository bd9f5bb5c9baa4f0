//! Requests of the controller on their way to the server, through the faults of the moment.

use std::sync::Arc;

use strew_api::placement::request::{Carrying, Context, Next};
use strew_api::request::{Answer, Request, Resource, Verb};
use strew_api::retry::{Retry, Retrying};
use strew_model::Symbol;
use strew_model::time::{Instant, Span};
use strew_placement::machine::{EffectId, Outcome};

use super::{Around, Desired};
use crate::auditor::kept;

/// No request is sent again after so long.
const PATIENCE: Span = Span::from_secs(60);

const MILLION: u64 = 1_000_000;

/// An effect is done with.
#[derive(Debug)]
pub(super) struct Done {
    /// The placement whose decisions it wrote.
    pub(super) of: Option<(Symbol, Symbol)>,
    /// What the machine is told, if it waits.
    pub(super) outcome: Option<(EffectId, Outcome)>,
}

/// An effect on its way, and its next request.
#[derive(Debug)]
struct Sending {
    at: Instant,
    carrying: Carrying,
    request: Request,
    retrying: Retrying,
}

/// Effects on their way; of one placement never two.
#[derive(Debug, Default)]
pub(super) struct Outbox(Vec<Sending>);

impl Outbox {
    pub(super) fn add(&mut self, carrying: Carrying, request: Request, now: Instant) {
        self.0.push(Sending {
            at: now,
            carrying,
            request,
            retrying: Retrying::new(now + PATIENCE),
        });
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        self.0.iter().map(|sending| sending.at).min()
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.0.iter().any(|sending| sending.at <= now)
    }

    /// Sends a request that is due, which one is drawn; `None`: none is. Then what came of its effect, if that is over.
    pub(super) fn send(
        &mut self,
        cx: &Context<'_>,
        desired: &Desired,
        around: &mut Around<'_>,
    ) -> Option<Option<Done>> {
        let due = self.0.iter().enumerate();
        let due = due.filter(|(_, sending)| sending.at <= around.now);
        let due: Vec<usize> = due.map(|(place, _)| place).collect();
        if due.is_empty() {
            return None;
        }
        let place = due[around.order.index(due.len())];
        let mut sending = self.0.remove(place);
        let answer = deliver(&sending.request, cx, desired, around);
        let dice = around.order.next_u64();
        let retry = sending
            .retrying
            .next(&sending.request, &answer, around.now, dice);
        if let Retry::After(wait) = retry {
            sending.at = around.now + wait;
            self.0.push(sending);
            return Some(None);
        }
        match sending.carrying.answered(&answer, cx) {
            Next::Send(request) => {
                self.add(sending.carrying, *request, around.now);
                Some(None)
            }
            Next::Done(outcome) => Some(Some(Done {
                of: placement_of(&sending.request, cx),
                outcome,
            })),
        }
    }
}

/// The placement whose decisions a request writes: as names of PlacementDecisions have it.
fn placement_of(request: &Request, cx: &Context<'_>) -> Option<(Symbol, Symbol)> {
    if request.resource != Resource::PLACEMENT_DECISIONS {
        return None;
    }
    let (placement, _) = request.name.rsplit_once("-decision-")?;
    let namespace = cx.names.get(&request.namespace)?;
    Some((namespace, cx.names.get(placement)?))
}

/// Brings a request to the server.
fn deliver(
    request: &Request,
    cx: &Context<'_>,
    desired: &Desired,
    around: &mut Around<'_>,
) -> Answer {
    if let Some(left) = &mut around.writes_left {
        if **left == 0 {
            return Answer::Refused("the controller has died".into());
        }
        **left -= 1;
    }
    let fault = around.write_fault.copied().unwrap_or_default();
    let mut hits = |ppm: u32| ppm > 0 && around.dice.chance(u64::from(ppm), MILLION);
    if hits(fault.lost_ppm) {
        // Half of them were carried out all the same: only the answer was lost.
        if around.dice.chance(1, 2) {
            execute(request, cx, desired, around);
        }
        return Answer::Lost("the connection was cut".into());
    }
    if request.verb != Verb::Create && hits(fault.conflict_ppm) {
        let body = br#"{"kind": "Status", "reason": "Conflict", "message": "the object has been modified"}"#;
        return Answer::of(409, None, body);
    }
    execute(request, cx, desired, around)
}

/// The server carries it out, and the witness compares what the placement holds before and after.
fn execute(
    request: &Request,
    cx: &Context<'_>,
    desired: &Desired,
    around: &mut Around<'_>,
) -> Answer {
    let (Some(witness), Some(of)) = (around.witness.as_deref_mut(), placement_of(request, cx))
    else {
        return around.server.execute(around.now, request);
    };
    let nothing: Arc<[Arc<str>]> = Arc::new([]);
    let wanted = desired.get(&of).unwrap_or(&nothing);
    let placement = (cx.names.text(of.0), cx.names.text(of.1));
    let before = kept::union(around.server.tables(), placement.0, placement.1);
    let answer = around.server.execute(around.now, request);
    let after = kept::union(around.server.tables(), placement.0, placement.1);
    kept::judge(placement, &request.name, wanted, &before, &after, witness);
    answer
}
