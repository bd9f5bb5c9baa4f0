//! What decides about changes beside the facts of a world: lives and health of pods, and quotas.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ResourceQuota;
use strew_apiserver::Tables;
use strew_apiserver::admission::quota::admitted;
use strew_apiserver::object::{Name, Pod};
use strew_cluster::PodIdx;
use strew_manifest::read::KubeObject;
use strew_model::Instant;
use strew_plan::{Health, Lives};
use strew_scenario::rebalance::settled::Settled;
use strew_view::cluster_state::ClusterState;
use strew_view::lives::lives;

use super::turned::NotMade;

/// What decides about changes beside the facts of a world.
pub(crate) struct Beside {
    pub(super) lives: Lives,
    pub(super) health: Health,
    /// Of each pod, what its controller makes further pods like.
    pods: BTreeMap<PodIdx, Arc<Pod>>,
    /// By namespace.
    quotas: BTreeMap<String, Vec<ResourceQuota>>,
}

impl Beside {
    /// Of a moment, of which this is the world.
    pub(crate) fn of(world: &mut ClusterState, tables: &Tables, now: Instant) -> Self {
        let mut quotas: BTreeMap<String, Vec<ResourceQuota>> = BTreeMap::new();
        for plain in tables.all_plain() {
            if let KubeObject::ResourceQuota(quota) = &plain.object {
                let namespace = plain.meta.name.namespace.to_string();
                quotas.entry(namespace).or_default().push((**quota).clone());
            }
        }
        let pods = world.pods.iter().filter_map(|entry| {
            let name = Name::new(Arc::clone(&entry.namespace), Arc::clone(&entry.name));
            Some((entry.pod, Arc::clone(tables.get::<Pod>(&name)?)))
        });
        let pods = pods.collect();
        Self {
            lives: lives(tables, now),
            health: Settled::of(world, tables).health,
            pods,
            quotas,
        }
    }

    /// The scale that the quotas of the namespace let the workload of these pods have; and the pods that they refuse.
    pub(super) fn admitted(&self, subject: &[PodIdx], to: usize) -> (usize, Option<NotMade>) {
        let known = { subject.iter() }.filter_map(|pod| self.pods.get(pod));
        let active: Vec<&Arc<Pod>> = known.filter(|pod| pod.is_active()).collect();
        let like = active.first().map(|pod| pod.to_wire());
        let quotas = like.as_ref().and_then(|like| {
            let namespace = like.metadata.namespace.as_deref().unwrap_or("default");
            self.quotas.get(namespace)
        });
        let n_more = to.saturating_sub(active.len());
        let (Some(mut like), Some(quotas)) = (like, quotas.filter(|_| n_more > 0)) else {
            return (to, None);
        };
        like.status = None;
        let (n_made, why) = admitted(&like, quotas, n_more);
        let not_made = why.map(|why| NotMade {
            pods: n_more - n_made,
            why,
        });
        (active.len() + n_made, not_made)
    }

    /// True for a pod that was there before the changes.
    pub(super) fn is_known(&self, pod: PodIdx) -> bool {
        self.pods.contains_key(&pod)
    }
}
