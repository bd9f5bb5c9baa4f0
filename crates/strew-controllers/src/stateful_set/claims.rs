//! The volume claims of a StatefulSet's pods: created before the pods, kept or deleted by the retention policy.
//!
//! Source: spec/controllers §3, §3.4; upstream `stateful_pod_control.go`.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use strew_apiserver::object::{Key, Kind, Meta, Name, Object, Owner, Plain, Pod, StatefulSet};
use strew_manifest::read::KubeObject;

use crate::sets::owner_of;

/// The kind of claims.
pub(super) const CLAIM: &str = "PersistentVolumeClaim";

/// The key of the claim `TEMPLATE-POD`.
pub(super) fn claim_key(template: &PersistentVolumeClaim, pod: &Name) -> Key {
    let of_template = template.metadata.name.as_deref().unwrap_or_default();
    Key {
        kind: Kind::of(CLAIM),
        name: Name::new(
            Arc::clone(&pod.namespace),
            format!("{of_template}-{}", pod.name),
        ),
    }
}

/// The keys of all claims of a pod, in the order of the templates.
pub(super) fn claim_keys(spec: &StatefulSetSpec, pod: &Name) -> Vec<Key> {
    templates(spec).map(|t| claim_key(t, pod)).collect()
}

pub(super) fn templates(spec: &StatefulSetSpec) -> impl Iterator<Item = &PersistentVolumeClaim> {
    spec.volume_claim_templates.iter().flatten()
}

/// The claim that a template makes for a pod; it has the labels of the set's selector as well.
pub(super) fn new_claim(set: &StatefulSet, template: &PersistentVolumeClaim, pod: &Name) -> Object {
    let key = claim_key(template, pod);
    let mut wire = template.clone();
    wire.metadata.namespace = Some(key.name.namespace.to_string());
    wire.metadata.name = Some(key.name.name.to_string());
    let labels = wire.metadata.labels.get_or_insert_default();
    let selector = set.spec.selector.match_labels.iter().flatten();
    labels.extend(selector.map(|(k, v)| (k.clone(), v.clone())));
    Object::Plain(Arc::new(Plain {
        meta: Meta::of_wire(wire.metadata.clone(), true),
        kind: key.kind,
        object: KubeObject::PersistentVolumeClaim(Box::new(wire)),
    }))
}

/// The owners of a claim by the retention policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holders {
    set: bool,
    pod: bool,
}

fn holders(spec: &StatefulSetSpec, is_condemned: bool) -> Holders {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref();
    let deletes = |when: Option<&String>| when.is_some_and(|w| w == "Delete");
    let when_scaled = deletes(policy.and_then(|p| p.when_scaled.as_ref()));
    let when_deleted = deletes(policy.and_then(|p| p.when_deleted.as_ref()));
    let pod = when_scaled && is_condemned;
    Holders {
        set: when_deleted && !pod,
        pod,
    }
}

/// True if pods can own claims of this set.
pub(super) fn follows_pods(spec: &StatefulSetSpec) -> bool {
    holders(spec, true).pod
}

/// True if the claim belongs to a deleted pod of this name: then it is being deleted, and the set must wait.
pub(super) fn is_stale(claim: &Object, pod: &Pod) -> bool {
    let mut owners = claim.meta().owners.iter();
    owners.any(|o| &*o.kind == "Pod" && o.name == pod.meta.name.name && o.uid != pod.meta.uid)
}

/// The claim with the owners that it should have; `None` if it has them, or another controller owns it.
pub(super) fn with_owners(
    claim: &Object,
    set: &StatefulSet,
    pod: Option<&Pod>,
    is_condemned: bool,
) -> Option<Object> {
    let is_of_set = |o: &Owner| o.uid == set.meta.uid;
    let is_of_pod = |o: &Owner| pod.is_some_and(|pod| o.uid == pod.meta.uid);
    let meta = claim.meta();
    let is_foreign = |o: &&Owner| o.is_controller && !is_of_set(o) && !is_of_pod(o);
    if meta.owners.iter().any(|o| is_foreign(&o)) {
        return None;
    }
    let wanted = holders(&set.spec, is_condemned);
    let others = meta.owners.iter();
    let mut owners: Vec<Owner> = others
        .filter(|o| !is_of_set(o) && !is_of_pod(o))
        .cloned()
        .collect();
    if wanted.set {
        owners.push(owner_of(set));
    }
    if let Some(pod) = pod.filter(|_| wanted.pod) {
        owners.push(owner_of(pod));
    }
    if meta.owners[..] == owners[..] {
        return None;
    }
    let mut claim = claim.clone();
    claim.meta_mut().owners = owners.into();
    Some(claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_holds_a_claim() {
        for (scaled, deleted, in_range, condemned) in [
            ("Retain", "Retain", "", ""),
            ("Retain", "Delete", "set", "set"),
            ("Delete", "Retain", "", "pod"),
            ("Delete", "Delete", "set", "pod"),
        ] {
            let spec: StatefulSetSpec = serde_json::from_value(json!({
                "selector": {}, "template": {},
                "persistentVolumeClaimRetentionPolicy": {"whenScaled": scaled, "whenDeleted": deleted},
            }))
            .unwrap();
            for (is_condemned, expected) in [(false, in_range), (true, condemned)] {
                let found = match holders(&spec, is_condemned) {
                    Holders {
                        set: true,
                        pod: false,
                    } => "set",
                    Holders {
                        set: false,
                        pod: true,
                    } => "pod",
                    Holders {
                        set: false,
                        pod: false,
                    } => "",
                    Holders {
                        set: true,
                        pod: true,
                    } => "both",
                };
                assert_eq!(found, expected, "{scaled} {deleted} {is_condemned}");
            }
        }
    }
}
