//! Claims about PodDisruptionBudgets: whether each has the healthy pods that it asks for.

use std::sync::Arc;

use strew_apiserver::object::{Budget, Key, Kind, Name, Object, Stored};
use strew_apiserver::{Selection, Tables};
use strew_view::workload::pod_labels;

use super::{Short, ShortBefore, is, of_all, of_one};
use crate::expect::Verdict;
use crate::format::ObjectTarget;

/// Judges whether each budget has its healthy pods; with `of`, only the budgets that select pods of that workload.
pub fn within_budget(tables: &Tables, of: Option<&ObjectTarget>, before: &ShortBefore) -> Verdict {
    let short = short(tables);
    let Some(target) = of else {
        return of_all(short, before);
    };
    let kind = Kind::of(target.type_name.kind);
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let name = Name::new(namespace, target.name.as_str());
    let object = tables.find(&Key { kind, name });
    let is_its = |short: &Short| {
        let budget = tables.get::<Budget>(&short.key.name);
        budget
            .zip(object.as_ref())
            .is_some_and(|(budget, object)| selects(budget, object))
    };
    of_one(short, |short| is(&short.key, target) || is_its(short))
}

/// Every budget with too few healthy pods. A budget that asks for more pods than its workloads do needs all of theirs:
/// a workload that was scaled down is not short of pods.
pub(super) fn short(tables: &Tables) -> Vec<Short> {
    let below = tables.of::<Budget>().iter().filter_map(|budget| {
        let status = &budget.status;
        let number = |of: Option<i32>| of.unwrap_or(0);
        let wanted = number(status.desired_healthy).min(number(status.expected_pods));
        let healthy = number(status.current_healthy);
        (healthy < wanted).then(|| Short {
            key: Key {
                kind: Budget::KIND,
                name: budget.meta.name.clone(),
            },
            uid: Arc::clone(&budget.meta.uid),
            is_observed: status.observed_generation.is_some(),
            is_refused: false,
            why: format!("{healthy} of {wanted} healthy pods"),
        })
    });
    below.collect()
}

fn selects(budget: &Budget, object: &Object) -> bool {
    let selector = budget.spec.selector.as_ref().and_then(Selection::of);
    budget.meta.name.namespace == object.meta().name.namespace
        && selector
            .zip(pod_labels(object))
            .is_some_and(|(selector, labels)| selector.matches(labels))
}
