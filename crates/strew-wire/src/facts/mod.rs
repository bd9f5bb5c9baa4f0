//! Converts Kubernetes objects to facts; simulation and real clusters share this code. Pods are read through
//! [`PodView`], so that a store may keep them in another form.
//!
//! Conversion does not validate (see [`strew_manifest::read`] and the validation). It refuses an object only if no decision can
//! be based on it, for example because a quantity exceeds 63 bits; the caller then ignores the object.

mod amounts;
mod budget;
mod input;
mod node;
pub(crate) mod pod;
mod selectors;
mod view;
mod volumes;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use std::collections::BTreeMap;
use strew_cluster::{Cluster, OwnerKind, OwnerRef};
use strew_model::{Interner, Labels, Selector, Symbol, well_known};

use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;

pub use amounts::resources;
pub use budget::{budget, set_budget};
pub use input::{Named, gone, identity, input};
pub use node::{node, taint, taints};
pub use pod::{
    owner_kind, owner_ref, pod, required_node_affinity, template_spec, toleration, tolerations,
};
pub(crate) use selectors::node_selector_term;
pub use selectors::{BadSelector, selector, spread_constraint};
pub use view::{ConditionView, OwnerView, Pairs, PodFacts, PodView};
pub use volumes::{CLASS_BETA, attach_limits, claim, storage_class, volume};

/// Applies an object to the cluster. Kinds that decisions do not read change nothing.
///
/// # Errors
/// Everything in the object that cannot be converted.
pub fn apply(object: &KubeObject, cluster: &mut Cluster) -> Result<(), Vec<FieldError>> {
    match object {
        KubeObject::Node(n) => {
            let fact = node(n, &mut cluster.names)?;
            cluster.set_node(fact);
        }
        KubeObject::Pod(p) => {
            if let Some(fact) = pod(p, &mut cluster.names)? {
                cluster.set_pod(fact);
            }
        }
        KubeObject::Service(wire) => {
            let (namespace, name, selector) = service(wire, &mut cluster.names);
            cluster.set_service(namespace, name, selector);
        }
        KubeObject::Namespace(wire) => {
            let (name, labels) = labelled(&wire.metadata, &mut cluster.names);
            cluster.set_namespace(name, Some(labels));
        }
        KubeObject::PersistentVolumeClaim(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, &mut cluster.names);
            let fact = claim(wire, &mut cluster.names);
            cluster.set_claim(namespace, name, Some(fact));
        }
        KubeObject::PersistentVolume(wire) => {
            let name = named(&wire.metadata, &mut cluster.names);
            let fact = volume(wire, &mut cluster.names);
            cluster.set_volume(name, Some(fact));
        }
        KubeObject::StorageClass(wire) => {
            let name = named(&wire.metadata, &mut cluster.names);
            let fact = storage_class(wire, &mut cluster.names);
            cluster.set_storage_class(name, Some(fact));
        }
        KubeObject::CSINode(wire) => {
            let node = named(&wire.metadata, &mut cluster.names);
            let limits = attach_limits(wire, &mut cluster.names);
            cluster.set_attach_limits(node, Some(limits));
        }
        object => {
            if let Some((namespace, owner, selector)) = controller(object, &mut cluster.names) {
                cluster.set_controller(namespace, owner, selector);
            }
        }
    }
    Ok(())
}

/// Everything in an object that cannot be converted. Budgets are checked when they are applied.
pub fn errors(object: &KubeObject) -> Vec<FieldError> {
    let mut names = Interner::new();
    let errors = match object {
        KubeObject::Node(n) => node(n, &mut names).err(),
        KubeObject::Pod(p) => pod(p, &mut names).err(),
        KubeObject::PodDisruptionBudget(_) => None,
        object => apply(object, &mut Cluster::new()).err(),
    };
    errors.unwrap_or_default()
}

/// The namespace, name and selector of a Service.
pub(crate) fn service(
    wire: &core::Service,
    names: &mut Interner,
) -> (Symbol, Symbol, Option<Labels>) {
    let (namespace, name) = namespaced(&wire.metadata, names);
    let pairs = wire.spec.as_ref().and_then(|s| s.selector.as_ref());
    let selector = pairs.map(|pairs| labels(Some(pairs), names));
    (namespace, name, selector)
}

/// A controller with a selector: its namespace, its identity, and the selector; `None` for other kinds.
pub(crate) fn controller(
    object: &KubeObject,
    names: &mut Interner,
) -> Option<(Symbol, OwnerRef, Option<Selector>)> {
    let of_wire = |wire: Option<&LabelSelector>, names: &mut Interner| match wire {
        Some(wire) => selector(Some(wire), names),
        None => Ok(Selector::Nothing),
    };
    let (kind, metadata, found) = match object {
        KubeObject::ReplicationController(rc) => {
            let pairs = rc.spec.as_ref().and_then(|s| s.selector.as_ref());
            let labels = labels(pairs, names);
            let selector = Selector::of_labels(labels.iter());
            (OwnerKind::ReplicationController, &rc.metadata, Ok(selector))
        }
        KubeObject::ReplicaSet(set) => {
            let found = of_wire(set.spec.as_ref().map(|s| &s.selector), names);
            (OwnerKind::ReplicaSet, &set.metadata, found)
        }
        KubeObject::StatefulSet(set) => {
            let found = of_wire(set.spec.as_ref().map(|s| &s.selector), names);
            (OwnerKind::StatefulSet, &set.metadata, found)
        }
        _ => return None,
    };
    let (namespace, name) = namespaced(metadata, names);
    // An invalid selector adds nothing to the deduced one (spec/scheduler §1.5).
    Some((namespace, OwnerRef { kind, name }, found.ok()))
}

pub(crate) fn named(metadata: &ObjectMeta, names: &mut Interner) -> Symbol {
    names.intern(metadata.name.as_deref().unwrap_or_default())
}

pub(crate) fn namespaced(metadata: &ObjectMeta, names: &mut Interner) -> (Symbol, Symbol) {
    (namespace(metadata, names), named(metadata, names))
}

fn namespace(metadata: &ObjectMeta, names: &mut Interner) -> Symbol {
    match metadata.namespace.as_deref() {
        None | Some("") => well_known::DEFAULT_NAMESPACE,
        Some(namespace) => names.intern(namespace),
    }
}

/// The name and the labels of a cluster-scoped object.
pub fn labelled(metadata: &ObjectMeta, names: &mut Interner) -> (Symbol, Labels) {
    let name = named(metadata, names);
    (name, labels(metadata.labels.as_ref(), names))
}

/// Labels, interned.
pub fn labels(pairs: Option<&BTreeMap<String, String>>, names: &mut Interner) -> Labels {
    let pairs = pairs.into_iter().flatten();
    Labels::new(
        pairs
            .map(|(key, value)| (names.intern(key), names.intern(value)))
            .collect(),
    )
}
