//! The pods of a budget, counted incrementally.

use std::collections::BTreeMap;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Budget, Name, Owner, Pod};
use strew_apiserver::selection::Selection;

/// The pods that a budget selects.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// `None`: the selector matches no pod.
    pub(super) selection: Option<Selection>,
    /// The number of pods.
    pub(super) n_pods: usize,
    /// Ready pods that do not terminate.
    pub(super) n_healthy: usize,
    /// Pods without a controller.
    pub(super) n_unmanaged: usize,
    /// The controllers by uid, with the number of pods of each.
    pub(super) controllers: BTreeMap<Arc<str>, (Owner, usize)>,
}

impl Members {
    /// Counts the pods that a budget selects.
    pub(super) fn of(budget: &Budget, cache: &Tables) -> Self {
        let mut members = Self {
            selection: budget.spec.selector.as_ref().and_then(Selection::of),
            ..Self::default()
        };
        for pod in cache.of::<Pod>().in_namespace(&budget.meta.name.namespace) {
            members.add(pod);
        }
        members
    }

    /// True if the budget selects the pod.
    pub(super) fn selects(&self, pod: &Pod) -> bool {
        let selection = self.selection.as_ref();
        selection.is_some_and(|selection| selection.matches(&pod.meta.labels))
    }

    /// Takes in a change of a pod. Returns true if it concerns the budget. As upstream, every change of a selected pod
    /// does: a changed size of the pod's controller triggers no sync of its own.
    pub(super) fn change(&mut self, old: Option<&Pod>, new: Option<&Pod>) -> bool {
        if let (Some(old), Some(new)) = (old, new)
            && old.meta.labels == new.meta.labels
            && old.meta.owners == new.meta.owners
            && is_healthy(old) == is_healthy(new)
        {
            return self.selects(new);
        }
        let was_in = old.is_some_and(|pod| self.remove(pod));
        let is_in = new.is_some_and(|pod| self.add(pod));
        was_in || is_in
    }

    fn add(&mut self, pod: &Pod) -> bool {
        if !self.selects(pod) {
            return false;
        }
        self.n_pods += 1;
        self.n_healthy += usize::from(is_healthy(pod));
        match pod.meta.controller() {
            None => self.n_unmanaged += 1,
            Some(owner) => {
                let uid = Arc::clone(&owner.uid);
                let (_, n_pods) = self
                    .controllers
                    .entry(uid)
                    .or_insert_with(|| (owner.clone(), 0));
                *n_pods += 1;
            }
        }
        true
    }

    fn remove(&mut self, pod: &Pod) -> bool {
        if !self.selects(pod) {
            return false;
        }
        self.n_pods -= 1;
        self.n_healthy -= usize::from(is_healthy(pod));
        match pod.meta.controller() {
            None => self.n_unmanaged -= 1,
            Some(owner) => {
                if let Some((_, n_pods)) = self.controllers.get_mut(&owner.uid) {
                    *n_pods -= 1;
                    if *n_pods == 0 {
                        self.controllers.remove(&owner.uid);
                    }
                }
            }
        }
        true
    }

    /// A pod of a controller, for a message.
    pub(super) fn pod_of<'a>(&self, uid: &str, cache: &'a Tables) -> Option<&'a Name> {
        let mut pods = cache.pods_of(uid)?.iter();
        pods.find(|pod| self.selects(pod)).map(|pod| &pod.meta.name)
    }
}

/// True if the pod is ready and does not terminate.
pub(super) fn is_healthy(pod: &Pod) -> bool {
    pod.is_ready() && !pod.meta.is_terminating()
}
