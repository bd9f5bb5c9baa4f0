//! StatefulSets: the identity of their pods.

use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, PodSpec, Volume,
};

use super::name_of;

/// Makes a template's spec that of the pod of a name: host name, subdomain, and the pod's own claims (`TEMPLATE-POD`)
/// instead of the template's volumes of that name.
/// Source: `initIdentity`, `updateStorage`.
pub fn set_stateful_identity(spec: &mut PodSpec, set: &StatefulSetSpec, pod_name: &str) {
    spec.hostname = Some(pod_name.to_string());
    spec.subdomain = set.service_name.clone();
    let claims = set.volume_claim_templates.as_deref().unwrap_or_default();
    set_claim_volumes(spec, claims, pod_name);
}

/// Gives a pod of this name a volume for each claim template, instead of the volumes of that name.
/// Source: `updateStorage`.
pub fn set_claim_volumes(spec: &mut PodSpec, claims: &[PersistentVolumeClaim], pod_name: &str) {
    let claims: Vec<&str> = claims
        .iter()
        .map(|claim| name_of(&claim.metadata))
        .collect();
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
