//! PersistentVolumeClaims: stands for the volume controller and for a CSI provisioner with topology.
//!
//! A claim gets a volume that is there and fits, else a provisioner makes one in a zone. If its class binds immediately,
//! or has no StorageClass object, that happens at once. If its class waits for the first pod (`WaitForFirstConsumer`),
//! the volume is one that the pod's node reaches, or is made in its zone. From then on the node affinity of the volume
//! keeps the claim's pods there. In a real cluster the claim is bound right before the pod, here right after it, in the
//! same instant; the scheduler assumes the same volume until then, since both ask [`Volumes`].
//!
//! Not modelled: the capacity of a driver, and the topology of made volumes by other keys than the zone. Without zones, a
//! made volume can be reached from every node.
//!
//! Source: `pkg/controller/volume/persistentvolume`, v1.36, and `sigs.k8s.io/sig-storage-lib-external-provisioner`;
//! spec/scheduler §3.12.

#[cfg(test)]
mod tests;
mod volume;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use strew_apiserver::object::{Key, Kind, Name, Node, Object, Plain, Pod};
use strew_apiserver::{ApiError, Tables};
use strew_cluster::Volumes;
use strew_cluster::volumes::ClaimKey;
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::Instant;
use strew_wire::facts;

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
const VOLUME: &str = "PersistentVolume";

/// The volume controller, and all provisioners.
#[derive(Debug, Default)]
pub struct ClaimBinder {
    /// Claims without a volume that is bound to them.
    unbound: BTreeSet<Name>,
    /// Claims, volumes and classes as facts. Like the volume controller's cache, they contain its own writes at once.
    volumes: Volumes,
    names: Interner,
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
        if new.is_some_and(|(_, claim)| !is_bound(claim)) {
            self.unbound.insert(name.clone());
        } else {
            self.unbound.remove(name);
        }
        let key = self.key(name);
        match change.new {
            Some(object) => self.learn(object),
            None => drop(self.volumes.set_claim(key, None)),
        }
        queue.add(name);
    }

    fn observe_volume(&mut self, change: Change<'_>, queue: &mut Queue) {
        let new = as_volume(change.new);
        let Some((plain, _)) = new.or(as_volume(change.old)) else {
            return;
        };
        let name = self.names.intern(&plain.meta.name.name);
        match change.new {
            Some(object) => self.learn(object),
            None => drop(self.volumes.set_volume(name, None)),
        }
        let claim = new.and_then(|(_, volume)| volume.spec.as_ref()?.claim_ref.as_ref());
        match claim {
            Some(claim) => {
                let name = Name::new(
                    claim.namespace.as_deref().unwrap_or_default(),
                    claim.name.as_deref().unwrap_or_default(),
                );
                { Some(&name).filter(|name| self.unbound.contains(name)) }
                    .into_iter()
                    .for_each(|name| queue.add(name));
            }
            None if new.is_some() => self.unbound.iter().for_each(|name| queue.add(name)),
            None => {}
        }
    }

    fn observe_class(&mut self, change: Change<'_>, queue: &mut Queue) {
        let Some(Object::Plain(plain)) = change.object() else {
            return;
        };
        let KubeObject::StorageClass(class) = &plain.object else {
            return;
        };
        let name = self.names.intern(&plain.meta.name.name);
        let fact = change
            .new
            .map(|_| facts::storage_class(class, &mut self.names));
        self.volumes.set_class(name, fact);
        self.unbound.iter().for_each(|name| queue.add(name));
    }

    fn key(&mut self, claim: &Name) -> ClaimKey {
        let names = &mut self.names;
        (names.intern(&claim.namespace), names.intern(&claim.name))
    }

    /// The volume that is there for a claim, and whether its pod's node was asked.
    fn find_volume(
        &mut self,
        claim: &Name,
        node: Option<&Node>,
        pod: Option<&Pod>,
    ) -> Option<Name> {
        let key = self.key(claim);
        let at_once = self.volumes.match_at_once(key, &self.names);
        let found = at_once.or_else(|| {
            let (node, pod) = (node?, pod?);
            let keys: Vec<ClaimKey> = claims_of(pod).map(|name| self.key(&name)).collect();
            let labels = node.meta.labels.iter();
            let labels =
                labels.map(|(key, value)| (self.names.intern(key), self.names.intern(value)));
            let labels = strew_model::Labels::new(labels.collect());
            let at = self.names.intern(&node.meta.name.name);
            let matching = self.volumes.matching(keys.into_iter(), &self.names);
            let chosen = matching.on(at, &labels, &self.names).ok()?;
            chosen.into_iter().find(|(of, _)| *of == key)?.1
        })?;
        Some(Name::new("", self.names.text(found)))
    }

    /// Binds a claim and a volume that is there to each other.
    fn bind(
        &mut self,
        claim: &Object,
        volume: &Name,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let Some(stored) = cx.api.get(&key(VOLUME, volume.clone())) else {
            return Ok(());
        };
        let take = |object: &mut Object| volume::keep_for(object, claim);
        let kept = write::change_any(cx.api, stored.clone(), Part::Spec, take)?;
        let stored = kept.unwrap_or(stored);
        let bound = write::change_any(cx.api, stored.clone(), Part::Status, volume::set_taken)?;
        let stored = bound.unwrap_or(stored);
        self.learn(&stored);
        self.name_volume(claim, &stored, cx)?;
        Ok(())
    }

    /// Writes a volume into its claim; returns the claim if it was changed.
    fn name_volume(
        &mut self,
        claim: &Object,
        volume: &Object,
        cx: &mut Context<'_>,
    ) -> Result<Option<Object>, ApiError> {
        let Some((plain, wire)) = as_volume(Some(volume)) else {
            return Ok(None);
        };
        let name = &plain.meta.name.name;
        let bind = |object: &mut Object| volume::bind(object, name);
        let named = write::change_any(cx.api, claim.clone(), Part::Spec, bind)?;
        let named = named.unwrap_or_else(|| claim.clone());
        let set = |object: &mut Object| volume::set_bound(object, wire);
        let bound = write::change_any(cx.api, named, Part::Status, set)?;
        bound.iter().for_each(|bound| self.learn(bound));
        Ok(bound)
    }

    /// Takes in a claim or volume, also one that it has just written.
    fn learn(&mut self, object: &Object) {
        if let Some((plain, claim)) = as_claim(Some(object)) {
            let key = self.key(&plain.meta.name);
            let claim = PersistentVolumeClaim {
                metadata: plain.meta.to_wire(),
                ..claim.clone()
            };
            let fact = facts::claim(&claim, &mut self.names);
            self.volumes.set_claim(key, Some(fact));
        }
        if let Some((plain, volume)) = as_volume(Some(object)) {
            let name = self.names.intern(&plain.meta.name.name);
            let volume = PersistentVolume {
                metadata: plain.meta.to_wire(),
                ..volume.clone()
            };
            let fact = facts::volume(&volume, &mut self.names);
            self.volumes.set_volume(name, Some(fact));
        }
    }

    /// A claim that names its volume gets that one or none.
    fn sync_named(
        &mut self,
        object: &Object,
        volume: &str,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let key = self.key(&object.meta().name);
        let name = self.names.intern(volume);
        let (claim, fact) = (self.volumes.claim(key), self.volumes.volume(name));
        let (Some(claim), Some(fact)) = (claim, fact) else {
            return Ok(());
        };
        if self.volumes.satisfies(key, claim, fact) {
            return self.bind(object, &Name::new("", volume), cx);
        }
        if fact.claim.is_none() {
            let note = format!(
                "Cannot bind to requested volume {volume:?}: its size, storage class, access modes or volume mode differ"
            );
            cx.api
                .record(Event::warning(SOURCE, object, "VolumeMismatch", note));
        }
        Ok(())
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
        match change.object().map(|object| object.kind()) {
            Some(kind) if kind == Kind::of(CLAIM) => self.observe_claim(change, queue),
            Some(kind) if kind == Kind::of(VOLUME) => self.observe_volume(change, queue),
            Some(kind) if kind == Kind::of(CLASS) => self.observe_class(change, queue),
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
        if is_bound(claim) || plain.meta.is_terminating() {
            return Ok(());
        }
        if let Some(volume) = volume_of(claim) {
            return self.sync_named(&object, volume, cx);
        }
        if names_no_class(plain, claim) && set_default_class(&object, cx)? {
            return Ok(());
        }
        let class = class_of(plain, claim, cx.cache);
        let pod = first_pod(name, cx.cache);
        let node = pod.and_then(|pod| pod.node.as_ref());
        let node = node.and_then(|node| cx.cache.get::<Node>(&Name::new("", Arc::clone(node))));
        let found = self.find_volume(name, node.map(|node| &**node), pod.map(|pod| &**pod));
        if let Some(volume) = found {
            return self.bind(&object, &volume, cx);
        }
        let Some(class) = class.filter(|class| provisions(class)) else {
            if !class.is_some_and(waits) {
                let event = no_volume(&object, class_name(plain, claim), class);
                cx.api.record(event);
            }
            return Ok(());
        };
        let zone = match waits(class) {
            true => match node {
                Some(node) => node.meta.label(ZONE).map(str::to_owned),
                // No pod needs it yet.
                None => return Ok(()),
            },
            false => volume::zone_at_once(&name.name, class, cx.cache),
        };
        let zone = zone.filter(|_| !volume::is_shared(claim, class));
        let made = volume::made(plain, claim, class, zone.as_deref());
        let made = match cx.api.create(made.clone()) {
            Ok(made) => made,
            Err(ApiError::AlreadyExists(_)) => made,
            Err(error) => return Err(error),
        };
        self.learn(&made);
        if let Some(bound) = self.name_volume(&object, &made, cx)? {
            let note = format!("Successfully provisioned volume {}", made.meta().name.name);
            let event = Event::normal(SOURCE, &bound, "ProvisioningSucceeded", note);
            cx.api.record(event);
        }
        Ok(())
    }
}

/// Why a claim that does not wait for a node gets no volume.
fn no_volume(object: &Object, class_name: Option<&str>, class: Option<&StorageClass>) -> Event {
    let failed = |note: String| Event::warning(SOURCE, object, "ProvisioningFailed", note);
    match (class_name, class) {
        (None, _) => Event::normal(
            SOURCE,
            object,
            "FailedBinding",
            "no persistent volumes available for this claim and no storage class is set",
        ),
        (Some(name), None) => failed(format!("storageclass.storage.k8s.io {name:?} not found")),
        (Some(_), Some(class)) => failed(format!(
            "no volume plugin matched name: {}",
            class.provisioner
        )),
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

fn as_volume(object: Option<&Object>) -> Option<(&Arc<Plain>, &PersistentVolume)> {
    match object {
        Some(Object::Plain(plain)) => match &plain.object {
            KubeObject::PersistentVolume(volume) => Some((plain, volume)),
            _ => None,
        },
        _ => None,
    }
}

/// True if the claim and its volume are bound to each other.
fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    let phase = claim
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    volume_of(claim).is_some() && matches!(phase, Some("Bound" | "Lost"))
}

/// The volume that a claim names.
fn volume_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    let name = claim.spec.as_ref()?.volume_name.as_deref();
    name.filter(|name| !name.is_empty())
}

/// The name of a claim's class: the older annotation's, else the field's; `None` for none and for an empty one.
fn class_name<'a>(plain: &'a Plain, claim: &'a PersistentVolumeClaim) -> Option<&'a str> {
    let by_annotation = plain.meta.annotation(facts::CLASS_BETA);
    let by_field = || claim.spec.as_ref()?.storage_class_name.as_deref();
    let name = by_annotation.or_else(by_field)?;
    (!name.is_empty()).then_some(name)
}

/// The class of a claim; `None` if it has none, or the class does not exist.
fn class_of<'a>(
    plain: &Plain,
    claim: &PersistentVolumeClaim,
    cache: &'a Tables,
) -> Option<&'a StorageClass> {
    let name = class_name(plain, claim)?;
    match &cache.plain(&key(CLASS, Name::new("", name)))?.object {
        KubeObject::StorageClass(class) => Some(class),
        _ => None,
    }
}

/// True if the claim has no class name; an empty name stands for no class.
fn names_no_class(plain: &Plain, claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    plain.meta.annotation(facts::CLASS_BETA).is_none()
        && spec.is_none_or(|spec| spec.storage_class_name.is_none())
}

/// Sets the default class on a claim, if there is one; the watch then delivers the changed claim. Returns false if there
/// is none.
///
/// Source: `assignDefaultStorageClass` of `pkg/controller/volume/persistentvolume/pv_controller.go`, v1.36.
fn set_default_class(object: &Object, cx: &mut Context<'_>) -> Result<bool, ApiError> {
    let mut classes = cx.cache.all_plain().filter_map(|plain| {
        let is_default = plain.meta.annotation(IS_DEFAULT) == Some("true");
        (is_default && plain.kind == Kind::of(CLASS)).then(|| plain.meta.name.name.to_string())
    });
    let Some(class) = classes.next() else {
        return Ok(false);
    };
    let set = |object: &mut Object| {
        let Object::Plain(plain) = object else {
            return false;
        };
        let plain = Arc::make_mut(plain);
        let KubeObject::PersistentVolumeClaim(claim) = &mut plain.object else {
            return false;
        };
        let is_new = claim
            .spec
            .as_ref()
            .is_none_or(|s| s.storage_class_name.is_none());
        claim.spec.get_or_insert_default().storage_class_name = Some(class.clone());
        is_new
    };
    write::change_any(cx.api, object.clone(), Part::Spec, set)?;
    Ok(true)
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

/// The first pod, by name, that uses the claim and is on a node.
fn first_pod<'a>(claim: &Name, cache: &'a Tables) -> Option<&'a Arc<Pod>> {
    let mut pods = cache.of::<Pod>().in_namespace(&claim.namespace);
    let uses = |pod: &&Arc<Pod>| {
        pod.node.is_some() && !pod.is_finished() && claims_of(pod).any(|name| name == *claim)
    };
    pods.find(uses)
}
