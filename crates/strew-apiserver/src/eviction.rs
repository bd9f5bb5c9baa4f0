//! The decision of the eviction API; the store carries it out.
//!
//! Source: spec/controllers §8.2; upstream `pkg/registry/core/pod/storage/eviction.go`, v1.36.

pub mod condition;

use std::sync::Arc;

use strew_model::time::{Instant, Span};

use crate::ApiError;
use crate::object::{Budget, Phase, Pod, moment};
use crate::selection::Selection;
use crate::tables::Tables;

/// Reason and message of the condition DisruptionTarget of an evicted pod.
pub const REASON: &str = "EvictionByEvictionAPI";
/// See [`REASON`].
pub const MESSAGE: &str = "Eviction API: evicting";

/// Evictions are refused while more than this many are unseen by the controller.
const N_DISRUPTED_MAX: usize = 2000;

/// The decision on an eviction.
#[derive(Debug, Clone, PartialEq)]
pub enum Eviction {
    /// The pod is deleted; no budget changes.
    Delete,
    /// The budget's status must be written in the version of the decision; then the pod is deleted. After a conflict,
    /// decide again.
    Use(Arc<Budget>),
    /// The eviction is refused.
    Refuse(ApiError),
}

/// The budgets that select a pod; none if the pod has no labels.
pub fn budgets_of(pod: &Pod, tables: &Tables) -> Vec<Arc<Budget>> {
    if pod.meta.labels.is_empty() {
        return Vec::new();
    }
    let selects = |budget: &&Arc<Budget>| {
        let selection = budget.spec.selector.as_ref().and_then(Selection::of);
        selection.is_some_and(|selection| selection.matches(&pod.meta.labels))
    };
    let budgets = tables.of::<Budget>().in_namespace(&pod.meta.name.namespace);
    budgets.filter(selects).cloned().collect()
}

/// Decides about an eviction; `budgets` are those that select the pod.
pub fn decide(pod: &Pod, budgets: &[Arc<Budget>], now: Instant) -> Eviction {
    let is_free = matches!(
        pod.status.phase,
        Phase::Succeeded | Phase::Failed | Phase::Pending
    );
    if is_free || pod.meta.is_terminating() {
        return Eviction::Delete;
    }
    let budget = match budgets {
        [] => return Eviction::Delete,
        [budget] => budget,
        _ => {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                           support.";
            return Eviction::Refuse(ApiError::Internal(message.into()));
        }
    };
    if !pod.is_ready() && goes_unhealthy(budget) {
        return Eviction::Delete;
    }
    match refusal(budget) {
        Some(error) => Eviction::Refuse(error),
        None => Eviction::Use(used(budget, pod, now)),
    }
}

/// True if a budget allows the eviction of pods that are not ready, regardless of its count.
fn goes_unhealthy(budget: &Budget) -> bool {
    if budget.spec.unhealthy_pod_eviction_policy.as_deref() == Some("AlwaysAllow") {
        return true;
    }
    let desired = budget.status.desired_healthy.unwrap_or(0);
    budget.status.current_healthy.unwrap_or(0) >= desired && desired > 0
}

/// True if no controller has counted a budget since its spec changed: until then no eviction is charged to it.
pub fn is_stale(budget: &Budget) -> bool {
    budget.status.observed_generation.unwrap_or(0) < budget.meta.generation
}

fn refusal(budget: &Budget) -> Option<ApiError> {
    let name = &budget.meta.name.name;
    let status = &budget.status;
    if is_stale(budget) {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Some(too_many(cause, Some(Span::from_secs(10))));
    }
    let allowed = status.disruptions_allowed.unwrap_or(0);
    if allowed < 0 {
        let message = format!(
            "poddisruptionbudgets.policy {name:?} is forbidden: pdb disruptions allowed is negative"
        );
        return Some(ApiError::Forbidden(message.into()));
    }
    let n_disrupted = status.disrupted_pods.as_ref().map_or(0, |pods| pods.len());
    if n_disrupted > N_DISRUPTED_MAX {
        let message = format!(
            "poddisruptionbudgets.policy {name:?} is forbidden: DisruptedPods map too big - too many evictions not \
             confirmed by PDB controller"
        );
        return Some(ApiError::Forbidden(message.into()));
    }
    (allowed == 0).then(|| too_many(exhausted(budget), None))
}

fn exhausted(budget: &Budget) -> String {
    let name = &budget.meta.name.name;
    let status = &budget.status;
    if let Some(message) = condition::failure(status) {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    let (desired, current) = (
        status.desired_healthy.unwrap_or(0),
        status.current_healthy.unwrap_or(0),
    );
    if current <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    } else {
        format!("The disruption budget {name} does not allow evicting pods currently")
    }
}

fn too_many(cause: String, retry_after: Option<Span>) -> ApiError {
    ApiError::TooManyRequests {
        message: "Cannot evict pod as it would violate the pod's disruption budget.".into(),
        cause: cause.into(),
        retry_after,
    }
}

/// The budget with one allowed disruption less.
fn used(budget: &Arc<Budget>, pod: &Pod, now: Instant) -> Arc<Budget> {
    let mut used = Budget::clone(budget);
    let status = &mut used.status;
    let allowed = status.disruptions_allowed.unwrap_or(0) - 1;
    status.disruptions_allowed = Some(allowed);
    let disrupted = status.disrupted_pods.get_or_insert_default();
    disrupted.insert(pod.meta.name.name.to_string(), moment::to_wire(now));
    if allowed == 0 {
        condition::set_allowed(status, now);
    }
    Arc::new(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Object;
    use serde_json::{Value, json};

    const NOW: Instant = Instant::from_secs(500);

    fn pod(status: Value) -> Arc<Pod> {
        let wire = json!({"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": []}, "status": status});
        Arc::new(Pod::of_wire(serde_json::from_value(wire).unwrap()))
    }

    fn budget(spec: Value, status: Value) -> Arc<Budget> {
        let wire =
            json!({"metadata": {"name": "b", "generation": 2}, "spec": spec, "status": status});
        let wire: k8s_openapi::api::policy::v1::PodDisruptionBudget =
            serde_json::from_value(wire).unwrap();
        match Object::of_wire(wire.into()) {
            Object::Budget(budget) => budget,
            other => panic!("{other:?}"),
        }
    }

    fn outcome(eviction: Eviction) -> String {
        match eviction {
            Eviction::Delete => "delete".to_owned(),
            Eviction::Use(budget) => {
                format!("use, {} left", budget.status.disruptions_allowed.unwrap())
            }
            Eviction::Refuse(ApiError::TooManyRequests {
                message,
                cause,
                retry_after,
            }) => {
                assert_eq!(
                    &*message,
                    "Cannot evict pod as it would violate the pod's disruption budget."
                );
                format!("429 {:?} {cause}", retry_after.map(|s| s.0 / 1_000_000_000))
            }
            Eviction::Refuse(error) => error.to_string(),
        }
    }

    #[test]
    fn answers() {
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let unready = json!({"phase": "Running"});
        let status = |current: i32, desired: i32, allowed: i32| {
            json!({"observedGeneration": 2, "currentHealthy": current, "desiredHealthy": desired,
                "expectedPods": 3, "disruptionsAllowed": allowed})
        };
        let failed = json!({"observedGeneration": 2, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0,
            "disruptionsAllowed": 0, "conditions": [{"type": "DisruptionAllowed", "status": "False",
            "reason": "SyncFailed", "message": "jobs.batch does not implement the scale subresource",
            "lastTransitionTime": "2020-01-01T00:00:00Z"}]});
        let always = json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"});
        let full = "429 None The disruption budget b needs 2 healthy pods and has 2 currently";
        for (pod_status, spec, budget_status, expected) in [
            (
                &json!({"phase": "Pending"}),
                json!({}),
                status(2, 2, 0),
                "delete",
            ),
            (
                &json!({"phase": "Failed"}),
                json!({}),
                status(2, 2, 0),
                "delete",
            ),
            (&ready, json!({}), status(3, 2, 1), "use, 0 left"),
            (&ready, json!({}), status(3, 1, 2), "use, 1 left"),
            (&ready, json!({}), status(2, 2, 0), full),
            (
                &ready,
                json!({}),
                status(3, 2, 0),
                "429 None The disruption budget b does not allow evicting pods currently",
            ),
            (&ready, always.clone(), status(2, 2, 0), full),
            (&unready, json!({}), status(2, 2, 0), "delete"),
            (
                &unready,
                json!({}),
                status(1, 2, 0),
                "429 None The disruption budget b needs 2 healthy pods and has 1 currently",
            ),
            (
                &unready,
                json!({}),
                status(0, 0, 0),
                "429 None The disruption budget b needs 0 healthy pods and has 0 currently",
            ),
            (&unready, always, status(1, 2, 0), "delete"),
            (
                &ready,
                json!({}),
                json!({"observedGeneration": 1, "currentHealthy": 3, "desiredHealthy": 0, "expectedPods": 3, "disruptionsAllowed": 3}),
                "429 Some(10) The disruption budget b is still being processed by the server.",
            ),
            (
                &ready,
                json!({}),
                failed,
                "429 None The disruption budget b does not allow evicting pods currently because it failed sync: \
                 jobs.batch does not implement the scale subresource",
            ),
        ] {
            let budget = budget(spec, budget_status);
            assert_eq!(
                outcome(decide(&pod(pod_status.clone()), &[budget], NOW)),
                expected
            );
        }
        let budget = budget(json!({}), status(3, 2, 1));
        assert_eq!(decide(&pod(ready.clone()), &[], NOW), Eviction::Delete);
        assert_eq!(
            outcome(decide(&pod(ready), &[Arc::clone(&budget), budget], NOW)),
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        );
    }

    #[test]
    fn a_used_budget_remembers_the_pod_and_says_when_it_is_exhausted() {
        let ready =
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
        let status = json!({"observedGeneration": 2, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3, "disruptionsAllowed": 1});
        let Eviction::Use(used) = decide(&pod(ready), &[budget(json!({}), status)], NOW) else {
            panic!("it is not refused");
        };
        let disrupted = used.status.disrupted_pods.as_ref().unwrap();
        assert_eq!(disrupted["p"].0.as_second(), 500);
        assert_eq!(
            used.status.conditions.as_ref().unwrap()[0].reason,
            "InsufficientPods"
        );
    }
}
