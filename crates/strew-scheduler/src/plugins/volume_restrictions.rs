//! VolumeRestrictions: claims with access mode ReadWriteOncePod. Disks without a claim are not implemented.
//!
//! Source: upstream `volumerestrictions/volume_restrictions.go`, v1.36.3; spec/scheduler §3.12.

use strew_cluster::{ClassId, Cluster, PodSpec};
use strew_model::Symbol;

use super::pod_volumes::Looked;
use crate::profile::PluginId;
use crate::queue::event::{Hint, PodView};
use crate::status::{Reason, Refusal};

/// A claim must exist, since its access modes are needed.
pub(crate) fn pre_filter(claims: &[Looked<'_>]) -> Option<Reason> {
    let missing = claims.iter().filter(|looked| looked.fact.is_none());
    let mut named = missing.filter_map(|looked| looked.used.named);
    named.next().map(Reason::ClaimMissing)
}

/// No node takes the pod while a ReadWriteOncePod claim of it is in use anywhere.
pub(crate) fn filter(in_use: i32) -> Option<Refusal> {
    let plugin = PluginId::VolumeRestrictions;
    (in_use > 0).then(|| Refusal::unschedulable(plugin, Reason::ClaimInUse))
}

/// The number of volumes of another pod that name one of these claims, of the pod's namespace if that is given. v1.36.3
/// ignores the namespace (a quirk): preemption there may evict a pod of another namespace for a claim that it does not
/// hold.
pub(crate) fn mentions(
    cluster: &Cluster,
    once_pod: &[Symbol],
    namespace: Option<Symbol>,
    other: ClassId,
) -> i32 {
    let tables = cluster.tables();
    let key = &tables.class(other).key;
    if namespace.is_some_and(|namespace| namespace != key.namespace) {
        return 0;
    }
    let claims = tables.spec(key.spec).claims.iter();
    let named = claims.filter_map(|used| used.named);
    named.filter(|claim| once_pod.contains(claim)).count() as i32
}

/// After a pod on a node was deleted: worth a retry if it used a claim of the pod.
pub(crate) fn hint_after_pod_gone(
    cluster: &Cluster,
    waiting: (Symbol, &PodSpec),
    gone: PodView,
) -> Hint {
    let (namespace, spec) = waiting;
    let tables = cluster.tables();
    let key = &tables.class(gone.class).key;
    let named = |spec: &PodSpec| -> Vec<Symbol> {
        spec.claims.iter().filter_map(|used| used.named).collect()
    };
    let of_gone = named(tables.spec(key.spec));
    let shared = named(spec).iter().any(|claim| of_gone.contains(claim));
    Hint::queue_if(key.namespace == namespace && shared)
}
