//! From a cluster to the report.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anyhow::anyhow;
use strew_apiserver::Tables;
use strew_apiserver::object::Name;
use strew_cluster::{Cluster, PodIdx, SpreadConstraint};
use strew_manifest::printable::printable_line;
use strew_model::{Interner, Selector, Symbol};
use strew_plan::rebalance::{ConstraintChange, Wanted};
use strew_plan::{Change, Fate as Outcomes, Transaction, rebalance};
use strew_suite::report::API_VERSION;
use strew_suite::shown::Choice;
use strew_view::cluster_state::{ClusterState, PodEntry};
use strew_view::moment::{self, Frame, Moment};
use strew_view::natural_order::natural_order;
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
    let changed: BTreeSet<usize> = { workloads.iter() }
        .filter(|(_, verdict)| verdict.effect == Effect::Changed)
        .map(|(index, _)| *index)
        .collect();
    count(&mut with, &changed, &mut workloads);
    let is_hard = |index: &usize| workloads[index].constraints.iter().any(|c| c.hard);
    // A soft constraint keeps no pod Pending.
    let hard: Vec<usize> = changed.into_iter().filter(is_hard).collect();
    if !hard.is_empty() {
        let stuck = pending(&mut with, &hard);
        let mut without = world(moment, moment.tables, frame);
        let before = pending(&mut without, &stuck.keys().copied().collect::<Vec<_>>());
        for (index, messages) in stuck {
            if let Some(workload) = workloads.get_mut(&index) {
                let n_before = before.get(&index).map_or(0, Vec::len);
                workload.pending = messages.len().saturating_sub(n_before);
                let message = messages.into_iter().next().filter(|m| !m.is_empty());
                workload.message = message.filter(|_| workload.pending > 0);
            }
        }
    }
    Ok(summed(workloads))
}

fn world(moment: Moment<'_>, tables: &Tables, frame: &mut Frame) -> ClusterState {
    moment::world(Moment { tables, ..moment }, frame).0
}

/// What becomes of each chosen workload with pods, by its index.
fn verdicts(
    world: &ClusterState,
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

/// A pod of a changed workload.
struct Example {
    workload: usize,
    pod: PodIdx,
    /// As in its spec.
    constraints: Vec<SpreadConstraint>,
}

/// One pod of each class of the changed workloads, by namespace.
fn examples(
    trial: &mut Transaction<'_>,
    pods: &[PodEntry],
    changed: &BTreeSet<usize>,
) -> HashMap<Symbol, Vec<Example>> {
    let mut seen = HashSet::new();
    let mut examples: HashMap<Symbol, Vec<Example>> = HashMap::new();
    for entry in pods.iter().filter(|e| changed.contains(&e.workload)) {
        let class = trial.cluster().pod(entry.pod).class;
        if seen.insert((entry.workload, class)) {
            let namespace = trial.cluster().class_of(entry.pod).key.namespace;
            examples.entry(namespace).or_default().push(Example {
                workload: entry.workload,
                pod: entry.pod,
                constraints: trial.constraints(entry.pod),
            });
        }
    }
    examples
}

impl Example {
    /// Whether a constraint as the scheduler reads it is one of the pod's. Several controllers may share it.
    fn has(&self, effective: &SpreadConstraint, cluster: &Cluster) -> bool {
        let limits = |c: &SpreadConstraint| (c.key, c.max_skew, c.hard, c.min_domains);
        let is_it = |own: &SpreadConstraint| {
            let counts_alike = match own.match_label_keys.is_empty() {
                true => own.selector == effective.selector,
                // Only pods of the revision have the values that were merged.
                false => effective.selector.matches(cluster.labels_of(self.pod)),
            };
            counts_alike && limits(own) == limits(effective)
        };
        self.constraints.iter().any(is_it)
    }
}

/// Adds the constraints of the changed workloads with their counts.
fn count(
    world: &mut ClusterState,
    changed: &BTreeSet<usize>,
    workloads: &mut BTreeMap<usize, WorkloadDefaults>,
) {
    let wanted = Wanted {
        soft: true,
        evictions_max: 0,
        only: Some(HashSet::new()),
    };
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
    let examples = examples(&mut trial, &world.pods, changed);
    // Without an eviction it only counts.
    let counted = rebalance(&mut trial, wanted, &BTreeMap::new());
    drop(trial);
    let cluster = &world.cluster;
    for outcome in &counted.rules {
        let rule = &outcome.rule;
        let in_namespace = examples.get(&rule.namespace).into_iter().flatten();
        let mut told = BTreeSet::new();
        for example in in_namespace.filter(|e| e.has(&rule.constraint, cluster)) {
            let Some(workload) = workloads.get_mut(&example.workload) else {
                continue;
            };
            if told.insert(example.workload) {
                let counts = counts(outcome, &cluster.names);
                workload.uneven |= counts.moves > 0;
                workload.constraints.push(counts);
            }
            let selector = &rule.constraint.selector;
            workload.counted_otherwise |= is_counted_otherwise(cluster, selector, example.pod);
        }
    }
}

fn counts(outcome: &ConstraintChange, names: &Interner) -> DefaultCounts {
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

/// By workload, the messages about the pods that stay Pending if all of it are created again, and about those that leave
/// for them. Each workload is tried alone; those without such pods are left out.
fn pending(world: &mut ClusterState, workloads: &[usize]) -> BTreeMap<usize, Vec<String>> {
    let profiles = world.schedulers.profiles();
    let budgets = world.schedulers.budgets.clone();
    let mut trial = Transaction::new(&mut world.cluster, &profiles, budgets);
    let start = trial.savepoint();
    let mut stuck = BTreeMap::new();
    for &workload in workloads {
        for &entry in &world.members[workload] {
            let pod = world.pods[entry].pod;
            if trial.cluster().pod(pod).node.is_some() {
                trial.apply(&Change::DeletePod { pod }, &[]);
            }
        }
        trial.decide();
        let turned = trial.turned().into_iter();
        let messages = turned.filter_map(|turned| message(turned.to, trial.cluster()));
        let messages: Vec<String> = messages.collect();
        if !messages.is_empty() {
            stuck.insert(workload, messages);
        }
        trial.undo_to(start);
    }
    stuck
}

/// The scheduler's message about a pod that is Pending.
fn message(fate: Outcomes, cluster: &Cluster) -> Option<String> {
    match fate {
        Outcomes::Pending(unfit) => {
            let text = unfit.map(|unfit| unfit.message(cluster.nodes_present(), &cluster.names));
            Some(printable_line(&text.unwrap_or_default()).into_owned())
        }
        Outcomes::On(_) | Outcomes::Gone | Outcomes::Kept(_) => None,
    }
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
        without_domains: n(&|w| w.without_domains().is_some()),
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
