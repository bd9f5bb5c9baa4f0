//! The oracle of tests: every counting rule, implemented again from the specification by recounting pods.
//!
//! It is slow and obvious on purpose. Tests compare [`crate::Engine`] with it, benchmarks report the ratio. It shares
//! no tally, census, column or plan with the engine, only the facts and the constraints of a pod.

mod volumes;

use std::collections::{BTreeMap, BTreeSet};

use strew_cluster::{
    AffinityTerm, ClassId, Cluster, NodeFact, NodeIdx, PodIdx, Policy, SpreadConstraint,
};
use strew_model::{Labels, Selector, Symbol, tolerates_all, well_known};

use crate::plugins::pod_topology_spread::{Effective, Origin};
use crate::profile::{DefaultConstraints, PluginId, Profile};
use crate::status::{Reason, Refusal};

pub use volumes::NaiveVolumes;

/// The naive implementation of PodTopologySpread for one pod. Source: spec/scheduler §1.4 to §1.11.
pub struct NaiveSpread<'a> {
    cluster: &'a Cluster,
    class: ClassId,
    effective: Effective,
    require_all: bool,
}

impl<'a> NaiveSpread<'a> {
    /// For a pod, in the cluster as it is.
    pub fn new(cluster: &'a Cluster, profile: &Profile, pod: PodIdx) -> Self {
        let class = cluster.pod(pod).class;
        let effective = Effective::of(cluster, profile, class);
        let is_list = matches!(profile.default_constraints, DefaultConstraints::List(_));
        let require_all = effective.origin == Origin::Pod || is_list;
        Self {
            cluster,
            class,
            effective,
            require_all,
        }
    }

    fn constraints(&self, hard: bool) -> Vec<(&SpreadConstraint, bool)> {
        let all = self
            .effective
            .constraints
            .iter()
            .zip(self.effective.self_match.iter().copied());
        all.filter(|(c, _)| c.hard == hard).collect()
    }

    /// Pods on a node that a constraint counts.
    fn count(&self, node: NodeIdx, constraint: &SpreadConstraint) -> i64 {
        if constraint.selector.is_empty() {
            return 0;
        }
        let namespace = self.cluster.tables().class(self.class).key.namespace;
        let counts = |&&pod: &&PodIdx| {
            let class = self.cluster.class_of(pod);
            class.key.namespace == namespace
                && !class.key.terminating
                && constraint.selector.matches(self.cluster.labels_of(pod))
        };
        self.cluster.node(node).pods().iter().filter(counts).count() as i64
    }

    fn included(&self, node: &NodeFact, constraint: &SpreadConstraint) -> bool {
        let tables = self.cluster.tables();
        let spec_id = tables.class(self.class).key.spec;
        let affinity = tables.parts(spec_id).node_affinity;
        let affinity_holds = constraint.node_affinity_policy == Policy::Ignore
            || tables.node_affinity_matches(affinity, node, &self.cluster.names);
        let taints_hold = constraint.node_taints_policy == Policy::Ignore
            || tolerates_all(&tables.spec(spec_id).tolerations, &node.taints);
        affinity_holds && taints_hold
    }

    fn nodes(&self) -> impl Iterator<Item = (NodeIdx, &'a NodeFact)> + '_ {
        let rows = (0..self.cluster.node_rows()).map(NodeIdx::from);
        rows.filter_map(|node| Some((node, self.cluster.node(node).fact()?)))
    }

    /// Counts per domain of one hard constraint, over the nodes that have the keys of all of them.
    fn hard_counts(&self, constraint: &SpreadConstraint, keys: &[Symbol]) -> BTreeMap<Symbol, i64> {
        let mut counts = BTreeMap::new();
        for (node, fact) in self.nodes() {
            let has_all = keys.iter().all(|&key| fact.labels.get(key).is_some());
            if let (true, true, Some(value)) = (
                has_all,
                self.included(fact, constraint),
                fact.labels.get(constraint.key),
            ) {
                *counts.entry(value).or_default() += self.count(node, constraint);
            }
        }
        counts
    }

    /// The verdict on each node, in the order of nodes.
    pub fn filter(&self) -> Vec<(NodeIdx, Option<Refusal>)> {
        let hard = self.constraints(true);
        let keys: Vec<Symbol> = hard.iter().map(|(c, _)| c.key).collect();
        let counted: Vec<BTreeMap<Symbol, i64>> = hard
            .iter()
            .map(|(c, _)| self.hard_counts(c, &keys))
            .collect();
        let verdict = |fact: &NodeFact| {
            for ((constraint, self_match), counts) in hard.iter().zip(&counted) {
                let Some(value) = fact.labels.get(constraint.key) else {
                    let reason = Reason::MissingTopologyLabel;
                    return Some(Refusal::unresolvable(PluginId::PodTopologySpread, reason));
                };
                let too_few =
                    (counts.len() as i64) < i64::from(constraint.min_domains.unwrap_or(1));
                let minimum = if too_few {
                    0
                } else {
                    counts.values().copied().min().unwrap_or(0)
                };
                let there = counts.get(&value).copied().unwrap_or(0);
                if there + i64::from(*self_match) - minimum > i64::from(constraint.max_skew) {
                    return Some(Refusal::unschedulable(
                        PluginId::PodTopologySpread,
                        Reason::Skew,
                    ));
                }
            }
            None
        };
        let order = self.cluster.node_order().iter();
        order
            .filter_map(|&node| Some((node, verdict(self.cluster.node(node).fact()?))))
            .collect()
    }

    /// Raw and normalized scores of these nodes; `None` if no soft constraint holds.
    pub fn score(&self, feasible: &[NodeIdx]) -> Option<Vec<(i64, i64)>> {
        let soft = self.constraints(false);
        if soft.is_empty() {
            return None;
        }
        let labels = |node: NodeIdx| self.cluster.node(node).fact().map(|f| &f.labels);
        let value = |node: NodeIdx, key: Symbol| labels(node).and_then(|l| l.get(key));
        let lacks_one = |node: NodeIdx| soft.iter().any(|(c, _)| value(node, c.key).is_none());
        let ignored = |node: NodeIdx| self.require_all && lacks_one(node);
        let scored: Vec<NodeIdx> = feasible.iter().copied().filter(|&n| !ignored(n)).collect();

        let mut totals: Vec<BTreeMap<Symbol, i64>> = Vec::new();
        let mut weights: Vec<f64> = Vec::new();
        for (constraint, _) in &soft {
            let registered: BTreeSet<Symbol> = scored
                .iter()
                .map(|&n| value(n, constraint.key).unwrap_or(well_known::EMPTY))
                .collect();
            let by_host = constraint.key == well_known::HOSTNAME;
            let size = if by_host {
                scored.len()
            } else {
                registered.len()
            };
            weights.push((size as f64 + 2.0).ln());
            let mut total = BTreeMap::new();
            for (node, fact) in self.nodes() {
                let domain = fact.labels.get(constraint.key).unwrap_or(well_known::EMPTY);
                let counts = !ignored(node)
                    && self.included(fact, constraint)
                    && registered.contains(&domain);
                if !by_host && counts {
                    *total.entry(domain).or_default() += self.count(node, constraint);
                }
            }
            totals.push(total);
        }
        let raw = |node: NodeIdx| {
            let mut sum = 0.0;
            for (((constraint, _), total), weight) in soft.iter().zip(&totals).zip(&weights) {
                let Some(domain) = value(node, constraint.key) else {
                    continue;
                };
                let count = match constraint.key == well_known::HOSTNAME {
                    true => self.count(node, constraint),
                    false => total.get(&domain).copied().unwrap_or(0),
                };
                sum += count as f64 * weight + f64::from(constraint.max_skew - 1);
            }
            sum.round() as i64
        };
        let raws: Vec<i64> = scored.iter().map(|&n| raw(n)).collect();
        let max = raws.iter().copied().max().unwrap_or(0).max(0);
        let min = raws.iter().copied().min().unwrap_or(0);
        let normalized = |raw: i64| {
            if max == 0 {
                100
            } else {
                100 * (max + min - raw) / max
            }
        };
        let each = |&node: &NodeIdx| match ignored(node) {
            true => (0, 0),
            false => (raw(node), normalized(raw(node))),
        };
        Some(feasible.iter().map(each).collect())
    }
}

/// The naive implementation of InterPodAffinity for one pod. Source: spec/scheduler §3.10.
pub struct NaiveAffinity<'a> {
    cluster: &'a Cluster,
    profile: &'a Profile,
    class: ClassId,
}

impl<'a> NaiveAffinity<'a> {
    /// For a pod, in the cluster as it is.
    pub fn new(cluster: &'a Cluster, profile: &'a Profile, pod: PodIdx) -> Self {
        Self {
            cluster,
            profile,
            class: cluster.pod(pod).class,
        }
    }

    /// True if a term of a pod of class `holder` matches a pod of class `other`.
    fn matches(
        &self,
        term: &AffinityTerm,
        holder: ClassId,
        other: ClassId,
        by_incoming: bool,
    ) -> bool {
        let tables = self.cluster.tables();
        let (holder, other) = (&tables.class(holder).key, &tables.class(other).key);
        let none = Labels::default();
        let of_namespace = self
            .cluster
            .namespace_labels(other.namespace)
            .unwrap_or(&none);
        let by_name =
            match term.namespaces.is_empty() && term.namespace_selector == Selector::Nothing {
                true => holder.namespace == other.namespace,
                false => term.namespaces.contains(&other.namespace),
            };
        let by_labels = term.namespace_selector.matches(of_namespace)
            || (by_incoming && term.namespace_selector.matches(&none));
        (by_name || by_labels) && term.selector.matches(tables.labels(other.labels))
    }

    fn bound(&self) -> impl Iterator<Item = (ClassId, &'a NodeFact)> + '_ {
        let with_node = self
            .cluster
            .pods()
            .filter_map(|(_, pod)| Some((pod.class, pod.node?)));
        with_node.filter_map(|(class, node)| Some((class, self.cluster.node(node).fact()?)))
    }

    fn same_domain(a: &NodeFact, b: &NodeFact, key: Symbol) -> bool {
        matches!((a.labels.get(key), b.labels.get(key)), (Some(a), Some(b)) if a == b)
    }

    /// Why a node is refused; `None` if it passes.
    pub fn filter(&self, node: NodeIdx) -> Option<Refusal> {
        let plugin = PluginId::InterPodAffinity;
        let fact = self.cluster.node(node).fact()?;
        let tables = self.cluster.tables();
        let own = tables.affinity_of(tables.class(self.class).key.spec);
        if own
            .required
            .iter()
            .any(|t| fact.labels.get(t.key).is_none())
        {
            return Some(Refusal::unresolvable(plugin, Reason::PodAffinity));
        }
        let matches_all = |other: ClassId| {
            own.required
                .iter()
                .all(|t| self.matches(t, self.class, other, true))
        };
        let wanted: Vec<&NodeFact> = self
            .bound()
            .filter(|&(c, _)| matches_all(c))
            .map(|(_, n)| n)
            .collect();
        let met = |t: &AffinityTerm| wanted.iter().any(|n| Self::same_domain(n, fact, t.key));
        let nowhere = own
            .required
            .iter()
            .all(|t| wanted.iter().all(|n| n.labels.get(t.key).is_none()));
        let first_of_group = nowhere && matches_all(self.class);
        if !first_of_group && !own.required.iter().all(met) {
            return Some(Refusal::unresolvable(plugin, Reason::PodAffinity));
        }
        for term in &own.required_anti {
            let mut others = self.bound();
            if others.any(|(c, n)| {
                Self::same_domain(n, fact, term.key) && self.matches(term, self.class, c, true)
            }) {
                return Some(Refusal::unschedulable(plugin, Reason::PodAntiAffinity));
            }
        }
        for (class, there) in self.bound() {
            let terms = &tables
                .affinity_of(tables.class(class).key.spec)
                .required_anti;
            let objects = |t: &AffinityTerm| {
                Self::same_domain(there, fact, t.key) && self.matches(t, class, self.class, false)
            };
            if terms.iter().any(objects) {
                return Some(Refusal::unschedulable(plugin, Reason::ExistingAntiAffinity));
            }
        }
        None
    }

    /// Scores of these nodes, 0 to 100; `None` if there are no preferences.
    pub fn score(&self, feasible: &[NodeIdx]) -> Option<Vec<i32>> {
        let tables = self.cluster.tables();
        let own = &tables
            .affinity_of(tables.class(self.class).key.spec)
            .preferred;
        let ignore = self.profile.ignore_preferred_terms_of_existing_pods;
        if ignore && own.is_empty() {
            return None;
        }
        let mut weights: BTreeMap<(Symbol, Symbol), i64> = BTreeMap::new();
        for (class, there) in self.bound() {
            let mut add = |term: &AffinityTerm, weight: i32| {
                if let Some(value) = there.labels.get(term.key) {
                    *weights.entry((term.key, value)).or_default() += i64::from(weight);
                }
            };
            for (weight, term) in own {
                if self.matches(term, self.class, class, true) {
                    add(term, *weight);
                }
            }
            let theirs = tables.affinity_of(tables.class(class).key.spec);
            for term in &theirs.required {
                if self.profile.hard_pod_affinity_weight > 0
                    && self.matches(term, class, self.class, false)
                {
                    add(term, self.profile.hard_pod_affinity_weight);
                }
            }
            for (weight, term) in &theirs.preferred {
                if !ignore && self.matches(term, class, self.class, false) {
                    add(term, *weight);
                }
            }
        }
        if weights.is_empty() {
            return None;
        }
        let raw = |node: &NodeIdx| -> i64 {
            let fact = self.cluster.node(*node).fact();
            let pairs = fact.into_iter().flat_map(|f| f.labels.iter());
            pairs.filter_map(|pair| weights.get(&pair)).sum()
        };
        let raws: Vec<i64> = feasible.iter().map(raw).collect();
        let (min, max) = (*raws.iter().min()?, *raws.iter().max()?);
        let scale = |raw: i64| match max - min {
            0 => 0,
            range => (100.0 * ((raw - min) as f64 / range as f64)) as i32,
        };
        Some(raws.into_iter().map(scale).collect())
    }
}
