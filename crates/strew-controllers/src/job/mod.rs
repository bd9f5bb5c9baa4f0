//! Jobs: run pods until enough have succeeded.
//!
//! Source: spec/controllers §5.1. With the gate StaleControllerConsistencyJob (on in 1.36) a Job is not synced while
//! the cache lags behind the controller's own writes.

mod backoff;
pub(crate) mod conditions;
mod indexes;
mod own_writes;
mod pods;
mod policy;
mod round;
mod tally;
mod terms;
mod tracking;
mod ttl;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod world;

pub use ttl::TtlController;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::PodSpec;
use rustc_hash::FxHashMap;
use strew_apiserver::object::{Job, Name, Object, Pod};
use strew_apiserver::selection::Selection;
use strew_apiserver::{ApiError, Tables};
use strew_model::time::{Instant, Span};

use crate::workers;
use own_writes::OwnWrites;
use round::Round;
use terms::{TRACKING, Terms, is_tracked};

use crate::controller::{Change, Context, Controller};
use crate::pod_control::is_controlled_by;
use crate::queue::Queue;

const NAME: &str = "job-controller";

/// Changes of pods and statuses are handled together, this long after the first one.
const BATCH: Span = Span::from_secs(1);

/// The prefix of the namespace of a pod's name in the queue, which also has the names of Jobs.
const ORPHAN: &str = "pod/";

fn orphan(pod: &Name) -> Name {
    let namespace = format!("{ORPHAN}{}", pod.namespace);
    Name::new(namespace, Arc::clone(&pod.name))
}

/// Runs Jobs.
#[derive(Debug, Default)]
pub struct JobController {
    writes: OwnWrites,
    backoffs: FxHashMap<Arc<str>, backoff::Record>,
    /// Pod specs of templates by the Job's uid, so that all its pods share one.
    specs: FxHashMap<Arc<str>, (Arc<JobSpec>, Arc<PodSpec>)>,
    /// For the name of a Job, the uids of deleted Jobs whose pods may still have the finalizer.
    gone: BTreeMap<Name, BTreeSet<Arc<str>>>,
}

impl JobController {
    /// A controller that has seen no object.
    pub fn new() -> Self {
        Self::default()
    }

    fn pod_spec(&mut self, job: &Job) -> Arc<PodSpec> {
        let known = self.specs.get(&job.meta.uid);
        if let Some((_, pod)) = known.filter(|(spec, _)| Arc::ptr_eq(spec, &job.spec)) {
            return Arc::clone(pod);
        }
        let pod = Arc::new(job.spec.template.spec.clone().unwrap_or_default());
        let entry = (Arc::clone(&job.spec), Arc::clone(&pod));
        self.specs.insert(Arc::clone(&job.meta.uid), entry);
        pod
    }

    fn observe_job(
        &mut self,
        now: Instant,
        (old, new): (Option<&Job>, Option<&Job>),
        queue: &mut Queue,
    ) {
        let uid_of = |job: Option<&Job>| job.map(|job| Arc::clone(&job.meta.uid));
        if let Some(old) = old
            && uid_of(new).as_ref() != Some(&old.meta.uid)
        {
            let uid = &old.meta.uid;
            self.writes.forget(uid);
            self.backoffs.remove(uid);
            self.specs.remove(uid);
            let gone = self.gone.entry(old.meta.name.clone()).or_default();
            gone.insert(Arc::clone(uid));
            queue.add(&old.meta.name);
        }
        let Some(new) = new else { return };
        match old {
            Some(old) if old.meta.uid == new.meta.uid && old.spec == new.spec => {
                queue.add_at(&new.meta.name, now + BATCH);
            }
            _ => queue.add(&new.meta.name),
        }
    }

    fn observe_pod(&mut self, now: Instant, pod: &Pod, cache: &Tables, queue: &mut Queue) {
        let namespace = &pod.meta.name.namespace;
        match pod.meta.controller() {
            Some(owner) if &*owner.kind == "Job" => {
                let name = Name::new(Arc::clone(namespace), Arc::clone(&owner.name));
                let known = cache.get::<Job>(&name);
                if is_tracked(pod) && known.is_none_or(|job| job.meta.uid != owner.uid) {
                    let gone = self.gone.entry(name.clone()).or_default();
                    gone.insert(Arc::clone(&owner.uid));
                }
                // The worker that waits for its pods continues as soon as it sees them.
                match queue.goes_on(&name) {
                    true => queue.add(&name),
                    false => queue.add_at(&name, now + BATCH),
                }
            }
            Some(_) => {}
            None => {
                if is_tracked(pod) {
                    queue.add(&orphan(&pod.meta.name));
                }
                for job in cache.of::<Job>().in_namespace(namespace) {
                    if conditions::finished(&job.status).is_none()
                        && selection(job).matches(&pod.meta.labels)
                    {
                        queue.add_at(&job.meta.name, now + BATCH);
                    }
                }
            }
        }
    }

    /// Removes the finalizer from the pods of deleted Jobs.
    fn release(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(uids) = self.gone.get(name) else {
            return Ok(());
        };
        let living = cx.api.get(&strew_apiserver::object::Key {
            kind: strew_apiserver::object::Kind::Job,
            name: name.clone(),
        });
        for uid in uids {
            if living.as_ref().is_some_and(|job| job.meta().uid == *uid) {
                continue;
            }
            for pod in cx.cache.pods_of(uid).into_iter().flat_map(|p| p.iter()) {
                round::stop_tracking(cx, pod)?;
            }
        }
        self.gone.remove(name);
        Ok(())
    }

    /// Removes the finalizer from a pod whose Job was deleted without its pods.
    fn release_orphan(name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        let Some(pod) = cx.cache.get::<Pod>(name).map(Arc::clone) else {
            return Ok(());
        };
        match pod.meta.controller() {
            Some(_) => Ok(()),
            None => round::stop_tracking(cx, &pod).map(drop),
        }
    }

    /// Adopts and releases pods by their labels, and returns the Job's pods.
    fn claim(&mut self, job: &Job, cx: &mut Context<'_>) -> Result<Vec<Arc<Pod>>, ApiError> {
        let cache = cx.cache;
        let selection = selection(job);
        let mut mine = Vec::new();
        for pod in cache
            .pods_of(&job.meta.uid)
            .into_iter()
            .flat_map(|p| p.iter())
        {
            if selection.matches(&pod.meta.labels) {
                mine.push(Arc::clone(pod));
            } else if job.meta.deletion.is_none() {
                let others = pod.meta.owners.iter().filter(|o| o.uid != job.meta.uid);
                let mut released = Pod::clone(pod);
                released.meta.owners = others.cloned().collect();
                let kept = pod.meta.finalizers.iter().filter(|f| *f != TRACKING);
                released.meta.finalizers = kept.cloned().collect();
                let stored = cx.api.update(released.into())?;
                self.writes.wrote(&job.meta.uid, cx.now, &stored);
            }
        }
        if job.meta.deletion.is_some() {
            return Ok(mine);
        }
        for pod in cache.orphans(&job.meta.name.namespace) {
            if pod.meta.is_terminating() || !selection.matches(&pod.meta.labels) {
                continue;
            }
            let mut adopted = Pod::clone(pod);
            let owners = pod.meta.owners.iter().cloned();
            adopted.meta.owners = owners.chain([pods::owner(job)]).collect();
            if !is_tracked(pod) {
                let all = pod.meta.finalizers.iter().cloned();
                adopted.meta.finalizers = all.chain([TRACKING.to_owned()]).collect();
            }
            let stored = cx.api.update(adopted.into())?;
            self.writes.wrote(&job.meta.uid, cx.now, &stored);
            if let Object::Pod(pod) = stored {
                mine.push(pod);
            }
        }
        Ok(mine)
    }
}

/// The Job's selector; without one, its uid, which the API server would have set.
fn selection(job: &Job) -> Selection {
    let given = job.spec.selector.as_ref().and_then(Selection::of);
    given.filter(|s| !s.is_empty()).unwrap_or_else(|| {
        let uid = ("controller-uid".to_owned(), job.meta.uid.to_string());
        Selection::of_pairs(&[uid].into())
    })
}

impl Controller for JobController {
    fn name(&self) -> &'static str {
        NAME
    }

    fn n_workers(&self) -> usize {
        workers::JOB
    }

    fn observe(&mut self, now: Instant, change: Change<'_>, cache: &Tables, queue: &mut Queue) {
        self.writes.observe(change);
        if let Some(jobs) = change.of::<Job>() {
            self.observe_job(now, jobs, queue);
        }
        let (old, new) = change.of::<Pod>().unwrap_or_default();
        for pod in [old, new].into_iter().flatten() {
            self.observe_pod(now, pod, cache, queue);
        }
    }

    fn sync(&mut self, name: &Name, cx: &mut Context<'_>) -> Result<(), ApiError> {
        if let Some(namespace) = name.namespace.strip_prefix(ORPHAN) {
            let pod = Name::new(namespace, Arc::clone(&name.name));
            return Self::release_orphan(&pod, cx);
        }
        self.release(name, cx)?;
        let Some(job) = cx.cache.get::<Job>(name) else {
            return Ok(());
        };
        let manager = job.spec.managed_by.as_deref();
        if manager.is_some_and(|manager| manager != "kubernetes.io/job-controller") {
            return Ok(());
        }
        let uid = &job.meta.uid;
        if conditions::finished(&job.status).is_some() {
            self.backoffs.remove(uid);
            for pod in cx.cache.pods_of(uid).into_iter().flat_map(|p| p.iter()) {
                if is_tracked(pod) {
                    round::stop_tracking(cx, pod)?;
                }
            }
            return Ok(());
        }
        if let Some(until) = self.writes.awaited_until(uid, cx.now) {
            cx.queue.add_at(name, until);
            return Ok(());
        }
        let pods = self.claim(job, cx)?;
        let round = Round {
            controller: self,
            cached: job,
            terms: Terms::of(&job.spec),
            status: job.status.clone(),
            pods: &pods,
            stored: Object::Job(Arc::clone(job)),
            cx,
        };
        round.run()
    }
    fn answered(&mut self, name: &Name, answer: &Result<Object, ApiError>, cx: &mut Context<'_>) {
        let Some(job) = cx.cache.get::<Job>(name).cloned() else {
            return;
        };
        round::tell_created(cx, &Object::Job(Arc::clone(&job)), answer);
        if let Ok(pod) = answer
            && is_controlled_by(pod, &job.meta.uid)
        {
            self.writes.wrote(&job.meta.uid, cx.now, pod);
        }
    }
}
