//! Connects the machine of admission to the wire: reviews in, decisions out.
//!
//! Reading order: [`Call`] (a review), this file, `calls` (calls without an answer), `log` (the decision log),
//! [`Turns`] (which review is next), [`target_kinds`](crate::target_kinds) (kinds that are known only by name).
//!
//! Source: spec/workloadspread §4.

mod calls;
mod log;
mod turns;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::Resource;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ReplicationController, Service};
use serde_json::Value;
use strew_manifest::kruise::GROUP;
use strew_manifest::kruise::spec::TargetReference;
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_scheduler::Profile;
use strew_scheduler::metrics::{Buckets, Histogram};
use strew_wire::request::Answer as Response;
use strew_wire::workloadspread::Translator;
use strew_wire::workloadspread::pending_reviews::{NoPods, Patcher, PendingReviews};
use strew_wire::workloadspread::request::{Context, admission_outcome, of_admission};
use strew_wire::workloadspread::review::{Decision, Review};
use strew_workloadspread::admission::{
    Answer, Denial, Effect, EffectId, Input, Limits, Operation, Outcome, RequestId, Verdict,
};
use strew_workloadspread::facts::workload::WorkloadKey;
use strew_workloadspread::{Admission, TargetRef};

use crate::driver::Moment;
use crate::machine::{Begun, CallId, Machine, Next};
use crate::outbox::Answered;
use crate::reads::Reads;
use crate::target_kinds::{OF_KRUISE, OWN, TargetKinds, watch_list};
use crate::warning::Warning;
use crate::watch::{Custom, Kind, Object, Reading, Scope, Served, Update, Watches};
pub use calls::Call;
use calls::{Calls, Pending};
pub use turns::{Crowded, LIMITS, Payer, Turns};

/// How long requests are retried: the machine gives up after ten seconds, as the API server does with its call.
pub const PATIENCE: Span = Span::from_secs(9);

/// The number of requests that share a status write.
pub const SHARING_BUCKETS: Buckets = Buckets::ones(1.0, 2.0, 11);

/// How long a pod waits for its owner, if no watch has shown the owner yet: in a rollout the first pod is often hardly
/// younger than its ReplicaSet. Without the wait the creation would fail with an alarming event, and its controller
/// would retry.
const OWNER_WITHIN: Span = Span::from_secs(1);

/// A call that waits for its pod's owner.
struct Orphan {
    review: Review,
    pending: Pending,
}

/// The machine with its translator, and the waiting calls.
pub struct AdmissionMachine {
    machine: Admission,
    translator: Translator,
    reviews: PendingReviews,
    calls: Calls,
    orphans: VecDeque<Orphan>,
    /// Answers that the caller has not taken yet.
    replies: VecDeque<(CallId, Decision)>,
    /// True if a workload was reported since the orphans were last checked.
    is_news: bool,
    targets: TargetKinds,
    /// Kinds to report again once all WorkloadSpreads are known; at the start each WorkloadSpread may request it.
    again: BTreeSet<Kind>,
    sharing: Histogram,
}

fn text_of(answer: &Response) -> String {
    match answer.code() {
        Some(code) => format!("answered {code}: {}", answer.words()),
        None => answer.words().to_string(),
    }
}

/// The kinds that it reads in the whole cluster. Source: spec/workloadspread §6.4.
pub fn reads() -> Vec<Reads> {
    let own = [
        Reads::of::<WorkloadSpread>("the subsets that a new pod can get").later(),
        Reads::of::<Pod>("the pods that are in each subset").unfinished(),
        Reads::of::<Node>("simulated scheduling: whether a subset has room for the pod"),
        Reads::of::<Namespace>("simulated scheduling: namespace selectors of pod affinity terms"),
        Reads::of::<Service>("simulated scheduling: default constraints"),
        Reads::of::<ReplicationController>("simulated scheduling: default constraints"),
    ];
    [&own[..], OWN, OF_KRUISE].concat()
}

/// The watches that it begins with; `namespace`: that of the ConfigMap that names custom kinds.
pub fn watches(namespace: &str) -> Watches {
    let mut watches = Watches::of(&reads());
    watch_list(namespace, &mut watches);
    watches
}

/// The kind of WorkloadSpreads.
pub fn spreads() -> Kind {
    Kind::of::<WorkloadSpread>()
}

impl AdmissionMachine {
    /// A machine without facts. `seed` determines the pauses between attempts.
    pub fn new(names: Interner, profiles: Vec<Profile>, limits: Limits, seed: u64) -> Self {
        Self {
            machine: Admission::new(names, profiles, limits, seed),
            translator: Translator::default(),
            reviews: PendingReviews::default(),
            calls: Calls::default(),
            orphans: VecDeque::new(),
            replies: VecDeque::new(),
            is_news: false,
            targets: TargetKinds::of_every(),
            again: BTreeSet::new(),
            sharing: Histogram::new(SHARING_BUCKETS),
        }
    }

    /// The machine.
    pub fn machine(&self) -> &Admission {
        &self.machine
    }

    /// The machine, for inputs that come from no watch or request.
    pub fn machine_mut(&mut self) -> &mut Admission {
        &mut self.machine
    }

    /// The names of WorkloadSpreads that may have pods of a target in this namespace, at most `n_max`.
    pub fn rivals(&self, namespace: &str, target: &TargetReference, n_max: usize) -> Vec<Box<str>> {
        let names = self.machine.names();
        let key = || {
            let version = &target.api_version;
            let group = version.split_once('/').map_or("", |(group, _)| group);
            let target = TargetRef {
                group: names.get(group)?,
                kind: names.get(&target.kind)?,
                name: names.get(&target.name)?,
            };
            let namespace = names.get(namespace)?;
            Some(WorkloadKey { namespace, target })
        };
        // What has no symbol is in no fact.
        let rivals = key().into_iter().flat_map(|key| self.machine.rivals(key));
        rivals
            .map(|key| key.name.as_ref().into())
            .take(n_max)
            .collect()
    }

    /// The call of a machine's request; `None` if it was answered or given up.
    pub fn call_of(&self, request: RequestId) -> Option<CallId> {
        self.calls.get(request).map(|pending| pending.call)
    }

    /// The number of calls without an answer.
    pub fn open(&self) -> usize {
        self.calls.len() + self.orphans.len()
    }

    /// The numbers of requests that shared a status write.
    pub fn sharing(&self) -> &Histogram {
        &self.sharing
    }

    // === kinds ===

    /// Sets the kinds that the API server serves.
    pub fn serve(&mut self, served: Served, watches: &mut Watches) {
        self.watch_spreads(&served, watches);
        self.targets.serve(Arc::new(served), watches);
        self.open_custom(watches);
    }

    /// Watches WorkloadSpreads while the API server serves them.
    fn watch_spreads(&self, served: &Served, watches: &mut Watches) {
        let spreads = spreads();
        let is_watched = watches.kinds().any(|(kind, _)| *kind == spreads);
        match served.has(&spreads) {
            true if is_watched => {}
            true => watches.start(spreads, Reading::Known, &Scope::default()),
            false => {
                if is_watched || !self.targets.is_served() {
                    let all = served.versions(GROUP, WorkloadSpread::KIND);
                    let what = match all.is_empty() {
                        true => "is not installed",
                        false => "serves no v1beta1",
                    };
                    let definition = Warning {
                        kind: "CustomResourceDefinition",
                        namespace: "",
                        name: &format!("workloadspreads.{GROUP}"),
                        node: None,
                        action: "watch",
                        error: &what,
                        next: "as soon as it is served; until then pods pass as they are",
                    };
                    definition.log();
                }
                watches.stop(&spreads);
            }
        }
    }

    /// Watches custom kinds once everything else is known: a kind that cannot be read must not delay the others.
    fn open_custom(&mut self, watches: &mut Watches) {
        if !self.targets.is_open() && self.is_whole(watches) {
            self.targets.open(watches);
        }
    }

    /// Passes the kinds of the white list to the machine.
    fn tell_kinds(&mut self, now: Instant) {
        let kinds = self.targets.known_kinds(self.machine.names_mut());
        self.machine.handle(now, Input::KindsListed(kinds));
    }

    // === calls ===

    fn ask(&mut self, now: Instant, review: Review, pending: Pending) {
        let (uid, names) = (Arc::clone(&pending.fresh_uid), self.machine.names_mut());
        match self.reviews.ask(review, uid, names) {
            Ok(mut request) => {
                if let Operation::Create { fact, .. } = &mut request.operation
                    && !pending.is_simulated
                {
                    *fact = None;
                }
                self.calls.put(request.id, pending);
                let input = Input::AdmitAsked(Box::new(request));
                self.machine.handle(now, input);
            }
            Err(decision) => self.replies.push_back((pending.call, *decision)),
        }
    }

    fn answer(&mut self, now: Instant, answer: &Answer) {
        if let Verdict::Deny(Denial::OwnerNotFound(_)) = answer.verdict
            && let Some(pending) = self.calls.get(answer.request)
            && now < pending.since + OWNER_WITHIN
            && let Some(review) = self.reviews.take_back(answer.request)
            && let Some(pending) = self.calls.take(answer.request)
        {
            self.orphans.push_back(Orphan { review, pending });
            return;
        }
        let (contents, names) = (&self.translator.contents, self.machine.names());
        let about = self.reviews.review(answer.request).and_then(log::About::of);
        let decision = self.reviews.answer(answer, contents, names);
        if let (Some(about), Some(decision)) = (about, &decision) {
            about.log(&answer.verdict, decision);
        }
        let pending = self.calls.take(answer.request);
        if let (Some(decision), Some(pending)) = (decision, pending) {
            self.replies.push_back((pending.call, decision));
        }
    }

    /// Asks the machine again about orphans after a change of workloads, and a last time when they have waited long
    /// enough.
    fn ask_again(&mut self, now: Instant) {
        let first = self.orphans.front();
        let is_due = first.is_some_and(|orphan| now >= orphan.pending.since + OWNER_WITHIN);
        if !(is_due || std::mem::take(&mut self.is_news)) {
            return;
        }
        for Orphan { review, pending } in std::mem::take(&mut self.orphans) {
            self.ask(now, review, pending);
        }
    }

    // === facts ===

    fn set(&mut self, now: Instant, object: &KubeObject) {
        for input in self.translator.admission(object, self.machine.names_mut()) {
            self.is_news |= matches!(input, Input::WorkloadSet(_));
            self.machine.handle(now, input);
        }
    }

    fn set_custom(&mut self, now: Instant, kind: &Kind, custom: &Custom) {
        let path = self.targets.replicas_path(kind);
        let (object, scale) = (&custom.object, custom.scale.as_ref());
        let names = self.machine.names_mut();
        let fact = (self.translator).custom(object, scale, path, names);
        self.is_news = true;
        let input = Input::WorkloadSet(Box::new(fact));
        self.machine.handle(now, input);
    }

    /// Sets the ConfigMap of custom kinds; null if it was deleted.
    fn configure(&mut self, now: Instant, config_map: &Value, watches: &mut Watches) {
        if self.targets.configure(config_map, watches) {
            self.tell_kinds(now);
        }
    }

    /// Reads targets again if a new filter needs a number of theirs; no copy of them is kept.
    fn look_again(&mut self, watches: &mut Watches) {
        for [_, group, kind, _] in self.translator.look_again() {
            self.again.extend(watches.kind_of(&group, &kind).cloned());
        }
        let spreads = spreads();
        if watches
            .kinds()
            .any(|(kind, is_listed)| is_listed && *kind == spreads)
        {
            for kind in std::mem::take(&mut self.again) {
                watches.restart(&kind);
            }
        }
    }
}

impl Machine for AdmissionMachine {
    type Effect = Effect;
    type Chain = EffectId;
    type Call = Call;
    type Reply = Decision;

    /// The machine does not retry refused writes itself; the next review causes the next write, and its API server
    /// waits for it.
    fn remembers_refusals(&self) -> bool {
        false
    }

    fn take_in(&mut self, now: Instant, update: Update, watches: &mut Watches) {
        let is_list = |kind: &Kind| *kind == Kind::of::<ConfigMap>();
        match update {
            Update::Set(kind, _, object) => match &*object {
                Object::Custom(custom) if is_list(&kind) => {
                    self.configure(now, &custom.object, watches);
                }
                Object::Custom(custom) => self.set_custom(now, &kind, custom),
                Object::Pod(pod) => self.set(now, &pod.to_wire().into()),
                Object::Known(object) => {
                    self.set(now, object);
                    if let KubeObject::WorkloadSpread(spread) = object {
                        self.targets.name(spread, watches);
                        self.targets.settle(spread, watches);
                        self.look_again(watches);
                    }
                }
            },
            // Admission does not use it.
            Update::Again(..) => {}
            Update::Gone(kind, _) if is_list(&kind) => self.configure(now, &Value::Null, watches),
            Update::Gone(kind, named) => {
                if kind == spreads() {
                    self.targets.forget(&named.namespace, &named.name, watches);
                }
                let (version, names) = (kind.api_version(), self.machine.names_mut());
                let inputs = (self.translator).admission_lost(&version, &kind.kind, &named, names);
                for input in inputs {
                    self.machine.handle(now, input);
                }
            }
            Update::Listed(kind) => {
                self.look_again(watches);
                if self.targets.listed(&kind) {
                    self.tell_kinds(now);
                }
            }
        }
        self.open_custom(watches);
    }

    /// Custom kinds hold back only pods of workloads of these kinds: the right to read one may be missing.
    fn is_whole(&self, watches: &Watches) -> bool {
        self.targets.is_open() || (self.targets.is_served() && watches.is_whole())
    }

    fn asked(&mut self, now: Instant, id: CallId, call: Call) {
        let pending = Pending {
            call: id,
            fresh_uid: call.fresh_uid,
            is_simulated: call.is_simulated,
            since: now,
        };
        self.ask(now, call.review, pending);
    }

    fn gave_up(&mut self, now: Instant, id: CallId) {
        match self.calls.give_up(id) {
            Some(request) => {
                self.machine.handle(now, Input::GivenUp(request));
                self.reviews.forget(request);
            }
            None => self.orphans.retain(|orphan| orphan.pending.call != id),
        }
    }

    fn next_reply(&mut self) -> Option<(CallId, Decision)> {
        self.replies.pop_front()
    }

    fn tick(&mut self, now: Instant) {
        self.machine.handle(now, Input::Tick);
        self.ask_again(now);
    }

    fn poll_effect(&mut self) -> Option<Effect> {
        let mut patcher = Patcher {
            contents: &self.translator.contents,
            reviews: Some(&self.reviews),
            pods: &NoPods,
        };
        self.machine.poll_effect(&mut patcher)
    }

    fn begin(&mut self, at: Moment, effect: Effect, _: bool) -> Begun<EffectId> {
        if let Effect::Answer(answer) = &effect {
            self.answer(at.now, answer);
            return Begun::Nothing;
        }
        let context = Context {
            names: self.machine.names(),
            now: at.wall,
            hostname: "",
        };
        let Some((id, request)) = of_admission(&effect, &context) else {
            return Begun::Nothing;
        };
        if matches!(effect, Effect::WriteStatus { .. }) {
            self.sharing.observe(self.machine.sharing(id) as u64);
        }
        Begun::Chain {
            about: format!("{}/{}", request.namespace, request.name).into(),
            chain: id,
            request,
        }
    }

    fn answered(&mut self, at: Moment, chain: EffectId, answered: &Answered) -> Next<EffectId> {
        let Answered {
            request, answer, ..
        } = answered;
        let (translator, names) = (&mut self.translator, self.machine.names_mut());
        let outcome = admission_outcome(request, answer, translator, names);
        let next = match outcome {
            Outcome::Failed => Some("none: the reviews that wait for it are refused"),
            Outcome::Lost | Outcome::Unsent => Some("tried again until the reviews are too old"),
            _ => None,
        };
        if let Some(next) = next {
            let error = text_of(answer);
            Warning::of(request, "write status", &error, next).log();
        }
        self.machine.handle(at.now, Input::Outcome(chain, outcome));
        Next::Done
    }

    fn next_wake(&self) -> Option<Instant> {
        let orphan = self.orphans.front();
        let orphan = orphan.map(|orphan| orphan.pending.since + OWNER_WITHIN);
        [orphan, self.machine.next_wake()]
            .into_iter()
            .flatten()
            .min()
    }
}
