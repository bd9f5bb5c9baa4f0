//! Counts of a ReplicaSet's pods, maintained with every change so that a sync does not visit them.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Object, Pairs, Pod};
use strew_apiserver::selection::Selection;
use strew_apiserver::tables::OwnedPods;
use strew_model::time::Instant;

use super::kind::Replicating;
use super::status::Counts;
use super::victims::Victims;
use crate::pod_control;

/// A ReplicaSet as last seen, and the few of its pods that need attention.
#[derive(Debug, Clone)]
pub(super) struct Watched<R> {
    /// The newest version with this spec, or the first one.
    pub(super) set: Arc<R>,
    /// Its selector.
    pub(super) selection: Selection,
    /// The pod that its pods are cloned from; `None` if it has no template.
    pub(super) prototype: Option<Pod>,
    /// Pods that it controls and does not select.
    pub(super) strangers: BTreeSet<Name>,
    /// Pods without a controller that it may select.
    pub(super) candidates: BTreeSet<Name>,
    /// Pods that it controls and that lack a label of the template.
    poorly_labelled: BTreeSet<Name>,
    /// Active and ready pods that are not available yet, by the time when they will be.
    settling: BTreeSet<(Instant, Name)>,
    /// Kept from the first choice of victims on.
    pub(super) victims: Option<Victims>,
}

impl<R: Replicating> Watched<R> {
    /// Visits all pods. `known`: the previous state.
    pub(super) fn new(set: &Arc<R>, known: Option<&Self>, cache: &Tables) -> Self {
        let kept = known.filter(|known| known.set.template() == set.template());
        let prototype = match kept {
            // Pods of a resized set continue to share one spec.
            Some(known) => known.prototype.clone(),
            None => {
                let owner = Object::clone(&R::into_object(Arc::clone(set)));
                let template = set.template();
                template.map(|template| pod_control::prototype(template, &owner))
            }
        };
        let selection = set.selection();
        let mut watched = Self {
            set: Arc::clone(set),
            selection: selection.unwrap_or_default(),
            prototype,
            strangers: BTreeSet::new(),
            candidates: BTreeSet::new(),
            poorly_labelled: BTreeSet::new(),
            settling: BTreeSet::new(),
            victims: None,
        };
        let meta = set.meta();
        for pod in cache
            .pods_of(&meta.uid)
            .into_iter()
            .flat_map(OwnedPods::iter)
        {
            watched.change(None, Some(pod));
        }
        for pod in cache.orphans(&meta.name.namespace) {
            if watched.selection.matches(&pod.meta.labels) {
                watched.candidates.insert(pod.meta.name.clone());
            }
        }
        watched
    }

    /// A new version of the set. Returns false if the state must be built anew.
    pub(super) fn keeps(&mut self, set: &Arc<R>) -> bool {
        let is_same = self.set.shares_spec(set)
            || (self.set.template() == set.template()
                && self.set.min_ready() == set.min_ready()
                && set.selection().unwrap_or_default() == self.selection);
        if is_same {
            self.set = Arc::clone(set);
        }
        is_same
    }

    /// Takes in a change of a pod that it controls, or did.
    pub(super) fn change(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        let Some(name) = new.or(old).map(|pod| &pod.meta.name) else {
            return;
        };
        self.candidates.remove(name);
        if let Some(victims) = &mut self.victims {
            victims.pod_changed(name);
        }
        if let Some(due) = old.and_then(|pod| self.available_at(pod)) {
            self.settling.remove(&(due, name.clone()));
        }
        if let Some(due) = new.and_then(|pod| self.available_at(pod)) {
            self.settling.insert((due, name.clone()));
        }
        let labels = |pod: Option<&Pod>| pod.map(|pod| Arc::clone(&pod.meta.labels));
        let (was, is) = (labels(old), labels(new));
        if let (Some(was), Some(is)) = (&was, &is)
            && (Arc::ptr_eq(was, is) || was == is)
        {
            return;
        }
        let is_stranger = is.as_ref().is_some_and(|is| !self.selection.matches(is));
        let is_poor = is.as_ref().is_some_and(|is| !self.labels_fully(is));
        put(&mut self.strangers, name, is_stranger);
        put(&mut self.poorly_labelled, name, is_poor);
    }

    /// Takes in a pod without a controller. Returns true if that concerns the set.
    pub(super) fn orphan(&mut self, pod: &Pod) -> bool {
        let matches = self.selection.matches(&pod.meta.labels);
        put(&mut self.candidates, &pod.meta.name, matches);
        matches
    }

    /// When an active and ready pod becomes available; `None` if it never does, or there is no wait.
    fn available_at(&self, pod: &Pod) -> Option<Instant> {
        let min_ready = self.set.min_ready();
        let is_asked = min_ready.0 > 0 && pod.is_active();
        let since = is_asked.then(|| pod.ready_since()).flatten()?;
        Some(since + min_ready)
    }

    fn labels_fully(&self, labels: &Arc<Pairs>) -> bool {
        let Some(prototype) = &self.prototype else {
            return true;
        };
        let wanted = &prototype.meta.labels;
        Arc::ptr_eq(wanted, labels)
            || wanted
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    }

    /// Marks pods as available whose time has come. Returns the next such time.
    pub(super) fn settle(&mut self, now: Instant) -> Option<Instant> {
        while let Some((due, _)) = self.settling.first() {
            if *due > now {
                return Some(*due);
            }
            self.settling.pop_first();
        }
        None
    }

    /// The numbers of its pods. Call [`Watched::settle`] before.
    pub(super) fn counts(&self, cache: &Tables) -> Counts {
        let Some(owned) = cache.pods_of(&self.set.meta().uid) else {
            return Counts::default();
        };
        let active = |names: &BTreeSet<Name>| {
            let pods = names.iter().filter_map(|name| owned.get(&name.name));
            pods.filter(|pod| pod.is_active()).count()
        };
        let mut counts = Counts {
            n_active: owned.n_active,
            n_ready: owned.n_ready,
            n_available: owned.n_ready.saturating_sub(self.settling.len()),
            n_fully_labelled: owned.n_active.saturating_sub(active(&self.poorly_labelled)),
            n_terminating: owned.n_terminating,
        };
        for pod in self.strangers.iter().filter_map(|n| owned.get(&n.name)) {
            let is_settling = self
                .available_at(pod)
                .is_some_and(|due| self.settling.contains(&(due, pod.meta.name.clone())));
            let is_ready = pod.is_active() && pod.is_ready();
            let is_poor = self.poorly_labelled.contains(&pod.meta.name);
            counts.n_active -= usize::from(pod.is_active());
            counts.n_ready -= usize::from(is_ready);
            counts.n_available -= usize::from(is_ready && !is_settling);
            counts.n_fully_labelled -= usize::from(pod.is_active() && !is_poor);
            counts.n_terminating -= usize::from(pod.is_terminating());
        }
        counts
    }

    /// Its active pods, in the order of names.
    pub(super) fn active<'a>(&'a self, cache: &'a Tables) -> impl Iterator<Item = &'a Arc<Pod>> {
        let owned = cache.pods_of(&self.set.meta().uid);
        let pods = owned.into_iter().flat_map(OwnedPods::iter);
        pods.filter(|pod| self.counts_in(pod))
    }

    /// The pod of this name, if it is one of its active pods.
    pub(super) fn active_pod<'a>(&self, name: &str, cache: &'a Tables) -> Option<&'a Arc<Pod>> {
        let pod = cache.pods_of(&self.set.meta().uid)?.get(name)?;
        self.counts_in(pod).then_some(pod)
    }

    fn counts_in(&self, pod: &Pod) -> bool {
        pod.is_active() && !self.strangers.contains(&pod.meta.name)
    }
}

fn put(set: &mut BTreeSet<Name>, name: &Name, is_in: bool) {
    if is_in {
        set.insert(name.clone());
    } else {
        set.remove(name);
    }
}
