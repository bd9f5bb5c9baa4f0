//! Converts a Node to a fact.

use k8s_openapi::api::core::v1 as core;
use strew_cluster::NodeFact;
use strew_model::{Effect, Interner, Taint};

use super::amounts::{quantity, resources};
use super::labels;
use strew_manifest::field::{FieldError, FieldPath};

/// A node as a fact.
///
/// # Errors
/// Each allocatable quantity that cannot be used.
pub fn node(node: &core::Node, names: &mut Interner) -> Result<NodeFact, Vec<FieldError>> {
    let spec = node.spec.as_ref();
    let status = node.status.as_ref();
    let path = FieldPath::root().child("status.allocatable");
    // The API server sets allocatable from capacity if the kubelet has not reported it.
    let allocatable = status.and_then(|s| s.allocatable.as_ref().or(s.capacity.as_ref()));
    let amounts = resources(allocatable, &path, names)?;
    let pods = allocatable.and_then(|list| list.get("pods"));
    let pods_max = pods
        .map_or(Ok(0), |q| quantity(q, &path.key("pods"), false))
        .map_err(|e| vec![e])?;
    let images = status.and_then(|s| s.images.as_ref()).into_iter().flatten();
    let images = images.flat_map(|image| {
        let size = image.size_bytes.unwrap_or(0);
        image.names.iter().flatten().map(move |name| (name, size))
    });
    Ok(NodeFact {
        name: names.intern(node.metadata.name.as_deref().unwrap_or_default()),
        labels: labels(node.metadata.labels.as_ref(), names),
        taints: taints(
            spec.and_then(|s| s.taints.as_deref()).unwrap_or_default(),
            names,
        ),
        unschedulable: spec.and_then(|s| s.unschedulable).unwrap_or(false),
        allocatable: amounts,
        pods_max,
        images: images
            .map(|(name, size)| (names.intern(name), size))
            .collect(),
    })
}

/// A node's taints. Taints with an unknown effect have no effect and are left out.
pub fn taints(wire: &[core::Taint], names: &mut Interner) -> Box<[Taint]> {
    wire.iter().filter_map(|t| taint(t, names)).collect()
}

/// A taint; `None` if its effect is unknown.
pub fn taint(wire: &core::Taint, names: &mut Interner) -> Option<Taint> {
    Some(Taint {
        key: names.intern(&wire.key),
        value: names.intern(wire.value.as_deref().unwrap_or_default()),
        effect: effect(&wire.effect)?,
    })
}

/// The effect with this name; `None` if it is unknown.
pub(super) fn effect(name: &str) -> Option<Effect> {
    match name {
        "NoSchedule" => Some(Effect::NoSchedule),
        "PreferNoSchedule" => Some(Effect::PreferNoSchedule),
        "NoExecute" => Some(Effect::NoExecute),
        _ => None,
    }
}
