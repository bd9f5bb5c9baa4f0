//! VolumeBinding: the node affinity of the volumes of bound claims, and volumes for claims that wait for their pod's node.
//!
//! Source: upstream `volumebinding/volume_binding.go` and `binder.go`, v1.36.3; spec/scheduler §3.12.

use smallvec::SmallVec;
use strew_cluster::{Cluster, NodeFact, NodeIdx, PodIdx};

use super::pod_volumes::{Looked, PodVolumes};
use crate::profile::PluginId;
use crate::status::{Code, Reason, Refusal};

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

/// Checks the node affinity of each volume (the first missing or mismatching volume decides), and that each claim that
/// waits gets a volume on the node.
pub(crate) fn filter(
    cluster: &Cluster,
    (at, node): (NodeIdx, &NodeFact),
    of_pod: &PodVolumes,
) -> Option<Refusal> {
    let names = &cluster.names;
    let bound = of_pod.bound.iter().find_map(|volume| match &volume.fact {
        None => Some(Reason::VolumesMissing),
        Some(fact) => (!fact.admits(&node.labels, names)).then_some(Reason::VolumeNodeAffinity),
    });
    // A volume that is being made for a pod elsewhere.
    let is_made_elsewhere = of_pod.binding.iter().any(|nodes| !nodes.contains(&at));
    let bound = bound.or(is_made_elsewhere.then_some(Reason::VolumeNodeAffinity));
    let matched = of_pod.matching.on(node.name, &node.labels, names);
    let unmatched = matched.is_err().then_some(Reason::NoVolumeToBind);
    let (first, second) = match bound {
        // Upstream lists a missing volume last.
        Some(Reason::VolumesMissing) => (unmatched, bound),
        _ => (bound, unmatched),
    };
    let reasons: SmallVec<[Reason; 2]> = first.into_iter().chain(second).collect();
    (!reasons.is_empty()).then_some(Refusal {
        plugin: PluginId::VolumeBinding,
        code: Code::UnschedulableAndUnresolvable,
        reasons,
    })
}
