//! Claims about PodDisruptionBudgets: whether each has the healthy pods that it asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::object::{Budget, Key, Kind, Object, Pod, Stored};
use strew_apiserver::{Selection, Tables};
use strew_view::loss::BudgetCount;
use strew_view::workload::pod_labels;

use super::replicas::Replicas;
use super::{Short, ShortBefore, is, of_all, of_one, workload_of};
use crate::expect::{Answer, Verdict};
use crate::format::ObjectTarget;

/// The kinds whose pods a budget protects.
const PROTECTED: [Kind; 5] = [
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::CloneSet,
    Kind::ReplicaSet,
    Kind::ReplicationController,
];

/// Judges whether each budget has its healthy pods; with `of`, only the budgets that select pods of that workload, and
/// with `only`, only those with these uids.
pub fn within_budget(
    tables: &Tables,
    of: Option<&ObjectTarget>,
    before: &ShortBefore,
    only: Option<&BTreeSet<Arc<str>>>,
) -> Verdict {
    let mut short = short(tables);
    short.retain(|short| only.is_none_or(|only| only.contains(&short.uid)));
    let Some(target) = of else {
        if tables.of::<Budget>().is_empty() {
            return Verdict::of(Answer::Nothing, "there is no PodDisruptionBudget");
        }
        return of_all(short, before);
    };
    let object = tables.find(&target.key());
    let Some(object) = object else {
        return Verdict::of(Answer::Nothing, format!("there is no {target}"));
    };
    let mut budgets = tables.of::<Budget>().iter();
    if target.type_name.kind != Budget::KIND.name()
        && !budgets.any(|budget| selects(budget, &object))
    {
        let why = format!("no PodDisruptionBudget selects the pods of {target}");
        return Verdict::of(Answer::Nothing, why);
    }
    let is_its = |short: &Short| {
        let budget = tables.get::<Budget>(&short.key.name);
        budget.is_some_and(|budget| selects(budget, &object))
    };
    of_one(short, |short| is(&short.key, target) || is_its(short))
}

/// Every budget with too few healthy pods.
pub(super) fn short(tables: &Tables) -> Vec<Short> {
    let counted = tables.of::<Budget>().iter();
    let counted = counted.map(|budget| (budget, count(tables, budget)));
    let below = counted.filter(|(_, count)| count.is_short());
    below
        .map(|(budget, count)| Short {
            key: Key {
                kind: Budget::KIND,
                name: budget.meta.name.clone(),
            },
            uid: Arc::clone(&budget.meta.uid),
            is_observed: budget.status.observed_generation.is_some(),
            is_refused: false,
            why: format!("{} of {} healthy pods", count.healthy, count.asks),
        })
        .collect()
}

/// The budgets that select pods of a workload, with their numbers.
pub(super) fn of_workload(tables: &Tables, object: &Object) -> Vec<BudgetCount> {
    let namespace = &object.meta().name.namespace;
    let budgets = tables.of::<Budget>().in_namespace(namespace);
    let its = budgets.filter(|budget| selects(budget, object));
    its.map(|budget| count(tables, budget)).collect()
}

/// The numbers of a budget. It asks for no more pods than its workloads do: a workload that was scaled down is not
/// short of pods, and a pod that terminates is none of the workload's.
fn count(tables: &Tables, budget: &Budget) -> BudgetCount {
    let number = |of: Option<i32>| u32::try_from(of.unwrap_or(0)).unwrap_or(0);
    let status = &budget.status;
    BudgetCount {
        name: budget.meta.name.name.to_string(),
        healthy: number(status.current_healthy),
        asks: number(status.desired_healthy).min(asked(tables, budget)),
    }
}

/// The pods that the workloads of a budget ask for. A pod of another workload, or of none, asks for itself.
fn asked(tables: &Tables, budget: &Budget) -> u32 {
    let namespace = &budget.meta.name.namespace;
    let mut by_workload: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    for object in PROTECTED.iter().flat_map(|kind| tables.all_of(kind)) {
        if object.meta().name.namespace == *namespace
            && selects(budget, &object)
            && let Some(replicas) = Replicas::of(&object)
        {
            let wanted = u32::try_from(replicas.wanted).unwrap_or(0);
            by_workload.insert(Arc::clone(&object.meta().uid), wanted);
        }
    }
    let selection = budget.spec.selector.as_ref().and_then(Selection::of);
    let pods = tables.of::<Pod>().in_namespace(namespace);
    let others = pods.filter(|pod| {
        let is_meant = selection
            .as_ref()
            .is_some_and(|s| s.matches(&pod.meta.labels));
        let is_known = |uid: Arc<str>| by_workload.contains_key(&uid);
        pod.is_active() && is_meant && !workload_of(tables, pod).is_some_and(is_known)
    });
    let others = u32::try_from(others.count()).unwrap_or(u32::MAX);
    by_workload
        .values()
        .fold(others, |sum, n| sum.saturating_add(*n))
}

/// The uids of the budgets that have all healthy pods that they ask for.
pub fn met(tables: &Tables) -> impl Iterator<Item = Arc<str>> {
    let met = tables.of::<Budget>().iter().filter(|budget| {
        let wanted = budget.status.desired_healthy.unwrap_or(0);
        wanted > 0 && budget.status.current_healthy.unwrap_or(0) >= wanted
    });
    met.map(|budget| Arc::clone(&budget.meta.uid))
}

fn selects(budget: &Budget, object: &Object) -> bool {
    let selector = budget.spec.selector.as_ref().and_then(Selection::of);
    let labels = match object {
        Object::Pod(pod) => Some(&*pod.meta.labels),
        object => pod_labels(object),
    };
    budget.meta.name.namespace == object.meta().name.namespace
        && selector
            .zip(labels)
            .is_some_and(|(selector, labels)| selector.matches(labels))
}
