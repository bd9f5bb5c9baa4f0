//! The status of a ReplicaSet.
//!
//! Source: spec/controllers §1.2.

use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use strew_apiserver::ApiError;
use strew_apiserver::object::moment;
use strew_model::time::Instant;

/// The condition of a ReplicaSet that cannot create or delete its pods.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The numbers of its pods by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pods that have not finished and do not terminate.
    pub n_active: usize,
    /// Active and ready.
    pub n_ready: usize,
    /// Active and ready for `minReadySeconds`.
    pub n_available: usize,
    /// Active and with all labels of the template.
    pub n_fully_labelled: usize,
    /// Terminating pods that have not finished.
    pub n_terminating: usize,
}

/// The status after a sync with this result.
///
/// The message of a failure is that of the first one, until a sync succeeds.
pub fn next_status(
    old: &ReplicaSetStatus,
    counts: Counts,
    generation: i64,
    failure: Option<(&'static str, &ApiError)>,
    now: Instant,
) -> ReplicaSetStatus {
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let mut conditions = old.conditions.clone().unwrap_or_default();
    let is_failure = |c: &ReplicaSetCondition| c.type_ == REPLICA_FAILURE;
    match failure {
        None => conditions.retain(|c| !is_failure(c)),
        Some(_) if conditions.iter().any(is_failure) => (),
        Some((reason, error)) => conditions.push(ReplicaSetCondition {
            last_transition_time: Some(moment::to_wire(now)),
            message: Some(error.to_string()),
            reason: Some(reason.to_owned()),
            status: "True".to_owned(),
            type_: REPLICA_FAILURE.to_owned(),
        }),
    }
    ReplicaSetStatus {
        available_replicas: Some(count(counts.n_available)),
        conditions: (!conditions.is_empty()).then_some(conditions),
        fully_labeled_replicas: Some(count(counts.n_fully_labelled)),
        observed_generation: Some(generation),
        ready_replicas: Some(count(counts.n_ready)),
        replicas: count(counts.n_active),
        terminating_replicas: Some(count(counts.n_terminating)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_failure_is_not_refreshed_and_goes_after_a_good_sync() {
        let next = |old: &ReplicaSetStatus, text: Option<&str>, secs: u64| {
            let error = text.map(|text| ApiError::Forbidden(text.into()));
            let failure = error.as_ref().map(|error| ("FailedCreate", error));
            next_status(old, Counts::default(), 1, failure, Instant::from_secs(secs))
        };
        let message = |status: &ReplicaSetStatus| {
            let conditions = status.conditions.iter().flatten();
            let texts: Vec<_> = conditions.map(|c| c.message.clone().unwrap()).collect();
            texts.join("; ")
        };
        let first = next(&ReplicaSetStatus::default(), Some("no room"), 5);
        assert_eq!(message(&first), "no room");
        let second = next(&first, Some("still no room"), 9);
        assert_eq!(second, first);
        assert_eq!(message(&next(&second, None, 10)), "");
    }
}
