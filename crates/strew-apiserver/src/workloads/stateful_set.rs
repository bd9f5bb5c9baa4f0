//! StatefulSets: every ordinal once.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, PodSpec, Volume};

use super::template::{Maker, PodMaker, PodName, set_label, template_hash};
use super::{ExpandError, Workload, WorkloadKind, count, name_of, namespace_of};

pub(super) fn expand(set: &StatefulSet, pods: &mut PodMaker<'_>) -> Result<(), ExpandError> {
    let Some(spec) = &set.spec else { return Ok(()) };
    let maker = Maker {
        kind: WorkloadKind::StatefulSet,
        metadata: &set.metadata,
        workload: &Workload::StatefulSet(set).reference(),
    };
    let n = count(spec.replicas);
    pods.check_room(maker.workload, n)?;
    let name = name_of(&set.metadata);
    let revision = format!("{name}-{}", template_hash(&spec.template));
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start);
    let start = usize::try_from(start.unwrap_or(0)).unwrap_or(0);
    for ordinal in start..start + n {
        let pod_name = format!("{name}-{ordinal}");
        if pods.is_taken(namespace_of(&set.metadata), &pod_name) {
            continue;
        }
        pods.pod(
            maker,
            &spec.template,
            PodName::Exactly(pod_name.clone()),
            |pod| {
                set_label(pod, "statefulset.kubernetes.io/pod-name", &pod_name);
                set_label(pod, "apps.kubernetes.io/pod-index", &ordinal.to_string());
                set_label(pod, "controller-revision-hash", &revision);
                set_stateful_identity(pod.spec.get_or_insert_default(), spec, &pod_name);
            },
        );
    }
    Ok(())
}

/// Makes a template's spec that of the pod of a name: host name, subdomain, and the pod's own claims (`TEMPLATE-POD`)
/// instead of the template's volumes of that name.
/// Source: `initIdentity`, `updateStorage`.
pub fn set_stateful_identity(spec: &mut PodSpec, set: &StatefulSetSpec, pod_name: &str) {
    spec.hostname = Some(pod_name.to_string());
    spec.subdomain = set.service_name.clone();
    let claims = set.volume_claim_templates.iter().flatten();
    let claims: Vec<&str> = claims.map(|claim| name_of(&claim.metadata)).collect();
    if claims.is_empty() {
        return;
    }
    let volumes = spec.volumes.get_or_insert_default();
    volumes.retain(|volume| !claims.contains(&volume.name.as_str()));
    volumes.extend(claims.iter().map(|claim| Volume {
        name: claim.to_string(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: format!("{claim}-{pod_name}"),
            read_only: None,
        }),
        ..Volume::default()
    }));
}
