//! Deployments: make a ReplicaSet for each template, and its pods.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::owners::{Owners, POD_TEMPLATE_HASH};
use super::replica_set::make;
use super::template::{Maker, PodMaker, canonical, owner_reference, template_hash, uid_of};
use super::{ExpandError, Workload, WorkloadKind, count, is_active, name_of, namespace_of};

pub(super) fn expand<'a>(
    deployment: &'a Deployment,
    owners: &Owners<'a>,
    pods: &mut PodMaker<'_>,
) -> Result<(), ExpandError> {
    let Some(spec) = &deployment.spec else {
        return Ok(());
    };
    let workload = Workload::Deployment(deployment).reference();
    let sets: Vec<&ReplicaSet> = owners
        .replica_sets_of(deployment)
        .filter(|set| set.metadata.deletion_timestamp.is_none())
        .collect();
    let present: Vec<&Pod> = owners
        .pods_of(WorkloadKind::Deployment, &deployment.metadata)
        .filter(|pod| is_active(pod))
        .collect();

    let Some(newest) = newest(&sets, &spec.template) else {
        let n_missing = count(spec.replicas).saturating_sub(present.len());
        if n_missing > 0 && spec.paused == Some(true) {
            pods.note(
                &workload,
                "is paused and has no ReplicaSet, so it makes no pods",
            );
            return Ok(());
        }
        // New pods beside existing ones belong to the same revision.
        let hash = present.last().and_then(|pod| hash_of(pod));
        let hash = hash.unwrap_or_else(|| template_hash(&spec.template));
        let set = replica_set(deployment, spec, &hash);
        let maker = Maker {
            kind: WorkloadKind::ReplicaSet,
            metadata: &set.metadata,
            workload: &workload,
        };
        let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        make(maker, template, n_missing, pods)?;
        if present.is_empty() {
            pods.replica_set(set);
        }
        return Ok(());
    };

    if !sets.iter().any(|set| has_template(set, &spec.template)) {
        pods.note(
            &workload,
            "has a template that none of its ReplicaSets has: a rollout, which is left out here",
        );
    }
    let n_wanted: usize = sets.iter().map(|set| size(set)).sum();
    let n_extra = count(spec.replicas).saturating_sub(n_wanted + present.len());
    for set in sets {
        let maker = Maker {
            kind: WorkloadKind::ReplicaSet,
            metadata: &set.metadata,
            workload: &workload,
        };
        let grown = if std::ptr::eq(set, newest) {
            n_extra
        } else {
            0
        };
        let of_set = owners.pods_of(maker.kind, &set.metadata);
        let n_active = of_set.filter(|pod| is_active(pod)).count();
        let n_missing = (size(set) + grown).saturating_sub(n_active);
        let template = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        make(maker, template, n_missing, pods)?;
    }
    Ok(())
}

/// The set with the template (the oldest, if there are several), else the newest. Source: `FindNewReplicaSet`.
fn newest<'a>(sets: &[&'a ReplicaSet], template: &PodTemplateSpec) -> Option<&'a ReplicaSet> {
    let age = |set: &&&ReplicaSet| {
        let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created, set.metadata.name.clone())
    };
    let same = sets.iter().filter(|set| has_template(set, template));
    let found = same.min_by_key(age).or_else(|| sets.iter().max_by_key(age));
    found.copied()
}

fn has_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let own = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    own.is_some_and(|own| canonical(own) == canonical(template))
}

fn size(set: &ReplicaSet) -> usize {
    set.spec.as_ref().map_or(0, |spec| count(spec.replicas))
}

fn hash_of(pod: &Pod) -> Option<String> {
    pod.metadata
        .labels
        .as_ref()?
        .get(POD_TEMPLATE_HASH)
        .cloned()
}

/// `NAME-HASH`, with the hash in its labels, its selector and its template. Source: `getNewReplicaSet`.
pub(super) fn replica_set(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    hash: &str,
) -> ReplicaSet {
    let mut template = spec.template.clone();
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(POD_TEMPLATE_HASH.to_string(), hash.to_string());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    let pairs = selector.match_labels.get_or_insert_default();
    pairs.insert(POD_TEMPLATE_HASH.to_string(), hash.to_string());
    let owner = &deployment.metadata;
    let mut metadata = ObjectMeta {
        name: Some(format!("{}-{hash}", name_of(owner))),
        namespace: Some(namespace_of(owner).to_string()),
        labels: Some(labels),
        owner_references: Some(vec![owner_reference(WorkloadKind::Deployment, owner)]),
        ..ObjectMeta::default()
    };
    metadata.uid = Some(uid_of(WorkloadKind::ReplicaSet, &metadata));
    ReplicaSet {
        metadata,
        spec: Some(ReplicaSetSpec {
            min_ready_seconds: spec.min_ready_seconds,
            replicas: spec.replicas,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}
