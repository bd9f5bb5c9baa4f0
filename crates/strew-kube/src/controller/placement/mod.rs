//! The controller of Placements on a real hub.
//!
//! A placement's writes go out one after another, each after the answer to the one before: their order is what keeps
//! clusters from being missing. A replica that ceases to lead in between sends none of the rest; the next leader decides
//! from what is stored.
//!
//! Reading order: this file (the machine at work), `cel` (selectors, measured), `debug` (why a Placement holds what
//! it holds), `metrics`.
//!
//! Source: spec/placement §2.

mod cel;
pub mod debug;
pub mod metrics;

use std::sync::Arc;

use kube::Client;
use strew_api::placement::debug::DebugResult;
use strew_api::placement::facts::{gone, inputs, placement};
use strew_api::placement::request::{self, Carrying, Context};
use strew_api::placement::wire::Placement;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_placement::explain::explain;
use strew_placement::machine::{Effect, EffectId, Input, Limits, Outcome, PlacementName, Placer};
use strew_scheduler::metrics::Family;

use super::Name;
use crate::clock::Clock;
use crate::leading::Leads;
use crate::send::{Answered, Arrived, Errand, Next, Outbox};
use crate::watch::{Object, Reading, Scope, Told, Watches};
use crate::work::{Machine, Worker};
use cel::Measured;

/// The machine, and what answers its questions.
pub(super) struct PlacementKeeper {
    machine: Placer,
    cel: Measured,
    hostname: String,
}

impl PlacementKeeper {
    /// A controller that begins by listing what there is.
    pub(super) fn begin(
        client: Client,
        clock: Clock,
        leads: Leads,
        hostname: String,
    ) -> Worker<Self> {
        let mut watches = Watches::new(client.clone());
        for kind in Name::Placement.kinds() {
            watches.start_named(kind, Reading::Known, &Scope::default());
        }
        let keeper = Self {
            machine: Placer::new(Interner::new(), Limits::default(), clock.now()),
            cel: Measured::default(),
            hostname,
        };
        let outbox = Outbox::new(client, clock, leads.clone());
        Worker::new(keeper, watches, outbox, clock, leads)
    }

    fn context(&self, clock: &Clock) -> Context<'_> {
        Context {
            names: &self.machine.hub().names,
            now: clock.wall(),
            hostname: &self.hostname,
        }
    }

    /// Why a Placement, which need not be stored, would hold what it would hold now.
    pub(super) fn explain(&mut self, wire: &Placement, now: Instant) -> DebugResult {
        let fact = placement(wire, self.machine.names_mut(), &mut self.cel.selectors);
        let hub = self.machine.hub();
        let explanation = explain(hub, now, &fact, &self.cel.selectors);
        DebugResult::of(wire, &explanation, &hub.names)
    }

    /// What was counted; `waiting`: requests that are under way.
    pub(super) fn families(&self, waiting: usize) -> Vec<Family> {
        metrics::families(&self.machine, self.cel.durations(), waiting)
    }
}

impl Machine for PlacementKeeper {
    type Errand = Carrying;

    fn take_in(&mut self, now: Instant, told: Told, _: &mut Watches) {
        let (names, cel) = (self.machine.names_mut(), &mut self.cel.selectors);
        let input = match told {
            Told::Set(_, _, object) => match &*object {
                Object::Known(object) => inputs(object, names, cel),
                Object::Custom(_) => None,
            },
            Told::Gone(kind, named) => {
                let object = kind.known_remains(&named);
                object.and_then(|object| gone(&object, names, cel))
            }
            Told::Listed(_) | Told::Again(..) => None,
        };
        if let Some(input) = input {
            self.machine.handle(now, input);
        }
    }

    fn settle(&mut self, now: Instant, arrived: Arrived<Carrying>, outbox: &mut Outbox<Carrying>) {
        let context = Context {
            names: &self.machine.hub().names,
            // No request but the first tells the time.
            now,
            hostname: &self.hostname,
        };
        if let Some(Some((effect, outcome))) = outbox.settle(arrived, context) {
            self.machine.handle(now, Input::Outcome { effect, outcome });
        }
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn carry_out(&mut self, clock: &Clock, outbox: &mut Outbox<Carrying>) -> bool {
        // How long a change waited for its decision is counted by the clock that is told last.
        self.machine.handle(clock.now(), Input::Tick);
        let Some(effect) = self.machine.poll_effect(&self.cel) else {
            return false;
        };
        let context = self.context(clock);
        let about = match &effect {
            Effect::Event(_) => None,
            Effect::WriteDecision { placement, .. } | Effect::WriteStatus { placement, .. } => {
                log(&effect, &context);
                Some(about(placement))
            }
        };
        let (carrying, request) = Carrying::begin(effect, &context);
        match about {
            None => outbox.tell(request),
            Some(about) => outbox.send(&about, carrying, request),
        }
        true
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.next_wake()
    }
}

/// A placement's writes are about it: none is sent before the one before was answered.
fn about(placement: &PlacementName) -> Arc<str> {
    Arc::clone(&placement.uid)
}

/// What was decided, for those who want to know each.
fn log(effect: &Effect, cx: &Context<'_>) {
    let Effect::WriteDecision {
        placement, write, ..
    } = effect
    else {
        return;
    };
    tracing::debug!(
        target: "strew::decision",
        placement = format_args!(
            "{}/{}",
            cx.names.text(placement.namespace),
            cx.names.text(placement.name)
        ),
        decision = cx.names.text(write.name),
        clusters = write.decisions.as_ref().map(|all| all.len()),
        "{:?}",
        write.kind
    );
}

impl Errand for Carrying {
    type Context<'a> = Context<'a>;
    /// `None`: nobody waits for it.
    type Outcome = Option<(EffectId, Outcome)>;

    fn answered(&mut self, answered: &Answered, cx: Context<'_>) -> Next<Self::Outcome> {
        let request = &answered.request;
        match Carrying::answered(self, &answered.answer, &cx) {
            request::Next::Send(request) => Next::Send(request),
            request::Next::Done(done) => {
                let name = format_args!(
                    "{} {}/{}",
                    request.resource.plural, request.namespace, request.name
                );
                match &done {
                    // Somebody else was faster: the next decision sees it.
                    Some((_, Outcome::Conflict(text))) => tracing::debug!("{name}: {text}"),
                    Some((_, Outcome::Gone)) => tracing::debug!("{name}: not found"),
                    Some((_, Outcome::Failed(text))) => tracing::warn!("{name}: {text}"),
                    Some((_, Outcome::Ok { .. })) | None => {}
                }
                Next::Done(done)
            }
        }
    }
}
