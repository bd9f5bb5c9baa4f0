//! Converts a PodDisruptionBudget to a fact.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use strew_cluster::Cluster;
use strew_model::Interner;
use strew_scheduler::preemption::{Budget, Budgets};

use super::{namespaced, selector};
use crate::zones;

/// A budget as a fact; `None` if its selector is invalid, and then preemption ignores it.
pub fn budget(budget: &PodDisruptionBudget, names: &mut Interner) -> Option<Budget> {
    let wire = budget.spec.as_ref().and_then(|s| s.selector.as_ref());
    let status = budget.status.as_ref();
    let disrupted = status.and_then(|s| s.disrupted_pods.as_ref());
    Some(Budget {
        selector: selector(wire, names).ok()?,
        counted: status.and_then(|s| s.disruptions_allowed).is_some(),
        disruptions_allowed: status.and_then(|s| s.disruptions_allowed).unwrap_or(0),
        zone: zones::topology_key(&budget.metadata).map(|key| names.intern(key)),
        disrupted: disrupted
            .into_iter()
            .flat_map(|pods| pods.keys())
            .map(|name| name.as_str().into())
            .collect(),
    })
}

/// Applies an object to the budgets.
pub fn set_budget(wire: &PodDisruptionBudget, cluster: &mut Cluster, budgets: &mut Budgets) {
    let (namespace, name) = namespaced(&wire.metadata, &mut cluster.names);
    let budget = budget(wire, &mut cluster.names);
    budgets.set(namespace, name, budget);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(wire: Value) -> Option<Budget> {
        let wire: PodDisruptionBudget = serde_json::from_value(wire).unwrap();
        budget(&wire, &mut Interner::new())
    }

    #[test]
    fn what_counts_is_the_status() {
        let read = read(json!({
            "metadata": {"name": "web"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
            "status": {"disruptionsAllowed": 2, "disruptedPods": {"p1": "2024-01-01T00:00:00Z"},
                       "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3},
        }))
        .unwrap();
        assert_eq!(read.disruptions_allowed, 2);
        assert!(read.disrupted.contains("p1"));
        assert!(!read.selector.is_empty());
    }

    #[test]
    fn a_selector_that_does_not_parse_is_no_budget_and_a_missing_one_means_nothing() {
        let bad = json!({"matchExpressions": [{"key": "app", "operator": "In"}]});
        assert_eq!(
            read(json!({"metadata": {}, "spec": {"selector": bad}})),
            None
        );
        let missing = read(json!({"metadata": {}, "spec": {}})).unwrap();
        assert_eq!(missing.selector, strew_model::Selector::Nothing);
        assert_eq!(missing.disruptions_allowed, 0);
    }
}
