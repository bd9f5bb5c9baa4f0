//! Claims and the pods that share them.

use strew_manifest::field::FieldPath;
use strew_manifest::read::KubeObject;

use crate::lint::Found;
use crate::lint::files::Files;

/// The kinds whose pods share the claims of their template.
const SHARING: [&str; 4] = [
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "CloneSet",
];

/// Claims of one node that several pods share, which may be on several nodes.
///
/// Source: spec/scheduler §3.12
pub(in crate::lint) fn shared(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for workload in &files.workloads {
        if !SHARING.contains(&workload.kind) || workload.n_pods.is_none_or(|n| n < 2) {
            continue;
        }
        // They are kept on one node on purpose.
        let affinity = workload.spec.affinity.as_ref();
        let is_kept = affinity.is_some_and(|affinity| affinity.pod_affinity.is_some())
            || workload.spec.node_name.is_some()
            || workload
                .spec
                .node_selector
                .as_ref()
                .is_some_and(|s| s.contains_key("kubernetes.io/hostname"));
        if is_kept {
            continue;
        }
        for (index, volume) in workload.spec.volumes.iter().flatten().enumerate() {
            let Some(source) = &volume.persistent_volume_claim else {
                continue;
            };
            let claim = files.objects.iter().enumerate().find(|(_, object)| {
                matches!(object, KubeObject::PersistentVolumeClaim(_))
                    && object.name() == source.claim_name
                    && object.namespace() == Some(workload.namespace)
            });
            let Some((claim, KubeObject::PersistentVolumeClaim(wire))) = claim else {
                continue;
            };
            let modes = wire
                .spec
                .as_ref()
                .and_then(|spec| spec.access_modes.as_deref());
            if !matches!(modes, Some([only]) if only == "ReadWriteOnce") {
                continue;
            }
            let n = workload.n_pods.unwrap_or(0);
            let message = format!(
                "{n} pods share the claim {}, which one node at a time can mount (ReadWriteOnce): pods on other nodes do not start",
                source.claim_name
            );
            let path: FieldPath = workload.spec_path.child("volumes").index(index);
            let mut warning = Found::warning(workload.object, path, message)
                .help("use a StatefulSet with volumeClaimTemplates, a claim with ReadWriteMany, or one replica")
                .number("pods", n);
            warning.related.push((claim, "the claim"));
            found.push(warning);
        }
    }
    found
}
