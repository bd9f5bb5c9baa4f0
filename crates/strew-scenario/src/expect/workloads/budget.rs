//! Claims about PodDisruptionBudgets: whether each has the healthy pods that it asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::object::{Budget, Key, Object, Pairs, Pod, Stored};
use strew_apiserver::{Selection, Selections, Tables};
use strew_view::loss::BudgetCount;
use strew_view::workload::pod_labels;

use super::replicas::Replicas;
use super::{Short, ShortBefore, is, is_counted, of_all, of_one, replicated, workload_of};
use crate::expect::{Answer, Verdict};
use crate::format::ObjectTarget;

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
    let counted = Budgets::of(tables, &BTreeSet::new());
    let below = counted.counts().filter(|(_, count)| count.is_short());
    let mut below: Vec<Short> = below
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
        .collect();
    below.sort_by(|a, b| a.key.cmp(&b.key));
    below
}

/// All budgets with their numbers.
pub(crate) struct Budgets<'a> {
    by_namespace: BTreeMap<Arc<str>, OfNamespace<'a>>,
}

/// The budgets of a namespace, in the order of names.
#[derive(Default)]
struct OfNamespace<'a> {
    selecting: Selections<Counted<'a>>,
    /// Without a selector that can be read, a budget selects nothing.
    others: Vec<Counted<'a>>,
}

struct Counted<'a> {
    budget: &'a Arc<Budget>,
    /// The workloads that it protects, by uid, with the pods that each asks for.
    by_workload: BTreeMap<Arc<str>, u32>,
    /// Its pods of other workloads, or of none: each asks for itself.
    others: u32,
    /// Its ready pods on lost nodes.
    n_lost: u32,
}

impl<'a> Budgets<'a> {
    /// Those of a cluster, as if the pods on the `lost` nodes were not healthy.
    pub(crate) fn of(tables: &'a Tables, lost: &BTreeSet<Arc<str>>) -> Self {
        let mut by_namespace: BTreeMap<Arc<str>, OfNamespace<'a>> = BTreeMap::new();
        for budget in tables.of::<Budget>().iter() {
            let of_namespace = by_namespace.entry(Arc::clone(&budget.meta.name.namespace));
            let of_namespace = of_namespace.or_default();
            let counted = Counted::new(budget);
            match budget.spec.selector.as_ref().and_then(Selection::of) {
                Some(selection) => of_namespace.selecting.push(selection, counted),
                None => of_namespace.others.push(counted),
            }
        }
        for object in replicated(tables).filter(is_counted) {
            let of_namespace = by_namespace.get_mut(&object.meta().name.namespace);
            if let Some(of_namespace) = of_namespace
                && let Some(labels) = labels_of(&object)
                && let Some(replicas) = Replicas::of(&object)
            {
                let wanted = u32::try_from(replicas.wanted).unwrap_or(0);
                let uid = &object.meta().uid;
                of_namespace.selecting.change(labels, |counted| {
                    counted.by_workload.insert(Arc::clone(uid), wanted);
                });
            }
        }
        for (namespace, of_namespace) in &mut by_namespace {
            let pods = tables.of::<Pod>().in_namespace(namespace);
            for pod in pods.filter(|pod| pod.is_active()) {
                let is_away = pod.node.as_ref().is_some_and(|node| lost.contains(node));
                let is_lost = is_away && pod.is_ready();
                of_namespace.selecting.change(&pod.meta.labels, |counted| {
                    let workload = workload_of(tables, pod);
                    let is_known =
                        workload.is_some_and(|uid| counted.by_workload.contains_key(&uid));
                    counted.others += u32::from(!is_known);
                    counted.n_lost += u32::from(is_lost);
                });
            }
        }
        Self { by_namespace }
    }

    fn counts(&self) -> impl Iterator<Item = (&'a Arc<Budget>, BudgetCount)> {
        let each = self.by_namespace.values();
        let each = each.flat_map(|of| of.selecting.iter().chain(&of.others));
        each.map(|counted| (counted.budget, counted.count()))
    }

    /// The budgets that select pods of a workload, with their numbers.
    pub(crate) fn of_workload(&self, object: &Object) -> Vec<BudgetCount> {
        let of_namespace = self.by_namespace.get(&object.meta().name.namespace);
        let its = of_namespace.zip(labels_of(object));
        let its = its
            .into_iter()
            .flat_map(|(of, labels)| of.selecting.of(labels));
        its.map(Counted::count).collect()
    }
}

impl<'a> Counted<'a> {
    fn new(budget: &'a Arc<Budget>) -> Self {
        Self {
            budget,
            by_workload: BTreeMap::new(),
            others: 0,
            n_lost: 0,
        }
    }

    /// The healthy pods, and those that it asks for: no more than its workloads do. A workload that was scaled down is
    /// not short of pods, and a pod that terminates is none of the workload's.
    fn count(&self) -> BudgetCount {
        let number = |of: Option<i32>| u32::try_from(of.unwrap_or(0)).unwrap_or(0);
        let status = &self.budget.status;
        let asked = self.by_workload.values();
        let asked = asked.fold(self.others, |sum, n| sum.saturating_add(*n));
        BudgetCount {
            name: self.budget.meta.name.name.to_string(),
            healthy: number(status.current_healthy).saturating_sub(self.n_lost),
            asks: number(status.desired_healthy).min(asked),
        }
    }
}

/// The uids of the budgets that have all healthy pods that they ask for.
pub fn met(tables: &Tables) -> impl Iterator<Item = Arc<str>> {
    let met = tables.of::<Budget>().iter().filter(|budget| {
        let wanted = budget.status.desired_healthy.unwrap_or(0);
        wanted > 0 && budget.status.current_healthy.unwrap_or(0) >= wanted
    });
    met.map(|budget| Arc::clone(&budget.meta.uid))
}

/// The labels of a pod, or of the pods of a workload.
fn labels_of(object: &Object) -> Option<&Pairs> {
    match object {
        Object::Pod(pod) => Some(&pod.meta.labels),
        object => pod_labels(object),
    }
}

fn selects(budget: &Budget, object: &Object) -> bool {
    let selector = budget.spec.selector.as_ref().and_then(Selection::of);
    let labels = labels_of(object);
    budget.meta.name.namespace == object.meta().name.namespace
        && selector
            .zip(labels)
            .is_some_and(|(selector, labels)| selector.matches(labels))
}
