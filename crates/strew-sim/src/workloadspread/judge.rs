//! What must hold of each answer of the webhook, and of what it lets in.
//!
//! Source: spec/workloadspread §8, I1, I2, I5, I6.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_api::workloadspread::marker;
use strew_controllers::object::{Name, Object, Pod, WorkloadSpread};
use strew_workloadspread::admission::{Answer, Verdict};
use strew_workloadspread::invariants::{
    Broken, earlier_ones_are_full, marker_is_sound, replacement_goes_last,
};
use strew_workloadspread::{Choice, Ground, MARKER_ANNOTATION, Marked, choose};

use super::replica::{Answered, Replica};
use super::webhook::Asked;
use crate::auditor::{Rule, Written};
use crate::server::Server;

/// A pod that the webhook has let into a subset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The WorkloadSpread.
    spread: Name,
    subset: Arc<str>,
    revision: Arc<str>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// Rule, subject and text.
    found: Vec<(Rule, String, String)>,
    /// Pods that were let in and count, by uid.
    injected: BTreeMap<Arc<str>, Place>,
    /// Pods whose end somebody has asked for: their places were given back, whatever became of it.
    asked: BTreeSet<Arc<str>>,
    /// The largest limit that each subset ever had; none: it is not judged.
    limits: BTreeMap<(Name, Arc<str>), Option<i64>>,
    /// Choices that were judged.
    pub(crate) n_judged: u64,
}

impl Judge {
    /// A judge of a world that is there already.
    pub(crate) fn new(server: &Server) -> Self {
        let mut judge = Self::default();
        for spread in server.tables().of::<WorkloadSpread>().iter() {
            judge.note_limits(spread);
        }
        judge
    }

    /// What was found since the last call.
    pub(crate) fn take(&mut self) -> Vec<(Rule, String, String)> {
        std::mem::take(&mut self.found)
    }

    fn blame(&mut self, rule: Rule, actor: impl ToString, broken: &Broken) {
        self.found
            .push((rule, actor.to_string(), broken.to_string()));
    }

    /// The end of a pod was asked for, and it may be in the ledger, whatever was answered.
    pub(super) fn unanswered(&mut self, asked: Asked<'_>, server: &Server) {
        let uid = match asked {
            Asked::Create(_) => None,
            Asked::Delete(pod) => Some(Arc::clone(&pod.meta.uid)),
            Asked::Evict(name) => {
                let pod = server.tables().get::<Pod>(name);
                pod.map(|pod| Arc::clone(&pod.meta.uid))
            }
        };
        self.asked.extend(uid);
    }

    /// The webhook has answered. `is_alone`: no other call waited for the same write.
    pub(super) fn answered(
        &mut self,
        asked: Asked<'_>,
        answered: &Answered,
        replica: &mut Replica,
        server: &Server,
        is_alone: bool,
    ) {
        let Some(answer) = &answered.answer else {
            return;
        };
        match &answer.verdict {
            Verdict::Inject(injection) => {
                if let Some(key) = &answer.spread
                    && let Err(broken) =
                        marker_is_sound(&injection.spec, &key.name, &injection.marker)
                {
                    self.blame(Rule::SpreadChoice, &key.name, &broken);
                }
            }
            Verdict::Counted => {
                self.unanswered(asked, server);
            }
            _ => {}
        }
        if let Some(choice) = answer.choice.as_ref().filter(|_| is_alone) {
            self.choice(answer, choice, replica, server);
        }
    }

    /// I2 and I6 by the rows that the choice was made from: those that its write was built upon, or those that are
    /// stored if the replica knew them.
    fn choice(&mut self, answer: &Answer, choice: &Choice, replica: &mut Replica, server: &Server) {
        let (Some(key), Some(revision)) = (&answer.spread, &answer.revision) else {
            return;
        };
        let namespace = replica.machine.names().text(key.namespace);
        let name = Name::new(namespace, Arc::clone(&key.name));
        let stored = server.tables().get::<WorkloadSpread>(&name);
        let known = replica.machine.spreads().get(key).map(|ws| ws.version);
        let base = match (replica.base.take(), stored) {
            (Some(base), _) => base,
            (None, Some(stored)) if known == Some(stored.meta.version) => Arc::clone(stored),
            _ => return,
        };
        let Some(strew_api::read::KubeObject::WorkloadSpread(wire)) =
            Object::WorkloadSpread(base).to_kube()
        else {
            return;
        };
        let names = replica.machine.names_mut();
        let ws = replica.translator.spread(&wire, names);
        // What percentages are of, and ordinals, the rows do not tell.
        let by_ordinal = matches!(choice.ground(), Some(Ground::Ordinal { .. }))
            || wire
                .spec
                .as_ref()
                .and_then(|s| s.target_reference.as_ref())
                .is_some_and(|t| t.kind == "StatefulSet");
        if by_ordinal || ws.spec.has_percentages() || ws.spec.keeps_no_ledger() {
            return;
        }
        let rows = match ws.status.rows(revision) {
            [] => choose::first_rows(&ws.spec, 0),
            rows => rows.to_vec(),
        };
        self.n_judged += 1;
        let full = earlier_ones_are_full(&ws.status, &rows, choice);
        let last = replacement_goes_last(&ws.status, &rows, choice);
        for broken in [full, last].into_iter().filter_map(Result::err) {
            self.blame(Rule::SpreadChoice, &name, &broken);
        }
    }

    // === I1 ===

    fn note_limits(&mut self, spread: &WorkloadSpread) {
        let kind = spread.spec.target_reference.as_ref().map(|t| &*t.kind);
        for subset in &spread.spec.subsets {
            let limit = match &subset.max_replicas {
                // A finished pod may be counted out twice for a moment; ordinals know no ledger.
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

    /// The store took a write.
    pub(crate) fn written(&mut self, written: &Written) {
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

    fn born(&mut self, pod: &Pod) {
        let Marked::As(marked) = marker::read(pod.meta.annotation(MARKER_ANNOTATION)) else {
            return;
        };
        let hash = pod.meta.label("pod-template-hash").filter(|_| {
            let owner = pod.meta.controller();
            owner.is_some_and(|owner| &*owner.kind == "ReplicaSet")
        });
        let namespace = Arc::clone(&pod.meta.name.namespace);
        let place = Place {
            spread: Name::new(namespace, marked.workload_spread),
            subset: marked.subset,
            revision: hash.unwrap_or("versionIgnored").into(),
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
        if pods > max {
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
