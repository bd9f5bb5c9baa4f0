//! Claims: those that pods name, and the pods that share one.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource};
use strew_manifest::field::FieldPath;
use strew_manifest::kinds;
use strew_manifest::read::{KubeObject, nearest};

use crate::Found;
use crate::files::{Files, namespace_of};

/// True if the pods of a kind share the claims of their template.
fn shares(kind: &str) -> bool {
    kind != "StatefulSet" && kinds::of_kind(kind).is_some_and(|row| row.scales)
}

/// The claims of a namespace, with the indexes of their objects.
fn claims<'f>(
    files: &'f Files<'_>,
    namespace: &str,
) -> impl Iterator<Item = (usize, &'f PersistentVolumeClaim)> {
    let objects = files.objects.iter().enumerate();
    objects.filter_map(move |(index, object)| match object {
        KubeObject::PersistentVolumeClaim(claim) if namespace_of(&claim.metadata) == namespace => {
            Some((index, &**claim))
        }
        _ => None,
    })
}

fn is_named(claim: &PersistentVolumeClaim, source: &PersistentVolumeClaimVolumeSource) -> bool {
    claim.metadata.name.as_deref() == Some(source.claim_name.as_str())
}

/// Claims that pods name and that are not among those of their namespace. Nothing is said of a namespace without
/// claims: those may be elsewhere.
///
/// Source: spec/scheduler §3.12
pub(crate) fn missing(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for workload in files.workloads.iter().filter(|_| !files.more_come) {
        let there: Vec<&str> = claims(files, workload.namespace)
            .filter_map(|(_, claim)| claim.metadata.name.as_deref())
            .collect();
        for (index, volume) in workload.spec.volumes.iter().flatten().enumerate() {
            let Some(source) = &volume.persistent_volume_claim else {
                continue;
            };
            let name = source.claim_name.as_str();
            if there.is_empty() || there.contains(&name) {
                continue;
            }
            let message = format!(
                "there is no claim {name:?} in namespace {} of these files: its pods stay Pending",
                workload.namespace
            );
            let help = match nearest(name, there.iter().copied()) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => "name the file that has it, too".to_owned(),
            };
            let path = workload.spec_path.child("volumes").index(index);
            let path = path.child("persistentVolumeClaim.claimName");
            found.push(Found::warning(workload.object, path, message).help(help));
        }
    }
    found
}

/// Claims of one node or one pod that several pods share.
///
/// Source: spec/scheduler §3.12
pub(crate) fn shared(files: &Files<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for workload in &files.workloads {
        if !shares(workload.kind) || workload.n_pods.is_none_or(|n| n < 2) {
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
        for (index, volume) in workload.spec.volumes.iter().flatten().enumerate() {
            let Some(source) = &volume.persistent_volume_claim else {
                continue;
            };
            let mut claims = claims(files, workload.namespace);
            let Some((claim, wire)) = claims.find(|(_, claim)| is_named(claim, source)) else {
                continue;
            };
            let modes = wire
                .spec
                .as_ref()
                .and_then(|spec| spec.access_modes.as_deref());
            let n = workload.n_pods.unwrap_or(0);
            let why = match modes {
                Some([mode]) if mode == "ReadWriteOncePod" => format!(
                    "one pod at a time may use ({mode}): {} of them stay Pending",
                    n - 1
                ),
                Some([mode]) if mode == "ReadWriteOnce" && !is_kept => format!(
                    "one node at a time can mount ({mode}): pods on other nodes do not start"
                ),
                _ => continue,
            };
            let message = format!(
                "{n} pods share the claim {}, which {why}",
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
