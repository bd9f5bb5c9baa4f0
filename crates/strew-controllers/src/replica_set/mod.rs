//! ReplicaSets and ReplicationControllers: a number of pods of a template.
//!
//! A sync after one pod's change does not visit the other pods: their counts are maintained with each change, and from
//! the first choice of pods to delete on their order, too.
//!
//! Difference from upstream: a sync that adopts or releases pods ends there, and the next one follows when the watch
//! has shown the change.
//!
//! Reading order: [`ReplicaSetController`], [`kind`], [`ranking`], [`status`].
//!
//! Source: spec/controllers §1.

pub mod kind;
pub mod ranking;
pub mod status;
#[cfg(test)]
mod tests;
mod victims;
mod watched;

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use strew_apiserver::object::{Key, Name, Object, Pod, ReplicaSet, ReplicationController};
use strew_apiserver::{ApiError, Tables};
use strew_model::time::Instant;

use self::kind::Replicating;
use self::status::next_status;
use self::victims::Victims;
use self::watched::Watched;

use crate::controller::{Change, Context, Controller};
use crate::expectations::{Expectations, OwnWrites};
use crate::pod_control::{
    self, create_pod, delete_pod, is_controlled_by, slow_start, tell_created,
};
use crate::queue::Queue;

/// The most pods created or deleted in a sync.
const BURST: usize = 500;

/// The controller of ReplicaSets or ReplicationControllers.
pub struct ReplicaSetController<R = ReplicaSet> {
    watched: FxHashMap<Arc<str>, Watched<R>>,
    expectations: Expectations,
    own_writes: OwnWrites,
    /// The sets, as they were when their syncs began, of syncs that wait for answers.
    begun: BTreeMap<Name, Arc<R>>,
    /// The uids of the sets in whose order of victims pods on a node stand, by node. A set that has none there any more
    /// is forgotten with the next change on the node.
    ordered_on: FxHashMap<Arc<str>, FxHashSet<Arc<str>>>,
}

impl ReplicaSetController<ReplicaSet> {
    /// For ReplicaSets.
    pub fn new() -> Self {
        Self::of_kind()
    }
}

impl Default for ReplicaSetController<ReplicaSet> {
    fn default() -> Self {
        Self::new()
    }
}

impl ReplicaSetController<ReplicationController> {
    /// For ReplicationControllers.
    pub fn for_replication_controllers() -> Self {
        Self::of_kind()
    }
}

/// The result of creating or deleting pods.
type Managed = Result<(), (&'static str, ApiError)>;

impl<R: Replicating> ReplicaSetController<R> {
    fn of_kind() -> Self {
        Self {
            watched: FxHashMap::default(),
            expectations: Expectations::default(),
            own_writes: OwnWrites::default(),
            begun: BTreeMap::new(),
            ordered_on: FxHashMap::default(),
        }
    }

    fn observe_set(&mut self, old: Option<&Arc<R>>, new: Option<&Arc<R>>, cache: &Tables) {
        if let Some(old) = old {
            let uid = &old.meta().uid;
            if new.is_none_or(|new| new.meta().uid != *uid) {
                self.watched.remove(uid);
                self.expectations.forget(uid);
                self.own_writes.forget(uid);
            }
        }
        let owner = |set: Option<&Arc<R>>| {
            let owner = set.and_then(|set| set.meta().controller());
            owner.map(|owner| Arc::clone(&owner.uid))
        };
        let (was, is) = (owner(old), owner(new));
        let keeps = new.is_some_and(|new| {
            let known = self.watched.get_mut(&new.meta().uid);
            known.is_some_and(|known| known.keeps(new))
        });
        if let Some(new) = new.filter(|_| !keeps) {
            let uid = &new.meta().uid;
            let watched = Watched::new(new, self.watched.get(uid), cache);
            self.watched.insert(Arc::clone(uid), watched);
        }
        if !keeps || was != is {
            self.forget_victims(was.as_deref(), cache);
            self.forget_victims(is.as_deref(), cache);
        }
    }

    /// The sets of this controller have other siblings now, so that other pods are related.
    fn forget_victims(&mut self, owner_uid: Option<&str>, cache: &Tables) {
        let Some(owner_uid) = owner_uid.filter(|_| !self.ordered_on.is_empty()) else {
            return;
        };
        for set in cache.iter_dependents(owner_uid) {
            if let Some(watched) = self.watched.get_mut(&set.meta().uid) {
                watched.victims = None;
            }
        }
    }

    /// A pod has changed: the number of related pods on its node may be another one.
    fn observe_ranks(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        if self.ordered_on.is_empty() {
            return;
        }
        let owner = |pod: &Pod| pod.meta.controller().map(|owner| Arc::clone(&owner.uid));
        let is_same = old.zip(new).is_some_and(|(old, new)| {
            old.node == new.node
                && old.is_active() == new.is_active()
                && old.meta.labels == new.meta.labels
                && owner(old) == owner(new)
        });
        if is_same {
            return;
        }
        for node in [old, new]
            .into_iter()
            .flatten()
            .filter_map(|pod| pod.node.as_ref())
        {
            let Some(sets) = self.ordered_on.get_mut(node) else {
                continue;
            };
            sets.retain(|uid| {
                let set = self.watched.get_mut(uid);
                let victims = set.and_then(|set| set.victims.as_mut());
                victims.is_some_and(|victims| victims.node_changed(node))
            });
            if sets.is_empty() {
                self.ordered_on.remove(node);
            }
        }
    }

    fn observe_pod(
        &mut self,
        old: Option<&Pod>,
        new: Option<&Pod>,
        cache: &Tables,
        queue: &mut Queue,
    ) {
        self.observe_ranks(old, new);
        let owner = |pod: Option<&Pod>| {
            pod.and_then(|pod| pod.meta.controller())
                .map(|o| Arc::clone(&o.uid))
        };
        let (was, is) = (owner(old), owner(new));
        if was != is
            && let Some(watched) = was.as_ref().and_then(|uid| self.watched.get_mut(uid))
        {
            watched.change(old, None);
            queue.add(&watched.set.meta().name);
        }
        if let Some(uid) = &is {
            if let Some(watched) = self.watched.get_mut(uid) {
                let old = old.filter(|_| was == is);
                watched.change(old, new);
                queue.add(&watched.set.meta().name);
            }
            return;
        }
        let Some(new) = new else {
            return;
        };
        let is_unchanged = |old: &Pod| was == is && old.meta.labels == new.meta.labels;
        if old.is_some_and(is_unchanged) {
            return;
        }
        for set in cache.of::<R>().in_namespace(&new.meta.name.namespace) {
            if let Some(watched) = self.watched.get_mut(&set.meta().uid)
                && watched.orphan(new)
            {
                queue.add(&set.meta().name);
            }
        }
    }

    /// Releases pods that no longer match and adopts matching pods without a controller. Returns true if it wrote any.
    ///
    /// Source: spec/controllers §0 ("Claiming").
    fn claim(&mut self, set: &Arc<R>, cx: &mut Context<'_>) -> Result<bool, ApiError> {
        let meta = set.meta();
        let Some(watched) = self.watched.get(&meta.uid) else {
            return Ok(false);
        };
        if meta.is_terminating() || (watched.strangers.is_empty() && watched.candidates.is_empty())
        {
            return Ok(false);
        }
        let mut to_write = Vec::new();
        for pod in watched
            .strangers
            .iter()
            .filter_map(|name| cx.cache.get::<Pod>(name))
        {
            if pod.is_active() {
                let mut pod = Pod::clone(pod);
                let others = pod.meta.owners.iter().filter(|owner| owner.uid != meta.uid);
                pod.meta.owners = others.cloned().collect();
                to_write.push(pod);
            }
        }
        let n_released = to_write.len();
        // One pod a sync, any of them: each adoption is a request, between which another controller may adopt.
        let candidates = watched.candidates.iter();
        let candidates = candidates.filter_map(|name| cx.cache.get::<Pod>(name));
        let is_free = |pod: &&Arc<Pod>| {
            pod.is_active()
                && pod.meta.controller().is_none()
                && watched.selection.matches(&pod.meta.labels)
        };
        let free: Vec<&Arc<Pod>> = candidates.filter(is_free).collect();
        if !free.is_empty() {
            let owner = pod_control::owner_reference(&R::into_object(Arc::clone(set)));
            let mut pod = Pod::clone(free[cx.dice.index(free.len())]);
            let owners = pod.meta.owners.iter().cloned();
            pod.meta.owners = owners.chain([owner]).collect();
            to_write.push(pod);
        }
        if to_write.len() > n_released && !lives(set, cx) {
            to_write.truncate(n_released);
        }
        let (mut has_written, mut outcome) = (false, Ok(()));
        for pod in to_write {
            match cx.api.update(pod.into()) {
                Ok(pod) => {
                    self.own_writes.wrote(&meta.uid, &pod);
                    has_written = true;
                }
                Err(ApiError::Lost) => return Err(ApiError::Lost),
                // The pod is gone or cannot be written: a retry would not help.
                Err(ApiError::NotFound(_) | ApiError::Invalid(_)) => (),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome.map(|()| has_written)
    }

    fn manage(&mut self, set: &Arc<R>, n_active: usize, cx: &mut Context<'_>) -> Managed {
        let size = set.size();
        let resumed = cx.queue.resume(&set.meta().name);
        if n_active < size {
            let made = self.create(set, (size - n_active).min(BURST), resumed, cx);
            made.map_err(|error| ("FailedCreate", error))
        } else if n_active > size {
            let gone = self.delete(set, n_active, (n_active - size).min(BURST), cx);
            gone.map_err(|error| ("FailedDelete", error))
        } else {
            Ok(())
        }
    }

    fn create(
        &mut self,
        set: &Arc<R>,
        n: usize,
        resumed: Result<usize, ApiError>,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let uid = &set.meta().uid;
        let watched = self.watched.get(uid);
        let Some(prototype) = watched.and_then(|watched| watched.prototype.as_ref()) else {
            return Err(ApiError::Invalid("unable to create pods, no labels".into()));
        };
        let owner = R::into_object(Arc::clone(set));
        let is_ending = pod_control::is_ending(cx.cache, &owner);
        let mut names = Vec::with_capacity(n);
        let outcome = slow_start(n, resumed, || {
            match create_pod(cx, R::SOURCE, &owner, prototype.clone()) {
                Ok(pod) => {
                    names.push(Arc::clone(&pod.meta().name.name));
                    Ok(())
                }
                // The namespace terminates, so a refused creation is no failure.
                Err(ApiError::Forbidden(_)) if is_ending => Ok(()),
                Err(error) => Err(error),
            }
        });
        if !names.is_empty() {
            self.expectations.expect_creation(uid, names, cx.now);
        }
        outcome
    }

    fn delete(
        &mut self,
        set: &Arc<R>,
        n_active: usize,
        n: usize,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let uid = &set.meta().uid;
        let victims = match n == n_active {
            true => {
                let watched = self.watched.get(uid);
                let active = watched.into_iter().flat_map(|set| set.active(cx.cache));
                active.cloned().collect()
            }
            false => self.first_to_go(uid, n, cx),
        };
        let owner = R::into_object(Arc::clone(set));
        let (mut uids, mut outcome) = (Vec::with_capacity(n), Ok(()));
        for pod in victims {
            match delete_pod(cx, R::SOURCE, &owner, &pod) {
                Ok(()) => uids.push(Arc::clone(&pod.meta.uid)),
                Err(ApiError::Lost) => return Err(ApiError::Lost),
                // The watch will show that the pod is gone.
                Err(ApiError::NotFound(_)) => (),
                Err(error) => outcome = outcome.and(Err(unable_to_delete(&error))),
            }
        }
        if !uids.is_empty() {
            self.expectations.expect_deletion(uid, uids, cx.now);
        }
        outcome
    }

    /// The pods of the set with this uid that a scale-down by `n` deletes.
    ///
    /// Source: spec/controllers §1.3, rule 5: related are the active pods that the selector of any ReplicaSet with the
    /// same controller matches; without a controller there are none.
    fn first_to_go(&mut self, uid: &Arc<str>, n: usize, cx: &mut Context<'_>) -> Vec<Arc<Pod>> {
        let cache = cx.cache;
        let known = self.watched.get_mut(uid);
        let known = known.and_then(|watched| watched.victims.take());
        let Some(watched) = self.watched.get(uid) else {
            return Vec::new();
        };
        let mut victims = known
            .filter(|known| !known.is_stale())
            .unwrap_or_else(|| Victims::of(watched.active(cache)));
        let meta = watched.set.meta();
        let owner = meta.controller();
        let siblings = owner.map_or_else(Vec::new, |owner| self.siblings(&owner.uid, cache));
        let rank = |node: &Arc<str>| {
            let pods = cache.pods_on(node).filter(|pod| {
                pod.is_active()
                    && pod.meta.name.namespace == meta.name.namespace
                    && siblings.iter().any(|sibling| sibling.selects(pod))
            });
            pods.count()
        };
        let is_own = |name: &str| watched.active_pod(name, cache);
        for node in victims.bring_up_to_date(cx.now, is_own, rank) {
            let sets = self.ordered_on.entry(Arc::clone(node)).or_default();
            sets.insert(Arc::clone(uid));
        }
        let chosen = victims.first_to_go(n, cx.now, cx.dice);
        if let Some(watched) = self.watched.get_mut(uid) {
            watched.victims = Some(victims);
        }
        chosen
    }

    fn siblings(&self, owner_uid: &str, cache: &Tables) -> Vec<&Watched<R>> {
        let owned = cache.dependents(owner_uid);
        let sets = owned.iter().filter(|owned| {
            let controller = owned.meta().controller();
            controller.is_some_and(|controller| *controller.uid == *owner_uid)
        });
        sets.filter_map(|set| self.watched.get(&set.meta().uid))
            .collect()
    }

    fn write_status(
        &mut self,
        set: &Arc<R>,
        failure: Option<(&'static str, &ApiError)>,
        cx: &mut Context<'_>,
    ) -> Result<(), ApiError> {
        let Some(watched) = self.watched.get(&set.meta().uid) else {
            return Ok(());
        };
        let old = set.status();
        let counts = watched.counts(cx.cache);
        let next = next_status(&old, counts, set.meta().generation, failure, cx.now);
        let mut changed = R::clone(set);
        changed.set_status(next.clone());
        if changed.status() == old {
            return Ok(());
        }
        let mut answer = cx.api.update_status(changed.into());
        if let Err(ApiError::Conflict(_)) = answer {
            // Another client wrote in between: retries on the present object.
            let current = cx.api.get(&key_of(set));
            let current = current.as_ref().and_then(R::of_object);
            if let Some(current) = current.filter(|c| c.meta().uid == set.meta().uid) {
                let mut changed = R::clone(current);
                changed.set_status(next);
                answer = cx.api.update_status(changed.into());
            }
        }
        self.own_writes.wrote(&set.meta().uid, &answer?);
        Ok(())
    }
}

impl<R: Replicating> Watched<R> {
    /// True if the selector matches the pod.
    fn selects(&self, pod: &Pod) -> bool {
        let is_own = pod
            .meta
            .controller()
            .is_some_and(|c| c.uid == self.set.meta().uid);
        match is_own {
            true => !self.strangers.contains(&pod.meta.name),
            false => self.selection.matches(&pod.meta.labels),
        }
    }
}

/// True if the store has this set too, and it is not being deleted.
fn lives<R: Replicating>(set: &Arc<R>, cx: &Context<'_>) -> bool {
    let current = cx.api.get(&key_of(set));
    current.is_some_and(|current| {
        current.meta().uid == set.meta().uid && !current.meta().is_terminating()
    })
}

fn key_of<R: Replicating>(set: &Arc<R>) -> Key {
    Key {
        kind: R::KIND,
        name: set.meta().name.clone(),
    }
}

fn unable_to_delete(error: &ApiError) -> ApiError {
    ApiError::Internal(format!("unable to delete pods: {error}").into())
}

impl<R: Replicating> Controller for ReplicaSetController<R> {
    fn name(&self) -> &'static str {
        R::SOURCE
    }

    fn n_workers(&self) -> usize {
        R::N_WORKERS
    }

    fn observe(&mut self, _now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.expectations.observe(&change);
        if let Some((old, new)) = change.of::<Pod>() {
            self.observe_pod(old, new, cache, queue);
            return;
        }
        let read = |object: Option<&Object>| object.and_then(R::of_object).cloned();
        let (old, new) = (read(change.old), read(change.new));
        if let Some(set) = new.as_ref().or(old.as_ref()) {
            self.observe_set(old.as_ref(), new.as_ref(), cache);
            queue.add(&set.meta().name);
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let begun = self.begun.remove(name);
        let Some(known) = cx.cache.get::<R>(name) else {
            return Ok(());
        };
        // A sync whose creation was refused ends with the set that it began with; what has changed meanwhile is for the
        // next one. Source: spec/controllers §1.1.
        let is_refused = cx.queue.was_refused(name);
        let begun = begun.filter(|set| is_refused && set.meta().uid == known.meta().uid);
        let set = begun.as_ref().unwrap_or(known);
        let uid = &set.meta().uid;
        if !self.own_writes.are_seen(uid, cx.cache) || self.claim(set, cx)? {
            // The changes that the set waits for will queue it again.
            return Ok(());
        }
        let Some(watched) = self.watched.get_mut(uid) else {
            return Ok(());
        };
        let next_available = watched.settle(cx.now);
        let n_active = watched.counts(cx.cache).n_active;
        let mut managed = Ok(());
        if self.expectations.are_met(uid, cx.now) {
            if !set.meta().is_terminating() {
                managed = self.manage(set, n_active, cx);
            }
        } else if let Some(until) = self.expectations.waits_until(uid) {
            cx.queue.add_at(name, until);
        }
        if let Err((_, error)) = &managed
            && error.is_no_answer()
        {
            self.begun.insert(name.clone(), Arc::clone(set));
            return Err(error.clone());
        }
        let failure = managed
            .as_ref()
            .err()
            .map(|(reason, error)| (*reason, error));
        self.write_status(set, failure, cx)?;
        if let Some(due) = next_available {
            cx.queue.add_at(name, due);
        }
        managed.map_err(|(_, error)| error)
    }
    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        let Some(set) = cx.cache.get::<R>(name).cloned() else {
            return;
        };
        let owner = R::into_object(Arc::clone(&set));
        tell_created(cx, R::SOURCE, &owner, answer);
        if let Ok(pod) = answer
            && is_controlled_by(pod, &set.meta().uid)
        {
            let name = Arc::clone(&pod.meta().name.name);
            self.expectations
                .expect_creation(&set.meta().uid, [name], cx.now);
        }
    }
}
