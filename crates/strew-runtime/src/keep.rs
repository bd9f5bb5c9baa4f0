//! Connects the machine that keeps ReplicaSets spread to the wire.

use std::convert::Infallible;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use strew_keep::{Effect, EffectId, Input, Keeper, Limits, Outcome};
use strew_manifest::field::FieldError;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_scheduler::Profile;
use strew_wire::keep;
use strew_wire::request::outcome_of;

use crate::driver::Moment;
use crate::machine::{Begun, Machine, Next};
use crate::outbox::{Answered, failure};
use crate::reads::Reads;
use crate::warning::Warning;
use crate::watch::{Kind, Update, Watches, full_name};

/// The machine with its translation.
pub struct Keeping {
    machine: Keeper,
}

/// The kinds that it reads.
pub const READS: &[Reads] = &[
    Reads::of::<Namespace>("whether the workloads of a namespace ask for it"),
    Reads::of::<Node>("the domains of a constraint"),
    Reads::of::<Pod>("what each domain has").unfinished(),
    Reads::of::<Deployment>("whether a workload asks for it"),
    Reads::of::<ReplicaSet>("whose pods are deleted"),
];

/// The machine's watches.
pub fn watches() -> Watches {
    Watches::of(READS)
}

impl Keeping {
    /// A machine without facts; `names` must be the interner of the profiles.
    pub fn new(names: Interner, profiles: Vec<Profile>, limits: Limits) -> Self {
        Self {
            machine: Keeper::new(names, profiles, limits),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Keeper {
        &self.machine
    }
}

impl Machine for Keeping {
    type Effect = Effect;
    type Chain = EffectId;
    type Call = Infallible;
    type Reply = Infallible;

    fn take_in(&mut self, now: Instant, update: Update, _: &mut Watches) {
        let names = self.machine.names_mut();
        let input = match update {
            Update::Set(kind, named, object) => {
                let Some(object) = object.into_known() else {
                    return;
                };
                keep::input(&object, names).unwrap_or_else(|errors| {
                    unreadable(&kind, &full_name(&named), &errors);
                    None
                })
            }
            Update::Gone(kind, named) => {
                let object = kind.known_remains(&named);
                object.and_then(|object| keep::gone(&object, names))
            }
            Update::Listed(_) | Update::Again(..) => None,
        };
        if let Some(input) = input {
            self.machine.handle(now, input);
        }
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        self.machine.poll_effect()
    }

    fn begin(&mut self, _: Moment, effect: Effect, leads: bool) -> Begun<EffectId> {
        if leads {
            self.log(&effect);
        }
        let Some((chain, request)) = keep::request(&effect, self.machine.names()) else {
            return Begun::Nothing;
        };
        Begun::Chain {
            about: Arc::from(request.precondition.uid.as_deref().unwrap_or_default()),
            chain,
            request,
        }
    }

    fn answered(&mut self, at: Moment, chain: EffectId, answered: &Answered) -> Next<EffectId> {
        let Answered {
            request,
            answer,
            repeated,
            ..
        } = answered;
        let outcome = keep::outcome(answer);
        if let Some(text) = failure(&outcome_of(request, answer, *repeated))
            && outcome == Outcome::Failed
            && !answered.is_held_back
        {
            let next = "with the next decision about its ReplicaSet, after a growing wait";
            Warning::of(request, "set deletion cost", &text, next).log();
        }
        self.machine.handle(at.now, Input::Outcome(chain, outcome));
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.next_wake()
    }
}

impl Keeping {
    /// The decision log, and why a ReplicaSet gets no costs.
    fn log(&self, effect: &Effect) {
        match effect {
            Effect::SetCost { pod, cost, .. } => tracing::debug!(
                target: "strew::decision",
                uid = &*pod.uid,
                pod = format_args!("{}/{}", self.machine.names().text(pod.namespace), pod.name),
                cost,
                "set deletion cost"
            ),
            Effect::Leave((namespace, name), why) => {
                let names = self.machine.names();
                let keep = Warning {
                    kind: "ReplicaSet",
                    namespace: names.text(*namespace),
                    name: names.text(*name),
                    node: None,
                    action: "keep spread",
                    error: &why.text(),
                    next: "when that changes; until then its pods get no deletion costs",
                };
                keep.log();
            }
        }
    }
}

fn unreadable(kind: &Kind, name: &str, errors: &[FieldError]) {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    tracing::debug!(kind = %kind, name, error = errors.join("; "), "not read");
}
