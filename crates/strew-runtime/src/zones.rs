//! Connects the machine of budgets by zone to the wire: reviews of evictions in, answers out.
//!
//! Nodes and pods are watched from the first annotated budget on: without one, the process reads budgets alone.

use std::collections::VecDeque;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use strew_manifest::read::KubeObject;
use strew_model::time::{Instant, Span};
use strew_model::well_known;
use strew_wire::request::outcome_of;
use strew_wire::zones;
use strew_zones::{Answer, Ask, Effect, EffectId, Input, Outcome, RequestId, Zones};

use crate::driver::Moment;
use crate::machine::{Begun, CallId, Machine, Next};
use crate::outbox::{Answered, failure};
use crate::reads::Reads;
use crate::warning::Warning;
use crate::watch::{Kind, Object, Reading, Scope, Update, Watches};

/// How long a request is retried: less than the API server waits for the webhook.
pub const PATIENCE: Span = Span::from_secs(2);

/// A review of an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// The namespace of the pod.
    pub namespace: Box<str>,
    /// The name of the pod.
    pub pod: Box<str>,
    /// True if nothing is to change.
    pub is_dry_run: bool,
}

/// The refusal of an eviction whose pods are not known yet.
const NOT_KNOWN: &str = "strew does not know the pods of this namespace yet";

/// The machine with its translation.
pub struct ZoneMachine {
    machine: Zones,
    replies: VecDeque<(CallId, Answer)>,
    /// Whether nodes and pods have been listed.
    listed: [bool; 2],
    is_watching: bool,
}

/// The kinds that it reads.
pub const READS: &[Reads] = &[
    Reads::of::<PodDisruptionBudget>("budgets by zone: which ones ask for it"),
    Reads::of::<Node>("budgets by zone: the zone of a pod, and whether its node is Ready").later(),
    Reads::of::<Pod>("budgets by zone: which pods of a budget are away").later(),
];

/// The watches that it begins with.
pub fn watches() -> Watches {
    Watches::of(READS)
}

/// The kinds that it watches once a budget asks for it.
fn later() -> [Kind; 2] {
    [Kind::of::<Node>(), Kind::of::<Pod>()]
}

impl ZoneMachine {
    /// A machine without facts.
    pub fn new() -> Self {
        Self {
            machine: Zones::default(),
            replies: VecDeque::new(),
            listed: [false; 2],
            is_watching: false,
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Zones {
        &self.machine
    }

    /// True if an eviction in this namespace can be decided: it has no annotated budget, or all pods are known.
    pub fn is_known(&self, namespace: &str) -> bool {
        self.listed == [true; 2] || !self.machine.has_budgets_in(namespace)
    }

    fn set(&mut self, now: Instant, object: &Object) {
        let names = self.machine.names_mut();
        let input = match object {
            Object::Pod(pod) => Some(zones::pod_input(&**pod, names)),
            Object::Known(KubeObject::Pod(pod)) => Some(zones::pod_input(&**pod, names)),
            Object::Known(object) => zones::input(object, names),
            Object::Custom(_) => None,
        };
        if let Some(input) = input {
            self.machine.handle(now, input);
        }
    }

    /// Begins to watch nodes and pods once a budget asks for it.
    fn watch_more(&mut self, watches: &mut Watches) {
        if self.is_watching || !self.machine.has_budgets() {
            return;
        }
        self.is_watching = true;
        let [nodes, pods] = later();
        watches.start(nodes, Reading::Known, &Scope::default());
        watches.start(pods, Reading::Known, &Scope::unfinished_pods());
    }
}

impl Default for ZoneMachine {
    fn default() -> Self {
        Self::new()
    }
}

impl Machine for ZoneMachine {
    type Effect = Effect;
    type Chain = EffectId;
    type Call = Eviction;
    type Reply = Answer;

    /// An API server waits for the result of each claim. That a claim cannot be taken out is spaced out by the machine.
    fn remembers_refusals(&self) -> bool {
        false
    }

    fn take_in(&mut self, now: Instant, update: Update, watches: &mut Watches) {
        match update {
            Update::Set(_, _, object) => {
                self.set(now, &object);
                self.watch_more(watches);
            }
            Update::Gone(kind, named) => {
                let input = zones::gone(&kind.kind, &named, self.machine.names_mut());
                if let Some(input) = input {
                    self.machine.handle(now, input);
                }
            }
            Update::Listed(kind) => {
                for (listed, of) in self.listed.iter_mut().zip(later()) {
                    *listed |= of == kind;
                }
            }
            Update::Again(..) => {}
        }
    }

    fn asked(&mut self, now: Instant, id: CallId, call: Eviction) {
        if !self.is_known(&call.namespace) {
            let refused = Answer::Refused(NOT_KNOWN.into());
            self.replies.push_back((id, refused));
            return;
        }
        let namespace = match &*call.namespace {
            "" => well_known::DEFAULT_NAMESPACE,
            namespace => self.machine.names_mut().intern(namespace),
        };
        let ask = Ask {
            id: RequestId(id.0),
            namespace,
            pod: call.pod,
            is_dry_run: call.is_dry_run,
        };
        self.machine.handle(now, Input::Asked(ask));
    }

    fn gave_up(&mut self, now: Instant, id: CallId) {
        self.machine.handle(now, Input::GivenUp(RequestId(id.0)));
    }

    fn next_reply(&mut self) -> Option<(CallId, Answer)> {
        self.replies.pop_front()
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        self.machine.poll_effect()
    }

    fn begin(&mut self, _: Moment, effect: Effect, _: bool) -> Begun<EffectId> {
        if let Effect::Answer(RequestId(id), answer) = effect {
            if let Answer::Refused(why) = &answer {
                tracing::debug!(target: "strew::decision", why = &**why, "refuse eviction");
            }
            self.replies.push_back((CallId(id), answer));
            return Begun::Nothing;
        }
        let Some((chain, request)) = zones::request(&effect, self.machine.names()) else {
            return Begun::Nothing;
        };
        Begun::Chain {
            about: format!("{}/{}", request.namespace, request.name).into(),
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
        let outcome = zones::outcome(request, answer, self.machine.names_mut());
        if outcome == Outcome::Failed
            && let Some(text) = failure(&outcome_of(request, answer, *repeated))
        {
            let next = "with the next eviction; until then the plain budget alone is kept";
            Warning::of(request, "claim the zone", &text, next).log();
        }
        self.machine.handle(at.now, Input::Outcome(chain, outcome));
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        self.machine.next_wake()
    }
}

/// The kind of budgets.
pub fn budgets() -> Kind {
    Kind::of::<PodDisruptionBudget>()
}
