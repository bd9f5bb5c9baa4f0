//! The volume of a claim: created, bound, and deleted with its claim.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use serde_json::json;
use strew_apiserver::object::{Kind, Meta, Name, Node, Object, Plain};
use strew_apiserver::{ApiError, DeleteOptions, Tables};
use strew_manifest::json::Json;
use strew_manifest::read::KubeObject;

use super::{VOLUME, ZONE};
use crate::controller::Context;
use crate::write::{self, Part};

/// The annotation of a claim and a volume that are bound to each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The annotation of a volume that the controller has found for a claim.
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

/// The annotation with the provisioner of a volume.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// The volume that a provisioner makes for a claim, in a zone or reachable from every node.
pub(super) fn made(
    claim: &Plain,
    wire: &PersistentVolumeClaim,
    class: &StorageClass,
    zone: Option<&str>,
) -> Object {
    let name = format!("pvc-{}", claim.meta.uid);
    let spec = wire.spec.clone().unwrap_or_default();
    let storage = spec.resources.and_then(|r| r.requests?.remove("storage"));
    let mut volume = json!({
        "apiVersion": "v1",
        "kind": VOLUME,
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: class.provisioner}},
        "spec": {
            "accessModes": spec.access_modes,
            "capacity": {"storage": storage},
            "claimRef": {
                "apiVersion": "v1",
                "kind": super::CLAIM,
                "namespace": &*claim.meta.name.namespace,
                "name": &*claim.meta.name.name,
                "uid": &*claim.meta.uid,
            },
            "csi": {"driver": class.provisioner, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "storageClassName": class.metadata.name,
            "volumeMode": spec.volume_mode,
        },
        "status": {"phase": "Bound"},
    });
    if let Some(zone) = zone {
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]},
        ]}});
    }
    let wire = PersistentVolume::of_json(volume).unwrap_or_default();
    Object::Plain(Arc::new(Plain {
        meta: Meta::of_wire(wire.metadata.clone(), false),
        kind: Kind::of(VOLUME),
        object: KubeObject::PersistentVolume(Box::new(wire)),
    }))
}

/// Sets the claim's volume. Returns false if nothing had to be changed.
pub(super) fn bind(object: &mut Object, volume: &str) -> bool {
    let Object::Plain(plain) = object else {
        return false;
    };
    let plain = Arc::make_mut(plain);
    let KubeObject::PersistentVolumeClaim(claim) = &mut plain.object else {
        return false;
    };
    if plain.meta.annotation(BIND_COMPLETED).is_some() && super::volume_of(claim).is_some() {
        return false;
    }
    claim.spec.get_or_insert_default().volume_name = Some(volume.to_owned());
    plain.meta.annotate(BIND_COMPLETED, "yes");
    true
}

/// Keeps a volume for a claim. Returns false if it is kept for it, or for another one, already.
pub(super) fn keep_for(volume: &mut Object, claim: &Object) -> bool {
    let Object::Plain(plain) = volume else {
        return false;
    };
    let plain = Arc::make_mut(plain);
    let KubeObject::PersistentVolume(wire) = &mut plain.object else {
        return false;
    };
    let (name, uid) = (&claim.meta().name, &*claim.meta().uid);
    let spec = wire.spec.get_or_insert_default();
    let is_new = spec.claim_ref.is_none();
    let of = spec.claim_ref.get_or_insert_default();
    if !is_new && of.uid.as_deref().is_some_and(|known| !known.is_empty()) {
        return false;
    }
    of.api_version = Some("v1".to_owned());
    of.kind = Some(super::CLAIM.to_owned());
    of.namespace = Some(name.namespace.to_string());
    of.name = Some(name.name.to_string());
    of.uid = Some(uid.to_owned());
    if is_new {
        plain.meta.annotate(BOUND_BY_CONTROLLER, "yes");
    }
    true
}

/// Sets the phase of a volume with a claim. Returns false if nothing had to be changed.
pub(super) fn set_taken(volume: &mut Object) -> bool {
    set_phase(volume, "Bound")
}

fn set_phase(volume: &mut Object, phase: &str) -> bool {
    let Object::Plain(plain) = volume else {
        return false;
    };
    let KubeObject::PersistentVolume(wire) = &mut Arc::make_mut(plain).object else {
        return false;
    };
    let status = wire.status.get_or_insert_default();
    let is_new = status.phase.as_deref() != Some(phase);
    status.phase = Some(phase.to_owned());
    is_new
}

/// Sets the status of a claim that is bound to a volume. Returns false if nothing had to be changed.
pub(super) fn set_bound(object: &mut Object, volume: &PersistentVolume) -> bool {
    let Object::Plain(plain) = object else {
        return false;
    };
    let plain = Arc::make_mut(plain);
    let KubeObject::PersistentVolumeClaim(claim) = &mut plain.object else {
        return false;
    };
    let status = claim.status.get_or_insert_default();
    if status.phase.as_deref() == Some("Bound") {
        return false;
    }
    let spec = volume.spec.clone().unwrap_or_default();
    status.phase = Some("Bound".to_owned());
    status.access_modes = spec.access_modes;
    status.capacity = spec.capacity;
    true
}

/// True if the volume that is made for a claim is reached from every node: one that several nodes mount is a network file
/// system, whose drivers give no node affinity, unless the class names topologies.
pub(super) fn is_shared(claim: &PersistentVolumeClaim, class: &StorageClass) -> bool {
    let modes = claim
        .spec
        .iter()
        .flat_map(|spec| spec.access_modes.iter().flatten());
    let mut shared =
        modes.filter(|mode| ["ReadWriteMany", "ReadOnlyMany"].contains(&mode.as_str()));
    let topologies = class.allowed_topologies.as_deref().unwrap_or_default();
    shared.next().is_some() && topologies.is_empty()
}

/// The zone of a volume that is made before any pod needs it: claims of one StatefulSet use the zones in turn.
///
/// Source: `ChooseZoneForVolume` of `k8s.io/cloud-provider/volume/helpers`, of which the hash differs.
pub(super) fn zone_at_once(claim: &str, class: &StorageClass, cache: &Tables) -> Option<String> {
    let nodes = cache.of::<Node>().iter();
    let zones: BTreeSet<&str> = nodes.filter_map(|node| node.meta.label(ZONE)).collect();
    let allowed = |zone: &&&str| {
        let topologies = class.allowed_topologies.iter().flatten();
        let terms = topologies.flat_map(|term| term.match_label_expressions.iter().flatten());
        let mut of_zone = terms.filter(|term| term.key == ZONE).peekable();
        of_zone.peek().is_none() || of_zone.any(|term| term.values.iter().any(|v| v == **zone))
    };
    let zones: Vec<&str> = zones.iter().filter(allowed).copied().collect();
    let (base, ordinal) = match claim.rsplit_once('-') {
        Some((base, ordinal)) => (base, ordinal.parse::<u64>().ok()),
        None => (claim, None),
    };
    let base = if ordinal.is_some() { base } else { claim };
    let hash = base.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let place = hash.wrapping_add(ordinal.unwrap_or(0));
    let n = u64::try_from(zones.len()).ok().filter(|n| *n > 0)?;
    zones
        .get(usize::try_from(place % n).ok()?)
        .map(|zone| (*zone).to_owned())
}

/// The claim is deleted: deletes the volume that was made for it, unless the class retains it; others are released.
pub(super) fn reclaim(claim: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
    let is_its = |volume: &PersistentVolume| {
        let of = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.claim_ref.as_ref());
        of.is_some_and(|of| {
            of.uid.as_deref().is_some_and(|uid| !uid.is_empty())
                && of.namespace.as_deref() == Some(&*claim.namespace)
                && of.name.as_deref() == Some(&*claim.name)
        })
    };
    let its: Vec<(Arc<Plain>, bool)> = { cx.cache.all_plain() }
        .filter_map(|plain| match &plain.object {
            KubeObject::PersistentVolume(volume) if is_its(volume) => {
                let policy = volume.spec.as_ref();
                let policy = policy.and_then(|s| s.persistent_volume_reclaim_policy.as_deref());
                let goes =
                    plain.meta.annotation(PROVISIONED_BY).is_some() && policy == Some("Delete");
                Some((Arc::clone(plain), goes))
            }
            _ => None,
        })
        .collect();
    for (plain, goes) in its {
        if !goes {
            let release = |volume: &mut Object| set_phase(volume, "Released");
            write::change_any(cx.api, Object::Plain(plain), Part::Status, release)?;
            continue;
        }
        let key = super::key(VOLUME, plain.meta.name.clone());
        match cx.api.delete(&key, &DeleteOptions::default()) {
            Ok(()) | Err(ApiError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// For tests: the zone in a volume's node affinity.
#[cfg(test)]
pub(super) fn zone_of(volume: &serde_json::Value) -> Option<&str> {
    volume
        .pointer("/spec/nodeAffinity/required/nodeSelectorTerms/0/matchExpressions/0/values/0")?
        .as_str()
}
