//! The kinds beside pods that a scheduler reads.

use super::{Kind, Object};
use strew_manifest::read::KubeObject;

/// The wire form of an object, if a scheduler reads its kind; pods excluded.
pub fn wire_of(object: &Object) -> Option<KubeObject> {
    match object.kind() {
        Kind::Node
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::StatefulSet
        | Kind::PodDisruptionBudget => Some(object.to_kube()),
        Kind::Other(_) => match object {
            Object::Plain(plain) => match &plain.object {
                KubeObject::Service(_)
                | KubeObject::Namespace(_)
                | KubeObject::PersistentVolumeClaim(_)
                | KubeObject::PersistentVolume(_)
                | KubeObject::StorageClass(_)
                | KubeObject::CSINode(_) => Some(object.to_kube()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
