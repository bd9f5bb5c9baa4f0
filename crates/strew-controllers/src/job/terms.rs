//! A Job's spec with its defaults.

use k8s_openapi::api::batch::v1::{JobSpec, PodFailurePolicy};
use strew_apiserver::object::{Phase, Pod};

use super::policy::{self, Verdict};

/// `batch.kubernetes.io/job-completion-index`
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The finalizer that keeps a pod until it has been counted.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The annotation with the failures of an index before this pod.
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
/// The annotation with the ignored failures of an index before this pod.
pub(super) const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// The spec of a Job with its defaults.
#[derive(Debug, Clone)]
pub(super) struct Terms<'a> {
    /// `None`: the Job is a work queue.
    pub(super) completions: Option<i32>,
    pub(super) parallelism: i32,
    pub(super) backoff_limit: i32,
    /// `backoffLimitPerIndex`
    pub(super) limit_per_index: Option<i32>,
    pub(super) is_indexed: bool,
    pub(super) is_suspended: bool,
    /// True if a pod is replaced only when its phase is Failed.
    pub(super) replaces_failed_only: bool,
    pub(super) restarts_in_place: bool,
    policy: Option<&'a PodFailurePolicy>,
}

impl<'a> Terms<'a> {
    pub(super) fn of(spec: &'a JobSpec) -> Self {
        let only_one = spec.completions.is_none() && spec.parallelism.is_none();
        let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
        let limit_per_index = spec.backoff_limit_per_index.filter(|_| is_indexed);
        let default_limit = match limit_per_index {
            Some(_) => i32::MAX,
            None => 6,
        };
        let pod = spec.template.spec.as_ref();
        Self {
            completions: spec.completions.or(only_one.then_some(1)),
            parallelism: spec.parallelism.unwrap_or(1),
            backoff_limit: spec.backoff_limit.unwrap_or(default_limit),
            limit_per_index,
            is_indexed,
            is_suspended: spec.suspend == Some(true),
            replaces_failed_only: match spec.pod_replacement_policy.as_deref() {
                Some(policy) => policy == "Failed",
                None => spec.pod_failure_policy.is_some(),
            },
            restarts_in_place: pod
                .is_some_and(|p| p.restart_policy.as_deref() == Some("OnFailure")),
            policy: spec.pod_failure_policy.as_ref(),
        }
    }

    /// The number of indexes.
    pub(super) fn n_indexes(&self) -> u32 {
        u32::try_from(self.completions.unwrap_or(0)).unwrap_or(0)
    }

    /// True if a pod counts as failed. A pod being deleted might never reach that phase.
    pub(super) fn has_failed(&self, pod: &Pod) -> bool {
        match pod.status.phase {
            Phase::Failed => true,
            Phase::Succeeded => false,
            _ => !self.replaces_failed_only && pod.meta.is_terminating(),
        }
    }

    /// The policy's action for a failed pod.
    pub(super) fn verdict(&self, pod: &Pod) -> Verdict {
        policy::verdict(self.policy, self.limit_per_index.is_some(), pod)
    }

    /// A pod's index, if it is in range.
    pub(super) fn index(&self, pod: &Pod) -> Option<u32> {
        let index = pod.meta.annotation(INDEX)?.parse().ok()?;
        (self.is_indexed && index < self.n_indexes()).then_some(index)
    }

    /// True if a pod may be counted.
    pub(super) fn is_valid(&self, pod: &Pod) -> bool {
        is_tracked(pod) && (!self.is_indexed || self.index(pod).is_some())
    }
}

/// True if a pod is not counted yet.
pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.meta.finalizers.iter().any(|f| f == TRACKING)
}

/// The number in an annotation of a pod.
pub(super) fn number(pod: &Pod, annotation: &str) -> i32 {
    let text = pod.meta.annotation(annotation);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
