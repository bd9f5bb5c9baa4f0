//! Checks invariants of each answer of the webhook, and of the pods that it admits.
//!
//! Source: spec/workloadspread §8, I1, I2, I5, I6.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Object, Pod, WorkloadSpread};
use strew_apiserver::server::{Change, Server};
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;
use strew_runtime::CallId;
use strew_runtime::admission::AdmissionMachine;
use strew_wire::workloadspread::annotations::{LIMIT_SCOPE, TARGET_SELECTOR};
use strew_wire::workloadspread::{Translator, marker};
use strew_workloadspread::admission::{Answer, Basis, Verdict};
use strew_workloadspread::invariants::{
    Broken, earlier_ones_are_full, marker_is_sound, replacement_goes_last,
};
use strew_workloadspread::revision::VERSION_IGNORED;
use strew_workloadspread::{
    Choice, Ground, MARKER_ANNOTATION, Marked, Row, UNLIMITED, WsKey, choose,
};

use super::calling::Asked;
use crate::auditor::Rule;

/// The number of WorkloadSpread versions kept; an answer is based on one of the last.
const STORED_MAX: usize = 1_000;

/// The subset of a pod that the webhook has admitted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The WorkloadSpread.
    spread: Name,
    subset: Arc<str>,
    revision: Arc<str>,
}

/// A ledger while the answers of one write are judged.
struct Ledger {
    base: Arc<WorkloadSpread>,
    /// The WorkloadSpread with the answers so far.
    ws: Box<strew_workloadspread::WorkloadSpread>,
    by_ordinal: bool,
    /// True if it equals the ledger that the next answer was decided on.
    is_known: bool,
}

impl Ledger {
    fn rows(&self, revision: &Arc<str>) -> Vec<Row> {
        match self.ws.status.rows(revision) {
            [] => choose::first_rows(&self.ws.spec, 0),
            rows => rows.to_vec(),
        }
    }

    /// Adds an answer.
    fn take_in(&mut self, answer: &Answer) {
        // The rows alone do not determine what a deletion gives back.
        self.is_known &= !matches!(answer.verdict, Verdict::Counted);
        let (Some(revision), Some(choice)) = (&answer.revision, &answer.choice) else {
            return;
        };
        let Some(place) = choice.place else {
            return;
        };
        let mut rows = self.rows(revision);
        let takes = match choice.ground() {
            Some(Ground::Known) | None => false,
            Some(Ground::BelowMinimum { .. }) => true,
            Some(_) => rows.get(place).is_some_and(|row| row.missing != UNLIMITED),
        };
        let (Some(row), true) = (rows.get_mut(place), takes) else {
            return;
        };
        row.missing -= i32::from(row.missing > 0);
        row.creating
            .insert(format!("answer-{}", answer.request.0).into(), Instant(0));
        let status = Arc::make_mut(&mut self.ws.status);
        status.versioned.insert(Arc::clone(revision), rows);
    }
}

/// What was seen so far.
#[derive(Default)]
pub(crate) struct Judge {
    /// Rule, subject and text of each violation.
    found: Vec<(Rule, String, String)>,
    /// Admitted pods that count, by uid.
    injected: BTreeMap<Arc<str>, Place>,
    /// Pods whose deletion was requested: their places were given back, whatever the result.
    asked: BTreeSet<Arc<str>>,
    /// The number of adopted pods with a requested deletion. The controller writes the marker of an adopted pod first
    /// and the status later; a deletion in between gives back a place that the pod never took. If the controller
    /// crashes just then, one more pod gets in, as with Kruise.
    given: BTreeMap<Place, i64>,
    /// The largest limit that each subset ever had; `None`: the subset is not judged.
    limits: BTreeMap<(Name, Arc<str>), Option<i64>>,
    /// Per replica and WorkloadSpread, the ledger of its last write, while its answers are judged.
    ledgers: BTreeMap<(u64, WsKey), Ledger>,
    /// WorkloadSpreads whose limits hold over all revisions, or once did.
    whole: BTreeSet<Name>,
    /// Recently stored WorkloadSpreads, by version.
    stored: BTreeMap<u64, Arc<WorkloadSpread>>,
    /// Calls whose pod's deletion went into a ledger.
    counted: BTreeSet<CallId>,
    /// The number of choices judged.
    pub(crate) n_judged: u64,
}

impl Judge {
    /// A judge of a cluster that exists already.
    pub(crate) fn new(server: &Server) -> Self {
        let mut judge = Self::default();
        for spread in server.tables().of::<WorkloadSpread>().iter() {
            judge.note_limits(spread);
        }
        judge
    }

    /// The violations found since the last call.
    pub(crate) fn take(&mut self) -> Vec<(Rule, String, String)> {
        std::mem::take(&mut self.found)
    }

    fn blame(&mut self, rule: Rule, actor: impl ToString, broken: &Broken) {
        self.found
            .push((rule, actor.to_string(), broken.to_string()));
    }

    /// A pod's deletion was requested, and is, or may be, in the ledger.
    pub(super) fn end_asked(&mut self, asked: Asked<'_>) {
        let Asked::Delete(pod) = asked else {
            return;
        };
        let uid = Arc::clone(&pod.meta.uid);
        if let Some(place) = self.place(pod)
            && !self.injected.contains_key(&uid)
            && self.asked.insert(Arc::clone(&uid))
        {
            *self.given.entry(place).or_default() += 1;
        }
        self.asked.insert(uid);
    }

    /// Records the stored versions of WorkloadSpreads.
    pub(super) fn note_stored(&mut self, tables: &Tables) {
        for spread in tables.of::<WorkloadSpread>().iter() {
            let stored = self.stored.entry(spread.meta.version);
            stored.or_insert_with(|| Arc::clone(spread));
        }
        while self.stored.len() > STORED_MAX {
            self.stored.pop_first();
        }
    }

    /// True if the deletion of the call's pod went into a ledger.
    pub(super) fn take_counted(&mut self, id: CallId) -> bool {
        self.counted.remove(&id)
    }

    /// Judges an answer of a replica, before the replica handles anything else.
    pub(super) fn answered(
        &mut self,
        replica: u64,
        answer: &Answer,
        machine: &mut AdmissionMachine,
    ) {
        if matches!(answer.verdict, Verdict::Counted) {
            self.counted.extend(machine.call_of(answer.request));
        }
        let Some(key) = &answer.spread else {
            return;
        };
        // A choice whose write failed, or got no answer, was not sent as an answer.
        if matches!(answer.verdict, Verdict::Deny(_)) {
            return;
        }
        if let Verdict::Inject(injection) = &answer.verdict
            && let Err(broken) = marker_is_sound(&injection.spec, &key.name, &injection.marker)
        {
            self.blame(Rule::SpreadChoice, &key.name, &broken);
        }
        let Some(basis) = answer.basis else {
            return;
        };
        let of = (replica, key.clone());
        let Some(mut ledger) = self.ledger(&of, basis, machine) else {
            return;
        };
        if let Some(choice) = &answer.choice {
            self.choice(answer, choice, &ledger);
        }
        ledger.take_in(answer);
        if basis.is_written {
            self.ledgers.insert(of, ledger);
        }
    }

    /// The ledger that an answer was decided on: that of its write, with the earlier answers of the same write; or the
    /// one that the replica knew. `None` if it cannot be reconstructed.
    fn ledger(
        &mut self,
        of: &(u64, WsKey),
        basis: Basis,
        machine: &mut AdmissionMachine,
    ) -> Option<Ledger> {
        if basis.is_written
            && let Some(last) = self.ledgers.get(of)
            && last.base.meta.version == basis.version
        {
            return match last.is_known {
                true => self.ledgers.remove(of),
                false => None,
            };
        }
        let base = Arc::clone(self.stored.get(&basis.version)?);
        let object = Object::WorkloadSpread(Arc::clone(&base)).to_kube();
        let KubeObject::WorkloadSpread(wire) = object else {
            return None;
        };
        let target = wire.spec.as_ref()?.target_reference.as_ref();
        let by_ordinal = target.is_some_and(|target| target.kind == "StatefulSet");
        // A new translator, since the replica's keeps what it knows now.
        let ws = Translator::default().spread(&wire, machine.machine_mut().names_mut());
        Some(Ledger {
            base,
            ws: Box::new(ws),
            by_ordinal,
            is_known: true,
        })
    }

    /// Checks I2 and I6.
    fn choice(&mut self, answer: &Answer, choice: &Choice, ledger: &Ledger) {
        let (Some(revision), ws) = (&answer.revision, &ledger.ws) else {
            return;
        };
        // The rows do not show the total of percentages, or ordinals.
        let by_ordinal =
            ledger.by_ordinal || matches!(choice.ground(), Some(Ground::Ordinal { .. }));
        if by_ordinal || ws.spec.has_percentages() || ws.spec.keeps_no_ledger() {
            return;
        }
        let rows = ledger.rows(revision);
        self.n_judged += 1;
        let full = earlier_ones_are_full(&ws.status, &rows, choice);
        let last = replacement_goes_last(&ws.status, &rows, choice);
        for broken in [full, last].into_iter().filter_map(Result::err) {
            self.blame(Rule::SpreadChoice, &ledger.base.meta.name, &broken);
        }
    }

    // === I1 ===

    fn note_limits(&mut self, spread: &WorkloadSpread) {
        let takes_others = spread.meta.annotation(TARGET_SELECTOR).is_some();
        if takes_others || spread.meta.annotation(LIMIT_SCOPE) == Some("workload") {
            self.whole.insert(spread.meta.name.clone());
        }
        let kind = spread.spec.target_reference.as_ref().map(|t| &*t.kind);
        for subset in &spread.spec.subsets {
            let limit = match &subset.max_replicas {
                // A finished pod of a Job may be counted out twice for a moment; ordinals have no ledger.
                Some(IntOrString::Int(max)) if !matches!(kind, Some("Job" | "StatefulSet")) => {
                    Some(i64::from(*max))
                }
                _ => None,
            };
            let key = (spread.meta.name.clone(), Arc::from(subset.name.as_str()));
            let known = self.limits.entry(key).or_insert(limit);
            *known = match (*known, limit) {
                (Some(known), Some(limit)) => Some(known.max(limit)),
                _ => None,
            };
        }
    }

    /// Takes in a write of the store.
    pub(crate) fn written(&mut self, written: &Change) {
        match (&written.old, &written.new) {
            (_, Some(Object::WorkloadSpread(spread))) => self.note_limits(spread),
            (None, Some(Object::Pod(pod))) => self.born(pod),
            (Some(Object::Pod(_)), Some(Object::Pod(pod))) if pod.is_active() => {}
            (Some(Object::Pod(pod)), _) => {
                self.injected.remove(&pod.meta.uid);
                if written.new.is_none() {
                    self.asked.remove(&pod.meta.uid);
                }
            }
            _ => {}
        }
    }

    /// The place of a pod by its marker; `None` if its subset has no limit of its own.
    fn place(&self, pod: &Pod) -> Option<Place> {
        let mut place = place_of(pod)?;
        if self.whole.contains(&place.spread) {
            place.revision = VERSION_IGNORED.into();
        }
        Some(place)
    }

    fn born(&mut self, pod: &Pod) {
        let Some(place) = self.place(pod) else {
            return;
        };
        self.injected
            .insert(Arc::clone(&pod.meta.uid), place.clone());
        let of_subset = (place.spread.clone(), Arc::clone(&place.subset));
        let Some(Some(max)) = self.limits.get(&of_subset).copied() else {
            return;
        };
        let counts =
            |(uid, other): &(&Arc<str>, &Place)| **other == place && !self.asked.contains(*uid);
        let pods = self.injected.iter().filter(counts).count() as i64;
        if pods > max + self.given.get(&place).copied().unwrap_or(0) {
            let (revision, subset) = (place.revision, place.subset);
            let broken = Broken::OverLimit {
                revision,
                subset,
                pods,
                max,
            };
            self.blame(Rule::SpreadLimit, &place.spread, &broken);
        }
    }
}

/// The subset in a pod's marker.
fn place_of(pod: &Pod) -> Option<Place> {
    let Marked::As(marked) = marker::read(pod.meta.annotation(MARKER_ANNOTATION)) else {
        return None;
    };
    let hash = pod.meta.label("pod-template-hash").filter(|_| {
        let owner = pod.meta.controller();
        owner.is_some_and(|owner| &*owner.kind == "ReplicaSet")
    });
    let namespace = Arc::clone(&pod.meta.name.namespace);
    Some(Place {
        spread: Name::new(namespace, marked.workload_spread),
        subset: marked.subset,
        revision: hash.unwrap_or(VERSION_IGNORED).into(),
    })
}
