//! The condition DisruptionAllowed of a budget.

use k8s_openapi::api::policy::v1::PodDisruptionBudgetStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use strew_model::time::Instant;

use crate::object::moment;

const ALLOWED: &str = "DisruptionAllowed";
const SYNC_FAILED: &str = "SyncFailed";

/// Sets the condition by the number of allowed disruptions.
pub fn set_allowed(status: &mut PodDisruptionBudgetStatus, now: Instant) {
    let (value, reason) = match status.disruptions_allowed.unwrap_or(0) {
        1.. => ("True", "SufficientPods"),
        _ => ("False", "InsufficientPods"),
    };
    set(status, value, reason, "", now);
}

/// Sets the condition of a budget that could not be computed.
pub fn set_failed(status: &mut PodDisruptionBudgetStatus, message: &str, now: Instant) {
    set(status, "False", SYNC_FAILED, message, now);
}

/// Why the budget could not be computed; `None` if it was.
pub fn failure(status: &PodDisruptionBudgetStatus) -> Option<&str> {
    let mut all = status.conditions.iter().flatten();
    let condition = all.find(|condition| condition.type_ == ALLOWED)?;
    let has_failed = condition.status == "False" && condition.reason == SYNC_FAILED;
    has_failed.then_some(&condition.message)
}

fn set(
    status: &mut PodDisruptionBudgetStatus,
    value: &str,
    reason: &str,
    message: &str,
    now: Instant,
) {
    let generation = status.observed_generation;
    let all = status.conditions.get_or_insert_default();
    let known = all.iter_mut().find(|condition| condition.type_ == ALLOWED);
    let Some(condition) = known else {
        all.push(Condition {
            type_: ALLOWED.to_owned(),
            status: value.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: generation,
            last_transition_time: moment::to_wire(now),
        });
        return;
    };
    if condition.status != value {
        value.clone_into(&mut condition.status);
        condition.last_transition_time = moment::to_wire(now);
    }
    reason.clone_into(&mut condition.reason);
    message.clone_into(&mut condition.message);
    condition.observed_generation = generation;
}
