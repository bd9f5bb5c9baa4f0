//! What decides which pods a scale-down takes.

use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Pod};
use strew_model::Instant;
use strew_plan::{Lived, Lives};

/// The lives of all pods at a moment.
pub fn lives(tables: &Tables, now: Instant) -> Lives {
    let lived = |pod: &Arc<Pod>| {
        let lived = Lived {
            life: pod.life(),
            counts_beside: counts_beside(pod, tables),
        };
        (Arc::clone(&pod.meta.uid), lived)
    };
    Lives {
        now,
        of: tables.of::<Pod>().iter().map(lived).collect(),
    }
}

/// A ReplicaSet counts the pods of ReplicaSets with the same controller, and so none if it has no controller.
///
/// Source: spec/controllers §1.3, rule 5.
fn counts_beside(pod: &Pod, tables: &Tables) -> bool {
    let Some(owner) = pod.meta.controller() else {
        return false;
    };
    let key = Key {
        kind: Kind::of_group(&owner.api_version, &owner.kind),
        name: Name::new(
            Arc::clone(&pod.meta.name.namespace),
            Arc::clone(&owner.name),
        ),
    };
    match key.kind {
        Kind::ReplicaSet | Kind::ReplicationController => {
            let set = tables.find(&key);
            set.is_none_or(|set| set.meta().controller().is_some())
        }
        _ => true,
    }
}
