//! Objects into a scheduler's inputs.

use strew_model::Interner;
use strew_scheduler::machine::Input;

use super::{
    attach_limits, budget, claim, controller, labelled, named, namespaced, node, pod, service,
    storage_class, volume,
};
use crate::read::KubeObject;

/// What a scheduler is told when an object is there, and like this. Kinds that no decision looks at tell nothing; nor
/// does what no decision could be made from.
pub fn inputs(object: &KubeObject, names: &mut Interner) -> Vec<Input> {
    let input = match object {
        KubeObject::Node(wire) => node(wire, names).ok().map(Input::NodeSet),
        KubeObject::Pod(wire) => match pod(wire, names) {
            Ok(Some(fact)) => Some(Input::PodSet {
                fact: Box::new(fact),
                condition: None,
            }),
            Ok(None) => wire
                .metadata
                .uid
                .as_deref()
                .map(|uid| Input::PodGone(uid.into())),
            Err(_) => None,
        },
        KubeObject::Service(wire) => {
            let (namespace, name, selector) = service(wire, names);
            Some(Input::ServiceSet {
                namespace,
                name,
                selector,
            })
        }
        KubeObject::Namespace(wire) => {
            let (name, labels) = labelled(&wire.metadata, names);
            let labels = Some(labels);
            Some(Input::NamespaceSet { name, labels })
        }
        KubeObject::PodDisruptionBudget(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, names);
            let budget = budget(wire, names);
            Some(Input::BudgetSet {
                namespace,
                name,
                budget,
            })
        }
        KubeObject::PersistentVolumeClaim(wire) => {
            let (namespace, name) = namespaced(&wire.metadata, names);
            let claim = Some(claim(wire, names));
            Some(Input::ClaimSet {
                namespace,
                name,
                claim,
            })
        }
        KubeObject::PersistentVolume(wire) => Some(Input::VolumeSet {
            name: named(&wire.metadata, names),
            volume: Some(volume(wire, names)),
        }),
        KubeObject::StorageClass(wire) => Some(Input::StorageClassSet {
            name: named(&wire.metadata, names),
            class: Some(storage_class(wire, names)),
        }),
        KubeObject::CSINode(wire) => Some(Input::AttachLimitsSet {
            node: named(&wire.metadata, names),
            limits: Some(attach_limits(wire, names)),
        }),
        object => {
            controller(object, names).map(|(namespace, owner, selector)| Input::ControllerSet {
                namespace,
                owner,
                selector,
            })
        }
    };
    input.into_iter().collect()
}

/// What a scheduler is told when an object is gone.
pub fn gone(object: &KubeObject, names: &mut Interner) -> Option<Input> {
    let input = inputs(object, names).pop()?;
    Some(match input {
        Input::NodeSet(fact) => Input::NodeGone(fact.name),
        Input::PodSet { fact, .. } => Input::PodGone(fact.uid),
        Input::ServiceSet {
            namespace, name, ..
        } => Input::ServiceSet {
            namespace,
            name,
            selector: None,
        },
        Input::NamespaceSet { name, .. } => Input::NamespaceSet { name, labels: None },
        Input::BudgetSet {
            namespace, name, ..
        } => Input::BudgetSet {
            namespace,
            name,
            budget: None,
        },
        Input::ControllerSet {
            namespace, owner, ..
        } => Input::ControllerSet {
            namespace,
            owner,
            selector: None,
        },
        Input::ClaimSet {
            namespace, name, ..
        } => Input::ClaimSet {
            namespace,
            name,
            claim: None,
        },
        Input::VolumeSet { name, .. } => Input::VolumeSet { name, volume: None },
        Input::StorageClassSet { name, .. } => Input::StorageClassSet { name, class: None },
        Input::AttachLimitsSet { node, .. } => Input::AttachLimitsSet { node, limits: None },
        other => other,
    })
}
