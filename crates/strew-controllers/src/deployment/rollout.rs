//! One sync of a Deployment: its ReplicaSets, and the writes to them.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ReplicaSetSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use strew_apiserver::object::{Deployment, Key, Kind, Meta, Name, Object, ReplicaSet, Resource};
use strew_apiserver::tables::OwnedPods;
use strew_apiserver::workloads::template_hash_after;
use strew_apiserver::{ApiError, DeleteOptions};
use strew_wire::rolling::is_recreate;

use super::revision::{self, DESIRED_REPLICAS, MAX_REPLICAS, REVISION};
use super::sizes::{self, Limits, Share, Sized, new_size};
use super::status::{self, PROGRESSING, begin, set_condition};
use super::template::POD_TEMPLATE_HASH;
use super::{SOURCE, template};
use crate::api::Event;
use crate::controller::Context;
use crate::pod_control;

/// A Deployment during a sync. Written objects are kept here as the server returned them.
pub(super) struct Rollout<'s, 'c> {
    pub(super) cx: &'s mut Context<'c>,
    /// The Deployment with the status to write.
    pub(super) deployment: Deployment,
    /// The Deployment as stored.
    pub(super) stored: Deployment,
    pub(super) limits: Limits,
    /// Its ReplicaSets, oldest first.
    pub(super) sets: Vec<Arc<ReplicaSet>>,
    /// The index of the one with the present template.
    pub(super) new: Option<usize>,
}

/// A ReplicaSet of a Deployment with this template and hash, before its creation; `number` is its revision.
pub(super) fn replica_set(
    deployment: &Deployment,
    template: PodTemplateSpec,
    hash: &str,
    size: i64,
    number: i64,
) -> ReplicaSet {
    let own = &deployment.meta;
    let mut template = template::without_hash(template);
    let labels = template
        .metadata
        .get_or_insert_default()
        .labels
        .get_or_insert_default();
    labels.insert(POD_TEMPLATE_HASH.to_owned(), hash.to_owned());
    let mut name = Name::clone(&own.name);
    name.name = format!("{}-{hash}", own.name.name).into();
    let mut meta = Meta::new(name);
    meta.labels = Arc::new(labels.clone());
    let owner = Object::from(deployment.clone());
    meta.owners = Arc::new([pod_control::owner_reference(&owner)]);
    revision::annotate(own, &mut meta, number);
    annotate_sizes(&mut meta, Limits::of(&deployment.spec));
    let mut selector = deployment.spec.selector.clone();
    let pairs = selector.match_labels.get_or_insert_default();
    pairs.insert(POD_TEMPLATE_HASH.to_owned(), hash.to_owned());
    Resource {
        meta,
        spec: Arc::new(ReplicaSetSpec {
            min_ready_seconds: deployment.spec.min_ready_seconds,
            replicas: i32::try_from(size).ok(),
            selector,
            template: Some(template),
        }),
        status: ReplicaSetStatus::default(),
    }
}

fn annotate_sizes(meta: &mut Meta, limits: Limits) {
    meta.annotate(DESIRED_REPLICAS, limits.replicas.to_string());
    meta.annotate(MAX_REPLICAS, limits.total_max().to_string());
}

pub(super) fn size(set: &ReplicaSet) -> i64 {
    i64::from(set.spec.replicas.unwrap_or(1))
}

fn sized(set: &ReplicaSet) -> Sized {
    Sized {
        size: size(set),
        available: i64::from(set.status.available_replicas.unwrap_or(0)),
    }
}

fn annotated(set: &ReplicaSet, key: &str) -> Option<i64> {
    set.meta.annotation(key)?.parse().ok()
}

impl Rollout<'_, '_> {
    pub(super) fn new_set(&self) -> Option<&Arc<ReplicaSet>> {
        self.new.map(|index| &self.sets[index])
    }

    /// The indexes of all but the new one, oldest first.
    fn old(&self) -> Vec<usize> {
        let all = 0..self.sets.len();
        all.filter(|index| Some(*index) != self.new).collect()
    }

    fn old_active(&self) -> Vec<usize> {
        let old = self.old().into_iter();
        old.filter(|&index| size(&self.sets[index]) > 0).collect()
    }

    fn total(&self) -> i64 {
        self.sets.iter().map(|set| size(set)).sum()
    }

    /// Sets revision and annotations of the new ReplicaSet, if it exists, and the revision of the Deployment.
    pub(super) fn sync_revision(&mut self) -> Result<(), ApiError> {
        let Some(index) = self.new else {
            return Ok(());
        };
        let newest = self.next_revision();
        let mut set = ReplicaSet::clone(&self.sets[index]);
        let is_annotated = revision::annotate(&self.deployment.meta, &mut set.meta, newest);
        let min_ready = self.deployment.spec.min_ready_seconds;
        let waits_otherwise = set.spec.min_ready_seconds.unwrap_or(0) != min_ready.unwrap_or(0);
        if is_annotated || waits_otherwise {
            if waits_otherwise {
                Arc::make_mut(&mut set.spec).min_ready_seconds = min_ready;
            }
            // The change of the ReplicaSet triggers the next sync.
            return self.update_set(index, set);
        }
        let name = Arc::clone(&set.meta.name.name);
        let number = set.meta.annotation(REVISION).unwrap_or_default().to_owned();
        self.deployment.meta.annotate(REVISION, number);
        let is_limited = status::progress_deadline(&self.deployment.spec).is_some();
        if is_limited && status::condition(&self.deployment.status, PROGRESSING).is_none() {
            let message = format!("Found new replica set \"{name}\"");
            self.progress("True", "FoundNewReplicaSet", message);
        }
        self.write_deployment()
    }

    /// The number after those of all old ReplicaSets. After the largest number it is negative, as upstream's.
    fn next_revision(&self) -> i64 {
        let old = self
            .old()
            .into_iter()
            .map(|index| revision::revision(&self.sets[index]));
        old.max().unwrap_or(0).max(0).wrapping_add(1)
    }

    fn progress(&mut self, truth: &str, reason: &str, message: String) {
        let condition = begin(PROGRESSING, truth, reason, message, self.cx.now);
        set_condition(&mut self.deployment.status, condition);
    }

    /// Creates the new ReplicaSet if it does not exist.
    pub(super) fn ensure_new(&mut self) -> Result<(), ApiError> {
        if self.new.is_some() {
            return Ok(());
        }
        let size = match is_recreate(&self.deployment.spec) {
            true => self.limits.replicas,
            false => new_size(self.limits, self.total(), 0),
        };
        let set = self.draft(size);
        let name = Arc::clone(&set.meta.name.name);
        let number = set.meta.annotation(REVISION).unwrap_or_default().to_owned();
        let is_limited = status::progress_deadline(&self.deployment.spec).is_some();
        match self.cx.api.create(set.clone().into()) {
            Ok(made) => {
                if size > 0 {
                    self.say(format!("Scaled up replica set {name} from 0 to {size}"));
                }
                self.adopt_new(&made);
                self.deployment.meta.annotate(REVISION, number);
                if is_limited {
                    let message = format!("Created new replica set \"{name}\"");
                    self.progress("True", "NewReplicaSetCreated", message);
                }
                self.write_deployment()
            }
            Err(ApiError::AlreadyExists(key)) => self.collide(&set, key),
            Err(ApiError::Lost) => Err(ApiError::Lost),
            Err(error) => {
                let owner = Object::from(self.deployment.clone());
                if pod_control::is_ending(self.cx.cache, &owner) {
                    return Err(error);
                }
                let message = format!("Failed to create new replica set \"{name}\": {error}");
                let reason = "ReplicaSetCreateError";
                if is_limited {
                    self.progress("False", reason, message.clone());
                    self.write_deployment()?;
                }
                self.cx
                    .api
                    .record(Event::warning(SOURCE, &owner, reason, message));
                Err(error)
            }
        }
    }

    /// The name is taken: by the wanted ReplicaSet, or by another one with the same hash.
    fn collide(&mut self, set: &ReplicaSet, key: Key) -> Result<(), ApiError> {
        let Some(found) = self.cx.cache.get::<ReplicaSet>(&key.name).cloned() else {
            return Err(ApiError::NotFound(key));
        };
        let controller = found.meta.controller();
        let is_own = controller.is_some_and(|owner| owner.uid == self.deployment.meta.uid);
        let is_meant = match (&set.spec.template, &found.spec.template) {
            (Some(wanted), Some(found)) => template::equals(wanted, found),
            _ => false,
        };
        if is_own && is_meant {
            self.adopt_new(&Object::ReplicaSet(found));
            return self.sync_revision();
        }
        let count = self.deployment.status.collision_count.get_or_insert(0);
        *count = count.saturating_add(1);
        self.write_deployment()?;
        Err(ApiError::AlreadyExists(key))
    }

    fn adopt_new(&mut self, made: &Object) {
        if let Object::ReplicaSet(made) = made {
            self.new = Some(self.sets.len());
            self.sets.push(Arc::clone(made));
        }
    }

    /// The new ReplicaSet, before its creation.
    fn draft(&self, size: i64) -> ReplicaSet {
        let Deployment { spec, status, .. } = &self.deployment;
        let hash = template_hash_after(&spec.template, status.collision_count);
        let number = self.next_revision();
        replica_set(&self.deployment, spec.template.clone(), &hash, size, number)
    }

    fn say(&mut self, note: String) {
        let about = Object::from(self.stored.clone());
        self.cx
            .api
            .record(Event::normal(SOURCE, &about, "ScalingReplicaSet", note));
    }

    fn update_set(&mut self, index: usize, set: ReplicaSet) -> Result<(), ApiError> {
        if let Object::ReplicaSet(written) = self.cx.api.update(set.into())? {
            self.sets[index] = written;
        }
        Ok(())
    }

    /// Sets the size of a ReplicaSet, and the annotations that belong to it. Returns false if nothing changed.
    fn set_size(&mut self, index: usize, new: i64) -> Result<bool, ApiError> {
        let old = size(&self.sets[index]);
        let mut set = ReplicaSet::clone(&self.sets[index]);
        annotate_sizes(&mut set.meta, self.limits);
        if old == new && set.meta.annotations == self.sets[index].meta.annotations {
            return Ok(false);
        }
        let name = Arc::clone(&set.meta.name.name);
        if old != new {
            Arc::make_mut(&mut set.spec).replicas = i32::try_from(new).ok();
        }
        self.update_set(index, set)?;
        if old != new {
            let way = if new > old { "up" } else { "down" };
            self.say(format!(
                "Scaled {way} replica set {name} from {old} to {new}"
            ));
        }
        Ok(old != new)
    }

    /// Sets the size of a ReplicaSet, unless it has that size.
    fn resize(&mut self, index: usize, new: i64) -> Result<bool, ApiError> {
        match size(&self.sets[index]) == new {
            true => Ok(false),
            false => self.set_size(index, new),
        }
    }

    /// The strategy RollingUpdate. Source: spec/controllers §2.3.
    pub(super) fn roll(&mut self) -> Result<(), ApiError> {
        self.sync_revision()?;
        self.ensure_new()?;
        let Some(new) = self.new else {
            return Ok(());
        };
        let wanted = new_size(self.limits, self.total(), size(&self.sets[new]));
        if self.resize(new, wanted)? {
            return self.write_rollout_status();
        }
        let old = self.old_active();
        let views: Vec<Sized> = old.iter().map(|&index| sized(&self.sets[index])).collect();
        let steps = sizes::shrink(self.limits, sized(&self.sets[new]), &views);
        let has_shrunk = !steps.is_empty();
        for (nth, size) in steps {
            self.resize(old[nth], size)?;
        }
        if !has_shrunk && status::is_complete(&self.deployment, &self.deployment.status) {
            self.clean_up()?;
        }
        self.write_rollout_status()
    }

    /// The strategy Recreate. Source: spec/controllers §2.4.
    pub(super) fn recreate(&mut self) -> Result<(), ApiError> {
        self.sync_revision()?;
        let mut has_shrunk = false;
        for index in self.old_active() {
            has_shrunk |= self.resize(index, 0)?;
        }
        if has_shrunk || self.has_old_pods() {
            return self.write_rollout_status();
        }
        self.ensure_new()?;
        if let Some(new) = self.new {
            self.resize(new, self.limits.replicas)?;
        }
        if status::is_complete(&self.deployment, &self.deployment.status) {
            self.clean_up()?;
        }
        self.write_rollout_status()
    }

    /// True if an old ReplicaSet has a pod that has not finished; terminating pods count.
    fn has_old_pods(&self) -> bool {
        self.old().into_iter().any(|index| {
            let set = &self.sets[index];
            let owned = self.cx.cache.pods_of(&set.meta.uid);
            let mut pods = owned.into_iter().flat_map(OwnedPods::iter);
            set.status.replicas > 0 || pods.any(|pod| !pod.is_finished())
        })
    }

    /// True if the Deployment was scaled after its ReplicaSets were.
    pub(super) fn is_scaled(&self) -> bool {
        let mut active = self.sets.iter().filter(|set| size(set) > 0);
        active.any(|set| {
            let desired = annotated(set, DESIRED_REPLICAS);
            desired.is_some_and(|desired| desired != self.limits.replicas)
        })
    }

    /// Scales the ReplicaSets proportionally. Source: spec/controllers §2.5.
    pub(super) fn scale(&mut self) -> Result<(), ApiError> {
        let all = 0..self.sets.len();
        let active: Vec<usize> = all.filter(|&index| size(&self.sets[index]) > 0).collect();
        if active.len() <= 1 {
            let latest = self.new.or_else(|| self.old().last().copied());
            if let Some(index) = active.first().copied().or(latest) {
                self.resize(index, self.limits.replicas)?;
            }
            return Ok(());
        }
        if self.is_saturated() {
            for index in self.old_active() {
                self.resize(index, 0)?;
            }
            return Ok(());
        }
        if is_recreate(&self.deployment.spec) {
            return Ok(());
        }
        let share = |&index: &usize| Share {
            size: size(&self.sets[index]),
            total_max: annotated(&self.sets[index], MAX_REPLICAS),
        };
        let shares: Vec<Share> = active.iter().map(share).collect();
        let n_present = i64::from(self.deployment.status.replicas.unwrap_or(0));
        let sizes = sizes::proportional(self.limits, &shares, n_present);
        for (index, size) in active.into_iter().zip(sizes) {
            self.set_size(index, size)?;
        }
        Ok(())
    }

    /// True if the new ReplicaSet has all pods and all are available.
    fn is_saturated(&self) -> bool {
        self.new_set().is_some_and(|new| {
            let sized = sized(new);
            let desired = annotated(new, DESIRED_REPLICAS);
            let wanted = self.limits.replicas;
            sized.size == wanted && desired == Some(wanted) && sized.available == wanted
        })
    }

    /// Deletes the oldest ReplicaSets beyond `revisionHistoryLimit`.
    ///
    /// Source: spec/controllers §2.6.
    pub(super) fn clean_up(&mut self) -> Result<(), ApiError> {
        let limit = self.deployment.spec.revision_history_limit.unwrap_or(10);
        if limit == i32::MAX {
            return Ok(());
        }
        let old = self
            .old()
            .into_iter()
            .map(|index| Arc::clone(&self.sets[index]));
        let mut old: Vec<Arc<ReplicaSet>> = old.filter(|set| !set.meta.is_terminating()).collect();
        let n_kept = usize::try_from(limit).unwrap_or(0);
        let n_gone = old.len().saturating_sub(n_kept);
        old.sort_by_key(|set| revision::revision(set));
        for set in old.into_iter().take(n_gone) {
            let has_pods = size(&set) > 0 || set.status.replicas > 0;
            if has_pods || set.meta.generation > set.status.observed_generation.unwrap_or(0) {
                continue;
            }
            let key = Key {
                kind: Kind::ReplicaSet,
                name: set.meta.name.clone(),
            };
            match self
                .cx
                .api
                .delete(&key, &DeleteOptions::of_uid(&set.meta.uid))
            {
                Ok(()) | Err(ApiError::NotFound(_)) => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes the status of a rollout. A rollout without progress is synced again at its deadline.
    fn write_rollout_status(&mut self) -> Result<(), ApiError> {
        let new = self.new_set();
        let next = status::in_rollout(&self.deployment, &self.sets, new, self.cx.now);
        if next == self.deployment.status {
            if let Some(at) = status::next_look(&self.deployment, self.cx.now) {
                self.cx.queue.add_at(&self.deployment.meta.name, at);
            }
            return Ok(());
        }
        self.deployment.status = next;
        self.write_deployment()
    }

    /// Writes the counters only.
    pub(super) fn write_counts(&mut self) -> Result<(), ApiError> {
        let new = self.new_set();
        self.deployment.status = status::count(&self.deployment, &self.sets, new, self.cx.now);
        self.write_deployment()
    }

    /// Writes annotations and status if they have changed.
    pub(super) fn write_deployment(&mut self) -> Result<(), ApiError> {
        if self.deployment.meta.annotations != self.stored.meta.annotations {
            let answer = self.cx.api.update(self.deployment.clone().into())?;
            self.deployment.meta = answer.meta().clone();
        }
        if self.deployment.status != self.stored.status {
            let answer = self.cx.api.update_status(self.deployment.clone().into())?;
            self.deployment.meta = answer.meta().clone();
        }
        self.stored = self.deployment.clone();
        Ok(())
    }
}
