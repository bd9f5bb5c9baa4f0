//! Converts objects to inputs of a scheduler's machine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use strew_model::Interner;
use strew_scheduler::machine::Input;

use super::{
    PodFacts, attach_limits, budget, claim, controller, labelled, named, namespaced, node, service,
    storage_class, volume,
};
use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;

/// The input of a scheduler for a deleted object, of which only the metadata is read; `None` if decisions do not read its
/// kind.
pub fn gone(object: &KubeObject, names: &mut Interner) -> Option<Input> {
    Some(match object {
        KubeObject::Node(wire) => Input::NodeGone(named(&wire.metadata, names)),
        // Every pod has a new name, and no fact would keep it: none is interned.
        KubeObject::Pod(wire) => {
            Input::PodGone(wire.metadata.uid.as_deref().unwrap_or_default().into())
        }
        KubeObject::Service(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, names);
            Input::ServiceSet {
                namespace,
                name,
                selector: None,
            }
        }
        KubeObject::Namespace(wire) => Input::NamespaceSet {
            name: named(&wire.metadata, names),
            labels: None,
        },
        KubeObject::PodDisruptionBudget(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, names);
            Input::BudgetSet {
                namespace,
                name,
                budget: None,
            }
        }
        KubeObject::PersistentVolumeClaim(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, names);
            Input::ClaimSet {
                namespace,
                name,
                claim: None,
            }
        }
        KubeObject::PersistentVolume(wire) => Input::VolumeSet {
            name: named(&wire.metadata, names),
            volume: None,
        },
        KubeObject::StorageClass(wire) => Input::StorageClassSet {
            name: named(&wire.metadata, names),
            class: None,
        },
        KubeObject::CSINode(wire) => Input::AttachLimitsSet {
            node: named(&wire.metadata, names),
            limits: None,
        },
        object => {
            let (namespace, owner, _) = controller(object, names)?;
            Input::ControllerSet {
                namespace,
                owner,
                selector: None,
            }
        }
    })
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
            let pod = KubeObject::Pod(Box::new(pod));
            let seen = input(&pod, &mut names).unwrap();
            assert!(matches!(seen, Some(Input::PodSet { .. })));
            let gone = gone(&pod, &mut names);
            assert!(matches!(gone, Some(Input::PodGone(uid)) if *uid == *format!("uid-{n}")));
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
