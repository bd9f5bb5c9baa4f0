//! Removes references to owners that are not in the files: the garbage collector would delete the owned objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use strew_apiserver::object::{Key, Kind, Name, Object, Owner};

use strew_view::workload::{WorkloadName, missing_name};

/// The removed references.
#[derive(Debug, Default)]
pub(super) struct Released {
    /// By kind of the missing owners: the number of their objects, and the first of the owners.
    owners: BTreeMap<String, (usize, String)>,
    /// The missing workload of each pod, by the pod's name.
    pub(super) pods: BTreeMap<Name, WorkloadName>,
}

impl Released {
    pub(super) fn note(&self) -> Option<String> {
        let each = self.owners.iter();
        let each = each.map(|(kind, (n, first))| format!("{n} of a {kind} such as {first}"));
        let each: Vec<String> = each.collect();
        (!each.is_empty()).then(|| {
            let list = each.join(", ");
            format!(
                "objects whose owners are not in the files, or of a kind that is not modelled, are kept as if they had none: {list}"
            )
        })
    }
}

/// Removes references to missing owners, if the kind of the owner is one that the simulation or the files have.
pub(super) fn release(objects: &mut [Object]) -> Released {
    let uids: HashMap<Key, Arc<str>> = objects
        .iter()
        .map(|object| (object.key(), Arc::clone(&object.meta().uid)))
        .collect();
    let kinds: Vec<Kind> = objects.iter().map(Object::kind).collect();
    let is_there = |namespace: &Arc<str>, owner: &Owner| {
        let kind = Kind::of_group(&owner.api_version, &owner.kind);
        if matches!(kind, Kind::Other(_)) && !kinds.contains(&kind) {
            return true;
        }
        let namespaces = [Arc::clone(namespace), Arc::from("")];
        namespaces.into_iter().any(|namespace| {
            let name = Name::new(namespace, Arc::clone(&owner.name));
            let key = Key {
                kind: kind.clone(),
                name,
            };
            uids.get(&key) == Some(&owner.uid)
        })
    };
    let mut released = Released::default();
    for object in objects {
        let namespace = Arc::clone(&object.meta().name.namespace);
        let owners = Arc::clone(&object.meta().owners);
        let (kept, gone): (Vec<Owner>, Vec<Owner>) = owners
            .iter()
            .cloned()
            .partition(|owner| is_there(&namespace, owner));
        if gone.is_empty() {
            continue;
        }
        if let Object::Pod(pod) = object
            && let Some(owner) = gone.iter().find(|owner| owner.is_controller)
        {
            let workload = missing_name(&pod.meta, owner);
            released.pods.insert(pod.meta.name.clone(), workload);
        }
        for owner in &gone {
            let first = || (0, format!("{namespace}/{}", owner.name));
            let entry = released.owners.entry(owner.kind.to_string());
            entry.or_insert_with(first).0 += 1;
        }
        object.meta_mut().owners = kept.into();
    }
    released
}
