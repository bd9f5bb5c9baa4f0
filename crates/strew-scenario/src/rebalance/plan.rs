//! From a cluster to a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Pod};
use strew_cluster::{NodeIdx, OwnerRef, PodIdx, Policy};
use strew_manifest::printable::printable_line;
use strew_model::{Interner, Symbol};
use strew_plan::health::add_new_claims;
use strew_plan::rebalance::{
    ConstraintChange, ConstraintState, Count, Effect, Move, Rebalanced, Stays, Wanted,
};
use strew_plan::{Refusal, Rule, Transaction, rebalance};
use strew_view::cluster_state::ClusterState;
use strew_view::natural_order::natural_order;
use strew_view::workload::{Workload, WorkloadName};

use super::settled::Settled;
use super::values::{
    ConstraintCounts, DomainCount, KIND, LeftPods, PlannedConstraint, PlannedEffect, PlannedStep,
    RebalancePlan, Sums, WorkloadNote,
};

/// What is asked for.
pub struct Asked<'a> {
    /// True for the workloads whose constraints are looked at.
    pub means: &'a dyn Fn(&Workload) -> bool,
    /// True for the workloads whose pods may be evicted: a constraint may count pods of others.
    pub evicts: &'a dyn Fn(&Workload) -> bool,
    /// True if soft constraints are looked at, too.
    pub soft: bool,
    /// The most evictions.
    pub evictions_max: usize,
    /// True if pods with an emptyDir may be evicted.
    pub deletes_empty_dirs: bool,
}

/// The plan for a cluster; `tables` are the objects of which it is made. `None` if no pod is on a node.
///
/// `api_version` is empty: it belongs to whatever writes the plan.
pub fn plan(world: &mut ClusterState, tables: &Tables, asked: &Asked<'_>) -> Option<RebalancePlan> {
    if world.cluster.pods().all(|(_, row)| row.node.is_none()) {
        return None;
    }
    let names = Names::of(world);
    let is_meant = |workload: &usize| (asked.means)(&world.workloads[*workload]);
    let meant = names
        .workload_of
        .iter()
        .filter(|(_, workload)| is_meant(workload));
    let only: HashSet<_> = meant.map(|(key, _)| *key).collect();
    let settled = Settled::of(world, tables);
    let kept = kept(world, tables, asked, &settled);
    add_new_claims(&mut world.cluster);
    let wanted = Wanted {
        soft: asked.soft,
        evictions_max: asked.evictions_max,
        only: Some(only),
    };
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let plan = {
        let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
        trial.set_health(settled.health.clone());
        rebalance(&mut trial, wanted, &kept)
    };
    let notes = Notes {
        world,
        names: &names,
        asked,
    };
    let notes = notes.of(&plan, &settled);
    Some(names.plan(world, &plan, asked.soft, notes))
}

/// Annotations with which a pod asks to stay, with the value that says so; `None`: any value.
const ANNOTATIONS: [(&str, Option<&str>); 3] = [
    (
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        Some("false"),
    ),
    ("karpenter.sh/do-not-disrupt", Some("true")),
    ("descheduler.alpha.kubernetes.io/prefer-no-eviction", None),
];

/// The pods that must stay, for reasons that deciding does not read.
fn kept(
    world: &mut ClusterState,
    tables: &Tables,
    asked: &Asked<'_>,
    settled: &Settled,
) -> BTreeMap<PodIdx, Stays> {
    let keys = ANNOTATIONS.map(|(key, _)| world.cluster.names.intern(key));
    let mut kept = BTreeMap::new();
    for entry in &world.pods {
        if !(asked.evicts)(&world.workloads[entry.workload]) {
            kept.insert(entry.pod, Stays::LeftAlone);
            continue;
        }
        let name = Name::new(entry.namespace.clone(), entry.name.clone());
        let Some(pod) = tables.get::<Pod>(&name) else {
            continue;
        };
        let asks = |(_, (key, value)): &(Symbol, (&str, Option<&str>))| {
            let found = pod.meta.annotations.get(*key);
            found.is_some_and(|found| value.is_none_or(|value| found == value))
        };
        let annotated = keys.into_iter().zip(ANNOTATIONS).find(asks);
        let is_job = pod
            .meta
            .controller()
            .is_some_and(|owner| &*owner.kind == "Job");
        let is_once = pod
            .spec
            .restart_policy
            .as_deref()
            .is_some_and(|policy| policy != "Always");
        let has_data = || {
            let mut volumes = pod.spec.volumes.iter().flatten();
            volumes.any(|volume| volume.empty_dir.is_some())
        };
        let why =
            match annotated {
                Some((key, _)) => Some(Stays::Annotated(key)),
                None if is_job || is_once => Some(Stays::RunsOnce),
                None => settled.pods.get(&entry.pod).cloned().or_else(|| {
                    (!asked.deletes_empty_dirs && has_data()).then_some(Stays::LocalData)
                }),
            };
        kept.extend(why.map(|why| (entry.pod, why)));
    }
    kept
}

/// Workloads as users know them.
struct Names {
    /// By namespace and controller of their pods.
    workload_of: HashMap<(Symbol, Option<OwnerRef>), usize>,
}

impl Names {
    fn of(world: &ClusterState) -> Self {
        let mut workload_of = HashMap::new();
        for entry in &world.pods {
            let key = &world.cluster.class_of(entry.pod).key;
            workload_of
                .entry((key.namespace, key.owner))
                .or_insert(entry.workload);
        }
        Self { workload_of }
    }

    fn workload<'w>(&self, world: &'w ClusterState, rule: &Rule) -> Option<&'w WorkloadName> {
        let index = self.workload_of.get(&(rule.namespace, rule.owner))?;
        Some(&world.workloads[*index].name)
    }

    /// The indexes of the workloads that have a constraint.
    fn workloads(&self, rule: &Rule) -> BTreeSet<usize> {
        let all = rule.owners();
        all.filter_map(|owner| self.workload_of.get(&owner).copied())
            .collect()
    }

    fn plan(
        &self,
        world: &ClusterState,
        plan: &Rebalanced,
        soft: bool,
        notes: Vec<(usize, WorkloadNote)>,
    ) -> RebalancePlan {
        let meant = || plan.rules.iter().filter(|outcome| outcome.is_meant);
        let having = |is_such: &dyn Fn(&ConstraintChange) -> bool| {
            let rules = meant().filter(|outcome| is_such(outcome));
            let of = rules.flat_map(|outcome| self.workloads(&outcome.rule));
            of.collect::<BTreeSet<_>>().len()
        };
        let noted = |reason: &str| {
            let of = notes.iter().filter(|(_, note)| note.reason == reason);
            of.map(|(workload, _)| workload)
                .collect::<BTreeSet<_>>()
                .len()
        };
        let hard_moves = |state: &dyn Fn(&ConstraintChange) -> u64| {
            let hard = meant().filter(|outcome| outcome.rule.constraint.hard);
            hard.map(state).sum()
        };
        let is_told =
            |outcome: &&ConstraintChange| outcome.now.moves > 0 || outcome.after.moves > 0;
        let mut constraints: Vec<PlannedConstraint> = meant()
            .filter(is_told)
            .flat_map(|outcome| self.constraints(world, outcome))
            .collect();
        constraints.sort_by(|a, b| {
            let key = |c: &PlannedConstraint| (c.after.moves == 0, !c.hard);
            key(a).cmp(&key(b)).then_with(|| {
                natural_order(&a.namespace, &b.namespace)
                    .then_with(|| natural_order(&a.workload_name, &b.workload_name))
            })
        });
        RebalancePlan {
            api_version: String::new(),
            kind: KIND.to_owned(),
            summary: Sums {
                soft,
                evictions: plan.steps.len(),
                workloads: having(&|_| true),
                uneven_before: having(&|outcome| outcome.now.moves > 0),
                uneven_after: having(&|outcome| outcome.after.moves > 0),
                without_domain: having(&|outcome| {
                    outcome.rule.constraint.hard && outcome.after.counts.is_empty()
                }),
                other_scheduler: noted(OTHER_SCHEDULER),
                off_nodes: noted(OFF_NODES),
                not_enforced: noted(NOT_ENFORCED),
                moves_before: hard_moves(&|outcome| outcome.now.moves),
                moves_after: hard_moves(&|outcome| outcome.after.moves),
                pending: plan.after.pending,
                placed_first: plan.placed,
            },
            steps: plan
                .steps
                .iter()
                .map(|step| self.step(world, plan, step))
                .collect(),
            constraints,
            notes: notes.into_iter().map(|(_, note)| note).collect(),
        }
    }

    fn step(&self, world: &ClusterState, plan: &Rebalanced, step: &Move) -> PlannedStep {
        let cluster = &world.cluster;
        let key = &cluster.class_of(step.pod).key;
        let workload = self.workload_of.get(&(key.namespace, key.owner));
        let workload = workload.map(|&index| &world.workloads[index].name);
        let node = |node: NodeIdx| cluster.names.text(cluster.node(node).name()).to_owned();
        let row = cluster.pod(step.pod);
        let effects = step.effects.iter();
        PlannedStep {
            namespace: cluster.names.text(key.namespace).to_owned(),
            pod: row.name.to_string(),
            uid: row.uid.to_string(),
            workload_kind: workload.map_or_else(String::new, |name| name.kind.clone()),
            workload_name: workload.map_or_else(String::new, |name| name.name.clone()),
            from: node(step.from),
            to: node(step.to),
            effects: effects
                .map(|effect| self.effect(world, plan, step, effect))
                .collect(),
        }
    }

    fn effect(
        &self,
        world: &ClusterState,
        plan: &Rebalanced,
        step: &Move,
        effect: &Effect,
    ) -> PlannedEffect {
        let rule = &plan.rules[effect.rule].rule;
        let names = &world.cluster.names;
        // Of several workloads that have it, that of the pod.
        let key = &world.cluster.class_of(step.pod).key;
        let own = self.workload_of.get(&(key.namespace, key.owner));
        let has_it = |index: &&usize| self.workloads(rule).contains(index);
        let workload = match own.filter(has_it) {
            Some(&own) => Some(&world.workloads[own].name),
            None => self.workload(world, rule),
        };
        let count = |count: Count| domain_count(names, count);
        PlannedEffect {
            workload_kind: workload.map_or_else(String::new, |name| name.kind.clone()),
            workload_name: workload.map_or_else(String::new, |name| name.name.clone()),
            topology_key: names.text(rule.constraint.key).to_owned(),
            max_skew: rule.constraint.max_skew,
            hard: rule.constraint.hard,
            from: effect.from.map(count),
            to: effect.to.map(count),
            skew_before: effect.skew_before,
            skew_after: effect.skew_after,
        }
    }

    /// A constraint as each workload has it.
    fn constraints(
        &self,
        world: &ClusterState,
        outcome: &ConstraintChange,
    ) -> Vec<PlannedConstraint> {
        let all = self.workloads(&outcome.rule).into_iter();
        let named = all.map(|index| self.constraint(world, outcome, &world.workloads[index].name));
        named.collect()
    }

    fn constraint(
        &self,
        world: &ClusterState,
        outcome: &ConstraintChange,
        workload: &WorkloadName,
    ) -> PlannedConstraint {
        let names = &world.cluster.names;
        let constraint = &outcome.rule.constraint;
        let left = outcome.left.iter().map(|(why, &pods)| {
            let (reason, message) = reason(names, why, pods);
            LeftPods {
                pods,
                reason: reason.to_owned(),
                message,
            }
        });
        PlannedConstraint {
            namespace: workload.namespace.clone(),
            workload_kind: workload.kind.clone(),
            workload_name: workload.name.clone(),
            topology_key: names.text(constraint.key).to_owned(),
            max_skew: constraint.max_skew,
            selector: constraint.selector.text(names),
            min_domains: constraint.min_domains,
            hard: constraint.hard,
            is_default: outcome.rule.is_default,
            before: counts(names, &outcome.now),
            after: counts(names, &outcome.after),
            left: left.collect(),
        }
    }
}

const OTHER_SCHEDULER: &str = "otherScheduler";
const OFF_NODES: &str = "offNodes";
const NOT_ENFORCED: &str = "notEnforced";
const WITHOUT_DOMAIN: &str = "withoutDomain";

/// What is to be said of workloads that were asked about, beside their counts.
struct Notes<'a> {
    world: &'a ClusterState,
    names: &'a Names,
    asked: &'a Asked<'a>,
}

impl Notes<'_> {
    /// The notes, each with the index of its workload, by workload.
    fn of(&self, plan: &Rebalanced, settled: &Settled) -> Vec<(usize, WorkloadNote)> {
        let meant = || plan.rules.iter().filter(|outcome| outcome.is_meant);
        let looked_at: BTreeSet<usize> = meant()
            .flat_map(|outcome| self.names.workloads(&outcome.rule))
            .collect();
        // By namespace and controller: pods without one are workloads of their own, and share their constraints.
        let enforced: HashSet<(Symbol, Option<OwnerRef>)> = plan
            .rules
            .iter()
            .filter(|outcome| outcome.rule.constraint.hard)
            .flat_map(|outcome| outcome.rule.owners())
            .collect();
        let mut notes = self.of_schedulers(&enforced);
        for (&workload, &n_pods) in &settled.off_nodes {
            if looked_at.contains(&workload) {
                let message = match n_pods {
                    1 => "1 of its pods is on a node that is not there".to_owned(),
                    n => format!("{n} of its pods are on nodes that are not there"),
                };
                notes.push(self.note(workload, OFF_NODES, message));
            }
        }
        let is_without = |outcome: &&ConstraintChange| {
            outcome.rule.constraint.hard && outcome.after.counts.is_empty()
        };
        for outcome in meant().filter(is_without) {
            for workload in self.names.workloads(&outcome.rule) {
                if (self.asked.means)(&self.world.workloads[workload]) {
                    let message = self.why_without_domain(&outcome.rule, workload);
                    notes.push(self.note(workload, WITHOUT_DOMAIN, message));
                }
            }
        }
        notes.sort_by_key(|(workload, _)| *workload);
        notes
    }

    /// Workloads whose hard constraints nothing enforces that is simulated.
    fn of_schedulers(
        &self,
        enforced: &HashSet<(Symbol, Option<OwnerRef>)>,
    ) -> Vec<(usize, WorkloadNote)> {
        let mut notes: BTreeMap<usize, WorkloadNote> = BTreeMap::new();
        for entry in &self.world.pods {
            let spec = self.world.cluster.spec_of(entry.pod);
            let workload = entry.workload;
            let has_hard = spec.spread.iter().any(|constraint| constraint.hard);
            let is_known = notes.contains_key(&workload) || entry.is_leaving;
            if is_known || !has_hard || !(self.asked.means)(&self.world.workloads[workload]) {
                continue;
            }
            let name = spec.scheduler_name;
            let key = &self.world.cluster.class_of(entry.pod).key;
            let (reason, message) = match self.world.schedulers.has(name) {
                true if enforced.contains(&(key.namespace, key.owner)) => continue,
                true => (
                    NOT_ENFORCED,
                    "the scheduler's profile does not enforce its constraints".to_owned(),
                ),
                false => {
                    let name = printable_line(self.world.cluster.names.text(name)).into_owned();
                    (OTHER_SCHEDULER, format!("its schedulerName is {name}"))
                }
            };
            notes.insert(workload, self.note(workload, reason, message).1);
        }
        notes.into_iter().collect()
    }

    fn note(&self, workload: usize, reason: &str, message: String) -> (usize, WorkloadNote) {
        let name = &self.world.workloads[workload].name;
        let note = WorkloadNote {
            namespace: name.namespace.clone(),
            workload_kind: name.kind.clone(),
            workload_name: name.name.clone(),
            reason: reason.to_owned(),
            message,
        };
        (workload, note)
    }

    /// Why no node is a domain of a constraint.
    fn why_without_domain(&self, rule: &Rule, workload: usize) -> String {
        let cluster = &self.world.cluster;
        let key = rule.constraint.key;
        let label = printable_line(cluster.names.text(key)).into_owned();
        let rows = (0..cluster.node_rows()).map(NodeIdx::from);
        let nodes: Vec<_> = rows.filter_map(|node| cluster.node(node).fact()).collect();
        if nodes.iter().all(|node| node.labels.get(key).is_none()) {
            return format!("no node has the label {label}");
        }
        let pod = self.world.members[workload].first();
        let affinity = pod.map(|&pod| &cluster.spec_of(self.world.pods[pod].pod).node_affinity);
        let affinity = affinity.filter(|_| rule.constraint.node_affinity_policy == Policy::Honor);
        let mut allowed = nodes.iter().filter(|node| {
            affinity.is_none_or(|a| a.matches(node.name, &node.labels, &cluster.names))
        });
        let Some(first) = allowed.next() else {
            return "no node matches the nodeSelector and node affinity of its pods".to_owned();
        };
        let mut allowed = std::iter::once(first).chain(allowed);
        match allowed.any(|node| node.labels.get(key).is_some()) {
            false => format!(
                "no node that matches the nodeSelector and node affinity of its pods has the label {label}"
            ),
            true => format!(
                "no node with the label {label} counts: each lacks the label of another constraint of the pod, or has a taint that it does not tolerate"
            ),
        }
    }
}

fn domain_count(names: &Interner, count: Count) -> DomainCount {
    DomainCount {
        domain: names.text(count.domain).to_owned(),
        pods: count.pods,
    }
}

fn counts(names: &Interner, standing: &ConstraintState) -> ConstraintCounts {
    let counts = standing.counts.iter();
    let mut domains: Vec<DomainCount> = counts.map(|&count| domain_count(names, count)).collect();
    domains.sort_by(|a, b| natural_order(&a.domain, &b.domain));
    ConstraintCounts {
        domains,
        skew: standing.skew,
        moves: standing.moves,
    }
}

/// The code of a reason, and its sentence about a number of pods.
fn reason(names: &Interner, why: &Stays, pods: usize) -> (&'static str, String) {
    let is_one = pods == 1;
    let (has, is, its) = match is_one {
        true => ("has", "is", "its"),
        false => ("have", "are", "their"),
    };
    let name = |symbol: &Symbol| printable_line(names.text(*symbol)).into_owned();
    match why {
        Stays::LeftAlone => (
            "leftAlone",
            format!("{is} of a workload that is not to be evicted from"),
        ),
        Stays::Unsettled { reason, message } => (*reason, printable_line(message).into_owned()),
        Stays::MadeAfter(lower) => (
            "order",
            format!(
                "would not be made anew before {lower} is ready: {its} StatefulSet makes pods in order"
            ),
        ),
        Stays::Preempts => (
            "preempts",
            "would preempt pods of lower priority: a plan evicts none for another one".to_owned(),
        ),
        Stays::NoController => (
            "noController",
            format!("{has} no controller that makes another one"),
        ),
        Stays::OfNode => ("ofNode", format!("{is} made for {its} node")),
        Stays::RunsOnce => (
            "runsOnce",
            format!("would begin {its} work anew, as a pod of a Job"),
        ),
        Stays::LocalData => (
            "localData",
            format!("{has} an emptyDir, whose content would be lost (--delete-emptydir-data)"),
        ),
        Stays::Annotated(key) => ("annotated", format!("{has} the annotation {}", name(key))),
        Stays::Critical => ("critical", format!("{is} critical to the cluster")),
        Stays::OtherScheduler => (
            "otherScheduler",
            format!("{has} a scheduler that is not simulated"),
        ),
        Stays::Refused(Refusal::Budget(budget)) => (
            "budget",
            format!(
                "may not leave: {its} budget {} allows no eviction",
                name(budget)
            ),
        ),
        Stays::Refused(Refusal::NotCounted(budget)) => (
            "budget",
            format!(
                "may not leave: {its} budget {} has no status, and the Eviction API allows nothing before it has",
                name(budget)
            ),
        ),
        Stays::Refused(Refusal::Stale(budget)) => (
            "budget",
            format!(
                "may not leave: {its} budget {} was not counted since it changed, and the Eviction API allows nothing before",
                name(budget)
            ),
        ),
        Stays::Refused(Refusal::OtherZone(budget)) => (
            "budget",
            format!(
                "may not leave: {its} budget by zone {} allows no eviction while pods of another zone are away",
                name(budget)
            ),
        ),
        Stays::Refused(Refusal::SeveralBudgets) => (
            "severalBudgets",
            format!("{is} selected by several budgets, so the Eviction API refuses"),
        ),
        Stays::Pending(message) => (
            "pending",
            format!("would stay Pending: {}", printable_line(message)),
        ),
        Stays::ComesBackIn(domain) => (
            "comesBack",
            format!("would come back in {}, which helps nothing", name(domain)),
        ),
        Stays::HurtsOthers => (
            "hurtsOthers",
            "would make other constraints worse by as much".to_owned(),
        ),
        Stays::IsNew => ("isNew", format!("{is} new after this plan")),
        Stays::EvictionsMax => (
            "maxEvictions",
            "could be evicted beyond --max-evictions".to_owned(),
        ),
    }
}
