//! Counts of a Job's pods by result.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::batch::v1::JobStatus;
use strew_apiserver::object::{Phase, Pod};

use super::backoff::finished_at;
use super::indexes::Indexes;
use super::policy::Verdict;
use super::terms::{INDEX_FAILURES, INDEX_IGNORED, Terms, number};

/// A Job's pods, counted.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) active: Vec<&'a Arc<Pod>>,
    pub(super) n_ready: i32,
    pub(super) n_terminating: i32,
    /// Succeeded pods that no status counts yet.
    pub(super) new_succeeded: Vec<&'a Pod>,
    /// Failed pods that no status counts yet, ignored ones included.
    pub(super) new_failed: Vec<&'a Pod>,
    pub(super) succeeded: i32,
    pub(super) failed: i32,
    /// Succeeded indexes in the status.
    pub(super) known_indexes: Indexes,
    /// Succeeded indexes in the status, and those that succeeded since.
    pub(super) succeeded_indexes: Indexes,
    /// With a limit per index, the failed indexes.
    pub(super) failed_indexes: Option<Indexes>,
    /// With a limit per index, the last failed pod of each index that needs another pod; its annotation has the number
    /// of failures.
    pub(super) waiting: BTreeMap<u32, &'a Pod>,
}

impl<'a> Tally<'a> {
    pub(super) fn of(terms: &Terms<'_>, status: &JobStatus, pods: &'a [Arc<Pod>]) -> Self {
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let set = |uids: Option<Vec<String>>| uids.into_iter().flatten().collect::<BTreeSet<_>>();
        let (uncounted_succeeded, uncounted_failed) =
            (set(uncounted.succeeded), set(uncounted.failed));
        let valid = || {
            pods.iter()
                .map(|pod| &**pod)
                .filter(|pod| terms.is_valid(pod))
        };
        let has_succeeded = |pod: &&Pod| pod.status.phase == Phase::Succeeded;
        let is_new = |pod: &&Pod, known: &BTreeSet<String>| !known.contains(&*pod.meta.uid);
        let new_succeeded: Vec<_> = valid()
            .filter(|pod| has_succeeded(pod) && is_new(pod, &uncounted_succeeded))
            .collect();
        let new_failed: Vec<_> = valid()
            .filter(|pod| terms.has_failed(pod) && is_new(pod, &uncounted_failed))
            .collect();
        let n_counted = new_failed
            .iter()
            .filter(|pod| terms.verdict(pod) != Verdict::Ignore);

        let known = status.completed_indexes.as_deref().unwrap_or_default();
        let known_indexes = Indexes::parse(known, terms.n_indexes());
        let mut succeeded_indexes = known_indexes.clone();
        for index in valid().filter(has_succeeded).filter_map(|p| terms.index(p)) {
            succeeded_indexes.insert(index);
        }
        let succeeded = match terms.is_indexed {
            true => succeeded_indexes.total(),
            false => {
                status.succeeded.unwrap_or(0)
                    + count(new_succeeded.len())
                    + count(uncounted_succeeded.len())
            }
        };
        let failed =
            status.failed.unwrap_or(0) + count(n_counted.count()) + count(uncounted_failed.len());
        let active: Vec<_> = pods.iter().filter(|pod| pod.is_active()).collect();
        let mut tally = Self {
            n_ready: count(active.iter().filter(|pod| pod.is_ready()).count()),
            n_terminating: count(pods.iter().filter(|pod| pod.is_terminating()).count()),
            active,
            new_succeeded,
            new_failed,
            succeeded,
            failed,
            known_indexes,
            succeeded_indexes,
            failed_indexes: None,
            waiting: BTreeMap::new(),
        };
        if let Some(limit) = terms.limit_per_index {
            let failed = valid().filter(|pod| terms.has_failed(pod));
            tally.look_at_failed_indexes(terms, status, limit, failed.collect());
        }
        tally
    }

    fn look_at_failed_indexes(
        &mut self,
        terms: &Terms<'_>,
        status: &JobStatus,
        limit: i32,
        failed_pods: Vec<&'a Pod>,
    ) {
        let known = status.failed_indexes.as_deref().unwrap_or_default();
        let mut failed = Indexes::parse(known, terms.n_indexes());
        for pod in &failed_pods {
            let is_final = match terms.verdict(pod) {
                Verdict::FailIndex => true,
                Verdict::Ignore => false,
                _ => number(pod, INDEX_FAILURES) >= limit,
            };
            if let Some(index) = terms.index(pod).filter(|_| is_final) {
                failed.insert(index);
            }
        }
        let active: Indexes = self.active.iter().filter_map(|p| terms.index(p)).collect();
        for pod in failed_pods {
            let Some(index) = terms.index(pod) else {
                continue;
            };
            let is_done = self.succeeded_indexes.contains(index) || failed.contains(index);
            if is_done || active.contains(index) {
                continue;
            }
            let last = self.waiting.entry(index).or_insert(pod);
            let key = |pod: &Pod| (n_failures(pod), finished_at(pod));
            if key(pod) > key(last) {
                *last = pod;
            }
        }
        self.failed_indexes = Some(failed);
    }
}

/// The number of failures of the index before this pod, ignored ones included.
pub(super) fn n_failures(pod: &Pod) -> i32 {
    number(pod, INDEX_FAILURES).saturating_add(number(pod, INDEX_IGNORED))
}

/// A number for a status.
pub(super) fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}
