//! Claims about PodDisruptionBudgets: whether each has the healthy pods that it asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::object::{Budget, Key, Object, Pairs, Pod, Stored};
use strew_apiserver::{Selection, Tables};
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
    let counted = counted.by_namespace.into_values().flatten();
    let below = counted.filter(|counted| counted.count.is_short());
    let mut below: Vec<Short> = below
        .map(|Counted { budget, count, .. }| Short {
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
    /// By namespace, each in the order of names.
    by_namespace: BTreeMap<Arc<str>, Vec<Counted<'a>>>,
}

struct Counted<'a> {
    budget: &'a Arc<Budget>,
    /// `None`: it selects nothing.
    selection: Option<Selection>,
    count: BudgetCount,
}

impl<'a> Budgets<'a> {
    /// Those of a cluster, as if the pods on the `lost` nodes were not healthy.
    pub(crate) fn of(tables: &'a Tables, lost: &BTreeSet<Arc<str>>) -> Self {
        let mut by_namespace: BTreeMap<Arc<str>, Vec<Counted<'a>>> = BTreeMap::new();
        for budget in tables.of::<Budget>().iter() {
            let of_namespace = by_namespace.entry(Arc::clone(&budget.meta.name.namespace));
            of_namespace.or_default().push(Counted {
                budget,
                selection: budget.spec.selector.as_ref().and_then(Selection::of),
                count: BudgetCount {
                    name: budget.meta.name.name.to_string(),
                    healthy: 0,
                    asks: 0,
                },
            });
        }
        let mut protected: BTreeMap<Arc<str>, Vec<Object>> = BTreeMap::new();
        for object in replicated(tables).filter(is_counted) {
            let namespace = &object.meta().name.namespace;
            if by_namespace.contains_key(namespace) {
                let of_namespace = protected.entry(Arc::clone(namespace));
                of_namespace.or_default().push(object);
            }
        }
        for (namespace, budgets) in &mut by_namespace {
            let objects = protected.get(namespace).map_or(&[][..], Vec::as_slice);
            for counted in budgets {
                (counted.count.healthy, counted.count.asks) =
                    counted.numbers(tables, objects, lost);
            }
        }
        Self { by_namespace }
    }

    /// The budgets that select pods of a workload, with their numbers.
    pub(crate) fn of_workload(&self, object: &Object) -> Vec<BudgetCount> {
        let of_namespace = self.by_namespace.get(&object.meta().name.namespace);
        let its = of_namespace.into_iter().flatten();
        let its = its.filter(|counted| counted.selects(object));
        its.map(|counted| counted.count.clone()).collect()
    }
}

impl Counted<'_> {
    fn selects(&self, object: &Object) -> bool {
        let labels = labels_of(object);
        let selection = self.selection.as_ref().zip(labels);
        selection.is_some_and(|(selection, labels)| selection.matches(labels))
    }

    /// The healthy pods, and those that it asks for: no more than its workloads do. A workload that was scaled down is
    /// not short of pods, and a pod that terminates is none of the workload's. `objects` are the protected ones of its
    /// namespace.
    fn numbers(
        &self,
        tables: &Tables,
        objects: &[Object],
        lost: &BTreeSet<Arc<str>>,
    ) -> (u32, u32) {
        let number = |of: Option<i32>| u32::try_from(of.unwrap_or(0)).unwrap_or(0);
        let status = &self.budget.status;
        let mut by_workload: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for object in objects.iter().filter(|object| self.selects(object)) {
            if let Some(replicas) = Replicas::of(object) {
                let wanted = u32::try_from(replicas.wanted).unwrap_or(0);
                by_workload.insert(Arc::clone(&object.meta().uid), wanted);
            }
        }
        let pods = tables.of::<Pod>();
        let pods = pods.in_namespace(&self.budget.meta.name.namespace);
        let is_meant = |pod: &&Arc<Pod>| {
            let selection = self.selection.as_ref();
            pod.is_active() && selection.is_some_and(|s| s.matches(&pod.meta.labels))
        };
        let (mut others, mut n_lost) = (0_u32, 0_u32);
        for pod in pods.filter(is_meant) {
            // A pod of another workload, or of none, asks for itself.
            let is_known = |uid: Arc<str>| by_workload.contains_key(&uid);
            others += u32::from(!workload_of(tables, pod).is_some_and(is_known));
            let is_away = pod.node.as_ref().is_some_and(|node| lost.contains(node));
            n_lost += u32::from(is_away && pod.is_ready());
        }
        let asked = by_workload.values();
        let asked = asked.fold(others, |sum, n| sum.saturating_add(*n));
        let healthy = number(status.current_healthy).saturating_sub(n_lost);
        (healthy, number(status.desired_healthy).min(asked))
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
