//! Connects the machine of the WorkloadSpread controller to the wire.
//!
//! The machine gets a WorkloadSpread only after everything that it needs has been listed: the objects of its target's
//! kind, and the JSON of pods to which its patches may already apply. Until then the WorkloadSpread is held back
//! (`held`); others are not affected.
//!
//! Reading order: this file, `held`, [`target_kinds`](crate::target_kinds) (kinds that are watched because a
//! WorkloadSpread names them), `texts` (the JSON of pods).
//!
//! Source: spec/workloadspread §5.

mod held;
mod texts;

use std::convert::Infallible;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use serde_json::Value;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_wire::facts::Named;
use strew_wire::request::outcome_of;
use strew_wire::workloadspread::pending_reviews::Patcher;
use strew_wire::workloadspread::request::{Context, controller_outcome, of_controller};
use strew_wire::workloadspread::{Translator, facts};
use strew_workloadspread::controller::{Effect, EffectId, Input, Limits, Outcome};
use strew_workloadspread::facts::status::Webhook;
use strew_workloadspread::{SpreadController, WsKey};

use crate::driver::Moment;
use crate::machine::{Begun, Machine, Next};
use crate::outbox::{Answered, failure};
use crate::reads::Reads;
use crate::target_kinds::{OF_KRUISE, OWN, TargetKinds, watch_list};
use crate::warning::Warning;
use crate::watch::{Custom, Kind, Object, Served, Update, Watches};
use held::Held;
use texts::Texts;

/// The machine with its translator and the WorkloadSpreads that are held back.
pub struct Spreads {
    machine: SpreadController,
    translator: Translator,
    held: Held,
    targets: TargetKinds,
    texts: Texts,
    hostname: String,
    /// The kind of the ConfigMap.
    configuration: Kind,
}

/// The kinds that it reads in the whole cluster. Source: spec/workloadspread §6.4.
pub fn reads() -> Vec<Reads> {
    let own = [
        Reads::of::<Pod>("the pods of each subset"),
        Reads::of::<Node>("the subset of a pod that was created without one: by its node"),
    ];
    let spreads = [Reads::of::<WorkloadSpread>("the subsets, and their limits")];
    [&spreads[..], OF_KRUISE, &own, OWN].concat()
}

/// The machine's watches; `namespace`: that of the ConfigMap that names custom kinds.
pub fn watches(namespace: &str) -> Watches {
    let mut watches = Watches::of(&reads());
    watch_list(namespace, &mut watches);
    watches
}

impl Spreads {
    /// A machine that knows only the served kinds. `hostname` becomes part of the names of events.
    pub fn new(names: Interner, limits: Limits, hostname: String, served: Arc<Served>) -> Self {
        Self {
            machine: SpreadController::new(names, limits),
            translator: Translator::default(),
            held: Held::default(),
            targets: TargetKinds::of_named(served),
            texts: Texts::default(),
            hostname,
            configuration: Kind::of::<ConfigMap>(),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &SpreadController {
        &self.machine
    }

    /// The translator from objects to inputs.
    pub fn translator(&self) -> &Translator {
        &self.translator
    }

    /// The number of WorkloadSpreads that are held back.
    pub fn n_held(&self) -> usize {
        self.held.len()
    }

    /// Sets the kinds that the API server serves.
    pub fn serve(&mut self, served: Arc<Served>, watches: &mut Watches) {
        self.targets.serve(served, watches);
    }

    /// Sets the state of the webhook for creations of pods.
    pub fn set_webhook(&mut self, now: Instant, webhook: Webhook) {
        self.machine.handle(now, Input::Webhook(webhook));
    }

    // === objects ===

    fn set(
        &mut self,
        now: Instant,
        (kind, named): (Kind, Named),
        object: Object,
        watches: &mut Watches,
    ) {
        match object {
            Object::Known(KubeObject::WorkloadSpread(wire)) => {
                self.targets.name(&wire, watches);
                self.held.put(named, wire);
            }
            Object::Known(object) => {
                if let KubeObject::Pod(pod) = &object {
                    let is_stranger = is_stranger(pod, &self.machine);
                    self.texts.note(pod, is_stranger);
                }
                self.tell(now, &object);
            }
            Object::Pod(pod) => {
                let object = Object::Known(pod.to_wire().into());
                self.set(now, (kind, named), object, watches);
            }
            Object::Custom(custom) if kind == self.configuration => {
                self.configure(now, &custom.object, watches);
            }
            Object::Custom(custom) => {
                self.tell_custom(now, &kind, &custom);
            }
        }
    }

    fn tell(&mut self, now: Instant, object: &KubeObject) {
        let inputs = self.translator.controller(object, self.machine.names_mut());
        for input in inputs {
            self.machine.handle(now, input);
        }
    }

    fn tell_custom(&mut self, now: Instant, kind: &Kind, custom: &Custom) {
        let path = self.targets.replicas_path(kind);
        let names = self.machine.names_mut();
        let scale = custom.scale.as_ref();
        let fact = self.translator.custom(&custom.object, scale, path, names);
        self.machine.handle(now, Input::WorkloadSet(Box::new(fact)));
    }

    fn gone(&mut self, now: Instant, kind: &Kind, named: &Named, watches: &mut Watches) {
        if *kind == self.configuration {
            return self.configure(now, &Value::Null, watches);
        }
        if *kind == Kind::of::<WorkloadSpread>() {
            self.held.remove(named);
            self.targets.forget(&named.namespace, &named.name, watches);
            self.texts.spread_gone(&named.namespace);
        }
        let names = self.machine.names_mut();
        match kind.known_remains(named) {
            Some(object) => {
                if let KubeObject::Pod(_) = &object {
                    self.texts.forget(&named.uid);
                }
                for input in self.translator.controller_gone(&object, names) {
                    self.machine.handle(now, input);
                }
            }
            None => {
                let left = kind.remains(named);
                let fact = self.translator.custom(&left, None, None, names);
                self.machine.handle(now, Input::WorkloadGone(fact.key));
            }
        }
    }

    /// Sets the ConfigMap of custom kinds; null if it was deleted.
    fn configure(&mut self, now: Instant, config_map: &Value, watches: &mut Watches) {
        if self.targets.configure(config_map, watches) {
            let kinds = self.targets.kinds(self.machine.names_mut());
            self.machine.handle(now, Input::KindsListed(kinds));
        }
    }

    /// Passes WorkloadSpreads to the machine for which everything is known.
    fn release(&mut self, now: Instant, watches: &mut Watches) {
        let (targets, texts) = (&self.targets, &mut self.texts);
        let ready = self.held.take(|wire| {
            let is_known = targets.is_known(wire, watches);
            // Both are evaluated, so that both requests are sent early.
            texts.are_known(wire, watches) && is_known
        });
        for wire in ready {
            self.targets.settle(&wire, watches);
            self.tell(now, &KubeObject::WorkloadSpread(Box::new(wire)));
        }
        for [_, group, kind, _] in self.translator.look_again() {
            if let Some(kind) = watches.kind_of(&group, &kind).cloned() {
                watches.restart(&kind);
            }
        }
    }
}

/// True if a pod has no marker of an existing WorkloadSpread.
fn is_stranger(pod: &Pod, machine: &SpreadController) -> bool {
    let marked = facts::pod::marked(&pod.metadata);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let key = marked.marker().and_then(|marker| {
        let namespace = machine.names().get(namespace)?;
        let name = Arc::clone(&marker.workload_spread);
        Some(WsKey { namespace, name })
    });
    key.is_none_or(|key| machine.spreads().get(&key).is_none())
}

impl Machine for Spreads {
    type Effect = Effect;
    type Chain = EffectId;
    type Call = Infallible;
    type Reply = Infallible;

    fn take_in(&mut self, now: Instant, update: Update, watches: &mut Watches) {
        match update {
            Update::Set(kind, named, object) => self.set(now, (kind, named), *object, watches),
            Update::Gone(kind, named) => self.gone(now, &kind, &named, watches),
            Update::Again(_, namespace, objects) => {
                let pods = objects.into_iter().filter_map(Object::into_known);
                let machine = &self.machine;
                self.texts
                    .take_in(&namespace, pods, |pod| is_stranger(pod, machine));
            }
            Update::Listed(_) => {}
        }
        self.release(now, watches);
    }

    /// Kinds of targets hold back only the WorkloadSpreads that name them: the right to read one may be missing.
    fn is_whole(&self, watches: &Watches) -> bool {
        watches.are_listed(|kind| !self.targets.follows(kind))
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        let mut patcher = Patcher {
            contents: &self.translator.contents,
            reviews: None,
            pods: &self.texts,
        };
        self.machine.poll_effect(&mut patcher)
    }

    fn begin(&mut self, at: Moment, effect: Effect, leads: bool) -> Begun<EffectId> {
        let context = Context {
            names: self.machine.names(),
            now: at.wall,
            hostname: &self.hostname,
        };
        let (id, request) = of_controller(&effect, &self.translator, &context);
        let Some(chain) = id else {
            return Begun::Event(request);
        };
        if leads {
            log(&effect, &context);
        }
        Begun::Chain {
            about: about(&effect, &context),
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
        let outcome = controller_outcome(answer);
        let words = outcome_of(request, answer, *repeated);
        if let Some(text) = failure(&words) {
            match outcome {
                // Another client wrote first: the next sync sees its change.
                Outcome::Conflict | Outcome::Gone => tracing::debug!(
                    name = format_args!("{}/{}", request.namespace, request.name),
                    error = text,
                    "not written"
                ),
                Outcome::Ok | Outcome::Failed if answered.is_held_back => {}
                Outcome::Ok | Outcome::Failed => {
                    let next = "with the next sync of its WorkloadSpread, after a growing wait";
                    Warning::of(request, request.verb.text(), &text, next).log();
                }
            }
        }
        self.machine.handle(at.now, Input::Outcome(chain, outcome));
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.next_wake()
    }
}

/// The object of an effect: effects about one object are carried out in order.
fn about(effect: &Effect, cx: &Context<'_>) -> Arc<str> {
    match effect {
        Effect::Adopt { pod, .. } | Effect::SetCost { pod, .. } | Effect::DeletePod { pod, .. } => {
            Arc::clone(&pod.uid)
        }
        Effect::WriteStatus { key, .. } => {
            format!("{}/{}", cx.names.text(key.namespace), key.name).into()
        }
        Effect::Event(_) => "".into(),
    }
}

/// The decision log.
fn log(effect: &Effect, cx: &Context<'_>) {
    let (what, pod) = match effect {
        Effect::Adopt { pod, .. } => ("adopt", pod),
        Effect::SetCost { pod, .. } => ("set deletion cost", pod),
        Effect::DeletePod { pod, .. } => ("reschedule", pod),
        Effect::WriteStatus { .. } | Effect::Event(_) => return,
    };
    tracing::debug!(
        target: "strew::decision",
        uid = &*pod.uid,
        pod = format_args!("{}/{}", cx.names.text(pod.namespace), pod.name),
        "{what}"
    );
}
