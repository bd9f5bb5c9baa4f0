//! What a transaction says is what a cluster that was changed by hand says, pod by pod; and taken back, nothing is left
//! of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use strew_cluster::{
    Cluster, NodeFact, NodeIdx, OwnerKind, OwnerRef, PodFact, PodHistory, PodIdx, PodSpec, Policy,
    SpreadConstraint,
};
use strew_model::{Effect, Labels, Prng, Resources, Selector, Symbol, Taint, well_known};
use strew_plan::{Change, Fate, Transaction, Turned};
use strew_scheduler::preemption::{Budget, Budgets, NOT_STARTED_S, Nominations, Outcome, preempt};
use strew_scheduler::{Decision, Engine, Profile, TieRule, Unfit};

use crate::world::{RandomCluster, profile};

fn transaction<'a>(cluster: &'a mut Cluster, profile: &Profile) -> Transaction<'a> {
    Transaction::new(cluster, std::slice::from_ref(profile), Budgets::default())
}

fn nodes(cluster: &Cluster) -> Vec<NodeIdx> {
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    rows.filter(|&node| cluster.node(node).fact().is_some())
        .collect()
}

/// Decides for all pods that wait, each with a new engine, in the order of a queue that they entered as they left;
/// preempted pods come after those that are more important.
fn decide(
    work: &mut Cluster,
    cluster: &Cluster,
    gone: &mut Vec<PodIdx>,
    profile: &Profile,
) -> BTreeMap<PodIdx, Rc<Unfit>> {
    let nominations = Nominations::of(cluster);
    let mut unfit = BTreeMap::new();
    let mut decided: Vec<PodIdx> = Vec::new();
    loop {
        let waiting = work.pods().filter(|(_, row)| row.node.is_none());
        let mut waiting: Vec<PodIdx> = waiting.map(|(pod, _)| pod).collect();
        waiting.retain(|pod| {
            let is_tried = cluster.spec_of(*pod).gates.is_empty();
            let is_new = !gone.contains(pod) && !decided.contains(pod);
            is_new && is_tried && !cluster.class_of(*pod).key.terminating
        });
        let next = waiting.into_iter().min_by_key(|&pod| {
            let waited = cluster.pod(pod).node.is_none();
            (Reverse(work.spec_of(pod).priority), !waited, pod)
        });
        let Some(pod) = next else {
            return unfit;
        };
        decided.push(pod);
        let mut engine = Engine::new(profile.clone());
        let why = match engine.decide_with(work, pod, &nominations) {
            Decision::Place { node, .. } => {
                work.bind(pod, node);
                continue;
            }
            Decision::Unfit(why) => why,
        };
        unfit.insert(pod, Rc::clone(&why));
        let budgets = Budgets::default();
        let found = preempt(
            &mut engine,
            work,
            pod,
            &why,
            &budgets,
            &nominations,
            NOT_STARTED_S,
        );
        let Outcome::Preempt(eviction) = found.outcome else {
            continue;
        };
        for victim in eviction.victims {
            work.unbind(victim);
            decided.retain(|&decided| decided != victim);
            if work.class_of(victim).key.owner.is_none() {
                gone.push(victim);
            }
        }
        let mut engine = Engine::new(profile.clone());
        if let Decision::Place { node, .. } = engine.decide_with(work, pod, &nominations) {
            work.bind(pod, node);
        }
    }
}

/// Takes the nodes away by the cluster's own means, and decides with a new engine for each pod.
fn by_hand(cluster: &Cluster, lost: &[NodeIdx], profile: &Profile) -> Vec<Turned> {
    let mut work = cluster.clone();
    let mut gone = Vec::new();
    for &node in lost {
        for pod in cluster.node(node).pods() {
            work.unbind(*pod);
            if cluster.class_of(*pod).key.owner.is_none() {
                gone.push(*pod);
            }
        }
        work.remove_node(cluster.node(node).name());
    }
    let unfit = decide(&mut work, cluster, &mut gone, profile);
    let turned = |(pod, row): (PodIdx, &strew_cluster::PodRow)| {
        let name = |node| work.node(node).name();
        let from = cluster.pod(pod).node.map(|node| cluster.node(node).name());
        let to = match row.node.map(name) {
            _ if gone.contains(&pod) => Fate::Gone,
            Some(node) => Fate::On(node),
            None => Fate::Pending(unfit.get(&pod).cloned()),
        };
        (to == Fate::Gone || from != row.node.map(name)).then_some(Turned { pod, from, to })
    };
    work.pods().filter_map(turned).collect()
}

#[test]
fn nodes_that_are_lost_turn_what_they_turn_by_hand() {
    let (mut n_moved, mut n_pending, mut n_gone) = (0, 0, 0);
    for seed in 0..100 {
        let mut world = match seed % 2 {
            0 => RandomCluster::new(seed),
            _ => RandomCluster::crowded(seed, 30, 15),
        };
        (0..60).for_each(|_| world.step());
        let profile = Profile {
            // Draws start where the last search ended, which a new engine does not know.
            ties: TieRule::FirstName,
            ..profile(seed)
        };
        let cluster = &mut world.cluster;
        let there = nodes(cluster);
        let lost = &there[..there.len().min(1 + seed as usize % 3)];
        let expected = by_hand(cluster, lost, &profile);
        let mut trial = transaction(cluster, &profile);
        for &node in lost {
            trial.apply(&Change::LoseNode { node }, &[]);
        }
        trial.decide();
        let turned = trial.turned();
        assert_eq!(turned, expected, "seed {seed}");
        for turned in &turned {
            match turned.to {
                Fate::On(_) => n_moved += 1,
                Fate::Pending(_) => n_pending += 1,
                Fate::Gone => n_gone += 1,
                Fate::Kept(_) => unreachable!("no drain"),
            }
        }
        trial.cluster().audit().unwrap();
    }
    assert!(
        n_moved > 100 && n_pending > 100 && n_gone > 20,
        "{n_moved} moved, {n_pending} pending, {n_gone} gone"
    );
}

/// A drain is a loss that leaves the node, so nothing that left may come back to it.
#[test]
fn no_pod_goes_where_a_change_keeps_it_off() {
    let mut n_left = 0;
    for seed in 0..60 {
        let mut world = RandomCluster::new(seed);
        (0..60).for_each(|_| world.step());
        let profile = profile(seed);
        let base = &world.cluster.clone();
        let cluster = &mut world.cluster;
        let Some(&node) = nodes(cluster).first() else {
            continue;
        };
        let taint = Taint {
            key: well_known::ZONE,
            value: well_known::EMPTY,
            effect: Effect::NoExecute,
        };
        for change in [
            Change::DrainNode { node },
            Change::TaintNode { node, taint },
        ] {
            let mut trial = transaction(cluster, &profile);
            trial.apply(&change, &[]);
            trial.decide();
            let before = base.node(node).pods().len();
            let after = trial.cluster().node(node).pods();
            n_left += before - after.len();
            let turned = trial.turned();
            let name = base.node(node).name();
            for turned in turned.iter().filter(|t| t.to == Fate::On(name)) {
                let spec = base.spec_of(turned.pod);
                let tolerates_all = spec.tolerations.iter().any(|t| t.key.is_none());
                assert!(tolerates_all, "seed {seed}: {turned:?} after {change:?}");
            }
            trial.cluster().audit().unwrap();
        }
    }
    assert!(n_left > 50, "pods left: {n_left}");
}

/// A workload that asks for something else stands where pods that have always asked for it would stand.
#[test]
fn an_edited_workload_is_decided_as_if_it_had_always_been_so() {
    let mut n_edited = 0;
    for seed in 0..60 {
        let mut world = RandomCluster::new(seed);
        (0..60).for_each(|_| world.step());
        let profile = Profile {
            ties: TieRule::FirstName,
            ..profile(seed)
        };
        let base = &world.cluster.clone();
        let cluster = &mut world.cluster;
        let is_soft_or_hard = |pod: &PodIdx| !cluster.spec_of(*pod).spread.is_empty();
        let Some(first) = cluster.pods().map(|(pod, _)| pod).find(is_soft_or_hard) else {
            continue;
        };
        let class = cluster.pod(first).class;
        let pods = cluster.pods().filter(|(_, row)| row.class == class);
        let pods: Vec<PodIdx> = pods.map(|(pod, _)| pod).collect();
        let mut spec = cluster.spec_of(first).clone();
        spec.spread = spec.spread[1..].to_vec().into();
        let mut by_hand = cluster.clone();
        for &pod in &pods {
            by_hand.unbind(pod);
            by_hand.respec(pod, &spec);
        }
        decide(&mut by_hand, base, &mut Vec::new(), &profile);
        let mut trial = transaction(cluster, &profile);
        trial.apply(&Change::DropConstraint { constraint: 0 }, &pods);
        for &pod in &pods {
            assert_eq!(trial.cluster().spec_of(pod), &spec, "seed {seed}");
            assert_eq!(trial.cluster().pod(pod).node, None, "seed {seed}");
        }
        trial.decide();
        for &pod in &pods {
            let node = by_hand.pod(pod).node;
            assert_eq!(trial.cluster().pod(pod).node, node, "seed {seed}");
        }
        n_edited += pods.len();
    }
    assert!(n_edited > 40, "pods were edited: {n_edited}");
}

/// Some change of a world.
fn change(cluster: &Cluster, dice: &mut Prng, pods: &[PodIdx]) -> Change {
    let there = nodes(cluster);
    let node = *dice.pick(&there);
    let pod = *dice.pick(pods);
    let fact = cluster.node(node).fact().expect("a node has a fact");
    let value = fact.labels.get(well_known::ZONE);
    let value = value.unwrap_or(well_known::EMPTY);
    let taint = Taint {
        key: well_known::ZONE,
        value: well_known::EMPTY,
        effect: *dice.pick(&[Effect::NoExecute, Effect::NoSchedule]),
    };
    let constraint = 0;
    let key = *dice.pick(&[well_known::ZONE, well_known::HOSTNAME]);
    match dice.between(0, 21) {
        0 => Change::LoseNode { node },
        1 => Change::LoseDomain { key, value },
        2 => Change::DrainNode { node },
        3 => Change::Cordon { node },
        4 => Change::Uncordon { node },
        5 => Change::TaintNode { node, taint },
        6 => Change::UntaintNode {
            node,
            key: taint.key,
            effect: None,
        },
        7 => Change::UnlabelNode { node, key },
        8 => Change::MovePod { pod, to: node },
        9 => Change::LabelNode {
            node,
            key,
            value: cluster.node(*dice.pick(&there)).name(),
            is_topology: true,
        },
        10 => Change::Tolerate { taint, nodes: 1 },
        11 => Change::MaxSkew {
            constraint,
            from: 1,
            to: 5,
        },
        12 => Change::ScheduleAnyway { constraint },
        13 => Change::DeletePod { pod },
        14 => Change::AddNodeLike {
            like: node,
            place: None,
        },
        15 => Change::AddNodeInNewDomain { like: node, key },
        16 => Change::StartPod {
            node,
            namespace: well_known::DEFAULT_NAMESPACE,
            labels: Vec::new(),
        },
        17 => Change::DropConstraint { constraint },
        18 => Change::Shift { node },
        19 => Change::Scale {
            to: dice.index(pods.len() + 3),
        },
        20 => Change::AddConstraint {
            constraint: SpreadConstraint {
                max_skew: 1,
                key,
                hard: true,
                selector: Selector::of_labels(cluster.labels_of(pod).iter()),
                min_domains: None,
                node_affinity_policy: Policy::Honor,
                node_taints_policy: Policy::Ignore,
                match_label_keys: Box::default(),
            },
        },
        _ => {
            let name = cluster.names.get("web").expect("the name is known");
            Change::AllowDisruptions {
                namespace: well_known::DEFAULT_NAMESPACE,
                name,
                allowed: dice.between(0, 3) as i32,
            }
        }
    }
}

/// Pods of one class with constraints, or of any.
fn some_pods(cluster: &Cluster, dice: &mut Prng) -> Vec<PodIdx> {
    let all: Vec<PodIdx> = cluster.pods().map(|(pod, _)| pod).collect();
    let class = cluster.pod(*dice.pick(&all)).class;
    let alike = all
        .into_iter()
        .filter(|pod| cluster.pod(*pod).class == class);
    alike.collect()
}

#[test]
fn nothing_is_left_of_what_is_taken_back() {
    let mut n_steps = 0;
    for seed in 0..150 {
        let mut world = match seed % 3 {
            0 => RandomCluster::new(seed),
            1 => RandomCluster::crowded(seed, 30, 15),
            _ => RandomCluster::storing(seed),
        };
        world.set_node();
        world.set_pod(true);
        (0..60).for_each(|_| world.step());
        let profile = profile(seed);
        if nodes(&world.cluster).is_empty() || world.cluster.pods().next().is_none() {
            continue;
        }
        let budgets = world.budgets();
        let base = world.cluster.clone();
        let mut dice = Prng::new(seed);
        let profiles = std::slice::from_ref(&profile);
        let mut trial = Transaction::new(&mut world.cluster, profiles, budgets.clone());
        let mut marks = vec![(trial.savepoint(), trial.cluster().clone(), trial.turned())];
        for step in 0..30 {
            if nodes(trial.cluster()).is_empty() {
                break;
            }
            let pods = some_pods(trial.cluster(), &mut dice);
            let change = change(trial.cluster(), &mut dice, &pods);
            trial.apply(&change, &pods);
            if dice.chance(1, 2) {
                trial.decide();
            }
            let audit = trial.cluster().audit();
            assert_eq!(audit, Ok(()), "seed {seed}, step {step}: {change:?}");
            if dice.chance(1, 3) {
                marks.push((trial.savepoint(), trial.cluster().clone(), trial.turned()));
            }
            if dice.chance(1, 6) {
                n_steps += trial.n_steps();
                let (mark, before, turned) = &marks[dice.index(marks.len())];
                let mark = *mark;
                trial.undo_to(mark);
                let same = trial.cluster().same_facts(before);
                assert_eq!(same, Ok(()), "seed {seed}, step {step}");
                assert_eq!(&trial.turned(), turned, "seed {seed}, step {step}");
                marks.retain(|(other, ..)| *other <= mark);
                trial.cluster().audit().unwrap();
            }
        }
        n_steps += trial.n_steps();
        drop(trial);
        assert_eq!(world.cluster.same_facts(&base), Ok(()), "seed {seed}");
        world.cluster.audit().unwrap();

        // And decisions are those of before.
        let decided = |cluster: &mut Cluster| {
            let mut trial = Transaction::new(cluster, profiles, budgets.clone());
            let node = nodes(trial.cluster())[0];
            trial.apply(&Change::DrainNode { node }, &[]);
            trial.decide();
            trial.turned()
        };
        let expected = decided(&mut base.clone());
        assert_eq!(decided(&mut world.cluster), expected, "seed {seed}");
    }
    assert!(n_steps > 5_000, "{n_steps} steps were taken back");
}

/// Two zones are drained while there is no room for what leaves them.
#[test]
fn a_budget_by_zone_keeps_the_second_zone_until_the_first_is_whole() {
    let kept = |zone: Option<Symbol>| {
        let mut cluster = Cluster::new();
        let app = cluster.names.intern("app");
        let web = cluster.names.intern("web");
        for (name, zone) in [("n0", "a"), ("n1", "b")] {
            let (name, zone) = (cluster.names.intern(name), cluster.names.intern(zone));
            cluster.set_node(NodeFact {
                name,
                labels: Labels::new(vec![(well_known::HOSTNAME, name), (well_known::ZONE, zone)]),
                taints: Box::default(),
                unschedulable: false,
                allocatable: Resources::of(2_000, 0),
                pods_max: 110,
                images: Box::default(),
            });
        }
        for number in 0..4 {
            let node = cluster.names.intern(["n0", "n1"][number % 2]);
            cluster.set_pod(PodFact {
                uid: number.to_string().into(),
                name: format!("web-{number}").into(),
                namespace: well_known::DEFAULT_NAMESPACE,
                labels: Labels::new(vec![(app, web)]),
                owner: Some(OwnerRef {
                    kind: OwnerKind::ReplicaSet,
                    name: web,
                }),
                terminating: false,
                node: Some(node),
                spec: PodSpec {
                    requests: Resources::of(1_000, 0),
                    ..PodSpec::default()
                },
                history: PodHistory::default(),
            });
        }
        let mut budgets = Budgets::default();
        let budget = Budget {
            selector: Selector::of_labels([(app, web)]),
            counted: true,
            disruptions_allowed: 4,
            zone,
            disrupted: BTreeSet::new(),
        };
        budgets.set(well_known::DEFAULT_NAMESPACE, web, Some(budget));
        let profile = profile(0);
        let profiles = std::slice::from_ref(&profile);
        let all = nodes(&cluster);
        let mut trial = Transaction::new(&mut cluster, profiles, budgets);
        for node in all {
            trial.apply(&Change::DrainNode { node }, &[]);
        }
        trial.decide();
        let fates = trial.turned().into_iter().map(|turned| turned.to);
        fates.filter(|fate| matches!(fate, Fate::Kept(_))).count()
    };
    assert_eq!(kept(None), 0);
    assert_eq!(kept(Some(well_known::ZONE)), 2);
    assert_eq!(kept(Some(well_known::HOSTNAME)), 2);
}

/// A large cluster: of each change what it touches is done, and no more.
#[test]
fn a_trial_costs_what_it_touches() {
    const NODES: usize = 1_000;
    const PODS: usize = 20_000;
    let mut cluster = Cluster::new();
    let node = |cluster: &mut Cluster, number: usize| {
        let name = cluster.names.intern(&format!("n{number}"));
        let zone = cluster.names.intern(["a", "b", "c"][number % 3]);
        let labels = vec![(well_known::HOSTNAME, name), (well_known::ZONE, zone)];
        cluster.set_node(NodeFact {
            name,
            labels: Labels::new(labels),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(64_000, 0),
            pods_max: 110,
            images: Box::default(),
        })
    };
    for number in 0..NODES {
        node(&mut cluster, number);
    }
    let app = cluster.names.intern("app");
    for number in 0..PODS {
        let owner = cluster.names.intern(&format!("web-{}", number / 20));
        let uid = format!("p{number}");
        let node = cluster.names.get(&format!("n{}", number % NODES));
        cluster.set_pod(PodFact {
            uid: uid.as_str().into(),
            name: uid.into(),
            namespace: well_known::DEFAULT_NAMESPACE,
            labels: Labels::new(vec![(app, owner)]),
            owner: Some(OwnerRef {
                kind: OwnerKind::ReplicaSet,
                name: owner,
            }),
            terminating: false,
            node,
            spec: PodSpec::default(),
            history: PodHistory::default(),
        });
    }
    let base = cluster.clone();
    let profile = Profile::default();
    let mut trial = transaction(&mut cluster, &profile);
    let start = trial.savepoint();
    for node in nodes(&base) {
        trial.apply(&Change::LoseNode { node }, &[]);
        trial.decide();
        // One for the node; of each of its 20 pods: it leaves and is noted, it is bound and noted.
        assert!(trial.n_steps() <= 1 + 20 * 4, "{} steps", trial.n_steps());
        assert_eq!(trial.turned().len(), 20);
        trial.undo_to(start);
        assert_eq!(trial.n_steps(), 0);
    }
    drop(trial);
    cluster.same_facts(&base).unwrap();
}

/// The comparison that the tests above rely on sees what putting back by hand does not restore.
#[test]
fn what_is_put_back_by_hand_stands_elsewhere() {
    let (mut n_orders, mut n_pods) = (0, 0);
    for seed in 0..30 {
        let mut world = RandomCluster::new(seed);
        (0..60).for_each(|_| world.step());
        let base = world.cluster.clone();
        for node in nodes(&base) {
            let mut work = base.clone();
            let fact = base.node(node).fact().unwrap().clone();
            let pods = base.node(node).pods();
            if pods.is_empty() {
                work.remove_node(fact.name);
                work.set_node(fact);
                n_orders += usize::from(work.same_facts(&base).is_err());
            } else {
                work.unbind(pods[0]);
                work.bind(pods[0], node);
                let same = work.same_facts(&base);
                assert_eq!(same.is_ok(), pods.len() == 1, "seed {seed}");
                n_pods += usize::from(same.is_err());
            }
        }
    }
    assert!(n_orders > 10 && n_pods > 10, "{n_orders}, {n_pods}");
}
