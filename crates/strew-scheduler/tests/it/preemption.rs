//! Preemption against what really taking pods off does, in random worlds.

use std::collections::BTreeSet;
use std::rc::Rc;

use strew_cluster::{
    Cluster, NodeAffinity, NodeFact, NodeIdx, PodFact, PodHistory, PodIdx, PodSpec,
};
use strew_model::{FieldMatch, Labels, NodeSelectorTerm, Resources, Selector, well_known};
use strew_scheduler::preemption::{
    Budget, Budgets, Candidate, Nomination, Nominations, NotHelped, Outcome, Preemption, preempt,
};
use strew_scheduler::{Code, Decision, Engine, PluginId, PreemptionArgs, Profile, Unfit};

use crate::world::RandomCluster;

const NOW_S: i64 = 1000;

/// A pod that fits nowhere, and what preemption makes of it.
struct Case {
    world: RandomCluster,
    engine: Engine,
    pod: PodIdx,
    unfit: Rc<Unfit>,
    budgets: Budgets,
    nominations: Nominations,
    found: Preemption,
}

/// Calls `check` for every pod of some random worlds that fits nowhere.
fn each_case(mut check: impl FnMut(Case, &str)) {
    for seed in 0..400 {
        let mut world = RandomCluster::crowded(seed, 60, 5);
        let mut engine = Engine::new(Profile::default());
        let pod = world.pressing_pod();
        let nominations = Nominations::of(&world.cluster);
        let decision = engine.decide_with(&mut world.cluster, pod, &nominations);
        let Decision::Unfit(unfit) = decision else {
            continue;
        };
        let budgets = world.budgets();
        let before = engine.evaluate(&mut world.cluster, pod);
        let lists = pods_by_node(&world.cluster);
        let cluster = &mut world.cluster;
        let found = preempt(
            &mut engine,
            cluster,
            pod,
            &unfit,
            &budgets,
            &nominations,
            NOW_S,
        );
        let place = format!("seed {seed}: {found:?}");
        cluster
            .audit()
            .unwrap_or_else(|why| panic!("{place}: {why}"));
        assert_eq!(pods_by_node(cluster), lists, "{place}");
        let after = engine.evaluate(cluster, pod);
        assert_eq!(before.feasible, after.feasible, "{place}");
        assert_eq!(before.refused, after.refused, "{place}");
        let case = Case {
            world,
            engine,
            pod,
            unfit,
            budgets,
            nominations,
            found,
        };
        check(case, &place);
    }
}

fn pods_by_node(cluster: &Cluster) -> Vec<Vec<PodIdx>> {
    let rows = (0..cluster.node_rows()).map(NodeIdx::from);
    rows.map(|node| cluster.node(node).pods().to_vec())
        .collect()
}

impl Case {
    /// Whether counting and trying out differ for this pod (spec/scheduler §1.7, quirks): then really taking pods off
    /// shows something else.
    fn has_quirk(&mut self, node: NodeIdx) -> bool {
        let class = self.world.cluster.pod(self.pod).class;
        let plan = self.engine.plan(&mut self.world.cluster, class);
        let selectors = plan.spread.hard.iter();
        let mut selectors = selectors.map(|c| &plan.spread.effective.constraints[c.index].selector);
        let empty = selectors.any(|s| s.is_empty());
        let counts = !plan.spread.hard.is_empty();
        let cluster = &self.world.cluster;
        let mut pods = cluster.node(node).pods().iter();
        empty || (counts && pods.any(|&pod| cluster.class_of(pod).key.terminating))
    }

    /// Why a node refuses the pod after these pods were really taken off, nominated pods aside.
    fn refusal_without(
        &mut self,
        gone: &[PodIdx],
        node: NodeIdx,
    ) -> Option<strew_scheduler::Refusal> {
        let mut cluster = self.world.cluster.clone();
        gone.iter().for_each(|&pod| cluster.unbind(pod));
        let mut engine = Engine::new(Profile::default());
        let evaluation = engine.evaluate(&mut cluster, self.pod);
        match evaluation.refused {
            Some(Unfit::EveryNode(refusals)) => refusals.of(node).cloned(),
            _ => None,
        }
    }

    /// Whether a decision that knows the nominations would put the pod on the node after these pods were taken off.
    fn fits_without(&mut self, gone: &[PodIdx], node: NodeIdx) -> bool {
        let mut cluster = self.world.cluster.clone();
        gone.iter().for_each(|&pod| cluster.unbind(pod));
        let name = cluster.node(node).name();
        cluster.nominate(self.pod, Some(name));
        let mut engine = Engine::new(Profile::default());
        let decision = engine.decide_with(&mut cluster, self.pod, &self.nominations);
        // Its own nominated node is tried first: if it passes, it is taken.
        matches!(decision, Decision::Place { node: taken, total: None, .. } if taken == node)
    }

    fn lower(&self, node: NodeIdx) -> Vec<PodIdx> {
        let cluster = &self.world.cluster;
        let own = cluster.spec_of(self.pod).priority;
        let pods = cluster.node(node).pods().iter().copied();
        pods.filter(|&p| cluster.spec_of(p).priority < own)
            .collect()
    }
}

#[test]
fn victims_make_room_and_none_of_them_goes_in_vain() {
    let (mut checked, mut several) = (0, 0);
    each_case(|mut case, place| {
        for candidate in case.found.candidates.clone() {
            let Candidate { node, victims, .. } = &candidate;
            let lower = case.lower(*node);
            assert!(victims.iter().all(|v| lower.contains(v)), "{place}");
            if case.has_quirk(*node) {
                continue;
            }
            checked += 1;
            several += usize::from(victims.len() > 1);
            assert!(
                case.fits_without(victims, *node),
                "{candidate:?} of {place}"
            );
            for spared in victims {
                let rest: Vec<PodIdx> = victims.iter().copied().filter(|v| v != spared).collect();
                assert!(
                    !case.fits_without(&rest, *node),
                    "{spared:?} need not go: {candidate:?} of {place}"
                );
            }
        }
    });
    assert!(checked > 80 && several > 40, "{checked}, {several}");
}

#[test]
fn nodes_that_are_not_helped_refuse_the_pod_without_any_lower_pod_too() {
    let (mut no_victims, mut refused) = (0, 0);
    each_case(|mut case, place| {
        for (node, why) in case.found.not_helped.clone() {
            let lower = case.lower(node);
            match why {
                NotHelped::NoVictims => {
                    no_victims += 1;
                    assert!(lower.is_empty(), "{place}");
                }
                NotHelped::Refused(_) if case.has_quirk(node) => {}
                NotHelped::Refused(ours) => {
                    let refusal = case.refusal_without(&lower, node);
                    // Else it is the pods nominated there that are in the way.
                    let plain = refusal.as_ref() == Some(&ours);
                    refused += usize::from(plain);
                    assert!(
                        plain || !case.fits_without(&lower, node),
                        "{refusal:?} {place}"
                    );
                }
                NotHelped::FitsAsItIs => panic!("{place}"),
            }
        }
    });
    assert!(no_victims > 50 && refused > 20, "{no_victims}, {refused}");
}

#[test]
fn only_curable_nodes_are_tried_and_the_best_candidate_is_taken() {
    let mut taken = 0;
    each_case(|case, place| {
        let curable: BTreeSet<NodeIdx> = match &*case.unfit {
            Unfit::EveryNode(refusals) => {
                let curable = refusals
                    .iter()
                    .filter(|(_, r)| r.code == Code::Unschedulable);
                curable.map(|(node, _)| node).collect()
            }
            _ => BTreeSet::new(),
        };
        let found = &case.found;
        let tried = found.candidates.iter().map(|c| c.node);
        let tried: BTreeSet<NodeIdx> = tried
            .chain(found.not_helped.iter().map(|(n, _)| *n))
            .collect();
        let Outcome::Preempt(eviction) = &found.outcome else {
            assert!(found.candidates.is_empty(), "{place}");
            return;
        };
        taken += 1;
        assert_eq!(curable, tried, "{place}");
        assert_eq!(
            found.nomination(),
            Nomination::Set(eviction.node),
            "{place}"
        );
        assert_eq!(
            found.post_filter_message(&case.world.cluster),
            "",
            "{place}"
        );
        let fewest = found.candidates.iter().map(|c| c.violations).min();
        assert_eq!(fewest, Some(eviction.violations), "{place}");
        if case.budgets.is_empty() {
            assert_eq!(eviction.violations, 0, "{place}");
        }
        let cluster = &case.world.cluster;
        let own = cluster.spec_of(case.pod).priority;
        for &cleared in &eviction.cleared {
            let nominated = cluster.pod(cleared).history.nominated;
            assert_eq!(
                nominated,
                Some(cluster.node(eviction.node).name()),
                "{place}"
            );
            assert!(cluster.spec_of(cleared).priority < own, "{place}");
        }
    });
    assert!(taken > 80, "{taken}");
}

/// With the pods that are nominated to a node really put there, and without them: both must pass.
#[test]
fn nominated_pods_are_in_the_way_as_if_they_were_there() {
    let (mut refused_for_others, mut own_first) = (0, 0);
    for seed in 0..400 {
        let mut world = RandomCluster::crowded(seed, 15, 25);
        let mut engine = Engine::new(Profile::default());
        let pod = world.pressing_pod();
        let nominations = Nominations::of(&world.cluster);
        let plain = engine.evaluate(&mut world.cluster, pod);
        // What PreFilter skipped is not asked for nominated pods either; and counting differs from trying out.
        let cluster = &world.cluster;
        let skipped = plain.skipped_filters.contains(&PluginId::InterPodAffinity);
        let own = cluster.spec_of(pod).priority;
        let (mut passing, mut in_the_way) = (Vec::new(), 0);
        let mut crowd_quirk = false;
        for &node in &plain.feasible {
            let name = cluster.node(node).name();
            let there = cluster.pods().filter(|(other, row)| {
                row.node.is_none()
                    && *other != pod
                    && row.history.nominated == Some(name)
                    && cluster.spec_of(*other).priority >= own
            });
            let there: Vec<PodIdx> = there.map(|(other, _)| other).collect();
            crowd_quirk |= there.iter().any(|&p| cluster.class_of(p).key.terminating);
            let mut full = cluster.clone();
            there.iter().for_each(|&other| full.bind(other, node));
            let crowded = Engine::new(Profile::default()).evaluate(&mut full, pod);
            match crowded.feasible.contains(&node) {
                true => passing.push(node),
                false => in_the_way += 1,
            }
        }
        let class = cluster.pod(pod).class;
        let plan = engine.plan(&mut world.cluster, class);
        let (hard, constraints) = (&plan.spread.hard, &plan.spread.effective.constraints);
        let mut selectors = hard.iter().map(|c| &constraints[c.index].selector);
        let empty = selectors.any(|s| s.is_empty());
        if skipped || empty || (crowd_quirk && !hard.is_empty()) {
            continue;
        }
        refused_for_others += in_the_way;
        let wanted = world.cluster.pod(pod).history.nominated;
        let wanted = wanted.and_then(|name| world.cluster.find_node(name));
        match engine.decide_with(&mut world.cluster, pod, &nominations) {
            Decision::Place { node, feasible, .. } => {
                assert!(passing.contains(&node), "seed {seed}");
                match wanted.filter(|own| passing.contains(own)) {
                    Some(own) => {
                        own_first += 1;
                        assert_eq!((node, feasible), (own, 1), "seed {seed}");
                    }
                    None => assert_eq!(feasible, passing.len(), "seed {seed}"),
                }
            }
            Decision::Unfit(_) => assert_eq!(passing, [], "seed {seed}"),
        }
    }
    assert!(
        refused_for_others > 20 && own_first > 8,
        "{refused_for_others}, {own_first}"
    );
}

/// Pods on one node of room for three, each of a third: `name priority start`, `-` for not started, `*` terminating.
/// The incoming pod, of priority 10, needs a third of it too.
#[track_caller]
fn check(pods: &str, allowed: Option<i32>, args: Option<PreemptionArgs>, expected: &str) {
    let mut cluster = Cluster::new();
    let node = cluster.names.intern("n");
    let app = cluster.names.intern("app");
    let labels = Labels::new(vec![(app, app)]);
    cluster.set_node(NodeFact {
        name: node,
        labels: Labels::default(),
        taints: Box::default(),
        unschedulable: false,
        allocatable: Resources::of(3000, 0),
        pods_max: 100,
        images: Box::default(),
    });
    let mut add = |name: &str, priority: i32, start: &str, bound: bool| {
        let requests = Resources::of(1000, 0);
        cluster.set_pod(PodFact {
            uid: name.into(),
            name: name.into(),
            namespace: well_known::DEFAULT_NAMESPACE,
            labels: labels.clone(),
            owner: None,
            terminating: start.ends_with('*'),
            node: bound.then_some(node),
            spec: PodSpec {
                priority,
                used: requests.clone(),
                requests,
                ..PodSpec::default()
            },
            history: PodHistory {
                started_s: start.trim_end_matches('*').parse().ok(),
                ..PodHistory::default()
            },
        })
    };
    for line in pods.split(", ") {
        let words: Vec<&str> = line.split(' ').collect();
        add(
            words[0],
            words[1].parse().expect("a priority"),
            words[2],
            true,
        );
    }
    let pod = add("incoming", 10, "-", false);
    let mut budgets = Budgets::default();
    let budget = allowed.map(|disruptions_allowed| Budget {
        selector: Selector::of_labels([(app, app)]),
        counted: true,
        disruptions_allowed,
        zone: None,
        disrupted: BTreeSet::new(),
    });
    budgets.set(well_known::DEFAULT_NAMESPACE, app, budget);
    let mut engine = Engine::new(Profile {
        preemption: args,
        ..Profile::default()
    });
    let Decision::Unfit(unfit) = engine.decide(&mut cluster, pod) else {
        panic!("the pod fits");
    };
    let none = Nominations::new();
    let found = preempt(
        &mut engine,
        &mut cluster,
        pod,
        &unfit,
        &budgets,
        &none,
        NOW_S,
    );
    let answer = match &found.outcome {
        Outcome::Preempt(eviction) => {
            let names = |pods: &[PodIdx]| -> Vec<String> {
                let name = |&pod: &PodIdx| cluster.pod(pod).name.to_string();
                pods.iter().map(name).collect()
            };
            format!(
                "{} go, {} deleted, {} violations",
                names(&eviction.victims).join(" "),
                eviction.deleted.len(),
                eviction.violations
            )
        }
        _ => found.message(&unfit, &cluster),
    };
    assert_eq!(answer, expected);
}

#[test]
fn the_least_important_goes_and_a_budget_may_turn_that_around() {
    let args = Profile::default().preemption;
    // The later one; a lower priority; of pods that have not started the one that came first (a quirk).
    check(
        "a 1 5, b 1 7, c 1 6",
        None,
        args,
        "b go, 1 deleted, 0 violations",
    );
    check(
        "a 1 5, b 2 7, c 3 6",
        None,
        args,
        "a go, 1 deleted, 0 violations",
    );
    check(
        "a 1 -, b 1 -, c 1 -",
        None,
        args,
        "a go, 1 deleted, 0 violations",
    );
    check(
        "a 1 -, b 1 5, c 1 6",
        None,
        args,
        "a go, 1 deleted, 0 violations",
    );
    check(
        "a 1 5, b 1 5, c 1 5",
        None,
        args,
        "c go, 1 deleted, 0 violations",
    );
    // A budget of one covers the most important pod, which therefore goes (a quirk).
    check(
        "a 1 5, b 1 7, c 1 6",
        Some(1),
        args,
        "a go, 1 deleted, 0 violations",
    );
    check(
        "a 1 5, b 1 7, c 1 6",
        Some(0),
        args,
        "b go, 1 deleted, 1 violations",
    );
    check(
        "a 1 5, b 1 7, c 1 6",
        Some(3),
        args,
        "b go, 1 deleted, 0 violations",
    );
    // A pod that is terminating is not deleted again.
    check(
        "a 1 5, b 1 7*, c 1 6",
        None,
        args,
        "b go, 0 deleted, 0 violations",
    );
}

#[test]
fn the_whole_message_tells_what_preemption_found() {
    let first = "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate";
    check(
        "a 10 5, b 11 7, c 10 6",
        None,
        Profile::default().preemption,
        &format!(
            "{first}, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        ),
    );
    check("a 1 5, b 1 7, c 1 6", None, None, first);
}

/// Spec/scheduler §2.4, steps 3 and 4: the plugin that refused the nominated node is listed beside the one that
/// narrowed the search; the nominated node keeps its own reason.
#[test]
fn a_nominated_node_tried_in_vain_shows_in_the_reasons_of_the_others() {
    let mut cluster = Cluster::new();
    let nodes: Vec<_> = ["n1", "n2", "n3"].map(|n| cluster.names.intern(n)).into();
    for &name in &nodes {
        cluster.set_node(NodeFact {
            name,
            labels: Labels::default(),
            taints: Box::default(),
            unschedulable: false,
            allocatable: Resources::of(1000, 0),
            pods_max: 100,
            images: Box::default(),
        });
    }
    let by_name = NodeSelectorTerm::AllOf {
        expressions: Box::default(),
        fields: [FieldMatch {
            name: nodes[0],
            is_in: true,
        }]
        .into(),
    };
    let spec = PodSpec {
        requests: Resources::of(2000, 0),
        node_affinity: NodeAffinity {
            node_selector: Labels::default(),
            terms: Some([by_name].into()),
        },
        ..PodSpec::default()
    };
    let pod = cluster.set_pod(PodFact {
        uid: "p".into(),
        name: "p".into(),
        namespace: well_known::DEFAULT_NAMESPACE,
        labels: Labels::default(),
        owner: None,
        terminating: false,
        node: None,
        spec,
        history: PodHistory::default(),
    });
    let mut engine = Engine::new(Profile::default());
    let mut message = |nominated: Option<usize>| {
        cluster.nominate(pod, nominated.map(|i| nodes[i]));
        match engine.decide(&mut cluster, pod) {
            Decision::Unfit(unfit) => unfit.message(3, &cluster.names),
            placed => panic!("{placed:?}"),
        }
    };
    let narrowed = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
    let beside = "node(s) didn't satisfy plugin(s) [NodeAffinity NodeResourcesFit]";
    let elsewhere = "node(s) didn't match Pod's node affinity/selector";
    let cases = [
        (None, format!("1 Insufficient cpu, 2 {narrowed}")),
        (Some(0), format!("1 Insufficient cpu, 2 {beside}")),
        (
            Some(1),
            format!("1 Insufficient cpu, 1 {elsewhere}, 1 {narrowed}"),
        ),
    ];
    for (nominated, expected) in cases {
        let expected = format!("0/3 nodes are available: {expected}.");
        assert_eq!(message(nominated), expected, "{nominated:?}");
    }
}
