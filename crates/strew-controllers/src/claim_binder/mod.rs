//! PersistentVolumeClaims: stands for the volume controller and for a CSI provisioner with topology.
//!
//! If a claim's class binds immediately, the claim gets a volume in one of the zones. If its class waits for the first
//! pod (`WaitForFirstConsumer`), the volume is in the zone of that pod's node. From then on the node affinity of the
//! volume keeps the claim's pods there. In a real cluster the claim is bound right before the pod, here right after it,
//! in the same instant.
//!
//! Not modelled: claims that wait for a manually created volume (`kubernetes.io/no-provisioner`), the capacity of a
//! driver, and topology by other keys than the zone. Without zones, a volume can be reached from every node.
//!
//! Source: `pkg/controller/volume/persistentvolume`, v1.36, and `sigs.k8s.io/sig-storage-lib-external-provisioner`.

#[cfg(test)]
mod tests;
mod volume;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use strew_apiserver::object::{Key, Kind, Name, Node, Object, Plain, Pod};
use strew_apiserver::{ApiError, Tables};
use strew_manifest::read::KubeObject;
use strew_model::time::Instant;

use crate::api::Event;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::workers;
use crate::write::{self, Part};

/// The source of its events.
const SOURCE: &str = "persistentvolume-controller";

/// The node label in the node affinity of volumes.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The annotation of the class for claims that name none.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

const CLAIM: &str = "PersistentVolumeClaim";
const CLASS: &str = "StorageClass";

/// The volume controller, and all provisioners.
#[derive(Debug, Default)]
pub struct ClaimBinder {
    /// Claims without a volume.
    unbound: BTreeSet<Name>,
}

impl ClaimBinder {
    /// A controller that has seen no claim.
    pub fn new() -> Self {
        Self::default()
    }

    fn observe_claim(&mut self, change: Change<'_>, queue: &mut Queue) {
        let (old, new) = (as_claim(change.old), as_claim(change.new));
        let Some((plain, _)) = new.or(old) else {
            return;
        };
        let name = &plain.meta.name;
        if new.is_some_and(|(_, claim)| volume_of(claim).is_none()) {
            self.unbound.insert(name.clone());
        } else {
            self.unbound.remove(name);
        }
        queue.add(name);
    }
}

impl Controller for ClaimBinder {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn n_workers(&self) -> usize {
        workers::CLAIMS
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, _: &Tables, queue: &mut Queue) {
        if let Some((old, new)) = change.of::<Pod>() {
            let comes = |pod: &&Pod| pod.node.is_some() && old.is_none_or(|old| old.node.is_none());
            if let Some(pod) = new.filter(comes) {
                let claims = claims_of(pod);
                claims
                    .filter(|name| self.unbound.contains(name))
                    .for_each(|name| queue.add(&name));
            }
            return;
        }
        match change.object() {
            Some(object) if object.kind() == Kind::of(CLAIM) => self.observe_claim(change, queue),
            Some(object) if object.kind() == Kind::of(CLASS) => {
                self.unbound.iter().for_each(|name| queue.add(name));
            }
            _ => {}
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let key = key(CLAIM, name.clone());
        let Some(object) = cx.cache.find(&key) else {
            return volume::reclaim(name, cx);
        };
        let Some((plain, claim)) = as_claim(Some(&object)) else {
            return Ok(());
        };
        if volume_of(claim).is_some() || plain.meta.is_terminating() {
            return Ok(());
        }
        if names_no_class(claim) {
            return set_default_class(&object, cx);
        }
        let Some(class) = class_of(claim, cx.cache).filter(|class| provisions(class)) else {
            return Ok(());
        };
        let zone = match waits(class) {
            true => match first_node(name, cx.cache) {
                Some(node) => node.meta.label(ZONE).map(str::to_owned),
                // No pod needs it yet.
                None => return Ok(()),
            },
            false => volume::zone_at_once(&name.name, class, cx.cache),
        };
        let volume = volume::made(plain, claim, class, zone.as_deref());
        let volume_name = Arc::clone(&volume.meta().name.name);
        match cx.api.create(volume) {
            Ok(_) | Err(ApiError::AlreadyExists(_)) => {}
            Err(error) => return Err(error),
        }
        let bind = |object: &mut Object| volume::bind(object, &volume_name);
        if let Some(bound) = write::change_any(cx.api, object.clone(), Part::Spec, bind)? {
            write::change_any(cx.api, bound.clone(), Part::Status, volume::set_bound)?;
            let note = format!("Successfully provisioned volume {volume_name}");
            let event = Event::normal(SOURCE, &bound, "ProvisioningSucceeded", note);
            cx.api.record(event);
        }
        Ok(())
    }
}

fn key(kind: &str, name: Name) -> Key {
    Key {
        kind: Kind::of(kind),
        name,
    }
}

fn as_claim(object: Option<&Object>) -> Option<(&Arc<Plain>, &PersistentVolumeClaim)> {
    match object {
        Some(Object::Plain(plain)) => match &plain.object {
            KubeObject::PersistentVolumeClaim(claim) => Some((plain, claim)),
            _ => None,
        },
        _ => None,
    }
}

/// The volume that a claim names.
fn volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.volume_name.as_deref();
    name.filter(|name| !name.is_empty())
}

/// The class that a claim names; `None` if the class does not exist.
fn class_of<'a>(claim: &PersistentVolumeClaim, cache: &'a Tables) -> Option<&'a StorageClass> {
    let name = claim.spec.as_ref()?.storage_class_name.as_deref()?;
    match &cache.plain(&key(CLASS, Name::new("", name)))?.object {
        KubeObject::StorageClass(class) => Some(class),
        _ => None,
    }
}

/// True if the claim has no class name; an empty name stands for no class.
fn names_no_class(claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    spec.is_none_or(|spec| spec.storage_class_name.is_none())
}

/// Sets the default class on a claim, if there is one; the watch then delivers the changed claim.
///
/// Source: `assignDefaultStorageClass` of `pkg/controller/volume/persistentvolume/pv_controller.go`, v1.36.
fn set_default_class(object: &Object, cx: &mut Context<'_>) -> Result<(), ApiError> {
    let mut classes = cx.cache.all_plain().filter_map(|plain| {
        let is_default = plain.meta.annotation(IS_DEFAULT) == Some("true");
        (is_default && plain.kind == Kind::of(CLASS)).then(|| plain.meta.name.name.to_string())
    });
    let Some(class) = classes.next() else {
        return Ok(());
    };
    let set = |object: &mut Object| {
        let Object::Plain(plain) = object else {
            return false;
        };
        let plain = Arc::make_mut(plain);
        let KubeObject::PersistentVolumeClaim(claim) = &mut plain.object else {
            return false;
        };
        let is_new = names_no_class(claim);
        claim.spec.get_or_insert_default().storage_class_name = Some(class.clone());
        is_new
    };
    write::change_any(cx.api, object.clone(), Part::Spec, set)?;
    Ok(())
}

/// True if a provisioner makes volumes for the class.
fn provisions(class: &StorageClass) -> bool {
    class.provisioner != "kubernetes.io/no-provisioner"
}

fn waits(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// The claims that a pod names, and those of its generic ephemeral volumes.
fn claims_of(pod: &Pod) -> impl Iterator<Item = Name> + '_ {
    let meta = &pod.meta.name;
    let volumes = pod.spec.volumes.iter().flatten();
    let names = volumes.filter_map(|volume| {
        let named = volume.persistent_volume_claim.as_ref();
        let named = named.map(|source| source.claim_name.clone());
        let ephemeral = volume.ephemeral.as_ref();
        named.or_else(|| ephemeral.map(|_| format!("{}-{}", meta.name, volume.name)))
    });
    names.map(|name| Name::new(Arc::clone(&meta.namespace), name))
}

/// The node of the first pod, by name, that uses the claim and is on a node.
fn first_node<'a>(claim: &Name, cache: &'a Tables) -> Option<&'a Arc<Node>> {
    let mut pods = cache.of::<Pod>().in_namespace(&claim.namespace);
    let uses = |pod: &&Arc<Pod>| {
        pod.node.is_some() && !pod.is_finished() && claims_of(pod).any(|name| name == *claim)
    };
    let node = pods.find(uses)?.node.as_ref()?;
    cache.get::<Node>(&Name::new("", Arc::clone(node)))
}
