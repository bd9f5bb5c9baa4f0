//! The spread of a workload's pods: per constraint of the pods, and by zone and node if no constraint has these keys.
//!
//! [`Tally::skew`] computes the skew, as everywhere.

use std::collections::{BTreeSet, HashMap, HashSet};

use strew_cluster::topology::EMPTY_DOMAIN;
use strew_cluster::{ClassId, Cluster, Eligibility, KeyId, NodeIdx, Policy, TallyId};
use strew_model::{Selector, Symbol, well_known};
use strew_scheduler::plugins::pod_topology_spread::{Origin, SpreadPlan};
use strew_spread::{DomainIdx, Limit, Tally};

use crate::cluster_state::ClusterState;
use crate::domains::{Domain, Domains, Lists};
use crate::natural_order::natural_order;

/// The spread of a workload over the domains of one key.
#[derive(Debug, Clone)]
pub struct Spread {
    /// The topology key.
    pub key: Symbol,
    /// The constraint over this key, if there is one.
    pub constraint: Option<Constraint>,
    /// Every domain that counts, or has pods of the workload, by name.
    pub domains: Domains,
    /// The largest minus the smallest count of pods that the constraint counts.
    pub skew: i32,
    /// True if the constraint counts other nodes for some of the workload's pods than for others, as for the subsets
    /// of a WorkloadSpread. Then counts and skew are over all of these nodes, and the constraint limits only its part
    /// of them for each pod.
    pub is_split: bool,
    /// The largest minus the smallest count of the workload's own pods.
    pub own_skew: i32,
    /// The skew before the step, if there were pods.
    pub skew_before: Option<i32>,
    /// Counted pods that are not the workload's own.
    pub n_others: i64,
    /// The workload's own pods on nodes.
    pub n_own: i32,
    /// Those of them that the constraint's selector does not select.
    pub n_uncounted: i32,
}

/// A constraint of the pods.
#[derive(Debug, Clone)]
pub struct Constraint {
    /// True for a default of the cluster, false for the pods' own.
    pub is_default: bool,
    /// Its index in the pods' spec, or in the defaults.
    pub index: usize,
    /// `whenUnsatisfiable: DoNotSchedule`.
    pub hard: bool,
    /// `maxSkew`.
    pub max_skew: i32,
    /// `minDomains`.
    pub min_domains: Option<i32>,
    /// The pods that count, as the text of a selector.
    pub selector: String,
    /// `matchLabelKeys`, if they have an effect.
    pub match_label_keys: Vec<Symbol>,
    /// True if the pods' profile disables this part of PodTopologySpread: then the constraint has no effect.
    pub is_off: bool,
}

/// The present spreads of every workload: by the keys of its constraints, zone, node and these `keys`. `classes` has a
/// pod class for each workload with pods: its constraints are shown.
pub fn of_all(
    world: &mut ClusterState,
    classes: &[Option<ClassId>],
    keys: &[Symbol],
) -> Vec<Vec<Spread>> {
    let mut orders = Orders::default();
    let each = classes.iter().enumerate();
    each.map(|(workload, class)| match class {
        Some(class) => of_workload(world, workload, *class, keys, &mut orders),
        None => Vec::new(),
    })
    .collect()
}

/// What workloads share.
#[derive(Default)]
struct Orders {
    /// Per topology key its domains in the order of display: sorted once, not once per workload.
    by_key: HashMap<KeyId, Vec<DomainIdx>>,
    lists: Lists,
}

impl Orders {
    /// The domains of a key that hold for a predicate, each with its value and these pods.
    fn domains(
        &mut self,
        cluster: &Cluster,
        key: KeyId,
        exists: impl Fn(DomainIdx) -> bool,
        pods: impl Fn(DomainIdx) -> (i32, i32),
    ) -> Domains {
        let column = cluster.column(key);
        let order = self.by_key.entry(key).or_insert_with(|| {
            let text = |domain: &DomainIdx| cluster.names.text(column.value(*domain));
            let mut domains: Vec<DomainIdx> = (0..column.len() as u32).map(DomainIdx).collect();
            domains.sort_by(|a, b| natural_order(text(a), text(b)));
            domains
        });
        let existing = order.iter().filter(|&&domain| exists(domain));
        let each = existing.map(|&domain| {
            let (count, own) = pods(domain);
            Domain {
                value: column.value(domain),
                count,
                own,
                before: None,
            }
        });
        Domains::new(each, &mut self.lists)
    }
}

/// For each workload the class of a waiting pod, else of the newest one, whose constraints stand for the workload. A pod
/// that is being deleted stands for it only if there is no other.
pub fn classes(world: &ClusterState) -> Vec<Option<ClassId>> {
    let of = |members: &Vec<usize>| {
        let staying = || {
            members
                .iter()
                .filter(|&&entry| !world.pods[entry].is_leaving)
        };
        let unbound = staying().find(|&&entry| world.node_of(entry).is_none());
        let entry = unbound.or(staying().next_back()).or(members.last())?;
        Some(world.cluster.pod(world.pods[*entry].pod).class)
    };
    world.members.iter().map(of).collect()
}

/// Adds the earlier values to each spread; each list belongs to its world.
pub fn compare(
    now: &mut [Vec<Spread>],
    world: &ClusterState,
    before: &[Vec<Spread>],
    world_before: &ClusterState,
) {
    for (now, before) in now.iter_mut().zip(before) {
        for now in now {
            let is_same = |before: &&Spread| {
                before.constraint.as_ref().map(|c| c.index)
                    == now.constraint.as_ref().map(|c| c.index)
                    && world_before.cluster.names.text(before.key)
                        == world.cluster.names.text(now.key)
            };
            let before = before.iter().find(is_same);
            let Some(before) = before.filter(|b| b.domains.occupied().any(|d| d.count != 0)) else {
                continue;
            };
            let domains = before.domains.occupied();
            let then = domains.map(|d| (world_before.cluster.names.text(d.value), d.count));
            now.skew_before = Some(before.skew);
            let text = |domain| world.cluster.names.text(domain);
            now.domains
                .compare(then, |domain, value| natural_order(text(domain), value));
        }
    }
}

fn of_workload(
    world: &mut ClusterState,
    workload: usize,
    class: ClassId,
    keys: &[Symbol],
    orders: &mut Orders,
) -> Vec<Spread> {
    let kind = world.workloads[workload].name.kind.as_str();
    if kind == "DaemonSet" {
        // Each of its pods is for one node, so there is no spread.
        return Vec::new();
    }
    let is_one_pod = kind == "Pod";
    let others = other_classes(world, workload, class).into_iter();
    let mut plans: Vec<_> = others.map(|other| (other, plan(world, other))).collect();
    // Made last, since its counts are read.
    plans.insert(0, (class, plan(world, class)));
    let plan = &plans[0].1;
    // A default that no plugin reads is left out.
    let is_default = plan.effective.origin != Origin::Pod;
    let holds = |index: &usize| !(is_default && plan.is_off(*index));
    let mut spreads: Vec<Spread> = (0..plan.effective.constraints.len())
        .filter(holds)
        .map(|index| of_constraint(world, workload, &plans, index, orders))
        .collect();
    let shown = [well_known::ZONE, well_known::HOSTNAME];
    for key in keys.iter().copied().chain(shown) {
        if !is_one_pod && spreads.iter().all(|spread| spread.key != key) {
            spreads.extend(unconstrained(world, workload, &plans, key, orders));
        }
    }
    // By zone first, then by node, since zones contain nodes.
    spreads.sort_by_key(|spread| spread.key == well_known::HOSTNAME);
    spreads
}

/// Classes of pods, each with what its constraints count.
type Plans = Vec<(ClassId, SpreadPlan)>;

/// The spreads of a workload by the constraints of its pods: those of each revision or subset apart, with the revisions
/// that have them. Pods that have the same constraints are one.
pub fn by_revision(world: &mut ClusterState, workload: usize) -> Vec<(BTreeSet<String>, Spread)> {
    if world.workloads[workload].name.kind == "DaemonSet" {
        return Vec::new();
    }
    let mut orders = Orders::default();
    let mut groups: Vec<(BTreeSet<String>, Plans)> = Vec::new();
    let mut seen = HashSet::new();
    for entry in world.members[workload].clone() {
        let pod = &world.pods[entry];
        let class = world.cluster.pod(pod.pod).class;
        let revision = pod.revision.as_deref().map(str::to_owned);
        if pod.is_leaving || !seen.insert((class, revision.clone())) {
            continue;
        }
        let plan = plan(world, class);
        let is_same = |(_, plans): &&mut (_, Plans)| {
            plans.first().is_some_and(|(_, first)| {
                let (first, new) = (&first.effective, &plan.effective);
                first.origin == new.origin && first.constraints == new.constraints
            })
        };
        match groups.iter_mut().find(is_same) {
            Some((revisions, plans)) => {
                revisions.extend(revision);
                if plans.iter().all(|(known, _)| *known != class) {
                    plans.push((class, plan));
                }
            }
            None => groups.push((revision.into_iter().collect(), vec![(class, plan)])),
        }
    }
    let mut spreads = Vec::new();
    for (revisions, mut plans) in groups {
        // Made again, since the plans made after it may have replaced its counts.
        let (class, _) = plans[0];
        plans[0] = (class, plan(world, class));
        for index in 0..plans[0].1.effective.constraints.len() {
            let spread = of_constraint(world, workload, &plans, index, &mut orders);
            spreads.push((revisions.clone(), spread));
        }
    }
    spreads
}

/// The classes of a workload's pods, apart from this one: of other subsets and revisions.
fn other_classes(world: &ClusterState, workload: usize, first: ClassId) -> Vec<ClassId> {
    let mut classes = Vec::new();
    let mut seen = HashSet::from([first]);
    for &entry in &world.members[workload] {
        let pod = &world.pods[entry];
        let class = world.cluster.pod(pod.pod).class;
        if !pod.is_leaving && seen.insert(class) {
            classes.push(class);
        }
    }
    classes
}

/// The distinct rules of the plans, in their order.
fn distinct<'a>(
    plans: &'a [(ClassId, SpreadPlan)],
    rule: impl Fn(ClassId, &'a SpreadPlan) -> Eligibility,
) -> Vec<Eligibility> {
    let mut rules = Vec::new();
    for (class, plan) in plans {
        let rule = rule(*class, plan);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// The constraint `index` of the first of the plans, which are those of the workload's classes.
fn of_constraint(
    world: &mut ClusterState,
    workload: usize,
    plans: &[(ClassId, SpreadPlan)],
    index: usize,
    orders: &mut Orders,
) -> Spread {
    let (class, plan) = &plans[0];
    let constraint = &plan.effective.constraints[index];
    let cluster = &mut world.cluster;
    let (column, counted) = plan.counted(cluster, *class, index);
    let rules = distinct(plans, |class, plan| {
        match plan.effective.constraints.get(index) {
            Some(same) if same.key == constraint.key => plan.eligibility(cluster, class, index),
            _ => nodes(cluster, plan, class, constraint.key),
        }
    });
    let is_split = rules.len() > 1;
    let tally = match is_split {
        true => counted_on(cluster, counted, column, &rules),
        false => cluster.tally(counted).clone(),
    };
    let own = own(world, workload, column, &tally);
    let counted: i64 = tally.existing().map(|d| i64::from(tally.count(d))).sum();
    let (mut n_own, mut n_uncounted, mut n_counted) = (0, 0, 0);
    for (entry, node) in bound(world, workload) {
        let labels = world.cluster.labels_of(world.pods[entry].pod);
        n_own += 1;
        match constraint.selector.matches(labels) {
            false => n_uncounted += 1,
            true => n_counted += i64::from(admits(&world.cluster, &rules, node)),
        }
    }
    let is_default = plan.effective.origin != Origin::Pod;
    Spread {
        key: constraint.key,
        constraint: Some(Constraint {
            is_default,
            index,
            hard: constraint.hard,
            max_skew: constraint.max_skew,
            min_domains: constraint.min_domains,
            selector: constraint.selector.text(&world.cluster.names),
            match_label_keys: constraint.match_label_keys.to_vec(),
            is_off: plan.is_off(index),
        }),
        domains: domains(&world.cluster, column, [&tally, &own], orders),
        skew: tally.skew(),
        is_split,
        own_skew: own.skew(),
        skew_before: None,
        n_others: (counted - n_counted).max(0),
        n_own,
        n_uncounted,
    }
}

/// The pods of a tally's census by domain, over the nodes that one of the rules admits.
fn counted_on(cluster: &Cluster, tally: TallyId, key: KeyId, rules: &[Eligibility]) -> Tally {
    let empty = cluster.tally(tally).exists(EMPTY_DOMAIN);
    let per_node = cluster.census(tally.census).per_node();
    let mut found = Tally::default();
    for node in (0..cluster.node_rows()).map(NodeIdx::from) {
        let domain = cluster.column(key).domain(node);
        let domain = domain.or(empty.then_some(EMPTY_DOMAIN));
        if let Some(domain) = domain.filter(|_| admits(cluster, rules, node)) {
            found.add_place(domain);
            found.add(domain, per_node.get(node.index()).copied().unwrap_or(0));
        }
    }
    found
}

/// The topology keys for pods of a class, each with the nodes that count: those of their constraints, zone and node.
pub fn rules(world: &mut ClusterState, class: ClassId) -> Vec<(Symbol, Eligibility)> {
    let plan = plan(world, class);
    let constrained = plan.effective.constraints.iter().map(|c| c.key);
    let mut keys = Vec::new();
    for key in constrained.chain([well_known::ZONE, well_known::HOSTNAME]) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    // By zone first, then by node, since zones contain nodes.
    keys.sort_by_key(|&key| key == well_known::HOSTNAME);
    let keys = keys.into_iter();
    keys.map(|key| (key, nodes(&world.cluster, &plan, class, key)))
        .collect()
}

/// The nodes that count for pods of a class by a key. If several constraints have the key, the first one decides.
pub fn rule(world: &mut ClusterState, class: ClassId, key: Symbol) -> Eligibility {
    let plan = plan(world, class);
    nodes(&world.cluster, &plan, class, key)
}

/// A hard constraint that is in force for pods of a class.
#[derive(Debug, Clone)]
pub struct HardConstraint {
    /// Its index in the pods' spec, or in the defaults.
    pub index: usize,
    /// True for a default of the cluster, false for the pods' own.
    pub is_default: bool,
    /// The topology key.
    pub key: Symbol,
    /// `maxSkew` and `minDomains`.
    pub limit: Limit,
    /// The pods that count.
    pub selector: Selector,
    /// The nodes that count.
    pub nodes: Eligibility,
}

/// The hard constraints that the scheduler enforces for pods of a class.
pub fn hard(world: &mut ClusterState, class: ClassId) -> Vec<HardConstraint> {
    let plan = plan(world, class);
    let is_default = plan.effective.origin != Origin::Pod;
    let constraints = plan.effective.constraints.iter().enumerate();
    let enforced = constraints.filter(|(index, c)| c.hard && !plan.is_off(*index));
    enforced
        .map(|(index, constraint)| HardConstraint {
            index,
            is_default,
            key: constraint.key,
            limit: Limit {
                max_skew: constraint.max_skew,
                min_domains: constraint.min_domains.unwrap_or(1),
            },
            selector: constraint.selector.clone(),
            nodes: plan.eligibility(&world.cluster, class, index),
        })
        .collect()
}

fn plan(world: &mut ClusterState, class: ClassId) -> SpreadPlan {
    let engine = world.schedulers.engine(&world.cluster, class);
    engine.plan(&mut world.cluster, class).spread.clone()
}

fn nodes(cluster: &Cluster, plan: &SpreadPlan, class: ClassId, key: Symbol) -> Eligibility {
    let mut constraints = plan.effective.constraints.iter();
    match constraints.position(|constraint| constraint.key == key) {
        Some(index) => plan.eligibility(cluster, class, index),
        None => unconstrained_nodes(cluster, class, key),
    }
}

/// The nodes that count if no constraint has this key: as for a constraint without policies.
fn unconstrained_nodes(cluster: &Cluster, class: ClassId, key: Symbol) -> Eligibility {
    let policies = (Policy::Honor, Policy::Ignore);
    Eligibility::of(cluster.tables(), class, [key].into(), policies)
}

/// The domains of a key with nodes that at least one of the rules admits, without pods.
pub fn places(cluster: &mut Cluster, key: Symbol, rules: &[Eligibility]) -> (KeyId, Tally) {
    let column = cluster.ensure_column(key);
    let mut tally = Tally::default();
    for node in (0..cluster.node_rows()).map(NodeIdx::from) {
        if admits(cluster, rules, node)
            && let Some(domain) = cluster.column(column).domain(node)
        {
            tally.add_place(domain);
        }
    }
    (column, tally)
}

/// True if a node counts for at least one of the rules.
pub(crate) fn admits(cluster: &Cluster, rules: &[Eligibility], node: NodeIdx) -> bool {
    let node = cluster.node(node);
    rules
        .iter()
        .any(|rule| rule.admits(node, cluster.tables(), &cluster.names))
}

/// The workload's own pods over the nodes that the node affinity of one of them admits, and over the nodes that they
/// are on; `None` if no node has the label.
fn unconstrained(
    world: &mut ClusterState,
    workload: usize,
    plans: &[(ClassId, SpreadPlan)],
    key: Symbol,
    orders: &mut Orders,
) -> Option<Spread> {
    let rules = distinct(plans, |class, plan| nodes(&world.cluster, plan, class, key));
    let (column, places) = places(&mut world.cluster, key, &rules);
    let tally = own(world, workload, column, &places);
    (tally.domains() > 0).then(|| Spread {
        key,
        constraint: None,
        domains: domains(&world.cluster, column, [&tally, &tally], orders),
        skew: tally.skew(),
        is_split: rules.len() > 1,
        own_skew: tally.skew(),
        skew_before: None,
        n_others: 0,
        n_own: i32::try_from(bound(world, workload).count()).unwrap_or(i32::MAX),
        n_uncounted: 0,
    })
}

/// The workload's own pods on nodes, each with its node. Terminating pods are left out.
fn bound(world: &ClusterState, workload: usize) -> impl Iterator<Item = (usize, NodeIdx)> {
    let members = world.members[workload].iter().copied();
    let staying = members.filter(|&entry| !world.pods[entry].is_leaving);
    staying.filter_map(|entry| Some((entry, world.node_of(entry)?)))
}

/// The workload's own pods over these domains, and over those that they are in: pods of different subsets of a
/// WorkloadSpread need different nodes. Terminating pods are not counted.
fn own(world: &ClusterState, workload: usize, column: KeyId, places: &Tally) -> Tally {
    let mut tally = Tally::default();
    for domain in places.existing() {
        tally.add_place(domain);
    }
    let column = world.cluster.column(column);
    let members = world.members[workload].iter();
    for &entry in members.filter(|&&entry| !world.pods[entry].is_leaving) {
        // If nodes without the label count, they form the empty domain.
        let domain = world.node_of(entry);
        let domain = domain.map(|node| column.domain(node).unwrap_or(EMPTY_DOMAIN));
        if let Some(domain) = domain.filter(|&d| d != EMPTY_DOMAIN || tally.exists(d)) {
            if !tally.exists(domain) {
                tally.add_place(domain);
            }
            tally.add(domain, 1);
        }
    }
    tally
}

/// The domains that count, each with the counted pods and the workload's own.
fn domains(
    cluster: &Cluster,
    key: KeyId,
    [tally, own]: [&Tally; 2],
    orders: &mut Orders,
) -> Domains {
    orders.domains(
        cluster,
        key,
        |domain| tally.exists(domain) || own.exists(domain),
        |domain| (tally.count(domain), own.count(domain)),
    )
}
