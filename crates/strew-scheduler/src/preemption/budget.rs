//! PodDisruptionBudgets as preemption uses them.

use std::collections::{BTreeMap, BTreeSet};

use strew_cluster::{Cluster, PodIdx};
use strew_model::{Holds, Marks, Selector, Symbol};

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The pods that it selects in its namespace. A missing or empty selector selects none here, although in the API
    /// `{}` selects all.
    pub selector: Selector,
    /// Whether it has a status: before that its number is that of no pods.
    pub counted: bool,
    /// `status.disruptionsAllowed`.
    pub disruptions_allowed: i32,
    /// The topology key whose domains must not be disrupted at once, if the budget names one. Preemption ignores it, as it
    /// asks no webhook.
    pub zone: Option<Symbol>,
    /// Names of pods with a granted eviction (`status.disruptedPods`): they are not charged again.
    pub disrupted: BTreeSet<Box<str>>,
}

/// All budgets, by namespace and name.
#[derive(Debug, Clone, Default)]
pub struct Budgets {
    by_name: BTreeMap<(Symbol, Symbol), Budget>,
}

impl Budgets {
    /// Sets the current state of a budget; `None` if it was deleted, or its selector is invalid.
    pub fn set(&mut self, namespace: Symbol, name: Symbol, budget: Option<Budget>) {
        match budget {
            Some(budget) => self.by_name.insert((namespace, name), budget),
            None => self.by_name.remove(&(namespace, name)),
        };
    }

    /// Sets how many disruptions a budget allows, and returns how many it allowed; `None` if there is no such budget.
    pub fn allow(&mut self, namespace: Symbol, name: Symbol, allowed: i32) -> Option<i32> {
        let budget = self.by_name.get_mut(&(namespace, name))?;
        Some(std::mem::replace(&mut budget.disruptions_allowed, allowed))
    }

    /// The budgets that the Eviction API asks before a pod leaves, by namespace and name: unlike for preemption, an empty
    /// selector selects all pods. One that is not counted yet allows nothing.
    pub fn of<'a>(
        &'a self,
        cluster: &'a Cluster,
        pod: PodIdx,
    ) -> impl Iterator<Item = (&'a (Symbol, Symbol), &'a Budget)> {
        let namespace = cluster.class_of(pod).key.namespace;
        let labels = cluster.labels_of(pod);
        let of_namespace = (namespace, Symbol::default())..;
        let budgets = self.by_name.range(of_namespace);
        let budgets = budgets.take_while(move |((there, _), _)| *there == namespace);
        budgets.filter(move |(_, budget)| budget.selector.matches(labels))
    }

    /// True if there is a budget of this name.
    pub fn has(&self, namespace: Symbol, name: Symbol) -> bool {
        self.by_name.contains_key(&(namespace, name))
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Splits pods, most important first, into those whose eviction violates a budget and the others.
    ///
    /// Every pod is charged to every budget that selects it, in this order, even if it is not evicted in the end: the
    /// most important pods use up a budget (a quirk of v1.36.3). Source: spec/scheduler §3.16, 3b.
    pub(crate) fn split(&self, cluster: &Cluster, pods: &[PodIdx]) -> (Vec<PodIdx>, Vec<PodIdx>) {
        let mut left: BTreeMap<(Symbol, Symbol), i32> = BTreeMap::new();
        pods.iter().partition(|&&pod| {
            let mut violates = false;
            for (&id, budget) in self.meaning(cluster, pod) {
                let left = left.entry(id).or_insert(budget.disruptions_allowed);
                *left = left.saturating_sub(1);
                violates |= *left < 0;
            }
            violates
        })
    }

    /// The budgets that a pod's eviction is charged to.
    fn meaning<'a>(
        &'a self,
        cluster: &'a Cluster,
        pod: PodIdx,
    ) -> impl Iterator<Item = (&'a (Symbol, Symbol), &'a Budget)> {
        let namespace = cluster.class_of(pod).key.namespace;
        let (labels, name) = (cluster.labels_of(pod), &cluster.pod(pod).name);
        let means = move |budget: &Budget| {
            !labels.is_empty()
                && !budget.selector.is_empty()
                && budget.selector.matches(labels)
                && !budget.disrupted.contains(&**name)
        };
        let budgets = self.by_name.iter();
        budgets.filter(move |((there, _), budget)| *there == namespace && means(budget))
    }
}

impl Holds for Budgets {
    fn mark(&self, marks: &mut Marks) {
        for (name, budget) in &self.by_name {
            let Budget {
                selector,
                counted: _,
                disruptions_allowed: _,
                zone,
                disrupted: _,
            } = budget;
            name.mark(marks);
            selector.mark(marks);
            zone.mark(marks);
        }
    }
}
