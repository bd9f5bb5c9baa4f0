//! What decides about evictions beside the facts of the cluster: pods that are not available, and what the Eviction API
//! knows of them and of budgets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_cluster::{Cluster, PodIdx};
use strew_model::Symbol;
use strew_zones::Away;

/// Pods and budgets at the beginning of a transaction. Without it, pods are available.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// The pods that are not available, and why.
    pub away: BTreeMap<PodIdx, Away>,
    /// The pods that the Eviction API evicts whatever their budget allows, since they are not ready.
    pub free: BTreeSet<PodIdx>,
    /// The pods with a controller that is not among the facts: it makes others in their place.
    pub owned: BTreeSet<PodIdx>,
    /// The budgets, by namespace and name, that no controller has counted since their specs changed.
    pub stale: BTreeSet<(Symbol, Symbol)>,
    /// By budget: how many pods must become ready before it allows a disruption more.
    pub lacking: BTreeMap<(Symbol, Symbol), i32>,
    /// Of pods that are made in the order of their ordinals: the lower ones that are not available. Without those
    /// their controller makes no other pod in their place.
    pub after: BTreeMap<PodIdx, Arc<[PodIdx]>>,
}

/// The name of the pod that is made in place of another one, as far as its claims are concerned.
pub(crate) fn renewed(name: &str) -> String {
    format!("{name} (new)")
}

/// Adds a claim for each generic ephemeral volume, as the pod in place of its pod has: without a volume. The claim of
/// the old pod goes with that.
pub fn add_new_claims(cluster: &mut Cluster) {
    let mut claims = Vec::new();
    for (pod, row) in cluster.pods() {
        for used in &cluster.spec_of(pod).claims {
            let namespace = cluster.class_of(pod).key.namespace;
            let name = used.claim_name(&row.name, &cluster.names);
            let known = cluster.names.get(&name).filter(|_| used.named.is_none());
            let fact = known.and_then(|name| cluster.volumes().claim((namespace, name)));
            if let Some(fact) = fact {
                let mut fact = fact.clone();
                fact.volume = None;
                fact.selected = None;
                fact.owner = Some(Arc::clone(&row.uid));
                fact.uid = "".into();
                (fact.bound, fact.lost, fact.terminating) = (false, false, false);
                let name = used.claim_name(&renewed(&row.name), &cluster.names);
                claims.push((namespace, name, fact));
            }
        }
    }
    for (namespace, name, fact) in claims {
        let name = cluster.names.intern(&name);
        cluster.set_claim(namespace, name, Some(fact));
    }
}
