//! The state of a DaemonSet on each node, maintained incrementally: a change of one pod or node updates one entry.
//!
//! Eligibility is computed once per node and template; pending work and the counters of the status are kept per node. A
//! sync then visits only nodes that changed, and all nodes only during a rolling update.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{DaemonSet, Node, Pod};
use strew_apiserver::workloads::{DaemonFit, DaemonTemplate, NodeView, daemon_pod_node};
use strew_model::time::{Instant, Span};

use super::on_node::{Counts, OnNode, Plan, Rules, Turnover};
use super::rollout::Candidate;

/// The first wait after a failed pod. Source: spec/controllers §12.
const FAILED_WAIT: Span = Span::from_secs(1);

/// The longest wait after a failed pod.
const FAILED_WAIT_MAX: Span = Span::from_secs(15 * 60);

/// A DaemonSet's nodes and pods.
#[derive(Debug)]
pub(super) struct Ledger {
    uid: Arc<str>,
    spec: Arc<k8s_openapi::api::apps::v1::DaemonSetSpec>,
    /// The scheduling constraints of its template.
    pub(super) template: DaemonTemplate,
    rules: Option<Rules>,
    nodes: BTreeMap<Arc<str>, Entry>,
    dirty: BTreeSet<Arc<str>>,
    /// Nodes with pending work.
    pub(super) needy: BTreeSet<Arc<str>>,
    timers: BTreeSet<(Instant, Arc<str>)>,
    /// The sums over all nodes.
    pub(super) counts: Counts,
    #[cfg(test)]
    pub(super) n_fits_asked: usize,
}

#[derive(Debug, Default)]
struct Entry {
    on_node: OnNode,
    counts: Counts,
    turnover: Turnover,
    timer: Option<Instant>,
    failures: Option<Failures>,
}

/// The failures of pods on a node.
#[derive(Debug, Clone, Copy)]
struct Failures {
    /// The generation of the set that they belong to.
    generation: i64,
    wait: Span,
    last: Instant,
}

impl Ledger {
    /// Reads all nodes and the set's pods.
    pub(super) fn new(set: &DaemonSet, cache: &Tables) -> Self {
        let mut ledger = Self {
            uid: Arc::clone(&set.meta.uid),
            spec: Arc::clone(&set.spec),
            template: DaemonTemplate::new(&set.spec.template),
            rules: None,
            nodes: BTreeMap::new(),
            dirty: BTreeSet::new(),
            needy: BTreeSet::new(),
            timers: BTreeSet::new(),
            counts: Counts::default(),
            #[cfg(test)]
            n_fits_asked: 0,
        };
        for node in cache.of::<Node>().iter() {
            ledger.set_node(node);
        }
        let pods = cache.pods_of(&set.meta.uid);
        for pod in pods.into_iter().flat_map(|pods| pods.iter()) {
            ledger.add_pod(pod);
        }
        ledger
    }

    /// True if it was made for this set with this template.
    pub(super) fn is_of(&self, set: &DaemonSet) -> bool {
        let is_same = Arc::ptr_eq(&self.spec, &set.spec) || self.spec.template == set.spec.template;
        self.uid == set.meta.uid && is_same
    }

    /// True if the set controls the pod.
    pub(super) fn owns(&self, pod: &Pod) -> bool {
        let controller = pod.meta.controller();
        controller.is_some_and(|owner| owner.uid == self.uid)
    }

    /// A node is new or has changed. Returns true if that changes whether a pod belongs on it.
    pub(super) fn set_node(&mut self, node: &Node) -> bool {
        let name = &node.meta.name.name;
        #[cfg(test)]
        {
            self.n_fits_asked += 1;
        }
        let fit = self.template.fit(NodeView {
            name,
            labels: Some(&node.meta.labels),
            taints: node.spec.taints.as_deref().unwrap_or_default(),
        });
        self.set_fit(name, true, fit)
    }

    /// A node is gone. Returns true if that changes what belongs on it.
    pub(super) fn remove_node(&mut self, name: &Arc<str>) -> bool {
        self.set_fit(name, false, DaemonFit::default())
    }

    fn set_fit(&mut self, name: &Arc<str>, exists: bool, fit: DaemonFit) -> bool {
        let on_node = &mut self.nodes.entry(Arc::clone(name)).or_default().on_node;
        let is_new = on_node.exists != exists || on_node.fit != fit;
        on_node.exists = exists;
        on_node.fit = fit;
        if is_new {
            self.dirty.insert(Arc::clone(name));
        }
        is_new
    }

    /// A pod of the set is new or has changed.
    pub(super) fn add_pod(&mut self, pod: &Arc<Pod>) {
        if let Some(node) = node_of(pod) {
            let entry = self.nodes.entry(Arc::clone(&node)).or_default();
            let pods = &mut entry.on_node.pods;
            pods.insert(Arc::clone(&pod.meta.name.name), Arc::clone(pod));
            self.dirty.insert(node);
        }
    }

    /// A pod of the set is gone, or is about to be replaced by its new state.
    pub(super) fn remove_pod(&mut self, pod: &Pod) {
        if let Some(node) = node_of(pod)
            && let Some(entry) = self.nodes.get_mut(&node)
        {
            entry.on_node.pods.remove(&pod.meta.name.name);
            self.dirty.insert(node);
        }
    }

    /// Updates counters and pending work to `now`.
    pub(super) fn refresh(&mut self, rules: Rules, now: Instant) {
        if self.rules.as_ref() != Some(&rules) {
            self.dirty.extend(self.nodes.keys().cloned());
        }
        while let Some((at, node)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            self.dirty.insert(node);
        }
        for node in std::mem::take(&mut self.dirty) {
            self.refresh_node(&node, &rules, now);
        }
        self.rules = Some(rules);
    }

    fn refresh_node(&mut self, node: &Arc<str>, rules: &Rules, now: Instant) {
        let Some(entry) = self.nodes.get_mut(node) else {
            return;
        };
        if let Some(at) = entry.timer.take() {
            self.timers.remove(&(at, Arc::clone(node)));
        }
        self.counts -= entry.counts;
        entry.counts = entry.on_node.count(rules, now);
        self.counts += entry.counts;
        entry.turnover = entry.on_node.turnover(rules, now);
        entry.timer = entry.on_node.next_available(rules, now);
        if let Some(at) = entry.timer {
            self.timers.insert((at, Arc::clone(node)));
        }
        match entry.on_node.plan(rules, now).is_empty() {
            true => self.needy.remove(node),
            false => self.needy.insert(Arc::clone(node)),
        };
        if entry.on_node.is_nothing() {
            self.nodes.remove(node);
        }
    }

    /// The pending work on a node. Call [`Ledger::refresh`] before.
    pub(super) fn plan(&self, node: &str, now: Instant) -> Plan {
        let entry = self.nodes.get(node);
        let found = entry.zip(self.rules.as_ref());
        found.map_or_else(Plan::default, |(entry, rules)| {
            entry.on_node.plan(rules, now)
        })
    }

    /// The nodes that take part in a rolling update.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Candidate<'_>> {
        let entries = self.nodes.iter();
        entries
            .filter(|(_, entry)| entry.on_node.takes_part())
            .map(|(node, entry)| Candidate {
                node,
                should_run: entry.on_node.fit.should_run,
                turnover: &entry.turnover,
            })
    }

    /// The pods of the set.
    pub(super) fn pods(&self) -> impl Iterator<Item = &Arc<Pod>> {
        let entries = self.nodes.values();
        entries.flat_map(|entry| entry.on_node.pods.values())
    }

    /// The next time at which the state changes without an event.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Until when failed pods on a node stay; `None`: they are deleted now, and the next wait is twice as long.
    pub(super) fn wait_for_failed(
        &mut self,
        node: &str,
        generation: i64,
        now: Instant,
    ) -> Option<Instant> {
        let entry = self.nodes.get_mut(node)?;
        let known = entry.failures.filter(|failures| {
            let forgotten_after = Span(FAILED_WAIT_MAX.0 * 2);
            failures.generation == generation && now.since(failures.last) <= forgotten_after
        });
        let wait = match known {
            Some(failures) if now < failures.last + failures.wait => {
                return Some(failures.last + failures.wait);
            }
            Some(failures) => Span(failures.wait.0 * 2).min(FAILED_WAIT_MAX),
            None => FAILED_WAIT,
        };
        entry.failures = Some(Failures {
            generation,
            wait,
            last: now,
        });
        None
    }
}

/// The node that a daemon pod is on, or must go to.
fn node_of(pod: &Pod) -> Option<Arc<str>> {
    let bound = pod.node.clone();
    bound.or_else(|| daemon_pod_node(&pod.spec).map(Into::into))
}
