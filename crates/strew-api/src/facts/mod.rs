//! Kubernetes objects into facts: the one conversion that simulation and real clusters share.
//!
//! Conversion does not judge what the API server judges (see [`crate::read`] and the validation); it refuses what no
//! decision could be made from, such as a quantity beyond 63 bits. A refused object is set aside by the caller.

mod amounts;
mod budget;
mod node;
mod pod;
mod selectors;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;
use strew_cluster::Cluster;
use strew_model::{Interner, Labels, Symbol, well_known};

use crate::field::FieldError;
use crate::read::KubeObject;

pub use amounts::resources;
pub use budget::{budget, set_budget};
pub(crate) use node::taints;
pub use node::{node, taint};
pub use pod::{owner_ref, pod, toleration};
pub(crate) use pod::{required_node_affinity, tolerations};
pub(crate) use selectors::node_selector_term;
pub use selectors::{BadSelector, selector, spread_constraint};

/// Tells the cluster what an object says. Kinds that decisions do not look at change nothing.
///
/// # Errors
/// Everything in the object that no decision could be made from.
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
        KubeObject::Service(service) => set_service(service, cluster),
        KubeObject::Namespace(namespace) => {
            let name = text(cluster, namespace.metadata.name.as_deref());
            let labels = labels(namespace.metadata.labels.as_ref(), &mut cluster.names);
            cluster.set_namespace(name, Some(labels));
        }
        KubeObject::ReplicationController(_)
        | KubeObject::ReplicaSet(_)
        | KubeObject::StatefulSet(_) => {
            set_controller(object, cluster);
        }
        _ => {}
    }
    Ok(())
}

fn set_service(service: &core::Service, cluster: &mut Cluster) {
    let (namespace, name) = namespaced(cluster, &service.metadata);
    let pairs = service.spec.as_ref().and_then(|s| s.selector.as_ref());
    let selector = pairs.map(|pairs| labels(Some(pairs), &mut cluster.names));
    cluster.set_service(namespace, name, selector);
}

fn set_controller(object: &KubeObject, cluster: &mut Cluster) {
    use strew_cluster::OwnerKind;
    use strew_model::Selector;
    let (kind, metadata, found) = match object {
        KubeObject::ReplicationController(rc) => {
            let pairs = rc.spec.as_ref().and_then(|s| s.selector.as_ref());
            let labels = labels(pairs, &mut cluster.names);
            (
                OwnerKind::ReplicationController,
                &rc.metadata,
                Ok(Selector::of_labels(labels.iter())),
            )
        }
        KubeObject::ReplicaSet(rs) => {
            let found = rs
                .spec
                .as_ref()
                .map(|s| selector(Some(&s.selector), &mut cluster.names));
            (
                OwnerKind::ReplicaSet,
                &rs.metadata,
                found.unwrap_or(Ok(Selector::Nothing)),
            )
        }
        KubeObject::StatefulSet(set) => {
            let found = set
                .spec
                .as_ref()
                .map(|s| selector(Some(&s.selector), &mut cluster.names));
            (
                OwnerKind::StatefulSet,
                &set.metadata,
                found.unwrap_or(Ok(Selector::Nothing)),
            )
        }
        _ => return,
    };
    let (namespace, name) = namespaced(cluster, metadata);
    let owner = strew_cluster::OwnerRef { kind, name };
    // A selector that does not parse adds nothing to what is deduced (spec/scheduler §1.5).
    cluster.set_controller(namespace, owner, found.ok());
}

fn namespaced(cluster: &mut Cluster, metadata: &ObjectMeta) -> (Symbol, Symbol) {
    let namespace = namespace(metadata, &mut cluster.names);
    (namespace, text(cluster, metadata.name.as_deref()))
}

fn namespace(metadata: &ObjectMeta, names: &mut Interner) -> Symbol {
    match metadata.namespace.as_deref() {
        None | Some("") => well_known::DEFAULT_NAMESPACE,
        Some(namespace) => names.intern(namespace),
    }
}

fn text(cluster: &mut Cluster, text: Option<&str>) -> Symbol {
    cluster.names.intern(text.unwrap_or_default())
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
