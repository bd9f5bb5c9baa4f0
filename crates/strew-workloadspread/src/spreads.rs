//! All WorkloadSpreads, and the one that handles a pod.
//!
//! Source: spec/workloadspread §4.2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use strew_model::{Holds, Labels, Marks, Symbol};

use crate::facts::spec::{TargetRef, WorkloadSpread, WsKey};
use crate::facts::workload::WorkloadFact;
use crate::workloads::{Chain, ChainEnd};

/// The WorkloadSpreads of all namespaces.
#[derive(Debug, Clone, Default)]
pub struct Spreads {
    all: BTreeMap<WsKey, Arc<WorkloadSpread>>,
    by_target: FxHashMap<(Symbol, TargetRef), BTreeSet<WsKey>>,
    /// Those that select further workloads.
    selecting: BTreeSet<WsKey>,
    per_namespace: FxHashMap<Symbol, u32>,
    simulating: u32,
}

/// The WorkloadSpread that handles a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// This one.
    Of(WsKey),
    /// None.
    No,
    /// Unknown: this owner does not exist.
    OwnerNotFound(TargetRef),
}

/// The owners of a pod.
#[derive(Debug, Clone, Copy)]
pub struct Owners<'a> {
    /// Group, kind and name of each, nearest first.
    pub chain: &'a [TargetRef],
    /// The last of them; `None` if it does not exist.
    pub top: Option<&'a WorkloadFact>,
}

impl Spreads {
    /// Sets a WorkloadSpread. Returns the previous one.
    pub fn set(&mut self, ws: WorkloadSpread) -> Option<Arc<WorkloadSpread>> {
        let before = self.remove(&ws.key);
        let key = ws.key.clone();
        if let Some(target) = ws.spec.target {
            let there = self.by_target.entry((key.namespace, target)).or_default();
            there.insert(key.clone());
        }
        if ws.spec.also.is_some() {
            self.selecting.insert(key.clone());
        }
        if handles(&ws) {
            *self.per_namespace.entry(key.namespace).or_default() += 1;
        }
        self.simulating += u32::from(ws.spec.strategy.simulates());
        self.all.insert(key, Arc::new(ws));
        before
    }

    /// Removes a WorkloadSpread. Returns it.
    pub fn remove(&mut self, key: &WsKey) -> Option<Arc<WorkloadSpread>> {
        let ws = self.all.remove(key)?;
        self.selecting.remove(key);
        if let Some(target) = ws.spec.target
            && let Some(there) = self.by_target.get_mut(&(key.namespace, target))
        {
            there.remove(key);
            if there.is_empty() {
                self.by_target.remove(&(key.namespace, target));
            }
        }
        if handles(&ws)
            && let Some(count) = self.per_namespace.get_mut(&key.namespace)
        {
            *count -= 1;
            if *count == 0 {
                self.per_namespace.remove(&key.namespace);
            }
        }
        self.simulating -= u32::from(ws.spec.strategy.simulates());
        Some(ws)
    }

    /// A WorkloadSpread.
    pub fn get(&self, key: &WsKey) -> Option<&Arc<WorkloadSpread>> {
        self.all.get(key)
    }

    /// All of them, by namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<WorkloadSpread>> {
        self.all.values()
    }

    /// Those of a target, by name.
    pub fn of_target(&self, namespace: Symbol, target: TargetRef) -> impl Iterator<Item = &WsKey> {
        self.by_target
            .get(&(namespace, target))
            .into_iter()
            .flatten()
    }

    /// The WorkloadSpreads that select this workload by the labels of its pods, by name.
    pub fn selecting(&self, namespace: Symbol, workload: Option<&WorkloadFact>) -> Vec<&WsKey> {
        let Some(workload) = workload else {
            return Vec::new();
        };
        let from = WsKey {
            namespace,
            name: "".into(),
        };
        let keys = self.selecting.range(from..);
        let keys = keys.take_while(|key| key.namespace == namespace);
        let selects = |key: &&WsKey| {
            let ws = self.all.get(*key);
            ws.is_some_and(|ws| ws.spec.selects_workload(workload))
        };
        keys.filter(selects).collect()
    }

    /// The WorkloadSpreads whose workloads own a pod: they name one of its owners, or select the last of them.
    fn of_owners(&self, namespace: Symbol, owners: &Owners<'_>) -> Vec<&WsKey> {
        let named = owners
            .chain
            .iter()
            .flat_map(|&o| self.of_target(namespace, o));
        named.chain(self.selecting(namespace, owners.top)).collect()
    }

    /// True if some WorkloadSpread simulates scheduling.
    pub fn any_simulates(&self) -> bool {
        self.simulating > 0
    }

    /// The WorkloadSpreads that are older than one and name, or select, an owner of the same pod; the oldest first.
    pub fn older_of(&self, ws: &WorkloadSpread, owners: &Owners<'_>) -> Vec<&Arc<WorkloadSpread>> {
        let owned = self.of_owners(ws.key.namespace, owners).into_iter();
        let all = owned.filter_map(|key| self.all.get(key));
        let mut older: Vec<_> = all
            .filter(|other| handles(other) && other.rank() < ws.rank())
            .collect();
        older.sort_by_key(|other| other.rank());
        older
    }

    /// The WorkloadSpread that handles a pod with these owners and labels: the oldest whose target is one of the owners
    /// and whose filter matches the pod ([`WorkloadSpread::rank`]). A missing owner makes the answer unknown, unless
    /// one of the owners before it decides.
    pub fn find(
        &self,
        namespace: Symbol,
        chain: &Chain,
        top: Option<&WorkloadFact>,
        labels: &Labels,
    ) -> Match {
        if !self.per_namespace.contains_key(&namespace) {
            return Match::No;
        }
        let takes =
            |ws: &&Arc<WorkloadSpread>| handles(ws) && ws.spec.selects(labels) == Some(true);
        let owners = Owners {
            chain: &chain.owners,
            top,
        };
        let owned = self.of_owners(namespace, &owners);
        let known = owned.iter().filter_map(|key| self.all.get(*key));
        let first = known.filter(takes).min_by_key(|ws| ws.rank());
        if chain.end == ChainEnd::NotFound {
            // A WorkloadSpread of lower rank that is not of these owners needs the missing owner.
            let asks = |ws: &&Arc<WorkloadSpread>| {
                handles(ws)
                    && first.is_none_or(|first| ws.rank() < first.rank())
                    && !owned.contains(&&ws.key)
            };
            let from = WsKey {
                namespace,
                name: "".into(),
            };
            let of_namespace = self.all.range(from..).map(|(_, ws)| ws);
            let mut of_namespace = of_namespace.take_while(|ws| ws.key.namespace == namespace);
            if of_namespace.any(|ws| asks(&ws)) {
                return Match::OwnerNotFound(chain.owners[chain.owners.len() - 1]);
            }
        }
        first.map_or(Match::No, |ws| Match::Of(ws.key.clone()))
    }
}

/// True if it handles pods at all.
fn handles(ws: &WorkloadSpread) -> bool {
    ws.spec.target.is_some() && !ws.deleting
}

impl Holds for Spreads {
    fn mark(&self, marks: &mut Marks) {
        // All other keys are keys of these.
        self.all.values().for_each(|ws| ws.mark(marks));
    }
}
