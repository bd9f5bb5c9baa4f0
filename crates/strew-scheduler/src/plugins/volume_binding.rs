//! VolumeBinding for bound claims: the node affinity of their volumes.
//!
//! Source: upstream `volumebinding/volume_binding.go` and `binder.go`, v1.36.3; spec/scheduler §3.12.

use strew_cluster::{Cluster, NodeFact, PodIdx};

use super::pod_volumes::{BoundVolume, Looked};
use crate::profile::PluginId;
use crate::status::{Reason, Refusal};

/// Each claim must exist for this pod and not terminate, and be bound to an existing volume unless it waits for its
/// first pod.
pub(crate) fn pre_filter(cluster: &Cluster, pod: PodIdx, claims: &[Looked<'_>]) -> Option<Reason> {
    let unusable = claims
        .iter()
        .find_map(|looked| unusable(cluster, pod, looked));
    unusable.or_else(|| {
        // A claim that no controller will bind is not merely late.
        let late =
            |looked: &Looked<'_>| !looked.is_bound() && !looked.waits && !looked.is_unattended();
        claims.iter().any(late).then_some(Reason::UnboundClaims)
    })
}

fn unusable(cluster: &Cluster, pod: PodIdx, looked: &Looked<'_>) -> Option<Reason> {
    let row = cluster.pod(pod);
    let (Some((namespace, claim)), Some(fact)) = (looked.key, looked.fact) else {
        let name = || looked.used.claim_name(&row.name, &cluster.names);
        return Some(match looked.used.named {
            Some(claim) => Reason::ClaimMissing(claim),
            None => Reason::EphemeralClaimMissing(name().into()),
        });
    };
    if fact.lost {
        return Some(Reason::ClaimLost(claim, fact.volume.unwrap_or_default()));
    }
    if fact.terminating {
        return Some(Reason::ClaimTerminating(claim));
    }
    let is_own = !looked.is_ephemeral() || fact.owner.as_ref() == Some(&row.uid);
    (!is_own).then(|| Reason::ClaimOfAnother {
        namespace,
        claim,
        pod: row.name.clone(),
    })
}

/// Checks the node affinity of each volume; the first missing or mismatching volume decides.
pub(crate) fn filter(cluster: &Cluster, node: &NodeFact, bound: &[BoundVolume]) -> Option<Refusal> {
    let reason = bound.iter().find_map(|volume| match &volume.fact {
        None => Some(Reason::VolumesMissing),
        Some(fact) => {
            let admitted = fact.admits(&node.labels, &cluster.names);
            (!admitted).then_some(Reason::VolumeNodeAffinity)
        }
    })?;
    Some(Refusal::unresolvable(PluginId::VolumeBinding, reason))
}
