//! The machine of admission with its words on the wire: reviews in, decisions out.
//!
//! Reading order: [`Call`] (what is asked), this file, `calls` (which calls the machine has), [`custom`] (kinds that are
//! known by name alone).
//!
//! Source: spec/workloadspread §4.

mod calls;
pub mod custom;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, ReplicationController, Service};
use serde_json::Value;
use strew_api::read::KubeObject;
use strew_api::request::Answer as Response;
use strew_api::workloadspread::Translator;
use strew_api::workloadspread::annotations::{self, ANY_KIND};
use strew_api::workloadspread::desk::{Desk, NoPods, Patcher};
use strew_api::workloadspread::facts::white_list::{CONFIG_MAP, KEY, WhiteList};
use strew_api::workloadspread::request::{Context, admission_outcome, of_admission};
use strew_api::workloadspread::review::{Decision, Review};
use strew_api::workloadspread::v1beta1::WorkloadSpread;
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_scheduler::Profile;
use strew_scheduler::metrics::{Buckets, Histogram};
use strew_workloadspread::Admission;
use strew_workloadspread::admission::{
    Answer, Denial, Effect, EffectId, Input, Limits, Outcome, Verdict,
};

use crate::driver::Moment;
use crate::machine::{Begun, CallId, Machine, Next};
use crate::outbox::Answered;
use crate::watch::{Custom, Kind, Object, Reading, Scope, Served, Update, Watches};
pub use calls::Call;
use calls::{Calls, OnePod, Pending};
use custom::{Change, Customs};
pub use custom::{known, spreads};

/// How long requests are sent again: the machine gives up itself after ten seconds, as the API server does with us.
pub const PATIENCE: Span = Span::from_secs(9);

/// How many requests share a status write.
pub const SHARING_BUCKETS: Buckets = Buckets::ones(1.0, 2.0, 11);

/// Finished pods hold nothing: the API server leaves them out.
const UNFINISHED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// A pod whose owner no watch has told of yet waits so long for the news: at a rollout the first pod is seldom younger
/// than its ReplicaSet. Whoever asked would try again, but not without an event that frightens people.
const OWNER_WITHIN: Span = Span::from_secs(1);

/// A call whose pod's owner is waited for.
struct Orphan {
    review: Review,
    pending: Pending,
}

/// The machine, what is known beside it, and the calls that wait.
pub struct AdmissionMachine {
    machine: Admission,
    translator: Translator,
    desk: Desk,
    calls: Calls,
    orphans: VecDeque<Orphan>,
    /// Answers that the world has not taken yet.
    replies: VecDeque<(CallId, Decision)>,
    /// Whether a workload was told of since the orphans were looked at.
    is_news: bool,
    customs: Customs,
    /// Kinds of the list of custom kinds whose objects are known.
    listed: Vec<Kind>,
    /// Kinds that are to be told again once all WorkloadSpreads are known: at the start each may ask for it.
    again: BTreeSet<Kind>,
    sharing: Histogram,
}

fn text_of(answer: &Response) -> String {
    match answer.code() {
        Some(code) => format!("answered {code}: {}", answer.words()),
        None => answer.words().to_string(),
    }
}

/// A watch for each kind that is always there; `namespace`: of the ConfigMap that names custom kinds.
pub fn watches(namespace: &str) -> Watches {
    let mut watches = Watches::default();
    watches.start_all([
        Kind::of::<Namespace>(),
        Kind::of::<Node>(),
        Kind::of::<Service>(),
        Kind::of::<ReplicationController>(),
        Kind::of::<Deployment>(),
        Kind::of::<ReplicaSet>(),
        Kind::of::<StatefulSet>(),
        Kind::of::<Job>(),
    ]);
    let unfinished = Scope {
        fields: Some(UNFINISHED.to_owned()),
        ..Scope::default()
    };
    watches.start(Kind::of::<Pod>(), Reading::Known, &unfinished);
    let list = Scope {
        namespace: Some(namespace.to_owned()),
        fields: Some(format!("metadata.name={CONFIG_MAP}")),
    };
    let reading = Reading::Custom { has_scale: false };
    watches.start(Kind::of::<ConfigMap>(), reading, &list);
    watches
}

impl AdmissionMachine {
    /// A machine that knows nothing yet. `seed` draws the pauses between attempts.
    pub fn new(names: Interner, profiles: Vec<Profile>, limits: Limits, seed: u64) -> Self {
        Self {
            machine: Admission::new(names, profiles, limits, seed),
            translator: Translator::default(),
            desk: Desk::default(),
            calls: Calls::default(),
            orphans: VecDeque::new(),
            replies: VecDeque::new(),
            is_news: false,
            customs: Customs::default(),
            listed: Vec::new(),
            again: BTreeSet::new(),
            sharing: Histogram::new(SHARING_BUCKETS),
        }
    }

    /// The machine itself.
    pub fn machine(&self) -> &Admission {
        &self.machine
    }

    /// How many calls are not answered.
    pub fn open(&self) -> usize {
        self.calls.len() + self.orphans.len()
    }

    /// How many requests shared each status write.
    pub fn sharing(&self) -> &Histogram {
        &self.sharing
    }

    // === kinds ===

    /// The API server has these kinds now.
    pub fn serve(&mut self, served: Served, watches: &mut Watches) {
        let change = self.customs.served(served);
        self.carry_out_change(change, watches);
        self.open_custom(watches);
    }

    /// Watches kinds beside Kruise's once everything else is known: one that cannot be read must not keep others waiting.
    fn open_custom(&mut self, watches: &mut Watches) {
        if !self.customs.is_open() && self.is_whole(watches) {
            let change = self.customs.open();
            self.carry_out_change(change, watches);
        }
    }

    fn carry_out_change(&mut self, change: Change, watches: &mut Watches) {
        for kind in &change.stop {
            watches.stop(kind);
            self.listed.retain(|listed| listed != kind);
        }
        for (kind, reading) in change.start {
            tracing::info!("{kind} are watched in {}", kind.version);
            watches.start(kind, reading, &Scope::default());
        }
    }

    /// Tells the machine the kinds of the list. One whose objects are not known (nobody may read them, say) is none of
    /// them yet: each of its pods would be refused for an owner that was not found.
    fn tell_kinds(&mut self, now: Instant) {
        let mut kinds = self.customs.list.kinds(self.machine.names_mut()).into_vec();
        let names = self.machine.names();
        let is_listed = |group: &str, kind: &str| {
            let mut listed = self.listed.iter();
            listed.any(|listed| &*listed.group == group && &*listed.kind == kind)
        };
        kinds.retain(|kind| is_listed(names.text(kind.group), names.text(kind.kind)));
        self.machine
            .handle(now, Input::KindsListed(kinds.into_boxed_slice()));
    }

    // === calls ===

    fn ask(&mut self, now: Instant, review: Review, pod: Option<&Value>, pending: Pending) {
        let (uid, names) = (Arc::clone(&pending.fresh_uid), self.machine.names_mut());
        match self.desk.ask(review, uid, &OnePod(pod), names) {
            Ok(request) => {
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
            && let Some(review) = self.desk.take_back(answer.request)
            && let Some(pending) = self.calls.take(answer.request)
        {
            self.orphans.push_back(Orphan { review, pending });
            return;
        }
        let (forms, names) = (&self.translator.forms, self.machine.names());
        let decision = self.desk.answer(answer, forms, names);
        let pending = self.calls.take(answer.request);
        if let (Some(decision), Some(pending)) = (decision, pending) {
            self.replies.push_back((pending.call, decision));
        }
    }

    /// Asks about orphans anew, if there is news, or for the last time when they have waited long enough.
    fn ask_again(&mut self, now: Instant) {
        let first = self.orphans.front();
        let is_due = first.is_some_and(|orphan| now >= orphan.pending.since + OWNER_WITHIN);
        if !(is_due || std::mem::take(&mut self.is_news)) {
            return;
        }
        for Orphan { review, pending } in std::mem::take(&mut self.orphans) {
            self.ask(now, review, None, pending);
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
        let [group, version, of] = [&kind.group, &kind.version, &kind.kind];
        let path = self.customs.list.replicas_path(group, version, of);
        let path = path.map(str::to_owned);
        let (object, scale) = (&custom.object, custom.scale.as_ref());
        let names = self.machine.names_mut();
        let fact = (self.translator).custom(object, scale, path.as_deref(), names);
        self.is_news = true;
        let input = Input::WorkloadSet(Box::new(fact));
        self.machine.handle(now, input);
    }

    /// The list of custom kinds, or that there is none.
    fn set_list(&mut self, now: Instant, map: Option<&Value>, watches: &mut Watches) {
        let text = map.and_then(|map| map["data"][KEY].as_str());
        let list = match text.map(WhiteList::read) {
            None => WhiteList::default(),
            Some(Ok(list)) => list,
            Some(Err(error)) => {
                tracing::warn!("ConfigMap {CONFIG_MAP}: {error}; the list is as it was");
                return;
            }
        };
        let change = self.customs.listed(list);
        self.carry_out_change(change, watches);
        self.tell_kinds(now);
    }

    /// A WorkloadSpread that makes the kind of its target known, or none.
    fn note_kind(&mut self, spread: &WorkloadSpread, watches: &mut Watches) {
        let metadata = &spread.metadata;
        let target = spread.spec.as_ref();
        let target = target.and_then(|spec| spec.target_reference.as_ref());
        let target = target.filter(|_| annotations::is_true(metadata, ANY_KIND));
        let kind = target.map(|target| {
            let version = target.api_version.split_once('/');
            let (group, version) = version.unwrap_or(("", &target.api_version));
            [group, version, &target.kind].map(str::to_owned)
        });
        let name = [&metadata.namespace, &metadata.name];
        let name = name.map(|text| text.clone().unwrap_or_default());
        let change = self.customs.asked(name, kind);
        self.carry_out_change(change, watches);
    }

    /// Has targets told again of which a new filter asks a number: no copy of them is kept.
    fn look_again(&mut self, watches: &mut Watches) {
        for [_, group, kind, _] in self.translator.look_again() {
            let custom = self.customs.watched(&group, &kind);
            let custom = custom.map(|(kind, _)| kind.clone());
            self.again.extend(custom.or_else(|| known(&group, &kind)));
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

    fn take_in(&mut self, now: Instant, update: Update, watches: &mut Watches) {
        let is_list = |kind: &Kind| *kind == Kind::of::<ConfigMap>();
        match update {
            Update::Set(kind, _, object) => match &*object {
                Object::Custom(custom) if is_list(&kind) => {
                    self.set_list(now, Some(&custom.object), watches);
                }
                Object::Custom(custom) => self.set_custom(now, &kind, custom),
                Object::Pod(pod) => self.set(now, &pod.to_wire().into()),
                Object::Known(object) => {
                    self.set(now, object);
                    if let KubeObject::WorkloadSpread(spread) = object {
                        self.note_kind(spread, watches);
                        self.look_again(watches);
                    }
                }
            },
            // Nobody asks for it here.
            Update::Again(..) => {}
            Update::Gone(kind, _) if is_list(&kind) => self.set_list(now, None, watches),
            Update::Gone(kind, named) => {
                if kind == spreads() {
                    let name = [&named.namespace, &named.name].map(|text| text.to_string());
                    let change = self.customs.asked(name, None);
                    self.carry_out_change(change, watches);
                }
                let (version, names) = (kind.api_version(), self.machine.names_mut());
                let inputs = (self.translator).admission_lost(&version, &kind.kind, &named, names);
                for input in inputs {
                    self.machine.handle(now, input);
                }
            }
            Update::Listed(kind) => {
                self.look_again(watches);
                let reading = self.customs.watched(&kind.group, &kind.kind);
                if matches!(reading, Some((_, Reading::Custom { .. }))) {
                    self.listed.push(kind);
                    self.tell_kinds(now);
                }
            }
        }
        self.open_custom(watches);
    }

    /// Custom kinds hold back pods of workloads of these kinds, and no others: one may be forbidden.
    fn is_whole(&self, watches: &Watches) -> bool {
        self.customs.is_open() || (self.customs.is_known() && watches.is_whole())
    }

    fn asked(&mut self, now: Instant, id: CallId, call: Call) {
        let pending = Pending {
            call: id,
            fresh_uid: call.fresh_uid,
            since: now,
        };
        self.ask(now, call.review, call.pod.as_ref(), pending);
    }

    fn gave_up(&mut self, now: Instant, id: CallId) {
        match self.calls.give_up(id) {
            Some(request) => {
                self.machine.handle(now, Input::GivenUp(request));
                self.desk.forget(request);
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
            forms: &self.translator.forms,
            desk: Some(&self.desk),
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
        if matches!(outcome, Outcome::Failed | Outcome::Lost) {
            let what = format!("{}/{}", request.namespace, request.name);
            tracing::warn!("the status of WorkloadSpread {what}: {}", text_of(answer));
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
