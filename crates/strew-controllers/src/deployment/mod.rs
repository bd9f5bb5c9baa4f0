//! Deployments: replace the pods of one template by those of the next, a few at a time.
//!
//! Left out: the old rollback by annotation (`deprecated.deployment.rollback.to`), which apps/v1 clients do not use.
//!
//! Reading order: [`DeploymentController`], [`sizes`], [`status`], [`revision`], [`template`].
//!
//! Source: spec/controllers §2.

pub mod from_pods;
pub mod revision;
mod rollout;
pub mod sizes;
pub mod status;
pub mod template;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSetSpec};
use rustc_hash::FxHashMap;
use strew_apiserver::object::{Deployment, Key, Kind, Name, Object, Owner, Pod, ReplicaSet};
use strew_apiserver::selection::Selection;
use strew_apiserver::{ApiError, Tables};
use strew_model::time::Instant;
use strew_wire::rolling::is_recreate;

use self::rollout::Rollout;
use self::sizes::Limits;
use self::status::{PAUSED, PROGRESSING, TIMED_OUT, begin, condition, set_condition};

use crate::api::Event;
use crate::controller::{Change, Context, Controller};
use crate::pod_control;
use crate::queue::Queue;
use crate::workers;

pub(crate) const SOURCE: &str = "deployment-controller";

/// After this many failures in a row, a Deployment is synced only after its next change.
const N_TRIES: u32 = 15;

/// The controller of Deployments.
#[derive(Default)]
pub struct DeploymentController {
    /// ReplicaSets without a controller.
    orphans: BTreeSet<Name>,
    /// The ReplicaSets with a Deployment's template, by the Deployment's uid.
    compared: FxHashMap<Arc<str>, Compared>,
}

/// Results of comparing templates. They are valid while both specs are the same objects in memory.
struct Compared {
    spec: Arc<DeploymentSpec>,
    /// By uid.
    sets: BTreeMap<Arc<str>, (Arc<ReplicaSetSpec>, bool)>,
}

impl DeploymentController {
    /// A controller that has seen no object.
    pub fn new() -> Self {
        Self::default()
    }

    fn observe_set(&mut self, change: &Change<'_>, cache: &Tables, queue: &mut Queue) {
        let Some((old, new)) = change.of::<ReplicaSet>() else {
            return;
        };
        let owner = |set: Option<&ReplicaSet>| set.and_then(|set| set.meta.controller()).cloned();
        let (was, is) = (owner(old), owner(new));
        let Some(set) = new.or(old) else {
            return;
        };
        for owner in [&was, &is].into_iter().flatten() {
            if let Some(deployment) = owned_by(&set.meta.name, owner, cache) {
                queue.add(&deployment.meta.name);
            }
        }
        let is_free = new.is_some() && is.is_none();
        if !is_free {
            self.orphans.remove(&set.meta.name);
            return;
        }
        self.orphans.insert(set.meta.name.clone());
        for deployment in cache
            .of::<Deployment>()
            .in_namespace(&set.meta.name.namespace)
        {
            let selection = Selection::of(&deployment.spec.selector);
            if selection.is_some_and(|selection| selection.matches(&set.meta.labels)) {
                queue.add(&deployment.meta.name);
            }
        }
    }

    /// The Deployment's ReplicaSets, oldest first. Releases those that no longer match, and adopts matching ones
    /// without a controller.
    ///
    /// Source: spec/controllers §0 ("Claiming").
    fn claim(
        &self,
        deployment: &Deployment,
        selection: &Selection,
        cx: &mut Context<'_>,
    ) -> Result<Vec<Arc<ReplicaSet>>, ApiError> {
        let meta = &deployment.meta;
        let (mut sets, mut outcome) = (Vec::new(), Ok(()));
        for object in cx.cache.dependents(&meta.uid) {
            let Object::ReplicaSet(set) = object else {
                continue;
            };
            if set
                .meta
                .controller()
                .is_none_or(|owner| owner.uid != meta.uid)
            {
                continue;
            }
            if selection.matches(&set.meta.labels) {
                sets.push(set);
            } else if !meta.is_terminating() {
                let mut set = ReplicaSet::clone(&set);
                let others = set.meta.owners.iter().filter(|owner| owner.uid != meta.uid);
                set.meta.owners = others.cloned().collect();
                outcome = outcome.and(write_claim(set, cx).map(|_| ()));
            }
        }
        for set in self.free(&meta.name.namespace, cx.cache) {
            let is_wanted = !set.meta.is_terminating() && selection.matches(&set.meta.labels);
            if !is_wanted || meta.is_terminating() || !lives(deployment, cx) {
                continue;
            }
            let mut set = ReplicaSet::clone(&set);
            let own = pod_control::owner_reference(&Object::from(deployment.clone()));
            set.meta.owners = set.meta.owners.iter().cloned().chain([own]).collect();
            match write_claim(set, cx) {
                Ok(adopted) => sets.extend(adopted),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        outcome?;
        sets.sort_by(|a, b| (a.meta.created, &a.meta.name).cmp(&(b.meta.created, &b.meta.name)));
        Ok(sets)
    }

    fn free(&self, namespace: &Arc<str>, cache: &Tables) -> Vec<Arc<ReplicaSet>> {
        let first = Name::new(Arc::clone(namespace), "");
        let free = self.orphans.range(first..);
        let free = free.take_while(|name| name.namespace == *namespace);
        free.filter_map(|name| cache.get::<ReplicaSet>(name).cloned())
            .collect()
    }

    /// The index of the oldest ReplicaSet with the Deployment's template.
    fn newest(&mut self, deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> Option<usize> {
        let uid = Arc::clone(&deployment.meta.uid);
        let compared = self.compared.entry(uid).or_insert_with(|| Compared {
            spec: Arc::clone(&deployment.spec),
            sets: BTreeMap::new(),
        });
        if !Arc::ptr_eq(&compared.spec, &deployment.spec) {
            compared.spec = Arc::clone(&deployment.spec);
            compared.sets.clear();
        }
        let is_there = |uid: &Arc<str>| sets.iter().any(|set| set.meta.uid == *uid);
        compared.sets.retain(|uid, _| is_there(uid));
        sets.iter().position(|set| {
            let known = compared.sets.get(&set.meta.uid);
            if let Some((spec, answer)) = known
                && Arc::ptr_eq(spec, &set.spec)
            {
                return *answer;
            }
            let own = set.spec.template.as_ref();
            let answer = own.is_some_and(|own| template::equals(own, &deployment.spec.template));
            let fact = (Arc::clone(&set.spec), answer);
            compared.sets.insert(Arc::clone(&set.meta.uid), fact);
            answer
        })
    }

    fn look(&mut self, deployment: &Deployment, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let selection = Selection::of(&deployment.spec.selector).unwrap_or_default();
        if selection.is_empty() {
            return refuse(deployment, cx);
        }
        let sets = self.claim(deployment, &selection, cx)?;
        let new = self.newest(deployment, &sets);
        let mut rollout = Rollout {
            limits: Limits::of(&deployment.spec),
            deployment: deployment.clone(),
            stored: deployment.clone(),
            sets,
            new,
            cx,
        };
        if deployment.meta.is_terminating() {
            rollout.sync_revision()?;
            return rollout.write_counts();
        }
        tell_pause(&mut rollout)?;
        let is_paused = deployment.spec.paused == Some(true);
        if is_paused || rollout.is_scaled() {
            rollout.sync_revision()?;
            rollout.scale()?;
            if is_paused {
                rollout.clean_up()?;
            }
            return rollout.write_counts();
        }
        match is_recreate(&deployment.spec) {
            true => rollout.recreate(),
            false => rollout.roll(),
        }
    }
}

/// The Deployment that an owner reference names.
fn owned_by<'a>(owned: &Name, owner: &Owner, cache: &'a Tables) -> Option<&'a Arc<Deployment>> {
    if &*owner.kind != "Deployment" {
        return None;
    }
    let name = Name {
        namespace: Arc::clone(&owned.namespace),
        name: Arc::clone(&owner.name),
    };
    let deployment = cache.get::<Deployment>(&name)?;
    (deployment.meta.uid == owner.uid).then_some(deployment)
}

fn write_claim(set: ReplicaSet, cx: &mut Context<'_>) -> Result<Option<Arc<ReplicaSet>>, ApiError> {
    match cx.api.update(set.into()) {
        Ok(Object::ReplicaSet(set)) => Ok(Some(set)),
        Ok(_) | Err(ApiError::NotFound(_) | ApiError::Invalid(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if the store has this Deployment too, and it is not being deleted.
fn lives(deployment: &Deployment, cx: &Context<'_>) -> bool {
    let key = Key {
        kind: Kind::Deployment,
        name: deployment.meta.name.clone(),
    };
    let current = cx.api.get(&key);
    current.is_some_and(|current| {
        current.meta().uid == deployment.meta.uid && !current.meta().is_terminating()
    })
}

/// With an empty selector, the controller only records an event.
fn refuse(deployment: &Deployment, cx: &mut Context<'_>) -> Result<(), ApiError> {
    let note = "This deployment is selecting all pods. A non-empty selector is required.";
    let object = Object::from(deployment.clone());
    cx.api
        .record(Event::warning(SOURCE, &object, "SelectingAll", note));
    if deployment.status.observed_generation.unwrap_or(0) < deployment.meta.generation {
        let mut deployment = deployment.clone();
        deployment.status.observed_generation = Some(deployment.meta.generation);
        cx.api.update_status(deployment.into())?;
    }
    Ok(())
}

/// Records pausing and resuming in the condition, unless it has timed out. Source: spec/controllers §2.7.
fn tell_pause(rollout: &mut Rollout<'_, '_>) -> Result<(), ApiError> {
    let Deployment { spec, status, .. } = &mut rollout.deployment;
    if status::progress_deadline(spec).is_none() {
        return Ok(());
    }
    let reason = condition(status, PROGRESSING).and_then(|c| c.reason.as_deref());
    let (reason, text) = match (spec.paused == Some(true), reason) {
        (_, Some(TIMED_OUT)) => return Ok(()),
        (true, reason) if reason != Some(PAUSED) => (PAUSED, "Deployment is paused"),
        (false, Some(PAUSED)) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return Ok(()),
    };
    let told = begin(
        PROGRESSING,
        "Unknown",
        reason,
        text.to_owned(),
        rollout.cx.now,
    );
    set_condition(status, told);
    rollout.write_deployment()
}

impl Controller for DeploymentController {
    fn name(&self) -> &'static str {
        SOURCE
    }

    fn n_workers(&self) -> usize {
        workers::DEPLOYMENT
    }

    fn observe(&mut self, _now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        match change.object() {
            Some(Object::Deployment(deployment)) => {
                queue.add(&deployment.meta.name);
                if change.new.is_none() {
                    self.compared.remove(&deployment.meta.uid);
                }
            }
            Some(Object::ReplicaSet(_)) => self.observe_set(&change, cache, queue),
            // The strategy Recreate waits until the last old pod is gone.
            Some(Object::Pod(pod)) if change.new.is_none() => {
                if let Some(deployment) = deployment_of(pod, cache)
                    && is_recreate(&deployment.spec)
                {
                    queue.add(&deployment.meta.name);
                }
            }
            _ => (),
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(deployment) = cx.cache.get::<Deployment>(name) else {
            return Ok(());
        };
        match self.look(deployment, cx) {
            Err(error) if error != ApiError::Lost && cx.queue.n_failures(name) >= N_TRIES => Ok(()),
            outcome => outcome,
        }
    }
}

/// The Deployment of a pod's ReplicaSet.
fn deployment_of<'a>(pod: &Pod, cache: &'a Tables) -> Option<&'a Arc<Deployment>> {
    let owner = pod.meta.controller()?;
    if &*owner.kind != "ReplicaSet" {
        return None;
    }
    let name = Name {
        namespace: Arc::clone(&pod.meta.name.namespace),
        name: Arc::clone(&owner.name),
    };
    let set = cache.get::<ReplicaSet>(&name)?;
    owned_by(&set.meta.name, set.meta.controller()?, cache)
}
