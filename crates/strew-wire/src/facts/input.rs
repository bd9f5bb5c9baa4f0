//! Converts objects to inputs of a scheduler's machine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_cluster::{OwnerKind, OwnerRef};
use strew_model::Interner;
use strew_scheduler::machine::Input;

use super::{
    PodFacts, attach_limits, budget, claim, controller, labelled, named, namespaced, node, service,
    storage_class, volume,
};
use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;

/// A kind of objects that a scheduler watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Watched {
    /// `v1` Namespace
    Namespace,
    /// `v1` Node
    Node,
    /// `v1` Service
    Service,
    /// `v1` ReplicationController
    ReplicationController,
    /// `apps/v1` ReplicaSet
    ReplicaSet,
    /// `apps/v1` StatefulSet
    StatefulSet,
    /// `policy/v1` PodDisruptionBudget
    PodDisruptionBudget,
    /// `v1` PersistentVolumeClaim
    PersistentVolumeClaim,
    /// `v1` PersistentVolume
    PersistentVolume,
    /// `storage.k8s.io/v1` StorageClass
    StorageClass,
    /// `storage.k8s.io/v1` CSINode
    CSINode,
    /// `v1` Pod
    Pod,
}

impl Watched {
    /// The kind of an object; `None` if decisions do not read it.
    pub fn of(object: &KubeObject) -> Option<Self> {
        Some(match object {
            KubeObject::Namespace(_) => Self::Namespace,
            KubeObject::Node(_) => Self::Node,
            KubeObject::Service(_) => Self::Service,
            KubeObject::ReplicationController(_) => Self::ReplicationController,
            KubeObject::ReplicaSet(_) => Self::ReplicaSet,
            KubeObject::StatefulSet(_) => Self::StatefulSet,
            KubeObject::PodDisruptionBudget(_) => Self::PodDisruptionBudget,
            KubeObject::PersistentVolumeClaim(_) => Self::PersistentVolumeClaim,
            KubeObject::PersistentVolume(_) => Self::PersistentVolume,
            KubeObject::StorageClass(_) => Self::StorageClass,
            KubeObject::CSINode(_) => Self::CSINode,
            KubeObject::Pod(_) => Self::Pod,
            _ => return None,
        })
    }

    /// The input of a scheduler for a deleted object of this kind.
    pub fn gone(self, object: &Named, names: &mut Interner) -> Input {
        // Names are interned only if the input needs symbols: every pod has a new name, and no fact would keep it.
        let mut symbol = |text: &str| names.intern(text);
        let name = &*object.name;
        let namespace = match &*object.namespace {
            "" => "default",
            namespace => namespace,
        };
        let mut controller_gone = |kind| Input::ControllerSet {
            namespace: symbol(namespace),
            owner: OwnerRef {
                kind,
                name: symbol(name),
            },
            selector: None,
        };
        match self {
            Self::Namespace => Input::NamespaceSet {
                name: symbol(name),
                labels: None,
            },
            Self::Node => Input::NodeGone(symbol(name)),
            Self::Service => Input::ServiceSet {
                namespace: symbol(namespace),
                name: symbol(name),
                selector: None,
            },
            Self::ReplicationController => controller_gone(OwnerKind::ReplicationController),
            Self::ReplicaSet => controller_gone(OwnerKind::ReplicaSet),
            Self::StatefulSet => controller_gone(OwnerKind::StatefulSet),
            Self::PodDisruptionBudget => Input::BudgetSet {
                namespace: symbol(namespace),
                name: symbol(name),
                budget: None,
            },
            Self::PersistentVolumeClaim => Input::ClaimSet {
                namespace: symbol(namespace),
                name: symbol(name),
                claim: None,
            },
            Self::PersistentVolume => Input::VolumeSet {
                name: symbol(name),
                volume: None,
            },
            Self::StorageClass => Input::StorageClassSet {
                name: symbol(name),
                class: None,
            },
            Self::CSINode => Input::AttachLimitsSet {
                node: symbol(name),
                limits: None,
            },
            Self::Pod => Input::PodGone((&*object.uid).into()),
        }
    }
}

/// The input of a scheduler for the current state of an object; `None` if decisions do not read its kind.
///
/// # Errors
/// Everything in the object that cannot be converted.
pub fn input(object: &KubeObject, names: &mut Interner) -> Result<Option<Input>, Vec<FieldError>> {
    Ok(Some(match object {
        KubeObject::Node(wire) => Input::NodeSet(node(wire, names)?),
        KubeObject::Pod(wire) => PodFacts::default().input(&**wire, names)?,
        KubeObject::Service(wire) => {
            let (namespace, name, selector) = service(wire, names);
            Input::ServiceSet {
                namespace,
                name,
                selector,
            }
        }
        KubeObject::Namespace(wire) => {
            let (name, labels) = labelled(&wire.metadata, names);
            let labels = Some(labels);
            Input::NamespaceSet { name, labels }
        }
        KubeObject::PodDisruptionBudget(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, names);
            let budget = budget(wire, names);
            Input::BudgetSet {
                namespace,
                name,
                budget,
            }
        }
        KubeObject::PersistentVolumeClaim(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, names);
            let claim = Some(claim(wire, names));
            Input::ClaimSet {
                namespace,
                name,
                claim,
            }
        }
        KubeObject::PersistentVolume(wire) => Input::VolumeSet {
            name: named(&wire.metadata, names),
            volume: Some(volume(wire, names)),
        },
        KubeObject::StorageClass(wire) => Input::StorageClassSet {
            name: named(&wire.metadata, names),
            class: Some(storage_class(wire, names)),
        },
        KubeObject::CSINode(wire) => Input::AttachLimitsSet {
            node: named(&wire.metadata, names),
            limits: Some(attach_limits(wire, names)),
        },
        object => {
            let Some((namespace, owner, selector)) = controller(object, names) else {
                return Ok(None);
            };
            Input::ControllerSet {
                namespace,
                owner,
                selector,
            }
        }
    }))
}

/// An object's identity, as lists and watches contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid; empty if unknown.
    pub uid: Box<str>,
}

/// An object's namespace, name and uid.
pub fn identity(metadata: &ObjectMeta) -> Named {
    let text = |field: &Option<String>| field.as_deref().unwrap_or_default().into();
    Named {
        namespace: text(&metadata.namespace),
        name: text(&metadata.name),
        uid: text(&metadata.uid),
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1 as core;
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn nothing_is_kept_of_pods_that_come_and_go() {
        let mut names = Interner::new();
        let mut live = |n: u32| {
            let pod: core::Pod = from_value(json!({
                "metadata": {"name": format!("web-7-{n}"), "namespace": "shop", "uid": format!("uid-{n}"),
                    "labels": {"app": "web"}},
                "spec": {
                    "nodeName": "a",
                    "containers": [{"name": "main", "image": "web", "volumeMounts":
                        [{"name": format!("kube-api-access-{n}"), "mountPath": "/var/run/secrets"}]}],
                    "volumes": [{"name": format!("kube-api-access-{n}"), "projected": {"sources": []}}],
                },
                "status": {"phase": "Running", "podIP": format!("10.0.0.{n}")},
            }))
            .unwrap();
            let gone = identity(&pod.metadata);
            let seen = input(&KubeObject::Pod(Box::new(pod)), &mut names).unwrap();
            assert!(matches!(seen, Some(Input::PodSet { .. })));
            let gone = Watched::Pod.gone(&gone, &mut names);
            assert!(matches!(gone, Input::PodGone(uid) if *uid == *format!("uid-{n}")));
            names.len()
        };
        assert_eq!(live(1), live(2));
    }

    /// A cluster may hold what an API server of today would refuse.
    #[test]
    fn the_smallest_weight_is_no_overflow() {
        let term = json!({"weight": i32::MIN, "podAffinityTerm": {"topologyKey": "zone"}});
        let pod: core::Pod = from_value(json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
            "spec": {
                "containers": [],
                "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}},
            },
        }))
        .unwrap();
        let seen = input(&KubeObject::Pod(Box::new(pod)), &mut Interner::new()).unwrap();
        let Some(Input::PodSet { fact, .. }) = seen else {
            panic!("a pod is there");
        };
        assert_eq!(fact.spec.affinity.preferred[0].0, i32::MAX);
    }
}
