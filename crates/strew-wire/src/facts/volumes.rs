//! Converts PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes to facts.
//!
//! Source: spec/scheduler §3.12; upstream `component-helpers/storage/volume`, `csi-translation-lib`, v1.36.3.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use strew_cluster::{AttachLimits, ClaimFact, StorageClassFact, VolumeFact};
use strew_model::{Interner, Labels, Symbol};
use strew_scheduler::plugins::volume_zone;

use super::{labels, node_selector_term};

/// The annotation of the volume controller on a claim and a volume that are bound to each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The older annotation with a claim's storage class; it overrides the field.
const CLASS_BETA: &str = "volume.beta.kubernetes.io/storage-class";

/// A claim as a fact.
///
/// A claim is bound if the volume controller says so, by an annotation or the phase. A claim without a phase was never
/// in an API server, and no volume controller has seen it: then, as in files, it is bound if it names its volume.
pub fn claim(wire: &PersistentVolumeClaim, names: &mut Interner) -> ClaimFact {
    let (metadata, spec) = (&wire.metadata, wire.spec.as_ref());
    let phase = wire.status.as_ref().and_then(|s| s.phase.as_deref());
    let unattended = matches!(phase, None | Some(""));
    let annotation = |key: &str| metadata.annotations.as_ref().and_then(|a| a.get(key));
    let class = annotation(CLASS_BETA).or(spec.and_then(|s| s.storage_class_name.as_ref()));
    let mut name = |text: Option<&String>| {
        let text = text.filter(|text| !text.is_empty())?;
        Some(names.intern(text))
    };
    let mut modes = spec
        .and_then(|s| s.access_modes.as_ref())
        .into_iter()
        .flatten();
    let mut owners = metadata.owner_references.iter().flatten();
    ClaimFact {
        volume: name(spec.and_then(|s| s.volume_name.as_ref())),
        bound: unattended || annotation(BIND_COMPLETED).is_some() || phase == Some("Bound"),
        unattended,
        lost: phase == Some("Lost"),
        terminating: metadata.deletion_timestamp.is_some(),
        once_pod: modes.any(|mode| mode == "ReadWriteOncePod"),
        class: name(class),
        owner: owners
            .find(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.as_str().into()),
    }
}

/// A volume as a fact.
pub fn volume(wire: &PersistentVolume, names: &mut Interner) -> VolumeFact {
    let spec = wire.spec.as_ref();
    let required = spec.and_then(|s| s.node_affinity.as_ref()?.required.as_ref());
    let terms = required.map(|required| {
        let terms = required.node_selector_terms.iter();
        terms.map(|term| node_selector_term(term, names)).collect()
    });
    VolumeFact {
        terms,
        zones: zones(&labels(wire.metadata.labels.as_ref(), names), names),
        attached: attached(wire)
            .map(|(driver, handle)| (names.intern(driver), names.intern(handle))),
    }
}

/// Zone and region labels; several values are separated by `__`. Empty values are ignored.
fn zones(labels: &Labels, names: &mut Interner) -> Box<[(Symbol, Box<[Symbol]>)]> {
    let mut of_key = |key: Symbol| {
        let text = names.text(labels.get(key)?).to_owned();
        let values: Vec<&str> = text.split("__").map(str::trim).collect();
        let all_named = values.iter().all(|value| !value.is_empty());
        all_named.then(|| {
            let values = values.iter().map(|value| names.intern(value));
            (key, values.collect())
        })
    };
    volume_zone::LABELS
        .into_iter()
        .filter_map(&mut of_key)
        .collect()
}

/// In-tree volume plugins replaced by CSI drivers: provisioner, driver.
const MIGRATED: [(&str, &str); 5] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// In-tree provisioners whose volumes are not counted, although a CSI driver replaced them.
const UNCOUNTED: [&str; 2] = ["kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"];

/// The driver that attaches a volume, and the volume's handle.
fn attached(wire: &PersistentVolume) -> Option<(&str, &str)> {
    let spec = wire.spec.as_ref()?;
    if let Some(csi) = &spec.csi {
        return Some((&csi.driver, &csi.volume_handle));
    }
    let [ebs, gce, azure, cinder, portworx] = MIGRATED.map(|(_, driver)| driver);
    let kinds = [
        (
            ebs,
            spec.aws_elastic_block_store.as_ref().map(|v| &v.volume_id),
        ),
        (gce, spec.gce_persistent_disk.as_ref().map(|v| &v.pd_name)),
        (azure, spec.azure_disk.as_ref().map(|v| &v.disk_uri)),
        (cinder, spec.cinder.as_ref().map(|v| &v.volume_id)),
        (
            portworx,
            spec.portworx_volume.as_ref().map(|v| &v.volume_id),
        ),
    ];
    let mut kinds = kinds.into_iter();
    kinds.find_map(|(driver, handle)| Some((driver, handle?.as_str())))
}

/// A storage class as a fact; without a binding mode, claims are bound immediately.
pub fn storage_class(wire: &StorageClass, names: &mut Interner) -> StorageClassFact {
    let provisioner = wire.provisioner.as_str();
    let migrated = MIGRATED.iter().find(|(in_tree, _)| *in_tree == provisioner);
    let driver = match migrated {
        Some((_, driver)) => Some(*driver),
        None => Some(provisioner).filter(|p| !p.is_empty() && !UNCOUNTED.contains(p)),
    };
    StorageClassFact {
        waits: wire.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"),
        driver: driver.map(|driver| names.intern(driver)),
    }
}

/// The numbers of volumes that the drivers of a node attach; a driver without a number has no limit.
pub fn attach_limits(wire: &CSINode, names: &mut Interner) -> AttachLimits {
    let drivers = wire.spec.drivers.iter();
    let limit = |driver: &k8s_openapi::api::storage::v1::CSINodeDriver| {
        let count = driver.allocatable.as_ref()?.count?;
        Some((names.intern(&driver.name), i64::from(count)))
    };
    drivers.filter_map(limit).collect()
}

#[cfg(test)]
mod tests;
