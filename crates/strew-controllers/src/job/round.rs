//! One sync of a Job that has not finished.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::JobStatus;
use strew_apiserver::object::{Job, Object, Pod, Stored, moment};
use strew_apiserver::{ApiError, DeleteOptions};
use strew_model::time::{Instant, Span};

use super::conditions::{self, End, SUSPENDED};
use super::policy::{self, Verdict};
use super::tally::{Tally, count, n_failures};
use super::terms::{TRACKING, Terms, is_tracked};
use super::{JobController, backoff, pods};
use crate::api::Event;
use crate::controller::Context;
use crate::pod_control::slow_start;

/// The most pods created or deleted in one sync.
const N_PODS_MAX: usize = 500;

pub(super) struct Round<'r, 'c> {
    pub(super) controller: &'r mut JobController,
    pub(super) cx: &'r mut Context<'c>,
    /// The Job in the cache.
    pub(super) cached: &'r Arc<Job>,
    pub(super) terms: Terms<'r>,
    /// The status to write.
    pub(super) status: JobStatus,
    pub(super) pods: &'r [Arc<Pod>],
    /// The Job as last stored.
    pub(super) stored: Object,
}

impl Round<'_, '_> {
    pub(super) fn run(mut self) -> Result<(), ApiError> {
        let tally = Tally::of(&self.terms, &self.status, self.pods);
        let now = self.cx.now;
        if self.status.start_time.is_none() && !self.terms.is_suspended {
            self.status.start_time = Some(moment::to_wire(now));
        }
        let record = self.controller.backoffs.get(&self.cached.meta.uid).copied();
        let record = record.unwrap_or_default();
        let record = record.with(&tally.new_succeeded, &tally.new_failed);

        let mut n_active = count(tally.active.len());
        let mut counts = (tally.n_ready, tally.n_terminating);
        let mut end = self.end(&tally);
        let mut outcome = Ok(());
        if end.is_some() {
            let all: Vec<_> = tally.active.clone();
            let (deleted, result) = self.delete(&all, false);
            if deleted.len() < all.len() {
                end = None;
            }
            subtract(&deleted, &mut n_active, &mut counts);
            outcome = result;
        } else if self.cached.meta.deletion.is_none() {
            let result = self.manage(&tally, record.until(), &mut n_active, &mut counts);
            let is_complete = n_active == 0
                && match self.terms.completions {
                    None => tally.succeeded > 0,
                    Some(completions) => tally.succeeded >= completions,
                };
            if is_complete {
                let message = "Reached expected number of succeeded pods";
                end = Some(End::success("CompletionsReached", message));
            } else {
                self.mark_suspension();
            }
            outcome = result;
        }
        self.status.active = Some(n_active).filter(|&n| n > 0);
        self.status.ready = Some(counts.0);
        self.status.terminating = Some(counts.1);
        if outcome.as_ref().is_err_and(ApiError::is_no_answer) {
            return outcome;
        }
        self.track(&tally, end)?;
        let uid = Arc::clone(&self.cached.meta.uid);
        self.controller.backoffs.insert(uid, record);
        outcome
    }

    /// Whether the Job must end, and why.
    fn end(&mut self, tally: &Tally<'_>) -> Option<End> {
        if let Some(end) = End::announced(&self.status) {
            return Some(end);
        }
        let failed = self.pods.iter().filter(|pod| self.terms.has_failed(pod));
        let told = failed.map(|pod| self.terms.verdict(pod));
        for verdict in told {
            if let Verdict::FailJob(message) = verdict {
                return Some(End::failure("PodFailurePolicy", message));
            }
        }
        if tally.failed > self.terms.backoff_limit || self.is_past_restarts(tally) {
            let message = "Job has reached the specified backoff limit";
            return Some(End::failure("BackoffLimitExceeded", message));
        }
        if let Some(deadline) = self.deadline() {
            if deadline <= self.cx.now {
                let message = "Job was active longer than specified deadline";
                return Some(End::failure("DeadlineExceeded", message));
            }
            self.cx.queue.add_at(&self.cached.meta.name, deadline);
        }
        if !self.terms.is_indexed {
            return None;
        }
        if let Some(failed) = &tally.failed_indexes {
            let completions = self.terms.completions.unwrap_or(0);
            let max = self.cached.spec.max_failed_indexes;
            if max.is_some_and(|max| failed.total() > max) {
                let message = "Job has exceeded the specified maximal number of failed indexes";
                return Some(End::failure("MaxFailedIndexesExceeded", message));
            }
            let n_done = failed.total() + tally.succeeded_indexes.total();
            if failed.total() > 0 && n_done >= completions {
                return Some(End::failure("FailedIndexes", "Job has failed indexes"));
            }
        }
        let policy = self.cached.spec.success_policy.as_ref();
        let n_indexes = self.terms.n_indexes();
        let met = policy::success(policy, n_indexes, &tally.succeeded_indexes);
        met.map(|message| End::success("SuccessPolicy", message))
    }

    /// Restarts of containers in place count towards the limit too.
    fn is_past_restarts(&self, tally: &Tally<'_>) -> bool {
        let live = tally.active.iter();
        let restarts: u64 = live.map(|pod| u64::from(pod.status.restarts)).sum();
        let limit = u64::try_from(self.terms.backoff_limit).unwrap_or(0);
        self.terms.restarts_in_place && restarts >= limit.max(1)
    }

    fn deadline(&self) -> Option<Instant> {
        let seconds = u64::try_from(self.cached.spec.active_deadline_seconds?).unwrap_or(0);
        let start = moment::of_wire(self.status.start_time.as_ref())?;
        (!self.terms.is_suspended).then(|| start + Span::from_secs(seconds))
    }

    fn mark_suspension(&mut self) {
        let now = self.cx.now;
        if self.terms.is_suspended {
            let told = ("JobSuspended", "Job suspended");
            if conditions::set(&mut self.status, SUSPENDED, true, told, now) {
                self.tell("Suspended", "Job suspended");
            }
            self.status.start_time = None;
        } else {
            let told = ("JobResumed", "Job resumed");
            if conditions::set(&mut self.status, SUSPENDED, false, told, now) {
                self.tell("Resumed", "Job resumed");
                self.status.start_time = Some(moment::to_wire(now));
            }
        }
    }

    /// Creates or deletes pods.
    fn manage(
        &mut self,
        tally: &Tally<'_>,
        not_before: Instant,
        n_active: &mut i32,
        counts: &mut (i32, i32),
    ) -> Result<(), ApiError> {
        let resumed = self.cx.queue.resume(&self.cached.meta.name);
        let n_wanted = self.n_wanted(tally);
        let n_too_many = usize::try_from(*n_active - n_wanted).unwrap_or(0);
        let mut removed = match self.terms.is_suspended {
            true => tally.active.clone(),
            false => pods::to_remove(&self.terms, &tally.active, n_too_many),
        };
        if !self.terms.is_suspended {
            removed.truncate(N_PODS_MAX);
        }
        if !removed.is_empty() || self.terms.is_suspended {
            let (deleted, result) = self.delete(&removed, true);
            subtract(&deleted, n_active, counts);
            return result;
        }
        let n_terminating = match self.terms.replaces_failed_only {
            true => tally.n_terminating,
            false => 0,
        };
        let n_missing = n_wanted - n_terminating - *n_active;
        let n_missing = usize::try_from(n_missing).unwrap_or(0).min(N_PODS_MAX);
        if n_missing == 0 {
            return Ok(());
        }
        if self.terms.limit_per_index.is_none() && not_before > self.cx.now {
            self.cx.queue.add_at(&self.cached.meta.name, not_before);
            return Ok(());
        }
        let indexes: Vec<Option<u32>> = match self.terms.is_indexed {
            true => self.next_indexes(tally, n_missing),
            false => vec![None; n_missing],
        };
        let (n_created, result) = self.create(&indexes, resumed, tally);
        *n_active += count(n_created);
        result
    }

    fn n_wanted(&self, tally: &Tally<'_>) -> i32 {
        let n_active = count(tally.active.len());
        match self.terms.completions {
            None if tally.succeeded > 0 => n_active,
            None => self.terms.parallelism,
            Some(completions) => (completions - tally.succeeded)
                .min(self.terms.parallelism)
                .max(0),
        }
    }

    /// The lowest indexes that need a pod now. Indexes with a backoff are queued for its end.
    fn next_indexes(&mut self, tally: &Tally<'_>, n: usize) -> Vec<Option<u32>> {
        let waits = |pod: &&Arc<Pod>| self.terms.replaces_failed_only && pod.is_terminating();
        let holders = self.pods.iter().filter(|pod| pod.is_active() || waits(pod));
        let taken: BTreeSet<u32> = holders.filter_map(|p| self.terms.index(p)).collect();
        let is_done = |index| {
            let failed = tally.failed_indexes.as_ref();
            tally.succeeded_indexes.contains(index) || failed.is_some_and(|f| f.contains(index))
        };
        let pending = pods::pending_indexes(self.terms.n_indexes(), &taken, is_done, n);
        let mut next = Vec::new();
        for index in pending {
            let until = tally.waiting.get(&index).map_or(Instant::default(), |pod| {
                let n = u32::try_from(n_failures(pod)).unwrap_or(0);
                backoff::until(n.saturating_add(1), backoff::finished_at(pod))
            });
            if until > self.cx.now {
                self.cx.queue.add_at(&self.cached.meta.name, until);
            } else {
                next.push(Some(index));
            }
        }
        next
    }

    /// Creates pods by slow start. Returns the number of created pods.
    fn create(
        &mut self,
        indexes: &[Option<u32>],
        resumed: Result<usize, ApiError>,
        tally: &Tally<'_>,
    ) -> (usize, Result<(), ApiError>) {
        let spec = self.controller.pod_spec(self.cached);
        let mut n_created = 0;
        let mut left = indexes.iter();
        let result = slow_start(indexes.len(), resumed, || {
            let index = left.next().copied().flatten();
            let replaced = index.and_then(|index| tally.waiting.get(&index).copied());
            let pod = pods::pod(self.cached, &self.terms, &spec, index, replaced);
            let answer = self.cx.api.create(pod.into());
            tell_created(self.cx, &self.stored, &answer);
            if let Ok(stored) = &answer {
                n_created += 1;
                self.wrote(stored);
            }
            answer.map(drop)
        });
        (n_created, result)
    }

    /// Deletes pods; returns those that are being deleted. `uncounted`: they must not count as failed.
    fn delete<'p>(
        &mut self,
        pods: &[&'p Arc<Pod>],
        uncounted: bool,
    ) -> (Vec<&'p Arc<Pod>>, Result<(), ApiError>) {
        let mut deleted = Vec::new();
        let mut result = Ok(());
        for pod in pods {
            match self.delete_one(pod, uncounted) {
                Ok(()) => deleted.push(*pod),
                Err(ApiError::Lost) => return (deleted, Err(ApiError::Lost)),
                Err(error) => {
                    self.warn("FailedDelete", format!("Error deleting: {error}"));
                    result = Err(error);
                }
            }
        }
        (deleted, result)
    }

    fn delete_one(&mut self, pod: &Arc<Pod>, uncounted: bool) -> Result<(), ApiError> {
        if uncounted {
            self.stop_tracking(pod)?;
        }
        let options = DeleteOptions::of_uid(&pod.meta.uid);
        let key = Pod::into_object(Arc::clone(pod)).key();
        match self.cx.api.delete(&key, &options) {
            Ok(()) => {
                let uid = &self.cached.meta.uid;
                self.controller.writes.deleted(uid, self.cx.now, key);
                let name = &pod.meta.name.name;
                self.tell("SuccessfulDelete", format!("Deleted pod: {name}"));
                Ok(())
            }
            Err(ApiError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Writes the status if it has changed.
    pub(super) fn flush(&mut self) -> Result<(), ApiError> {
        let Object::Job(stored) = &self.stored else {
            return Ok(());
        };
        if stored.status == self.status {
            return Ok(());
        }
        let mut job = Job::clone(stored);
        job.status = self.status.clone();
        self.stored = self.cx.api.update_status(job.into())?;
        self.wrote(&self.stored.clone());
        Ok(())
    }

    /// Removes the finalizer from a pod.
    pub(super) fn stop_tracking(&mut self, pod: &Arc<Pod>) -> Result<(), ApiError> {
        if let Some(stored) = stop_tracking(self.cx, pod)? {
            self.wrote(&stored);
        }
        Ok(())
    }

    fn wrote(&mut self, stored: &Object) {
        let uid = &self.cached.meta.uid;
        self.controller.writes.wrote(uid, self.cx.now, stored);
    }

    pub(super) fn tell(&mut self, reason: &'static str, note: impl Into<Arc<str>>) {
        let event = Event::normal(super::NAME, &self.stored, reason, note);
        self.cx.api.record(event);
    }

    pub(super) fn warn(&mut self, reason: &'static str, note: impl Into<Arc<str>>) {
        let event = Event::warning(super::NAME, &self.stored, reason, note);
        self.cx.api.record(event);
    }
}

/// Records the event of a created or refused pod.
pub(super) fn tell_created(cx: &mut Context<'_>, job: &Object, answer: &Result<Object, ApiError>) {
    let event = match answer {
        Ok(pod) => {
            let note = format!("Created pod: {}", pod.meta().name.name);
            Event::normal(super::NAME, job, "SuccessfulCreate", note)
        }
        Err(error) if error.is_no_answer() => return,
        Err(error) if error.to_string().contains("it is being terminated") => return,
        Err(error) => {
            let note = format!("Error creating: {error}");
            Event::warning(super::NAME, job, "FailedCreate", note)
        }
    };
    cx.api.record(event);
}

/// Removes the finalizer from a pod as it is now; `None` if it has none, or is gone.
pub(super) fn stop_tracking(
    cx: &mut Context<'_>,
    pod: &Arc<Pod>,
) -> Result<Option<Object>, ApiError> {
    let key = Pod::into_object(Arc::clone(pod)).key();
    // Upstream patches, so the cached version does not matter.
    let Some(Object::Pod(mut now)) = cx.api.get(&key) else {
        return Ok(None);
    };
    if now.meta.uid != pod.meta.uid || !is_tracked(&now) {
        return Ok(None);
    }
    let others = now.meta.finalizers.iter().filter(|f| *f != TRACKING);
    let finalizers = others.cloned().collect();
    Arc::make_mut(&mut now).meta.finalizers = finalizers;
    match cx.api.update(Object::Pod(now)) {
        Ok(stored) => Ok(Some(stored)),
        Err(ApiError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deleted pods are no longer active; they terminate.
fn subtract(deleted: &[&Arc<Pod>], n_active: &mut i32, counts: &mut (i32, i32)) {
    *n_active -= count(deleted.len());
    counts.0 -= count(deleted.iter().filter(|pod| pod.is_ready()).count());
    counts.1 += count(deleted.len());
}
