//! A controller with the objects that it writes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_cluster::NodeAffinity;
use strew_model::{Instant, Labels, Span, well_known};
use strew_workloadspread::controller::{Effect, EventKind, Input, Limits, Outcome};
use strew_workloadspread::{
    Marked, NoPatches, Phase, Pod, PodPatcher, Row, SpreadController, Status, WorkloadFact,
    WorkloadSpread,
};

use crate::world::*;

/// The time at which all tests begin.
pub(crate) const NOW: u64 = 10_000;

pub(crate) fn pod(owner: &WorkloadFact, name: &str, subset: Option<&str>) -> Pod {
    Pod {
        uid: format!("uid-{name}").into(),
        name: name.into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owners: [owner.uid.clone()].into(),
        controller: Some(controller(owner)),
        phase: Phase::Running,
        deleting: false,
        node: Some(well_known::EMPTY),
        created: secs(5_000),
        unschedulable: false,
        gated: false,
        ready_since: Some(secs(6_000)),
        restarts: 0,
        marker: subset.map_or(Marked::No, marked),
        cost: None,
        node_affinity: NodeAffinity::default(),
        tolerations: Box::default(),
    }
}

/// A pod for which a scheduler found no node, created this number of seconds ago.
pub(crate) fn pending(owner: &WorkloadFact, name: &str, subset: &str, age: u64) -> Pod {
    Pod {
        phase: Phase::Pending,
        node: None,
        unschedulable: true,
        gated: false,
        ready_since: None,
        created: secs(NOW - age),
        ..pod(owner, name, Some(subset))
    }
}

pub(crate) struct Desk {
    pub(crate) machine: SpreadController,
    pub(crate) ws: WorkloadSpread,
    pub(crate) pods: BTreeMap<Arc<str>, Pod>,
    pub(crate) now: Instant,
    pub(crate) events: Vec<(EventKind, String)>,
    pub(crate) writes: usize,
    pub(crate) deleted: Vec<String>,
    pub(crate) patches_of: Vec<u64>,
    /// Outcomes other than Ok, for the next effects.
    pub(crate) faults: Vec<Outcome>,
}

impl Desk {
    /// Without pauses after writes.
    pub(crate) fn new(words: &Words, ws: WorkloadSpread, workloads: &[WorkloadFact]) -> Self {
        let limits = Limits {
            pause: Span::default(),
            ..Limits::production()
        };
        Self::with(limits, words, ws, workloads)
    }

    pub(crate) fn with(
        limits: Limits,
        words: &Words,
        ws: WorkloadSpread,
        workloads: &[WorkloadFact],
    ) -> Self {
        let mut desk = Self {
            machine: SpreadController::new(words.names.clone(), limits),
            ws,
            pods: BTreeMap::new(),
            now: secs(NOW),
            events: Vec::new(),
            writes: 0,
            deleted: Vec::new(),
            patches_of: Vec::new(),
            faults: Vec::new(),
        };
        for fact in workloads {
            desk.tell(Input::WorkloadSet(Box::new(fact.clone())));
        }
        desk.tell(Input::SpreadSet(Box::new(desk.ws.clone())));
        desk
    }

    pub(crate) fn tell(&mut self, input: Input) {
        self.machine.handle(self.now, input);
    }

    pub(crate) fn add(&mut self, pod: Pod) {
        self.pods.insert(pod.uid.clone(), pod.clone());
        self.tell(Input::PodSet(Box::new(pod)));
    }

    pub(crate) fn lose(&mut self, name: &str) {
        let uid = self.pods.values().find(|p| &*p.name == name);
        let uid = uid.expect("the pod is there").uid.clone();
        self.pods.remove(&uid);
        self.tell(Input::PodGone(uid));
    }

    pub(crate) fn change(&mut self, change: impl FnOnce(&mut WorkloadSpread)) {
        change(&mut self.ws);
        self.ws.version += 1;
        self.tell(Input::SpreadSet(Box::new(self.ws.clone())));
    }

    /// Carries out all present effects.
    pub(crate) fn run(&mut self) {
        self.run_with(&mut NoPatches);
    }

    pub(crate) fn run_with(&mut self, patcher: &mut dyn PodPatcher) {
        for _ in 0..100_000 {
            let Some(effect) = self.machine.poll_effect(patcher) else {
                return;
            };
            self.carry_out(effect);
        }
        panic!("the controller does not come to rest");
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now = secs(self.now.secs() + seconds);
        self.tell(Input::Tick);
        self.run();
    }

    fn carry_out(&mut self, effect: Effect) {
        let id = match &effect {
            Effect::Adopt { id, .. }
            | Effect::SetCost { id, .. }
            | Effect::WriteStatus { id, .. }
            | Effect::DeletePod { id, .. } => *id,
            Effect::Event(event) => {
                self.events.push((event.kind, event.subject.to_string()));
                return;
            }
        };
        if let Some(fault) = self.faults.pop() {
            return self.tell(Input::Outcome(id, fault));
        }
        match effect {
            Effect::Adopt {
                pod,
                marker,
                metadata_of,
                ..
            } => {
                self.patches_of.extend(metadata_of.map(|p| p.0));
                let pod = self.pods.get_mut(&pod.uid).expect("a pod that is there");
                pod.marker = Marked::As(marker);
                let pod = pod.clone();
                self.tell(Input::PodSet(Box::new(pod)));
            }
            Effect::SetCost { pod, cost, .. } => {
                let pod = self.pods.get_mut(&pod.uid).expect("a pod that is there");
                pod.cost = Some(cost.to_string().into());
                let pod = pod.clone();
                self.tell(Input::PodSet(Box::new(pod)));
            }
            // It belongs to another WorkloadSpread.
            Effect::WriteStatus { key, .. } if key != self.ws.key => {}
            Effect::WriteStatus {
                version, status, ..
            } => {
                assert_eq!(version, self.ws.version, "nobody else writes here");
                self.ws.status = status;
                self.ws.version += 1;
                self.writes += 1;
                self.tell(Input::SpreadSet(Box::new(self.ws.clone())));
            }
            Effect::DeletePod { pod, .. } => {
                self.deleted.push(pod.name.to_string());
                self.pods.remove(&pod.uid);
                self.tell(Input::PodGone(pod.uid));
            }
            Effect::Event(_) => {}
        }
        self.tell(Input::Outcome(id, Outcome::Ok));
    }

    /// `subset replicas missing` of each overall row.
    pub(crate) fn overall(&self) -> Vec<String> {
        self.ws.status.overall.iter().map(written).collect()
    }

    pub(crate) fn rows(&self, revision: &str) -> Vec<String> {
        self.ws.status.rows(revision).iter().map(written).collect()
    }

    /// The number of pods of each cost; `-` for none.
    pub(crate) fn costs(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for pod in self.pods.values() {
            let cost = pod.cost.as_deref().unwrap_or("-");
            *counts.entry(cost.to_string()).or_default() += 1;
        }
        counts
    }

    pub(crate) fn cost(&self, name: &str) -> &str {
        let pod = &self.pods[format!("uid-{name}").as_str()];
        pod.cost.as_deref().unwrap_or("-")
    }
}

fn written(row: &Row) -> String {
    let condition = match row.schedulable {
        None => "",
        Some(s) if s.holds => " open",
        Some(_) => " closed",
    };
    let of = |sign, entries: &strew_workloadspread::Entries| match entries.len() {
        0 => String::new(),
        _ => {
            let keys: Vec<&str> = entries.keys().map(|k| &**k).collect();
            format!(" {sign}[{}]", keys.join(","))
        }
    };
    let (creating, deleting) = (of("c", &row.creating), of("d", &row.deleting));
    format!(
        "{} {}/{}{creating}{deleting}{condition}",
        row.name, row.replicas, row.missing
    )
}

/// A status whose ledger holds these rows for pods without revisions.
pub(crate) fn ledger(rows: Vec<Row>) -> Arc<Status> {
    let mut status = Status::default();
    status.versioned.insert("versionIgnored".into(), rows);
    Arc::new(status)
}

pub(crate) fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    of.iter().map(|&(cost, n)| (cost.to_string(), n)).collect()
}
