//! Counts finished pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::JobStatus;
use strew_apiserver::ApiError;
use strew_apiserver::object::{Phase, Pod, moment};

use super::conditions::{self, End};
use super::policy::Verdict;
use super::round::Round;
use super::tally::{Tally, count};
use super::terms::is_tracked;

/// The most uncounted pods in a status.
const N_UNCOUNTED_MAX: usize = 500;

impl<'r> Round<'r, '_> {
    /// Counts finished pods in three steps, so that none is lost or counted twice: writes the uid into the status,
    /// removes the finalizer, then increases the number.
    pub(super) fn track(&mut self, tally: &Tally<'_>, end: Option<End>) -> Result<(), ApiError> {
        let mut tracked: BTreeSet<&str> = self
            .pods
            .iter()
            .filter(|pod| is_tracked(pod))
            .map(|pod| &*pod.meta.uid)
            .collect();
        count_released(&mut self.status, &tracked);
        let (counted, is_all) = self.write_down(tally, end.as_ref());
        if let Some(end) = &end {
            let told = (end.reason.as_str(), end.message.as_str());
            conditions::set(
                &mut self.status,
                end.announcement(),
                true,
                told,
                self.cx.now,
            );
        }
        self.flush()?;
        let mut result = Ok(());
        for pod in counted {
            match self.stop_tracking(pod) {
                Ok(()) => {
                    tracked.remove(&*pod.meta.uid);
                }
                Err(ApiError::Lost) => return Err(ApiError::Lost),
                Err(error) => result = Err(error),
            }
        }
        count_released(&mut self.status, &tracked);
        let is_over = result.is_ok() && is_all && self.is_over();
        if let (Some(end), true) = (&end, is_over) {
            let told = (end.reason.as_str(), end.message.as_str());
            conditions::set(&mut self.status, end.terminal(), true, told, self.cx.now);
            if end.is_success {
                self.status.completion_time = Some(moment::to_wire(self.cx.now));
            }
        }
        self.flush()?;
        if let (Some(end), true) = (end, is_over) {
            self.tell_end(&end);
        }
        result
    }

    /// Writes the uids or indexes of finished pods into the status. Returns the pods whose finalizer may be removed,
    /// and whether these are all.
    fn write_down(&mut self, tally: &Tally<'_>, end: Option<&End>) -> (Vec<&'r Arc<Pod>>, bool) {
        let mut uncounted = self
            .status
            .uncounted_terminated_pods
            .take()
            .unwrap_or_default();
        let succeeded = uncounted.succeeded.get_or_insert_default();
        let failed = uncounted.failed.get_or_insert_default();
        let mut indexes = tally.known_indexes.clone();
        let mut n_new_indexes = 0;
        let mut released = Vec::new();
        let mut is_all = true;
        let mut pods: Vec<&'r Arc<Pod>> = self.pods.iter().filter(|pod| is_tracked(pod)).collect();
        pods.sort_by_key(|pod| self.terms.index(pod));
        for pod in pods {
            if succeeded.len() + failed.len() + n_new_indexes >= N_UNCOUNTED_MAX {
                is_all = false;
                break;
            }
            let (uid, index) = (&*pod.meta.uid, self.terms.index(pod));
            let has_failed = self.terms.has_failed(pod);
            let has_succeeded = pod.status.phase == Phase::Succeeded;
            let is_ending = self.cached.meta.is_terminating() || end.is_some();
            let carries_failures = index
                .and_then(|index| tally.waiting.get(&index))
                .is_some_and(|waiting| waiting.meta.uid == pod.meta.uid);
            if !(is_ending || (has_failed || has_succeeded) && !carries_failures) {
                continue;
            }
            released.push(pod);
            let is_known = |uids: &Vec<String>| uids.iter().any(|known| known == uid);
            let is_mine = !self.terms.is_indexed || index.is_some();
            if has_succeeded && !is_known(failed) {
                match index {
                    Some(index) => n_new_indexes += usize::from(indexes.insert(index)),
                    None if is_mine && !is_known(succeeded) => succeeded.push(uid.to_owned()),
                    None => {}
                }
            } else if (has_failed || end.is_some_and(|end| !end.is_success))
                && is_mine
                && !is_known(failed)
                && self.terms.verdict(pod) != Verdict::Ignore
            {
                failed.push(uid.to_owned());
            }
        }
        uncounted.succeeded = uncounted.succeeded.filter(|uids| !uids.is_empty());
        uncounted.failed = uncounted.failed.filter(|uids| !uids.is_empty());
        self.status.uncounted_terminated_pods = Some(uncounted);
        if self.terms.is_indexed {
            self.status.succeeded = Some(indexes.total()).filter(|&n| n > 0);
            self.status.completed_indexes = Some(indexes.to_string()).filter(|t| !t.is_empty());
            self.status.failed_indexes = tally.failed_indexes.as_ref().map(ToString::to_string);
        }
        (released, is_all)
    }

    /// True if no pod is left that could change the Job's numbers.
    fn is_over(&self) -> bool {
        let uncounted = self.status.uncounted_terminated_pods.as_ref();
        let is_counted = uncounted.is_none_or(|u| u.succeeded.is_none() && u.failed.is_none());
        is_counted && self.status.terminating.unwrap_or(0) == 0
    }

    fn tell_end(&mut self, end: &End) {
        if !end.is_success {
            let reason = match end.reason.as_str() {
                "PodFailurePolicy" => "PodFailurePolicy",
                "DeadlineExceeded" => "DeadlineExceeded",
                "MaxFailedIndexesExceeded" => "MaxFailedIndexesExceeded",
                "FailedIndexes" => "FailedIndexes",
                _ => "BackoffLimitExceeded",
            };
            return self.warn(reason, end.message.as_str());
        }
        let succeeded = self.status.succeeded.unwrap_or(0);
        if self
            .terms
            .completions
            .is_some_and(|completions| succeeded > completions)
        {
            let note = "Too many succeeded pods when completion count reached";
            self.warn("TooManySucceededPods", note);
        }
        self.tell("Completed", "Job completed");
    }
}

/// Moves pods without finalizer from the uncounted uids to the numbers.
fn count_released(status: &mut JobStatus, tracked: &BTreeSet<&str>) {
    let Some(uncounted) = &mut status.uncounted_terminated_pods else {
        return;
    };
    for (uids, number) in [
        (&mut uncounted.succeeded, &mut status.succeeded),
        (&mut uncounted.failed, &mut status.failed),
    ] {
        let Some(waiting) = uids else { continue };
        let n_before = waiting.len();
        waiting.retain(|uid| tracked.contains(uid.as_str()));
        let n = count(n_before - waiting.len());
        if n > 0 {
            *number = Some(number.unwrap_or(0) + n);
        }
        if waiting.is_empty() {
            *uids = None;
        }
    }
}
