//! What a plan promises holds on random clusters: it falls with every step and ends, nothing more is Pending, budgets are
//! kept; and it needs few more evictions than the best sequence of evictions.

use std::collections::{BTreeMap, BTreeSet};

use strew_cluster::{
    ClassId, Cluster, NodeFact, NodeIdx, OwnerKind, OwnerRef, PodFact, PodHistory, PodIdx, PodSpec,
    Policy, SpreadConstraint,
};
use strew_model::{Labels, Prng, Resources, Selector, Symbol, well_known};
use strew_plan::rebalance::{Rebalanced, Wanted};
use strew_plan::{Measure, Transaction, rebalance};
use strew_scheduler::preemption::{Budget, Budgets};
use strew_scheduler::{Profile, TieRule};

use crate::world::{RandomCluster, profile};

const ALL: Wanted = Wanted {
    soft: false,
    evictions_max: usize::MAX,
    only: None,
};

/// Goes through the steps again, one by one, and looks at everything after each.
fn check(
    cluster: &mut Cluster,
    profile: &Profile,
    budgets: &Budgets,
    wanted: &Wanted,
    context: &str,
) -> Rebalanced {
    let base = cluster.clone();
    let profiles = std::slice::from_ref(profile);
    let mut trial = Transaction::new(cluster, profiles, budgets.clone());
    let plan = rebalance(&mut trial, wanted.clone(), &BTreeMap::new());
    let counted = |trial: &mut Transaction<'_>| Measure {
        soft: if wanted.soft { trial.measure().soft } else { 0 },
        ..trial.measure()
    };
    assert_eq!(counted(&mut trial), plan.after, "{context}");
    assert_eq!(trial.cluster().audit(), Ok(()), "{context}");
    drop(trial);
    assert_eq!(cluster.same_facts(&base), Ok(()), "{context}");

    let mut again = Transaction::new(cluster, profiles, budgets.clone());
    let n_before = again.n_waiting();
    again.place_waiting();
    let mut last = counted(&mut again);
    assert_eq!(last, plan.before, "{context}");
    assert!(last.pending <= n_before);
    let mut evicted = BTreeSet::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let context = format!("{context}, step {number}");
        assert!(evicted.insert(step.pod), "{context}: evicted once");
        assert_eq!(
            again.cluster().pod(step.pod).node,
            Some(step.from),
            "{context}"
        );
        assert_eq!(again.eviction_refused(step.pod), None, "{context}");
        let key = &again.cluster().class_of(step.pod).key;
        assert!(key.owner.is_some(), "{context}: a controller makes another");
        let rewound = again.savepoint();
        again.undo_to(rewound);
        assert_eq!(again.relocate(step.pod), Ok(step.to), "{context}");
        let now = counted(&mut again);
        assert_eq!(now, step.after, "{context}");
        // All were asked that might fit now.
        let asked = again.savepoint();
        again.place_waiting();
        assert_eq!(again.n_waiting(), now.pending, "{context}");
        again.undo_to(asked);
        assert!(now.pending <= last.pending, "{context}");
        assert!((now.hard, now.soft) < (last.hard, last.soft), "{context}");
        last = now;
    }
    assert_eq!(last, plan.after, "{context}");
    for outcome in &plan.rules {
        let is_kept = outcome.after.moves == 0;
        assert_eq!(outcome.left.is_empty(), is_kept, "{context}: {outcome:?}");
        let max_skew = i64::from(outcome.rule.constraint.max_skew);
        assert_eq!(outcome.after.skew <= max_skew, is_kept, "{context}");
    }
    drop(again);
    plan
}

#[test]
fn a_plan_falls_with_every_step_and_keeps_budgets() {
    let (mut n_steps, mut n_soft, mut n_left) = (0, 0, 0);
    for seed in 0..200 {
        let mut world = match seed % 3 {
            0 => RandomCluster::new(seed),
            1 => RandomCluster::crowded(seed, 30, 10),
            _ => RandomCluster::storing(seed),
        };
        world.set_node();
        world.set_pod(true);
        (0..60).for_each(|_| world.step());
        let profile = profile(seed);
        let budgets = world.budgets();
        let wanted = Wanted {
            soft: seed % 2 == 0,
            ..ALL
        };
        let context = format!("seed {seed}");
        let plan = check(&mut world.cluster, &profile, &budgets, &wanted, &context);
        n_steps += plan.steps.len();
        n_soft += plan.steps.iter().filter(|s| s.after.soft > 0).count();
        n_left += plan.rules.iter().filter(|r| r.after.moves > 0).count();
    }
    assert!(
        n_steps > 20 && n_soft > 5 && n_left > 100,
        "{n_steps} steps, {n_soft} beside soft ones, {n_left} left"
    );
}

/// A small cluster with pods where no scheduler would have put them.
fn uneven(seed: u64) -> (Cluster, Budgets) {
    let mut dice = Prng::new(seed);
    let mut cluster = Cluster::new();
    let names = &mut cluster.names;
    let mut budgets = Budgets::default();
    let zones = ["a", "b", "c"].map(|zone| names.intern(zone));
    let app = names.intern("app");
    let mut nodes: Vec<Symbol> = Vec::new();
    let n_nodes = dice.between(3, 6) as usize;
    for number in 0..n_nodes {
        let name = names.intern(&format!("n{number}"));
        nodes.push(name);
    }
    let cpu = dice.between(3, 8) as i64 * 1000;
    for (number, &name) in nodes.iter().enumerate() {
        let labels = vec![
            (well_known::HOSTNAME, name),
            (well_known::ZONE, zones[number % 3]),
        ];
        cluster.set_node(NodeFact {
            name,
            labels: Labels::new(labels),
            taints: Box::default(),
            unschedulable: dice.chance(1, 12),
            allocatable: Resources::of(cpu, 0),
            pods_max: 110,
            images: Box::default(),
        });
    }
    for workload in 0..dice.between(1, 3) {
        let owner = cluster.names.intern(&format!("web-{workload}"));
        let labels = Labels::new(vec![(app, owner)]);
        let mut keys = vec![well_known::ZONE, well_known::HOSTNAME];
        if dice.chance(2, 3) {
            keys.remove(dice.index(2));
        }
        let constraint = |&key: &Symbol| SpreadConstraint {
            max_skew: if dice.chance(1, 4) { 2 } else { 1 },
            key,
            hard: true,
            selector: Selector::of_labels(labels.iter()),
            min_domains: None,
            node_affinity_policy: Policy::Honor,
            node_taints_policy: Policy::Ignore,
            match_label_keys: Box::default(),
        };
        let spec = PodSpec {
            spread: keys.iter().map(constraint).collect(),
            requests: Resources::of(1000, 0),
            used: Resources::of(1000, 0),
            ..PodSpec::default()
        };
        for number in 0..dice.between(2, 6) {
            let uid = format!("web-{workload}-{number}");
            let node = (0..20).find_map(|_| {
                let name = *dice.pick(&nodes);
                let node = cluster.find_node(name)?;
                let is_free = cluster.node(node).used().cpu_milli + 1000 <= cpu;
                is_free.then_some(name)
            });
            cluster.set_pod(PodFact {
                uid: uid.as_str().into(),
                name: uid.into(),
                namespace: well_known::DEFAULT_NAMESPACE,
                labels: labels.clone(),
                owner: Some(OwnerRef {
                    kind: OwnerKind::ReplicaSet,
                    name: owner,
                }),
                terminating: false,
                node,
                spec: spec.clone(),
                history: PodHistory::default(),
            });
        }
        if dice.chance(1, 4) {
            let budget = Budget {
                selector: Selector::of_labels(labels.iter()),
                counted: true,
                disruptions_allowed: dice.between(0, 1) as i32,
                zone: None,
                disrupted: BTreeSet::new(),
            };
            budgets.set(well_known::DEFAULT_NAMESPACE, owner, Some(budget));
        }
    }
    (cluster, budgets)
}

/// A cluster as far as it decides: how many pods of each class are on each node, or wait.
type State = BTreeMap<(ClassId, Option<NodeIdx>), usize>;

fn state(cluster: &Cluster) -> State {
    let mut state = State::new();
    for (_, row) in cluster.pods() {
        *state.entry((row.class, row.node)).or_default() += 1;
    }
    state
}

/// Every sequence of evictions after which each new pod has a node at once is tried, the same pods more than once too.
struct Exact<'t, 'a> {
    trial: &'t mut Transaction<'a>,
    pods: Vec<PodIdx>,
    /// The hard sum that is to be reached.
    hard: u64,
    /// States from which so many further evictions do not reach it.
    in_vain: BTreeMap<State, usize>,
}

impl<'t, 'a> Exact<'t, 'a> {
    fn new(trial: &'t mut Transaction<'a>, hard: u64) -> Self {
        let pods = trial.cluster().pods().filter(|(_, row)| row.node.is_some());
        Self {
            pods: pods.map(|(pod, _)| pod).collect(),
            trial,
            hard,
            in_vain: BTreeMap::new(),
        }
    }

    /// The least number of evictions, at most `most`, after which the hard sum is small enough.
    fn fewest(&mut self, most: usize) -> Option<usize> {
        (0..=most).find(|&most| self.reaches(most))
    }

    fn reaches(&mut self, most: usize) -> bool {
        let now = self.trial.measure().hard;
        if now <= self.hard {
            return true;
        }
        // A pod has two constraints at most, and one move lowers the sum of each by one.
        if (now - self.hard).div_ceil(2) > most as u64 {
            return false;
        }
        let state = state(self.trial.cluster());
        if self.in_vain.get(&state).is_some_and(|tried| *tried >= most) {
            return false;
        }
        let mut tried = BTreeSet::new();
        for index in 0..self.pods.len() {
            let pod = self.pods[index];
            let row = self.trial.cluster().pod(pod);
            // Pods of one class on one node are alike.
            let is_new = tried.insert((row.class, row.node));
            if !is_new || self.trial.eviction_refused(pod).is_some() {
                continue;
            }
            let start = self.trial.savepoint();
            // Decisions of all trials are those of new engines.
            self.trial.undo_to(start);
            let from = self.trial.cluster().pod(pod).node;
            let moves = self.trial.relocate(pod).is_ok_and(|to| Some(to) != from);
            let reaches = moves && self.reaches(most - 1);
            self.trial.undo_to(start);
            if reaches {
                return true;
            }
        }
        self.in_vain.insert(state, most);
        false
    }
}

/// The longest plans that are compared: the search tries every sequence that is shorter.
const EXACT_MAX: usize = 6;

#[test]
fn a_plan_is_nearly_as_short_as_the_best_sequence_of_evictions() {
    let profile = Profile {
        ties: TieRule::FirstName,
        ..Profile::default()
    };
    let profiles = std::slice::from_ref(&profile);
    let (mut n_planned, mut n_best, mut n_worse_end, mut n_clusters) = (0, 0, 0, 0);
    let (mut n_longer, mut n_left_out) = (0, 0);
    for seed in 0..400 {
        let (mut cluster, budgets) = uneven(seed);
        let context = format!("seed {seed}");
        let plan = check(&mut cluster, &profile, &budgets, &ALL, &context);
        let planned = plan.steps.len();
        if plan.before.hard == 0 || planned > EXACT_MAX {
            n_left_out += usize::from(planned > EXACT_MAX);
            continue;
        }
        let mut trial = Transaction::new(&mut cluster, profiles, budgets);
        trial.place_waiting();
        let best = Exact::new(&mut trial, plan.after.hard).fewest(planned);
        let best = best.expect("the plan itself is such a sequence");
        n_clusters += 1;
        n_planned += planned;
        n_best += best;
        n_longer += usize::from(best < planned);
        if plan.after.hard > 0 {
            let most = planned.clamp(2, 4);
            let found = Exact::new(&mut trial, plan.after.hard - 1).fewest(most);
            n_worse_end += usize::from(found.is_some());
        }
    }
    println!(
        "{n_clusters} clusters ({n_left_out} with longer plans left out): {n_planned} planned, {n_best} at best, {n_longer} \
         plans too long, {n_worse_end} end worse"
    );
    assert!(n_clusters > 200, "{n_clusters} clusters");
    assert!(
        n_planned * 10 <= n_best * 11,
        "{n_planned} > 1.1 * {n_best}"
    );
    assert!(
        n_worse_end * 50 <= n_clusters,
        "{n_worse_end} of {n_clusters} end worse"
    );
}
