//! Which objects of the store, beside pods, a scheduler reads.

use super::{Kind, Object};
use strew_api::read::KubeObject;

/// The wire's form of an object of the kinds that a scheduler looks at, but for pods.
pub fn wire_of(object: &Object) -> Option<KubeObject> {
    match object.kind() {
        Kind::Node
        | Kind::ReplicaSet
        | Kind::ReplicationController
        | Kind::StatefulSet
        | Kind::PodDisruptionBudget => object.to_kube(),
        Kind::Other(_) => match object {
            Object::Plain(plain) => match &plain.object {
                KubeObject::Service(_)
                | KubeObject::Namespace(_)
                | KubeObject::PersistentVolumeClaim(_)
                | KubeObject::PersistentVolume(_)
                | KubeObject::StorageClass(_)
                | KubeObject::CSINode(_) => object.to_kube(),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}
