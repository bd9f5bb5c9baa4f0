//! The table of pods, and the pods of a target.
//!
//! Source: spec/workloadspread §5.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Holds, Marks, Symbol};

use crate::facts::kinds::{Kind, Kinds};
use crate::facts::pod::Pod;
use crate::facts::spec::WorkloadSpread;
use crate::facts::workload::WorkloadFact;
use crate::targets::Targets;
use crate::workloads::Workloads;

/// The order of lists: pods by name, then uid.
type Listed = BTreeMap<(Arc<str>, Arc<str>), ()>;

/// All pods, by uid and by owner.
#[derive(Debug, Clone, Default)]
pub struct Pods {
    all: FxHashMap<Arc<str>, Pod>,
    by_owner: FxHashMap<Arc<str>, Listed>,
    by_namespace: FxHashMap<Symbol, Listed>,
}

impl Pods {
    /// Sets a pod. Returns the previous one.
    pub fn set(&mut self, pod: Pod) -> Option<Pod> {
        if let Some(known) = self.all.get_mut(&pod.uid)
            && known.owners == pod.owners
        {
            return Some(std::mem::replace(known, pod));
        }
        let before = self.remove(&pod.uid);
        let key = (pod.name.clone(), pod.uid.clone());
        for owner in &pod.owners {
            let listed = self.by_owner.entry(owner.clone()).or_default();
            listed.insert(key.clone(), ());
        }
        let namespace = self.by_namespace.entry(pod.namespace).or_default();
        namespace.insert(key, ());
        self.all.insert(pod.uid.clone(), pod);
        before
    }

    /// Removes a pod. Returns it.
    pub fn remove(&mut self, uid: &str) -> Option<Pod> {
        let pod = self.all.remove(uid)?;
        let key = (pod.name.clone(), pod.uid.clone());
        for owner in &pod.owners {
            if let Some(listed) = self.by_owner.get_mut(owner) {
                listed.remove(&key);
                if listed.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        if let Some(listed) = self.by_namespace.get_mut(&pod.namespace) {
            listed.remove(&key);
            if listed.is_empty() {
                self.by_namespace.remove(&pod.namespace);
            }
        }
        Some(pod)
    }

    /// A pod.
    pub fn get(&self, uid: &str) -> Option<&Pod> {
        self.all.get(uid)
    }

    /// The pods of an owner, by name.
    pub fn owned_by(&self, uid: &str) -> impl Iterator<Item = &Pod> {
        self.list(self.by_owner.get(uid))
    }

    fn list<'a>(&'a self, listed: Option<&'a Listed>) -> impl Iterator<Item = &'a Pod> {
        let keys = listed.into_iter().flatten();
        keys.filter_map(|((_, uid), ())| self.all.get(uid))
    }

    /// The pods that a WorkloadSpread manages, in the order of lists.
    pub fn of_targets<'a>(
        &'a self,
        ws: &WorkloadSpread,
        targets: &Targets<'_>,
        workloads: &Workloads,
        kinds: &Kinds,
    ) -> Vec<&'a Pod> {
        let mut pods = self.of_target(ws, targets.named, workloads, kinds);
        if !targets.selected.is_empty() {
            for target in &targets.selected {
                pods.extend(self.of_target(ws, Some(target), workloads, kinds));
            }
            pods.sort_by(|a, b| (&a.name, &a.uid).cmp(&(&b.name, &b.uid)));
        }
        pods
    }

    /// The pods of one of its targets.
    fn of_target(
        &self,
        ws: &WorkloadSpread,
        target: Option<&WorkloadFact>,
        workloads: &Workloads,
        kinds: &Kinds,
    ) -> Vec<&Pod> {
        let Some(target) = target.filter(|t| !t.deleting) else {
            return Vec::new();
        };
        let kind = kinds.of(target.key.target.kind);
        let mut pods: Vec<&Pod> = match kind {
            Kind::Deployment => {
                let all = workloads.controlled_by(&target.uid);
                let live: Vec<_> = all.filter(|rs| !rs.deleting).collect();
                match live.is_empty() {
                    true => self.owned_by(&target.uid).collect(),
                    false => live.iter().flat_map(|rs| self.owned_by(&rs.uid)).collect(),
                }
            }
            Kind::Job => {
                let selected = |p: &&Pod| {
                    let selector = target.selector.as_ref();
                    selector.is_none_or(|s| s.matches(&p.labels))
                };
                self.owned_by(&target.uid).filter(selected).collect()
            }
            _ => self.owned_by(&target.uid).collect(),
        };
        if kind == Kind::Custom
            && pods.is_empty()
            && let Some(selector) = &target.selector
        {
            let all = self.list(self.by_namespace.get(&target.key.namespace));
            pods = all.filter(|p| selector.matches(&p.labels)).collect();
        }
        pods.retain(|p| p.namespace == ws.key.namespace);
        pods.retain(|p| ws.spec.selects(&p.labels) == Some(true));
        pods
    }
}

impl Holds for Pods {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        self.all.values().for_each(|pod| pod.mark(marks));
    }
}
