//! Converts objects to inputs of the placement machine.

use strew_model::Interner;
use strew_placement::machine::Input;

use super::{binding, cluster, cluster_set, decision, placement, scores};
use crate::placement::cel::CelSelectors;
use strew_manifest::read::KubeObject;

/// The input of placement for the current state of an object; `None` for kinds that placement does not read.
pub fn inputs(object: &KubeObject, names: &mut Interner, cel: &mut CelSelectors) -> Option<Input> {
    Some(match object {
        KubeObject::ManagedCluster(wire) => Input::ClusterSet(cluster(wire, names, cel)),
        KubeObject::ManagedClusterSet(wire) => Input::ClusterSetSet(cluster_set(wire, names)),
        KubeObject::ManagedClusterSetBinding(wire) => {
            let (namespace, name) = binding(wire, names);
            Input::BindingSet { namespace, name }
        }
        KubeObject::AddOnPlacementScore(wire) => Input::ScoresSet(scores(wire, names, cel)),
        KubeObject::Placement(wire) => Input::PlacementSet(Box::new(placement(wire, names, cel))),
        KubeObject::PlacementDecision(wire) => Input::DecisionSet(decision(wire, names)),
        _ => return None,
    })
}

/// The input of placement for a deleted object.
pub fn gone(object: &KubeObject, names: &mut Interner, cel: &mut CelSelectors) -> Option<Input> {
    let name = names.intern(object.name());
    let namespace = names.intern(object.namespace().unwrap_or_default());
    Some(match object {
        KubeObject::ManagedCluster(_) => {
            cel.remove_cluster(name);
            Input::ClusterGone(name)
        }
        KubeObject::ManagedClusterSet(_) => Input::ClusterSetGone(name),
        KubeObject::ManagedClusterSetBinding(_) => Input::BindingGone { namespace, name },
        KubeObject::AddOnPlacementScore(_) => {
            cel.remove_scores(namespace, object.name());
            Input::ScoresGone {
                cluster: namespace,
                name,
            }
        }
        KubeObject::Placement(_) => Input::PlacementGone { namespace, name },
        KubeObject::PlacementDecision(_) => Input::DecisionGone { namespace, name },
        _ => return None,
    })
}
