//! Claims: those that pods name, and the pods that share one.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimVolumeSource};
use strew_manifest::field::FieldPath;
use strew_manifest::kinds;
use strew_manifest::read::{KubeObject, nearest};

use crate::Found;
use crate::files::{Files, Workload, namespace_of};

/// True if the pods of a kind share the claims of their template, those of a Job as far as they run at once.
fn shares(kind: &str) -> bool {
    is_of_job(kind) || kind != "StatefulSet" && kinds::of_kind(kind).is_some_and(|row| row.scales)
}

fn is_of_job(kind: &str) -> bool {
    ["Job", "CronJob"].contains(&kind)
}

/// How many of a workload's pods there are at once; `None`: it is not known.
fn n_at_once(files: &Files<'_>, workload: &Workload<'_>) -> Option<i64> {
    let spec = match files.objects[workload.object] {
        KubeObject::Job(job) => job.spec.as_ref(),
        KubeObject::CronJob(cron) => cron.spec.job_template.spec.as_ref(),
        _ => None,
    };
    let completions = spec.and_then(|spec| spec.completions).map(i64::from);
    let n_pods = workload.n_pods?;
    Some(completions.map_or(n_pods, |completions| n_pods.min(completions)))
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

/// The claim of this name; `None` if the files do not have it.
pub(crate) fn claim_of<'f>(
    files: &Files<'f>,
    namespace: &str,
    name: &str,
) -> Option<&'f PersistentVolumeClaim> {
    let mut objects = files.objects.iter();
    objects.find_map(|object| match object {
        KubeObject::PersistentVolumeClaim(claim)
            if namespace_of(&claim.metadata) == namespace
                && claim.metadata.name.as_deref() == Some(name) =>
        {
            Some(&**claim)
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
        let Some(n) = n_at_once(files, workload).filter(|n| *n > 1 && shares(workload.kind)) else {
            continue;
        };
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
            let is_of_job = is_of_job(workload.kind);
            let others = match is_of_job {
                true => "wait for it to end",
                false => "stay Pending",
            };
            let why = match modes {
                Some([mode]) if mode == "ReadWriteOncePod" => format!(
                    "one pod at a time may use ({mode}): {} of them {others}",
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
                .help(match is_of_job {
                    true => "use a claim with ReadWriteMany, a generic ephemeral volume for each pod, or parallelism: 1",
                    false => "use a StatefulSet with volumeClaimTemplates, a claim with ReadWriteMany, or one replica",
                })
                .number("pods", n);
            warning.related.push((claim, "the claim"));
            found.push(warning);
        }
    }
    found
}
