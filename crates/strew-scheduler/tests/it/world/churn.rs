//! A world whose labels are ever new, and whose strings are dropped when nothing has them any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_cluster::{OwnerKind, OwnerRef};
use strew_model::Holds;
use strew_scheduler::Engine;

use super::RandomCluster;

/// What the labels of each pod said when it was last set.
pub(crate) type Told = BTreeMap<Arc<str>, BTreeSet<String>>;

impl RandomCluster {
    /// A world in which all words but those for workloads stay.
    pub(crate) fn churning(seed: u64) -> Self {
        let mut world = Self::new(seed);
        world.cluster.names.pin();
        (0..6).for_each(|_| world.set_node());
        world
    }

    /// A workload ends, with its Services and controllers, and another one of a name of its own begins.
    pub(crate) fn renew_app(&mut self) {
        let place = self.dice.index(self.apps.len());
        let (kind, name) = (OwnerKind::ReplicaSet, self.apps[place]);
        for &namespace in &self.namespaces {
            self.cluster.set_service(namespace, name, None);
            let owner = OwnerRef { kind, name };
            self.cluster.set_controller(namespace, owner, None);
        }
        let name = format!("app-{}-{}", self.next_pod, self.dice.between(0, 1_000));
        self.apps[place] = self.cluster.names.intern(&name);
    }

    /// Most pods go.
    pub(crate) fn thin_out(&mut self) {
        let uids: Vec<_> = { self.cluster.pods() }
            .map(|(_, row)| row.uid.clone())
            .collect();
        for uid in uids {
            if self.dice.chance(2, 3) {
                self.cluster.remove_pod(&uid);
            }
        }
    }

    /// The labels of all pods, as texts.
    pub(crate) fn told(&self) -> Told {
        let names = &self.cluster.names;
        let text = |(key, value)| format!("{}={}", names.text(key), names.text(value));
        let pods = self.cluster.pods();
        pods.map(|(pod, row)| {
            let labels = self.cluster.labels_of(pod).iter().map(text);
            (row.uid.clone(), labels.collect())
        })
        .collect()
    }

    /// Frees what is gone; the world itself still has its words.
    pub(crate) fn sweep(&mut self, engine: &mut Engine) {
        let mut sweep = self.cluster.begin_sweep(&Default::default());
        engine.sweep(&mut self.cluster, &mut sweep);
        let apps = &self.apps;
        self.cluster
            .end_sweep(sweep, |marks| apps.as_slice().mark(marks));
    }
}
