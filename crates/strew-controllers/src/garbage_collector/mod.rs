//! Deletes dependents whose owners are gone. An owner deleted in the foreground waits for the dependents that block it.
//!
//! The store does the first half when an object is deleted: it removes it, or sets deletionTimestamp and the finalizer
//! `foregroundDeletion` or `orphan`. The collector does the rest: it deletes the dependents of an absent owner, level
//! by level, removes references to owners, and removes the finalizer when it is done.
//!
//! Source: spec/controllers §9; upstream `pkg/controller/garbagecollector`, v1.36.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_apiserver::object::{Key, Kind, Meta, Name, Object, Owner};
use strew_apiserver::{ApiError, DeleteOptions, FOREGROUND, ORPHAN, Propagation, Tables};
use strew_model::time::Instant;

use crate::api::Api;
use crate::controller::{Change, Context, Controller};
use crate::queue::Queue;
use crate::workers;
use crate::write::{self, Part};

/// The owner garbage collector.
#[derive(Debug, Default)]
pub struct GarbageCollector {
    /// Kinds without a table of which an object was seen. An owner of another such kind may exist outside of the store.
    seen: BTreeSet<Kind>,
}

/// The state of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It exists.
    Solid,
    /// It does not exist, or another object has its name.
    Dangling,
    /// It is being deleted in the foreground.
    Waiting,
}

impl GarbageCollector {
    /// A collector that has seen no object.
    pub fn new() -> Self {
        Self::default()
    }

    fn fate(
        &self,
        owner: &Owner,
        namespace: &Arc<str>,
        find: impl Fn(&Key) -> Option<Object>,
    ) -> Fate {
        let kind = Kind::of_group(&owner.api_version, &owner.kind);
        let is_other = matches!(kind, Kind::Other(_));
        let is_known = !is_other || self.seen.contains(&kind);
        let mut key = Key {
            name: Name::new(Arc::clone(namespace), Arc::clone(&owner.name)),
            kind,
        };
        if key.kind == Kind::Node {
            key.name.namespace = "".into();
        }
        let mut found = find(&key);
        if found.is_none() && is_other {
            key.name.namespace = "".into();
            found = find(&key);
        }
        match found {
            Some(object) if object.meta().uid == owner.uid => {
                if is_waiting(object.meta()) {
                    Fate::Waiting
                } else {
                    Fate::Solid
                }
            }
            _ if is_known => Fate::Dangling,
            _ => Fate::Solid,
        }
    }

    /// Takes in an object that is new, or whose owners changed.
    fn observe_owners(&self, object: &Object, cache: &Tables, queue: &mut Queue) {
        let meta = object.meta();
        let mut fates = meta.owners.iter();
        if fates.any(|owner| {
            self.fate(owner, &meta.name.namespace, |key| cache.find(key)) != Fate::Solid
        }) {
            queue.add(&encode(&object.key()));
        }
    }

    /// Deletes an object whose owners are all gone, or removes the references to those that are.
    fn collect(&self, object: Object, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let meta = object.meta();
        let fate = |owner: &Owner| self.fate(owner, &meta.name.namespace, |key| cx.api.get(key));
        let fates: Vec<Fate> = meta.owners.iter().map(fate).collect();
        let has = |fate| fates.contains(&fate);
        if meta.owners.is_empty() || !(has(Fate::Dangling) || has(Fate::Waiting)) {
            return Ok(());
        }
        if has(Fate::Solid) {
            let of = meta.owners.iter().zip(&fates);
            let lost: BTreeSet<Arc<str>> = of
                .filter(|(_, fate)| **fate != Fate::Solid)
                .map(|(owner, _)| Arc::clone(&owner.uid))
                .collect();
            return release(object, &lost, cx.api);
        }
        let uid = Arc::clone(&meta.uid);
        let mut dependents = cx.cache.iter_dependents(&uid).peekable();
        let mut propagation = match () {
            () if has_finalizer(meta, ORPHAN) => Propagation::Orphan,
            () if has_finalizer(meta, FOREGROUND) => Propagation::Foreground,
            () => Propagation::Background,
        };
        if has(Fate::Waiting) && dependents.peek().is_some() {
            propagation = Propagation::Foreground;
            // Owners that wait for each other in a circle would wait for ever.
            if dependents.any(|dependent| is_waiting(dependent.meta())) {
                unblock(object.clone(), cx.api)?;
            }
        }
        let options = DeleteOptions {
            propagation: Some(propagation),
            ..DeleteOptions::of_uid(&uid)
        };
        match cx.api.delete(&object.key(), &options) {
            Ok(()) | Err(ApiError::NotFound(_)) => Ok(()),
            // After a conflict too, the object is checked again.
            Err(error) => Err(error),
        }
    }
}

fn has_finalizer(meta: &Meta, finalizer: &str) -> bool {
    meta.finalizers.iter().any(|name| name == finalizer)
}

/// True if it is being deleted in the foreground and waits for its dependents.
fn is_waiting(meta: &Meta) -> bool {
    meta.is_terminating() && has_finalizer(meta, FOREGROUND)
}

fn is_orphaning(meta: &Meta) -> bool {
    meta.is_terminating() && has_finalizer(meta, ORPHAN)
}

/// True if its owner with this uid waits for it.
fn blocks(object: &Object, uid: &str) -> bool {
    let mut owners = object.meta().owners.iter();
    owners.any(|owner| &*owner.uid == uid && owner.blocks_deletion)
}

/// Removes the references to these owners.
fn release(object: Object, uids: &BTreeSet<Arc<str>>, api: &mut dyn Api) -> Result<(), ApiError> {
    write::change_any(api, object, Part::Spec, |object| {
        let meta = object.meta_mut();
        let kept: Vec<Owner> = meta
            .owners
            .iter()
            .filter(|o| !uids.contains(&o.uid))
            .cloned()
            .collect();
        let is_changed = kept.len() < meta.owners.len();
        meta.owners = kept.into();
        is_changed
    })?;
    Ok(())
}

fn unblock(object: Object, api: &mut dyn Api) -> Result<(), ApiError> {
    write::change_any(api, object, Part::Spec, |object| {
        let meta = object.meta_mut();
        let is_changed = meta.owners.iter().any(|owner| owner.blocks_deletion);
        let free = |owner: &Owner| Owner {
            blocks_deletion: false,
            ..owner.clone()
        };
        meta.owners = meta.owners.iter().map(free).collect();
        is_changed
    })?;
    Ok(())
}

fn remove_finalizer(object: Object, finalizer: &str, api: &mut dyn Api) -> Result<(), ApiError> {
    write::change_any(api, object, Part::Spec, |object| {
        let meta = object.meta_mut();
        let is_there = has_finalizer(meta, finalizer);
        let kept = meta.finalizers.iter().filter(|name| *name != finalizer);
        meta.finalizers = kept.cloned().collect();
        is_there
    })?;
    Ok(())
}

/// Lets the dependents stay, without this owner.
fn orphan(object: Object, cx: &mut Context<'_>) -> Result<(), ApiError> {
    let uid = Arc::clone(&object.meta().uid);
    let uids = BTreeSet::from([Arc::clone(&uid)]);
    for dependent in cx.cache.iter_dependents(&uid) {
        release(dependent, &uids, cx.api)?;
    }
    remove_finalizer(object, ORPHAN, cx.api)
}

/// A key of any kind as a name for the queue: `Kind/namespace`, `name`.
fn encode(key: &Key) -> Name {
    let namespace = format!("{}/{}", key.kind, key.name.namespace);
    Name::new(namespace, Arc::clone(&key.name.name))
}

fn decode(name: &Name) -> Option<Key> {
    let (kind, namespace) = name.namespace.split_once('/')?;
    Some(Key {
        kind: Kind::of(kind),
        name: Name::new(namespace, Arc::clone(&name.name)),
    })
}

/// Queues the owners that wait for this object.
fn wake_owners(object: &Object, cache: &Tables, queue: &mut Queue) {
    let meta = object.meta();
    for owner in meta.owners.iter().filter(|owner| owner.blocks_deletion) {
        let key = Key {
            kind: Kind::of_group(&owner.api_version, &owner.kind),
            name: Name::new(Arc::clone(&meta.name.namespace), Arc::clone(&owner.name)),
        };
        let found = cache.find(&key);
        if found.is_some_and(|found| found.meta().uid == owner.uid && is_waiting(found.meta())) {
            queue.add(&encode(&key));
        }
    }
}

fn add_dependents(uid: &str, cache: &Tables, queue: &mut Queue) {
    for dependent in cache.iter_dependents(uid) {
        queue.add(&encode(&dependent.key()));
    }
}

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector-controller"
    }

    fn n_workers(&self) -> usize {
        workers::GARBAGE_COLLECTOR
    }

    fn observe(&mut self, _: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        let same = |a: &Object, b: &Object| a.meta().uid == b.meta().uid;
        // Another object of this name is not the old one.
        let old = change.old;
        let before = old.filter(|old| change.new.is_some_and(|new| same(old, new)));
        if let (Some(gone), None) = (old, before) {
            add_dependents(&gone.meta().uid, cache, queue);
            wake_owners(gone, cache, queue);
        }
        let Some(new) = change.new else { return };
        if let Object::Plain(plain) = new {
            self.seen.insert(plain.kind.clone());
        }
        let meta = new.meta();
        let has_same_owners = before.is_some_and(|before| before.meta().owners == meta.owners);
        if !has_same_owners {
            self.observe_owners(new, cache, queue);
            if let Some(before) = before {
                wake_owners(before, cache, queue);
            }
        }
        let begins =
            |is: fn(&Meta) -> bool| is(meta) && !before.is_some_and(|before| is(before.meta()));
        if begins(is_waiting) {
            queue.add(&encode(&new.key()));
            add_dependents(&meta.uid, cache, queue);
        }
        if begins(is_orphaning) {
            queue.add(&encode(&new.key()));
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(object) = decode(name).and_then(|key| cx.api.get(&key)) else {
            return Ok(());
        };
        let meta = object.meta();
        if is_orphaning(meta) {
            return orphan(object, cx);
        }
        if is_waiting(meta) {
            let uid = Arc::clone(&meta.uid);
            // Each dependent that blocks it queues it when it is gone.
            if cx
                .cache
                .iter_dependents(&uid)
                .any(|dependent| blocks(&dependent, &uid))
            {
                return Ok(());
            }
            return remove_finalizer(object, FOREGROUND, cx.api);
        }
        if meta.is_terminating() {
            return Ok(());
        }
        self.collect(object, cx)
    }
}
