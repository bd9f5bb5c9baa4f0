//! From a cluster to a plan.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use strew_apiserver::Tables;
use strew_apiserver::object::{Name, Pod};
use strew_cluster::{NodeIdx, OwnerRef, PodIdx};
use strew_manifest::printable::printable_line;
use strew_model::{Interner, Symbol};
use strew_plan::rebalance::{
    ConstraintChange, ConstraintState, Count, Effect, Move, Rebalanced, Stays, Wanted,
};
use strew_plan::{Refusal, Rule, Transaction, rebalance};
use strew_view::cluster_state::ClusterState;
use strew_view::natural_order::natural_order;
use strew_view::workload::{Workload, WorkloadName};

use super::values::{
    ConstraintCounts, DomainCount, KIND, LeftPods, PlannedConstraint, PlannedEffect, PlannedStep,
    RebalancePlan, Sums,
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
    let kept = kept(world, tables, asked);
    let wanted = Wanted {
        soft: asked.soft,
        evictions_max: asked.evictions_max,
        only: Some(only),
    };
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let plan = {
        let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
        rebalance(&mut trial, wanted, &kept)
    };
    Some(names.plan(world, &plan, asked.soft))
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
fn kept(world: &mut ClusterState, tables: &Tables, asked: &Asked<'_>) -> BTreeMap<PodIdx, Stays> {
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
        let why = match annotated {
            Some((key, _)) => Some(Stays::Annotated(key)),
            None if is_job || is_once => Some(Stays::RunsOnce),
            None => (!asked.deletes_empty_dirs && has_data()).then_some(Stays::LocalData),
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

    fn plan(&self, world: &ClusterState, plan: &Rebalanced, soft: bool) -> RebalancePlan {
        let meant = || plan.rules.iter().filter(|outcome| outcome.is_meant);
        let having = |is_such: &dyn Fn(&ConstraintChange) -> bool| {
            let rules = meant().filter(|outcome| is_such(outcome));
            let of = rules.map(|outcome| self.workload(world, &outcome.rule));
            of.collect::<BTreeSet<_>>().len()
        };
        let all: BTreeSet<_> = meant().map(|o| self.workload(world, &o.rule)).collect();
        let is_told =
            |outcome: &&ConstraintChange| outcome.before.moves > 0 || outcome.after.moves > 0;
        let mut constraints: Vec<PlannedConstraint> = meant()
            .filter(is_told)
            .map(|outcome| self.constraint(world, outcome))
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
                workloads: all.len(),
                uneven_before: having(&|outcome| outcome.before.moves > 0),
                uneven_after: having(&|outcome| outcome.after.moves > 0),
                without_domain: having(&|outcome| {
                    outcome.rule.constraint.hard && outcome.after.counts.is_empty()
                }),
                other_scheduler: unplayed(world),
                moves_before: plan.before.hard,
                moves_after: plan.after.hard,
                pending: plan.after.pending,
                placed_first: plan.placed,
            },
            steps: plan
                .steps
                .iter()
                .map(|step| self.step(world, plan, step))
                .collect(),
            constraints,
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
                .map(|effect| self.effect(world, plan, effect))
                .collect(),
        }
    }

    fn effect(&self, world: &ClusterState, plan: &Rebalanced, effect: &Effect) -> PlannedEffect {
        let rule = &plan.rules[effect.rule].rule;
        let names = &world.cluster.names;
        let workload = self.workload(world, rule);
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

    fn constraint(&self, world: &ClusterState, outcome: &ConstraintChange) -> PlannedConstraint {
        let names = &world.cluster.names;
        let workload = self.workload(world, &outcome.rule);
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
            namespace: names.text(outcome.rule.namespace).to_owned(),
            workload_kind: workload.map_or_else(String::new, |name| name.kind.clone()),
            workload_name: workload.map_or_else(String::new, |name| name.name.clone()),
            topology_key: names.text(constraint.key).to_owned(),
            max_skew: constraint.max_skew,
            min_domains: constraint.min_domains,
            hard: constraint.hard,
            is_default: outcome.rule.is_default,
            before: counts(names, &outcome.before),
            after: counts(names, &outcome.after),
            left: left.collect(),
        }
    }
}

/// The number of workloads with a hard constraint whose scheduler is not simulated.
fn unplayed(world: &ClusterState) -> usize {
    let pods = world.pods.iter().filter(|entry| {
        let spec = world.cluster.spec_of(entry.pod);
        let is_played = world.schedulers.has(spec.scheduler_name);
        !is_played && spec.spread.iter().any(|constraint| constraint.hard)
    });
    pods.map(|entry| entry.workload)
        .collect::<BTreeSet<_>>()
        .len()
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
        Stays::NoController => (
            "noController",
            format!("{has} no controller that makes another one"),
        ),
        Stays::OfNode => ("ofNode", format!("{is} made for {its} node")),
        Stays::RunsOnce => (
            "runsOnce",
            "would begin its work anew, as a pod of a Job".to_owned(),
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
