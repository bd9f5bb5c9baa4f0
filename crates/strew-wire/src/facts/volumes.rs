//! Converts PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes to facts.
//!
//! Source: spec/scheduler §3.12; upstream `component-helpers/storage/volume`, `csi-translation-lib`, v1.36.3.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, TopologySelectorTerm};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use strew_cluster::volumes::AccessModes;
use strew_cluster::{AttachLimits, ClaimFact, StorageClassFact, VolumeFact};
use strew_manifest::quantity::Quantity;
use strew_model::{
    Interner, Labels, NodeExpression, NodeOperator, NodeSelectorTerm, Operator, Selector, Symbol,
    well_known,
};
use strew_scheduler::plugins::volume_zone;

use super::{labels, node_selector_term, selector};

/// The annotation of the volume controller on a claim and a volume that are bound to each other.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The older annotation with the storage class of a claim or volume; it overrides the field.
pub const CLASS_BETA: &str = "volume.beta.kubernetes.io/storage-class";

/// The annotation of a claim with the node that its volume is to be made for.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The provisioner of classes for which no volumes are made.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

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
    let modes = spec.and_then(|s| s.access_modes.as_ref());
    let mut owners = metadata.owner_references.iter().flatten();
    ClaimFact {
        volume: name(spec.and_then(|s| s.volume_name.as_ref())),
        bound: unattended || annotation(BIND_COMPLETED).is_some() || phase == Some("Bound"),
        unattended,
        lost: phase == Some("Lost"),
        terminating: metadata.deletion_timestamp.is_some(),
        once_pod: { modes.into_iter().flatten() }.any(|mode| mode == "ReadWriteOncePod"),
        class: name(class),
        owner: owners
            .find(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.as_str().into()),
        uid: metadata.uid.as_deref().unwrap_or_default().into(),
        size: storage(spec.and_then(|s| s.resources.as_ref()?.requests.as_ref())),
        modes: access_modes(modes),
        block: is_block(spec.and_then(|s| s.volume_mode.as_deref())),
        selected: name(annotation(SELECTED_NODE)),
        selector: spec.and_then(|s| s.selector.as_ref()).map(|wire| {
            // Upstream ends with an error, and binds nothing.
            selector(Some(wire), names).unwrap_or(Selector::Nothing)
        }),
    }
}

/// The bytes of storage in a list of resources; 0 if it has none.
fn storage(resources: Option<&BTreeMap<String, WireQuantity>>) -> i64 {
    let amount = resources.and_then(|resources| resources.get("storage"));
    let amount = amount.and_then(|amount| Quantity::parse(&amount.0).ok());
    amount.map_or(0, Quantity::value)
}

fn access_modes(modes: Option<&Vec<String>>) -> AccessModes {
    AccessModes::of(modes.into_iter().flatten().map(String::as_str))
}

fn is_block(mode: Option<&str>) -> bool {
    mode == Some("Block")
}

/// A volume as a fact.
pub fn volume(wire: &PersistentVolume, names: &mut Interner) -> VolumeFact {
    let spec = wire.spec.as_ref();
    let required = spec.and_then(|s| s.node_affinity.as_ref()?.required.as_ref());
    let terms = required.map(|required| {
        let terms = required.node_selector_terms.iter();
        terms.map(|term| node_selector_term(term, names)).collect()
    });
    let labels = labels(wire.metadata.labels.as_ref(), names);
    let annotations = wire.metadata.annotations.as_ref();
    let class = annotations.and_then(|annotations| annotations.get(CLASS_BETA));
    let class = class.or(spec.and_then(|s| s.storage_class_name.as_ref()));
    let claim = spec.and_then(|s| s.claim_ref.as_ref()).map(|claim| {
        let mut name = |text: &Option<String>| match text.as_deref() {
            None | Some("") => well_known::EMPTY,
            Some(text) => names.intern(text),
        };
        let key = (name(&claim.namespace), name(&claim.name));
        (key, claim.uid.as_deref().unwrap_or_default().into())
    });
    let phase = wire.status.as_ref().and_then(|s| s.phase.as_deref());
    VolumeFact {
        terms,
        zones: zones(&labels, names),
        attached: attached(wire)
            .map(|(driver, handle)| (names.intern(driver), names.intern(handle))),
        class: { class.filter(|class| !class.is_empty()) }.map(|class| names.intern(class)),
        capacity: storage(spec.and_then(|s| s.capacity.as_ref())),
        modes: access_modes(spec.and_then(|s| s.access_modes.as_ref())),
        block: is_block(spec.and_then(|s| s.volume_mode.as_deref())),
        labels,
        claim,
        // The volume controller makes a new volume available.
        available: matches!(phase, None | Some("" | "Pending" | "Available")),
        terminating: wire.metadata.deletion_timestamp.is_some(),
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
        provisions: !matches!(provisioner, "" | NO_PROVISIONER),
        topologies: { wire.allowed_topologies.iter().flatten() }
            .map(|term| topology(term, names))
            .collect(),
    }
}

/// A term of `allowedTopologies`; an empty one allows no node.
fn topology(wire: &TopologySelectorTerm, names: &mut Interner) -> NodeSelectorTerm {
    let expressions: Box<[NodeExpression]> = { wire.match_label_expressions.iter().flatten() }
        .map(|expression| {
            let mut values: Vec<Symbol> = { expression.values.iter() }
                .map(|value| names.intern(value))
                .collect();
            values.sort_unstable();
            NodeExpression {
                key: names.intern(&expression.key),
                operator: NodeOperator::Label(Operator::In(values.into())),
            }
        })
        .collect();
    match expressions.is_empty() {
        true => NodeSelectorTerm::NoNode,
        false => NodeSelectorTerm::AllOf {
            expressions,
            fields: Box::default(),
        },
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
