//! All workloads, with their controllers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Holds, Labels, Marks, Symbol};

use crate::facts::kinds::Kinds;
use crate::facts::spec::TargetRef;
use crate::facts::workload::{Controller, WorkloadFact, WorkloadKey};

/// The longest chain of owners that is followed: a longer one is a cycle.
pub const CHAIN_MAX: usize = 16;

/// The workloads of all namespaces.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    facts: FxHashMap<WorkloadKey, WorkloadFact>,
    children: FxHashMap<Arc<str>, BTreeMap<WorkloadKey, ()>>,
    /// The workloads whose pods' labels are known, by namespace.
    labelled: FxHashMap<Symbol, BTreeSet<WorkloadKey>>,
}

/// How a chain of owners ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainEnd {
    /// At an owner without a controller, or of a kind that is not read.
    Top,
    /// At an owner that does not exist (any more, or yet).
    NotFound,
}

/// The owners of a pod, nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Group, kind and name of each.
    pub owners: Vec<TargetRef>,
    /// How it ends.
    pub end: ChainEnd,
}

impl Workloads {
    /// Sets a workload. Returns the previous one.
    pub fn set(&mut self, fact: WorkloadFact) -> Option<WorkloadFact> {
        let before = self.remove(fact.key);
        if let Some(controller) = &fact.controller {
            let children = self.children.entry(controller.uid.clone()).or_default();
            children.insert(fact.key, ());
        }
        if fact.pod_labels.is_some() {
            let labelled = self.labelled.entry(fact.key.namespace).or_default();
            labelled.insert(fact.key);
        }
        self.facts.insert(fact.key, fact);
        before
    }

    /// Removes a workload. Returns it.
    pub fn remove(&mut self, key: WorkloadKey) -> Option<WorkloadFact> {
        let fact = self.facts.remove(&key)?;
        if let Some(controller) = &fact.controller
            && let Some(children) = self.children.get_mut(&controller.uid)
        {
            children.remove(&key);
            if children.is_empty() {
                self.children.remove(&controller.uid);
            }
        }
        if let Some(labelled) = self.labelled.get_mut(&key.namespace) {
            labelled.remove(&key);
            if labelled.is_empty() {
                self.labelled.remove(&key.namespace);
            }
        }
        Some(fact)
    }

    /// The workloads of a namespace whose pods' labels are known, by key.
    pub fn of_namespace(&self, namespace: Symbol) -> impl Iterator<Item = &WorkloadFact> {
        let keys = self.labelled.get(&namespace).into_iter().flatten();
        keys.filter_map(|key| self.facts.get(key))
    }

    /// The last owner of a chain; `None` if it does not exist.
    pub fn top(&self, namespace: Symbol, chain: &Chain) -> Option<&WorkloadFact> {
        let target = *chain.owners.last()?;
        self.get(WorkloadKey { namespace, target })
    }

    /// A workload.
    pub fn get(&self, key: WorkloadKey) -> Option<&WorkloadFact> {
        self.facts.get(&key)
    }

    /// The workloads that a workload controls, by key.
    pub fn controlled_by(&self, uid: &str) -> impl Iterator<Item = &WorkloadFact> {
        let keys = self.children.get(uid).into_iter().flatten();
        keys.filter_map(|(key, ())| self.facts.get(key))
    }

    /// True if the owners that find a pod by its labels still find it by these. An owner that does not find it would
    /// create another pod in its place, without end.
    pub fn find_still(
        &self,
        (namespace, controller): (Symbol, &Controller),
        kinds: &Kinds,
        [before, after]: [&Labels; 2],
    ) -> bool {
        let owners = self.chain(namespace, controller, kinds).owners;
        let owners = owners
            .into_iter()
            .filter_map(|target| self.get(WorkloadKey { namespace, target }));
        let mut selectors = owners.filter_map(|owner| owner.finds.as_ref());
        selectors.all(|selector| !selector.matches(before) || selector.matches(after))
    }

    /// The owners of an object in a namespace: its controller, that one's controller, and so on through known kinds.
    /// Names are followed; uids are not compared (spec/workloadspread §4.2).
    pub fn chain(&self, namespace: Symbol, controller: &Controller, kinds: &Kinds) -> Chain {
        let mut owners = vec![controller.target];
        while owners.len() < CHAIN_MAX {
            let target = owners[owners.len() - 1];
            if !kinds.is_known(&target) {
                break;
            }
            let end = match self.get(WorkloadKey { namespace, target }) {
                None => ChainEnd::NotFound,
                Some(fact) => match &fact.controller {
                    None => ChainEnd::Top,
                    Some(next) => {
                        owners.push(next.target);
                        continue;
                    }
                },
            };
            return Chain { owners, end };
        }
        let end = ChainEnd::Top;
        Chain { owners, end }
    }
}

impl Holds for Workloads {
    #[allow(clippy::iter_over_hash_type, reason = "marks have no order")]
    fn mark(&self, marks: &mut Marks) {
        // All other keys are keys of facts.
        self.facts.values().for_each(|fact| fact.mark(marks));
    }
}
