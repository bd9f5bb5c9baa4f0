//! The status of a Deployment.
//!
//! Source: spec/controllers §2.7.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentSpec, DeploymentStatus};
use strew_apiserver::object::{Deployment, ReplicaSet, moment};
use strew_model::time::{Instant, Span};

use super::sizes::Limits;
use crate::replica_set::status::REPLICA_FAILURE;

/// The condition type for enough available pods.
pub const AVAILABLE: &str = "Available";
/// The condition type for the progress of a rollout.
pub const PROGRESSING: &str = "Progressing";

/// The reason of a complete rollout.
pub const NEW_SET_AVAILABLE: &str = "NewReplicaSetAvailable";
/// The reason of a rollout without progress for too long.
pub const TIMED_OUT: &str = "ProgressDeadlineExceeded";
/// The reason of a paused Deployment.
pub const PAUSED: &str = "DeploymentPaused";

/// How long a rollout may be without progress; `None`: without limit.
pub fn progress_deadline(spec: &DeploymentSpec) -> Option<Span> {
    let seconds = spec.progress_deadline_seconds.unwrap_or(600);
    let is_limit = seconds != i32::MAX;
    is_limit.then(|| Span::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The condition of a type.
pub fn condition<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind)
}

/// A condition with the present time.
pub fn begin(
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Instant,
) -> DeploymentCondition {
    DeploymentCondition {
        last_transition_time: Some(moment::to_wire(now)),
        last_update_time: Some(moment::to_wire(now)),
        message: Some(message),
        reason: Some(reason.to_owned()),
        status: status.to_owned(),
        type_: kind.to_owned(),
    }
}

/// Sets a condition, unless status and reason are unchanged; it moves to the end.
pub fn set_condition(status: &mut DeploymentStatus, mut new: DeploymentCondition) {
    if let Some(old) = condition(status, &new.type_) {
        if old.status == new.status && old.reason == new.reason {
            return;
        }
        if old.status == new.status {
            new.last_transition_time
                .clone_from(&old.last_transition_time);
        }
    }
    remove_condition(status, &new.type_);
    status.conditions.get_or_insert_default().push(new);
}

/// Removes a condition.
pub fn remove_condition(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != kind);
    }
}

/// Sets the counters and the condition Available. `new`: the index of the newest set.
pub fn count(
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    new: Option<&Arc<ReplicaSet>>,
    now: Instant,
) -> DeploymentStatus {
    let sum =
        |of: fn(&ReplicaSet) -> i32| sets.iter().map(|set| of(set)).fold(0, i32::saturating_add);
    let available = sum(|set| set.status.available_replicas.unwrap_or(0));
    let size = sum(|set| set.spec.replicas.unwrap_or(1));
    let terminating = sets.iter().map(|set| set.status.terminating_replicas);
    let old = &deployment.status;
    let mut status = DeploymentStatus {
        available_replicas: Some(available),
        collision_count: old.collision_count,
        conditions: old.conditions.clone(),
        observed_generation: Some(deployment.meta.generation),
        ready_replicas: Some(sum(|set| set.status.ready_replicas.unwrap_or(0))),
        replicas: Some(sum(|set| set.status.replicas)),
        // A set without this counter leaves the sum unknown.
        terminating_replicas: terminating.sum(),
        unavailable_replicas: Some(size.saturating_sub(available).max(0)),
        updated_replicas: Some(new.map_or(0, |new| new.status.replicas)),
    };
    let limits = Limits::of(&deployment.spec);
    let is_enough = i64::from(available) >= limits.available_min();
    let (truth, reason, message) = match is_enough {
        true => (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    set_condition(
        &mut status,
        begin(AVAILABLE, truth, reason, message.to_owned(), now),
    );
    status
}

/// True if all pods are of the newest template, exist and are available.
pub fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = Some(deployment.spec.replicas.unwrap_or(1));
    let counts = [
        status.updated_replicas,
        status.replicas,
        status.available_replicas,
    ];
    let counts = counts.map(|count| Some(count.unwrap_or(0)));
    counts == [wanted; 3] && status.observed_generation.unwrap_or(0) >= deployment.meta.generation
}

fn has_moved(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let n = |count: Option<i32>| count.unwrap_or(0);
    let n_old = |status: &DeploymentStatus| n(status.replicas) - n(status.updated_replicas);
    n(new.updated_replicas) > n(old.updated_replicas)
        || n_old(new) < n_old(old)
        || n(new.ready_replicas) > n(old.ready_replicas)
        || n(new.available_replicas) > n(old.available_replicas)
}

/// When the rollout has been without progress for too long; `None` if it has no deadline.
fn due(deployment: &Deployment, status: &DeploymentStatus) -> Option<Instant> {
    let deadline = progress_deadline(&deployment.spec)?;
    let updated = condition(status, PROGRESSING)?.last_update_time.as_ref();
    Some(moment::of_wire(updated).unwrap_or_default() + deadline)
}

fn reason_of(status: &DeploymentStatus) -> Option<&str> {
    condition(status, PROGRESSING)?.reason.as_deref()
}

fn is_timed_out(deployment: &Deployment, status: &DeploymentStatus, now: Instant) -> bool {
    match reason_of(status) {
        None | Some(NEW_SET_AVAILABLE) => false,
        Some(TIMED_OUT) => true,
        Some(_) => due(deployment, status).is_some_and(|due| due < now),
    }
}

/// The status during a rollout: its progress, and the error if pods cannot be created.
pub fn in_rollout(
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    new: Option<&Arc<ReplicaSet>>,
    now: Instant,
) -> DeploymentStatus {
    let old = &deployment.status;
    let mut status = count(deployment, sets, new, now);
    let is_limited = progress_deadline(&deployment.spec).is_some();
    if !is_limited {
        remove_condition(&mut status, PROGRESSING);
    }
    let rests =
        status.replicas == status.updated_replicas && reason_of(old) == Some(NEW_SET_AVAILABLE);
    if is_limited && !rests {
        estimate(deployment, &mut status, new, now);
    }
    let failure = new
        .and_then(failure_of)
        .or_else(|| sets.iter().find_map(failure_of));
    match failure {
        Some(failure) => set_condition(&mut status, failure),
        None => remove_condition(&mut status, REPLICA_FAILURE),
    }
    status
}

fn estimate(
    deployment: &Deployment,
    status: &mut DeploymentStatus,
    new: Option<&Arc<ReplicaSet>>,
    now: Instant,
) {
    let subject = match new {
        Some(new) => format!("ReplicaSet \"{}\"", new.meta.name.name),
        None => format!("Deployment \"{}\"", deployment.meta.name.name),
    };
    let old = &deployment.status;
    if is_complete(deployment, status) {
        let message = format!("{subject} has successfully progressed.");
        set_condition(
            status,
            begin(PROGRESSING, "True", NEW_SET_AVAILABLE, message, now),
        );
    } else if has_moved(old, status) {
        let message = format!("{subject} is progressing.");
        let mut moved = begin(PROGRESSING, "True", "ReplicaSetUpdated", message, now);
        if let Some(before) = condition(old, PROGRESSING).filter(|c| c.status == "True") {
            moved
                .last_transition_time
                .clone_from(&before.last_transition_time);
        }
        // Also if only its time is new: the deadline counts from there.
        remove_condition(status, PROGRESSING);
        set_condition(status, moved);
    } else if is_timed_out(deployment, status, now) {
        let message = format!("{subject} has timed out progressing.");
        set_condition(status, begin(PROGRESSING, "False", TIMED_OUT, message, now));
    }
}

fn failure_of(set: &Arc<ReplicaSet>) -> Option<DeploymentCondition> {
    let mut conditions = set.status.conditions.iter().flatten();
    let failure = conditions.find(|condition| condition.type_ == REPLICA_FAILURE)?;
    Some(DeploymentCondition {
        last_transition_time: failure.last_transition_time.clone(),
        last_update_time: failure.last_transition_time.clone(),
        message: failure.message.clone(),
        reason: failure.reason.clone(),
        status: failure.status.clone(),
        type_: failure.type_.clone(),
    })
}

/// When a Deployment with this status must be synced again; `None` if no deadline is running.
pub fn next_look(deployment: &Deployment, now: Instant) -> Option<Instant> {
    let status = &deployment.status;
    // After completion there is no deadline until the next rollout begins.
    let is_settled = matches!(reason_of(status), Some(TIMED_OUT | NEW_SET_AVAILABLE));
    if is_complete(deployment, status) || is_settled {
        return None;
    }
    let due = due(deployment, status)?;
    // Upstream syncs one second after the deadline; during the last second before it, again and again.
    match due >= now + Span::from_secs(1) {
        true => Some(due + Span::from_secs(1)),
        false => Some(due.max(now) + Span::from_millis(5)),
    }
}
