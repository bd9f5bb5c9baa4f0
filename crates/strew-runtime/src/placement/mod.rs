//! Connects the machine of Placements to the wire.
//!
//! The writes of a placement are sent one after another, each after the answer to the previous one, because their order
//! keeps clusters in the decisions. A replica that loses the lease in between sends none of the rest; the next leader
//! decides from the stored state.
//!
//! Source: spec/placement §2.

mod cel;

use std::convert::Infallible;
use std::sync::Arc;

use strew_manifest::ocm::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement,
    PlacementDecision,
};
use strew_model::Interner;
use strew_model::time::Instant;
use strew_placement::explain::{Detail, with_detail};
use strew_placement::machine::{Effect, Input, Limits, Outcome, PlacementMachine, PlacementName};
use strew_scheduler::metrics::Histogram;
use strew_wire::placement::cel::CelSelectors;
use strew_wire::placement::debug::{DebugResult, Explained};
use strew_wire::placement::facts::{gone, inputs, placement};
use strew_wire::placement::request::{self, Carrying, Context};

use crate::driver::Moment;
use crate::machine::{Begun, Machine, Next};
use crate::outbox::Answered;
use crate::reads::Reads;
use crate::warning::Warning;
use crate::watch::{Update, Watches};
use cel::Measured;
pub use cel::{BUCKETS, Stopwatch};

/// The kinds that placement reads. Source: spec/placement §4.
pub const READS: &[Reads] = &[
    Reads::of::<ManagedCluster>("the clusters to choose from"),
    Reads::of::<ManagedClusterSet>("which clusters belong together"),
    Reads::of::<ManagedClusterSetBinding>("which sets a namespace may use"),
    Reads::of::<AddOnPlacementScore>("scores that prioritizers read"),
    Reads::of::<Placement>("what is asked for"),
    Reads::of::<PlacementDecision>("the answer: which clusters a Placement gets"),
];

/// The machine's watches.
pub fn watches() -> Watches {
    Watches::of(READS)
}

/// The machine with its CEL selectors.
#[derive(Debug)]
pub struct Placements {
    machine: PlacementMachine,
    cel: Measured,
    hostname: String,
}

impl Placements {
    /// A machine without facts. `hostname` becomes part of the names of events.
    pub fn new(hostname: String, limits: Limits, now: Instant) -> Self {
        Self {
            machine: PlacementMachine::new(Interner::new(), limits, now),
            cel: Measured::new(None),
            hostname,
        }
    }

    /// Measures the evaluation of CEL from now on.
    #[must_use]
    pub fn measured_with(mut self, stopwatch: Stopwatch) -> Self {
        self.cel = Measured::new(Some(stopwatch));
        self
    }

    /// The machine.
    pub fn machine(&self) -> &PlacementMachine {
        &self.machine
    }

    /// The machine, for inputs that come from no watch or request.
    pub fn machine_mut(&mut self) -> &mut PlacementMachine {
        &mut self.machine
    }

    /// The CEL selectors.
    pub fn selectors(&self) -> &CelSelectors {
        &self.cel.selectors
    }

    /// The durations of CEL evaluations, each for one cluster and one selector; empty unless they are measured.
    pub fn cel_durations(&self) -> Histogram {
        self.cel.durations()
    }

    /// Explains the decision that a Placement, stored or not, would get now.
    pub fn explain(&mut self, wire: &Placement, now: Instant) -> DebugResult {
        self.explain_in(wire, now, Detail::Everything).result
    }

    /// The same in this detail, with what texts say beside it.
    pub fn explain_in(&mut self, wire: &Placement, now: Instant, detail: Detail) -> Explained {
        let fact = placement(wire, self.machine.names_mut(), &mut self.cel.selectors);
        let hub = self.machine.hub();
        let explanation = with_detail(hub, now, &fact, &self.cel.selectors, detail);
        let explained = Explained::of(wire, &explanation, &hub.names);
        self.sweep_if_due();
        explained
    }

    /// Frees the compiled expressions of deleted Placements.
    fn sweep_if_due(&mut self) {
        if self.cel.selectors.is_sweep_due() {
            self.cel.selectors.sweep(&self.machine.cel_selectors());
        }
    }

    fn context(&self, at: Moment) -> Context<'_> {
        Context {
            names: &self.machine.hub().names,
            now: at.wall,
            hostname: &self.hostname,
        }
    }
}

impl Machine for Placements {
    type Effect = Effect;
    type Chain = Carrying;
    type Call = Infallible;
    type Reply = Infallible;

    fn take_in(&mut self, now: Instant, update: Update, _: &mut Watches) {
        let (names, cel) = (self.machine.names_mut(), &mut self.cel.selectors);
        let input = match update {
            Update::Set(_, _, object) => {
                let object = object.into_known();
                object.and_then(|object| inputs(&object, names, cel))
            }
            Update::Gone(kind, named) => {
                let object = kind.known_remains(&named);
                object.and_then(|object| gone(&object, names, cel))
            }
            Update::Listed(_) | Update::Again(..) => None,
        };
        if let Some(input) = input {
            self.machine.handle(now, input);
            self.sweep_if_due();
        }
    }

    /// The time from a change to its decision is measured with the latest time that was passed in.
    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        self.machine.poll_effect(&self.cel)
    }

    fn begin(&mut self, at: Moment, effect: Effect, leads: bool) -> Begun<Carrying> {
        let context = self.context(at);
        let about = match &effect {
            Effect::Event(_) => None,
            Effect::WriteDecision { placement, .. } | Effect::WriteStatus { placement, .. } => {
                if leads {
                    log(&effect, &context);
                }
                Some(about(placement))
            }
        };
        let (chain, request) = Carrying::begin(effect, &context);
        match about {
            None => Begun::Event(request),
            Some(about) => Begun::Chain {
                about,
                chain,
                request,
            },
        }
    }

    fn answered(&mut self, at: Moment, mut chain: Carrying, answered: &Answered) -> Next<Carrying> {
        let next = chain.answered(&answered.answer, &self.context(at));
        let done = match next {
            request::Next::Send(request) => return Next::Send(chain, request),
            request::Next::Done(done) => done,
        };
        let request = &answered.request;
        let name = format_args!("{}/{}", request.namespace, request.name);
        match &done {
            // Another client wrote first: the next decision sees its change.
            Some((_, Outcome::Conflict(text))) => {
                tracing::debug!(name, error = %text, "not written")
            }
            Some((_, Outcome::Gone)) => tracing::debug!(name, error = "not found", "not written"),
            Some((_, Outcome::Failed(text))) if !answered.is_held_back => {
                let next = "with the next decision of its Placement, after a growing wait";
                Warning::of(request, request.verb.text(), text, next).log();
            }
            Some((_, Outcome::Failed(_) | Outcome::Ok { .. })) | None => {}
        }
        if let Some((effect, outcome)) = done {
            let input = Input::Outcome { effect, outcome };
            self.machine.handle(at.now, input);
        }
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.next_wake()
    }
}

/// The object of a placement's writes: none is sent before the previous one was answered.
fn about(placement: &PlacementName) -> Arc<str> {
    Arc::clone(&placement.uid)
}

/// The decision log.
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
