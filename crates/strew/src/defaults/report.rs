//! From a cluster to the report.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::anyhow;
use strew_apiserver::Tables;
use strew_apiserver::object::Name;
use strew_cluster::{Cluster, OwnerRef, PodIdx};
use strew_manifest::printable::printable_line;
use strew_model::{Interner, Selector, Symbol};
use strew_plan::rebalance::{Outcome, Wanted};
use strew_plan::{Change, Fate as Outcomes, Transaction, rebalance};
use strew_suite::report::API_VERSION;
use strew_suite::shown::Choice;
use strew_view::moment::{self, Frame, Moment};
use strew_view::natural_order::natural_order;
use strew_view::world::World;
use strew_wire::default_policy::admission::{Admission, reason};
use strew_wire::default_policy::expressions::WITHOUT_CONSTRAINTS;

use super::admitted::{self, Fate, Scope};
use super::given::Given;
use super::values::{
    DefaultCounts, DefaultsReport, DefaultsSums, DomainPods, Effect, KIND, WorkloadDefaults,
};
use crate::context::Context;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::scenario::{Life, When};

/// What is asked for.
pub(super) struct Asked {
    pub(super) scope: Scope,
    /// The workloads to report on.
    pub(super) choice: Choice,
}

/// The report on the cluster of the files.
///
/// # Errors
/// No pod is on a node, no workload is one of the chosen ones, or an expression has no result.
pub(super) fn of(
    life: &Life,
    given: &Given,
    asked: &Asked,
    context: &Context,
) -> Result<DefaultsReport, Failure> {
    let progress = Progress::new(context.quiet);
    let mut made = None;
    life.look(When::Start, &progress, &mut |seen, frame| {
        made = Some(reported(seen.moment, frame, given, asked));
    })?;
    progress.finish();
    made.unwrap_or_else(|| Err(Failure::input(anyhow!("there is no cluster in the input"))))
}

fn reported(
    moment: Moment<'_>,
    frame: &mut Frame,
    given: &Given,
    asked: &Asked,
) -> Result<DefaultsReport, Failure> {
    let fates = admitted::of(moment.tables, &given.defaults, &asked.scope)?;
    let tables = admitted::changed(moment.tables, &fates);
    let mut with = world(moment, &tables, frame);
    if with.cluster.pods().all(|(_, row)| row.node.is_none()) {
        let error = anyhow!("no pod is on a node in the input, so there is nothing to report on");
        let hint = "a dump has pods on nodes: kubectl get all,nodes,namespaces -A -o json";
        return Err(Failure::input(error).with_hint(hint));
    }
    asked.choice.check(&with.workloads)?;
    let mut workloads = verdicts(&with, &fates, &asked.choice);
    let changed: Vec<usize> = { workloads.iter() }
        .filter(|(_, verdict)| verdict.effect == Effect::Changed)
        .map(|(index, _)| *index)
        .collect();
    count(&mut with, &changed, &mut workloads);
    let is_hard = |index: &usize| workloads[index].constraints.iter().any(|c| c.hard);
    // A soft constraint keeps no pod Pending.
    let hard: Vec<usize> = changed.into_iter().filter(is_hard).collect();
    if !hard.is_empty() {
        let mut without = world(moment, moment.tables, frame);
        for index in hard {
            let stuck = pending(&mut with, index);
            if stuck.is_empty() {
                continue;
            }
            let n_before = pending(&mut without, index).len();
            if let Some(workload) = workloads.get_mut(&index) {
                workload.pending = stuck.len().saturating_sub(n_before);
                let message = stuck.into_iter().next().filter(|m| !m.is_empty());
                workload.message = message.filter(|_| workload.pending > 0);
            }
        }
    }
    Ok(summed(workloads))
}

fn world(moment: Moment<'_>, tables: &Tables, frame: &mut Frame) -> World {
    moment::world(Moment { tables, ..moment }, frame).0
}

/// What becomes of each chosen workload with pods, by its index.
fn verdicts(
    world: &World,
    fates: &HashMap<Name, Fate>,
    choice: &Choice,
) -> BTreeMap<usize, WorkloadDefaults> {
    let mut verdicts: BTreeMap<usize, WorkloadDefaults> = BTreeMap::new();
    for entry in world.pods.iter().filter(|entry| !entry.is_leaving) {
        let workload = &world.workloads[entry.workload];
        if !choice.means(workload) {
            continue;
        }
        let name = Name::new(entry.namespace.clone(), entry.name.clone());
        let (effect, policy, why) = match fates.get(&name) {
            Some(Fate::Asked(Admission::Constrained { policy, .. })) => {
                (Effect::Changed, Some((*policy).to_owned()), None)
            }
            Some(Fate::Asked(Admission::Untouched(WITHOUT_CONSTRAINTS))) => {
                (Effect::Own, None, Some(reason(WITHOUT_CONSTRAINTS)))
            }
            Some(Fate::Asked(Admission::Untouched(condition))) => {
                (Effect::Untouched, None, Some(reason(condition)))
            }
            Some(Fate::Applied) => {
                let why = "the policies have added these constraints already";
                (Effect::Applied, None, Some(why))
            }
            Some(Fate::OutOfScope) | None => {
                let why = "its namespace, or its label, is left out";
                (Effect::Untouched, None, Some(why))
            }
        };
        let verdict = verdicts
            .entry(entry.workload)
            .or_insert_with(|| WorkloadDefaults {
                namespace: workload.name.namespace.clone(),
                kind: workload.name.kind.clone(),
                name: workload.name.name.clone(),
                pods: 0,
                effect,
                policy: policy.clone(),
                reason: why.map(str::to_owned),
                constraints: Vec::new(),
                uneven: false,
                pending: 0,
                message: None,
                counted_otherwise: false,
            });
        verdict.pods += 1;
        // One pod that changes changes its workload.
        if effect < verdict.effect {
            verdict.effect = effect;
            verdict.policy = policy;
            verdict.reason = why.map(str::to_owned);
        }
    }
    verdicts
}

/// Adds the constraints of the changed workloads with their counts.
fn count(world: &mut World, changed: &[usize], workloads: &mut BTreeMap<usize, WorkloadDefaults>) {
    let mut of: HashMap<(Symbol, Option<OwnerRef>), (usize, PodIdx)> = HashMap::new();
    for entry in &world.pods {
        if changed.contains(&entry.workload) {
            let key = &world.cluster.class_of(entry.pod).key;
            let first = (entry.workload, entry.pod);
            of.entry((key.namespace, key.owner)).or_insert(first);
        }
    }
    let only: HashSet<_> = of.keys().copied().collect();
    let wanted = Wanted {
        soft: true,
        evictions_max: 0,
        only: Some(only),
    };
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
    // Without an eviction it only counts.
    let counted = rebalance(&mut trial, wanted, &BTreeMap::new());
    drop(trial);
    for outcome in counted.rules.iter().filter(|outcome| outcome.is_meant) {
        let rule = &outcome.rule;
        let Some(&(index, pod)) = of.get(&(rule.namespace, rule.owner)) else {
            continue;
        };
        let Some(workload) = workloads.get_mut(&index) else {
            continue;
        };
        let counts = counts(outcome, &world.cluster.names);
        workload.uneven |= counts.moves > 0;
        workload.constraints.push(counts);
        workload.counted_otherwise |=
            is_counted_otherwise(&world.cluster, &rule.constraint.selector, pod);
    }
}

fn counts(outcome: &Outcome, names: &Interner) -> DefaultCounts {
    let constraint = &outcome.rule.constraint;
    let domains = outcome.before.counts.iter().map(|count| DomainPods {
        domain: names.text(count.domain).to_owned(),
        pods: count.pods,
    });
    let mut domains: Vec<DomainPods> = domains.collect();
    domains.sort_by(|a, b| natural_order(&a.domain, &b.domain));
    DefaultCounts {
        topology_key: names.text(constraint.key).to_owned(),
        max_skew: constraint.max_skew,
        hard: constraint.hard,
        selector: constraint.selector.text(names),
        domains,
        skew: outcome.before.skew,
        moves: outcome.before.moves,
    }
}

/// Whether the selector that kube-scheduler deduces for a pod matches other pods of its namespace than this one.
fn is_counted_otherwise(cluster: &Cluster, selector: &Selector, pod: PodIdx) -> bool {
    let key = &cluster.class_of(pod).key;
    let labels = cluster.labels_of(pod);
    let deduced = cluster.owners().deduce(key.namespace, labels, key.owner);
    let mut classes = cluster.tables().populated();
    classes.any(|(_, class)| {
        let labels = cluster.tables().labels(class.key.labels);
        let counts = class.key.namespace == key.namespace && !class.key.terminating;
        counts && selector.matches(labels) != deduced.matches(labels)
    })
}

/// The messages about the pods that stay Pending if all of a workload are created again, and of those that leave for
/// them.
fn pending(world: &mut World, workload: usize) -> Vec<String> {
    let members = world.members[workload].iter();
    let pods: Vec<PodIdx> = members.map(|&entry| world.pods[entry].pod).collect();
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
    for pod in pods {
        if trial.cluster().pod(pod).node.is_some() {
            trial.apply(&Change::DeletePod { pod }, &[]);
        }
    }
    trial.decide();
    let cluster = trial.cluster();
    let message = |fate| match fate {
        Outcomes::Pending(unfit) => {
            let text = unfit.map(|unfit| unfit.message(cluster.nodes_present(), &cluster.names));
            Some(printable_line(&text.unwrap_or_default()).into_owned())
        }
        Outcomes::On(_) | Outcomes::Gone | Outcomes::Kept(_) => None,
    };
    let turned = trial.turned().into_iter();
    turned.filter_map(|turned| message(turned.to)).collect()
}

fn summed(workloads: BTreeMap<usize, WorkloadDefaults>) -> DefaultsReport {
    let mut workloads: Vec<WorkloadDefaults> = workloads.into_values().collect();
    let is_bad = |w: &WorkloadDefaults| (w.pending == 0, !w.uneven);
    workloads.sort_by(|a, b| {
        let order = (a.effect, is_bad(a)).cmp(&(b.effect, is_bad(b)));
        order
            .then_with(|| natural_order(&a.namespace, &b.namespace))
            .then_with(|| natural_order(&a.name, &b.name))
    });
    let n = |is: &dyn Fn(&WorkloadDefaults) -> bool| workloads.iter().filter(|w| is(w)).count();
    let summary = DefaultsSums {
        workloads: workloads.len(),
        changed: n(&|w| w.effect == Effect::Changed),
        applied: n(&|w| w.effect == Effect::Applied),
        with_own: n(&|w| w.effect == Effect::Own),
        untouched: n(&|w| w.effect == Effect::Untouched),
        uneven: n(&|w| w.uneven),
        pending: n(&|w| w.pending > 0),
        counted_otherwise: n(&|w| w.counted_otherwise),
    };
    DefaultsReport {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        summary,
        workloads,
    }
}
