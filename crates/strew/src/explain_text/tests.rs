use snapbox::IntoData;
use strew_cluster::Cluster;
use strew_plan::suggest;
use strew_scheduler::preemption::Nominations;
use strew_scheduler::{Decision, Engine, Profile, Unfit};
use strew_view::explanation::PodExplanation;

use super::world::DrawnCluster;
use super::{Beside, TextStyle, explain_text};

const STYLE: TextStyle = TextStyle {
    width: 120,
    colour: false,
};

/// The text of the last pod's explanation with the default profile.
#[track_caller]
fn check(picture: &str, expected: snapbox::data::Inline) {
    check_with(Profile::default(), picture, expected);
}

#[track_caller]
fn check_with(profile: Profile, picture: &str, expected: snapbox::data::Inline) {
    let text = explained(profile, DrawnCluster::of(picture), STYLE);
    snapbox::assert_data_eq!(text, expected.raw());
}

fn explained(profile: Profile, mut world: DrawnCluster, style: TextStyle) -> String {
    let (cluster, pod) = (&mut world.cluster, world.pod);
    let before = placement(cluster);
    let mut engine = Engine::new(profile.clone());
    let explanation = strew_scheduler::explain(&mut engine, cluster, pod);
    assert_eq!(placement(cluster), before, "explaining moves no pod");
    cluster.audit().unwrap();

    // The explained decision is the real one.
    cluster.unbind(pod);
    match Engine::new(profile.clone()).decide(cluster, pod) {
        Decision::Place { node, feasible, .. } => {
            assert_eq!(explanation.standing.would_go(), Some(node));
            assert_eq!(explanation.feasible, feasible);
        }
        Decision::Unfit(unfit) => {
            assert_eq!(explanation.standing.would_go(), None);
            if let Unfit::EveryNode(refusals) = &*unfit {
                let firsts = explanation.refused.iter();
                let firsts: Vec<_> = firsts.map(|r| (r.node, &r.first)).collect();
                assert_eq!(firsts, refusals.iter().collect::<Vec<_>>());
            }
        }
    }
    if let Some((_, node)) = before.iter().find(|(p, _)| *p == pod) {
        cluster.bind(pod, *node);
    }

    let nominations = Nominations::new();
    let what_if = suggest(&profile, cluster, &nominations, &explanation);
    let wire = PodExplanation::of(&explanation, what_if.as_ref(), cluster);
    let json = serde_json::to_string(&wire).unwrap();
    let read: PodExplanation = serde_json::from_str(&json).unwrap();
    assert_eq!(read, wire, "the wire form survives being written and read");
    explain_text(&read, &Beside::default(), style)
}

fn placement(cluster: &Cluster) -> Vec<(strew_cluster::PodIdx, strew_cluster::NodeIdx)> {
    let pods = cluster.pods();
    pods.filter_map(|(p, row)| Some((p, row.node?))).collect()
}

#[test]
fn skew_and_the_zone_that_could_take_it_is_full() {
    check(
        "
        node a1 zone=a
        node a2 zone=a
        node b1 zone=b cpu=1
        pod web-1 on a1 app=web cpu=500m
        pod web-2 on a2 app=web cpu=500m
        pod db on b1 app=db cpu=900m
        pod web-3 app=web cpu=500m mem=256Mi spread:zone:1
        ",
        snapbox::str![[r#"
Pod default/web-3 is Pending: 2 of 3 nodes would exceed maxSkew 1 over topology.kubernetes.io/zone: b counts 0, and its only node has too little cpu; 1 has too little cpu (500m wanted, best 100m).
0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints.

Any one of these changes would place it (each was verified)
  - request cpu 100m instead of 500m                                                 -> b1
  - free 400m more cpu on node b1                                                    -> b1
  - add a node like b1 with topology.kubernetes.io/zone=b                            -> the new node
  - add a node like a1 with a new value of topology.kubernetes.io/zone               -> the new node
  - maxSkew: 3 instead of 1 in constraint 1 (topology.kubernetes.io/zone)            -> a1
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (topology.kubernetes.io/zone)  -> a1
  - delete pod default/db from node b1                                               -> b1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  minimum: 0, in b
  domain  pods  nodes  sum                                                               verdict
  a          2      2  2 there + 1 this pod - 0 in the emptiest domain = 3 > maxSkew 1   refused
  b          0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but 1 Insufficient cpu

2 of 3 nodes are refused by PodTopologySpread
  a1, a2: constraint 1: skew 3 > maxSkew 1 in "a"

1 of 3 nodes is refused by NodeResourcesFit
  b1: cpu: asks 500m, 100m free of 1

"#]],
    );
}

#[test]
fn a_zone_that_exists_only_through_unusable_nodes_holds_the_minimum_down() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        node c1 zone=c cordoned
        node c2 zone=c taint:dedicated=gpu:NoSchedule
        pod web-1 on a1 app=web
        pod web-2 on b1 app=web
        pod web-3 app=web spread:zone:1
        ",
        snapbox::str![[r#"
Pod default/web-3 is Pending: 2 of 4 nodes are open to it (1 is cordoned and 1 has the taint dedicated=gpu:NoSchedule, not tolerated); each of those 2 would exceed maxSkew 1 over topology.kubernetes.io/zone: c counts 0, and of its nodes 1 is cordoned and 1 has the taint dedicated=gpu:NoSchedule, not tolerated.
0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 node(s) didn't match pod topology spread constraints.

Any one of these changes would place it (each was verified)
  - uncordon node c1                                                                 -> c1
  - nodeTaintsPolicy: Honor in constraint 1 (topology.kubernetes.io/zone)            -> a1
  - tolerate the taint dedicated=gpu:NoSchedule (all that keeps the pod off 1 node)  -> c2
  - add a node like c1 with topology.kubernetes.io/zone=c                            -> the new node
  - add a node like a1 with a new value of topology.kubernetes.io/zone               -> the new node
  - maxSkew: 2 instead of 1 in constraint 1 (topology.kubernetes.io/zone)            -> a1
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (topology.kubernetes.io/zone)  -> a1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  ! 1 domain exists only through nodes that the pod cannot use, and holds the minimum down
  minimum: 0, in c
  domain  pods  nodes  sum                                                               verdict
  a          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
  b          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
  c          0      2  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) were unschedulable, 1 node(s) had untolerated
        taint(s)

2 of 4 nodes are refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "a"
  b1: constraint 1: skew 2 > maxSkew 1 in "b"

1 of 4 nodes is refused by NodeUnschedulable
  c1: cordoned

1 of 4 nodes is refused by TaintToleration
  c2: taint dedicated=gpu:NoSchedule

"#]],
    );
}

#[test]
fn too_few_domains() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        pod web-1 on a1 app=web
        pod web-2 on b1 app=web
        pod web-3 app=web spread:zone:1,min=3
        ",
        snapbox::str![[r#"
Pod default/web-3 is Pending: each of 2 nodes would exceed maxSkew 1 over topology.kubernetes.io/zone: minDomains is 3 and only 2 exist, so the minimum is 0.
0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints.

Any one of these changes would place it (each was verified)
  - add a node like a1 with a new value of topology.kubernetes.io/zone               -> the new node
  - minDomains: 2 instead of 3 in constraint 1 (topology.kubernetes.io/zone)         -> a1
  - maxSkew: 2 instead of 1 in constraint 1 (topology.kubernetes.io/zone)            -> a1
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (topology.kubernetes.io/zone)  -> a1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1, minDomains 3
  counts pods with app=web
  minimum: 0, since only 2 domains of minDomains 3 exist
  domain  pods  nodes  sum                                                           verdict
  a          1      1  1 there + 1 this pod - 0 (2 of minDomains 3) = 2 > maxSkew 1  refused
  b          1      1  1 there + 1 this pod - 0 (2 of minDomains 3) = 2 > maxSkew 1  refused

2 of 2 nodes are refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "a"
  b1: constraint 1: skew 2 > maxSkew 1 in "b"

"#]],
    );
}

#[test]
fn match_label_keys_and_a_selector_that_misses_the_pod() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        pod old-1 on a1 app=web rev=1
        pod new-1 on a1 app=web rev=2
        pod new-2 app=web rev=2 spread:zone:1,keys=rev spread:host:1,soft,select=app=db
        ",
        snapbox::str![[r#"
Pod default/new-2 is Pending, but fits now: decided now, it goes to b1.

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web,rev=2; matchLabelKeys merged rev=2
  minimum: 0, in b
  domain  pods  nodes  sum                                                               verdict
  a          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
  b          0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed

Constraint 2, soft: kubernetes.io/hostname, maxSkew 1
  counts pods with app=db
  ! the selector does not match the pod itself: it does not spread its own kind
  domain  pods  nodes
  a1         0      1
  b1         0      1

1 of 2 nodes is refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "a"

Scores
  b1 is the only node that takes it: it is not scored.

"#]],
    );
}

#[test]
fn selectors_that_count_nothing() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        pod web-1 on a1 app=web
        pod web-2 app=web spread:zone:1,select=none spread:host:1,select=all
        ",
        snapbox::str![[r#"
Pod default/web-2 is Pending, but fits now: decided now, it goes to a1.

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts no pod
  ! labelSelector is absent: no pod counts, the constraint refuses no node
  minimum: 0, in a, b
  domain  pods  nodes  sum                 verdict
  a          0      1  0 + 0 - 0 = 0 <= 1  allowed
  b          0      1  0 + 0 - 0 = 0 <= 1  allowed
  sum: pods there + this pod (if it counts) - minimum, against maxSkew

Constraint 2, hard: kubernetes.io/hostname, maxSkew 1
  counts no pod
  ! labelSelector is {}: it matches every pod, and yet none counts; the constraint refuses no node
  minimum: 0, in a1, b1
  domain  pods  nodes  sum                                                               verdict
  a1         0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed
  b1         0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed

Scores of the 2 nodes that take it
  node  total
  a1      400  <- taken
  b1      400
  the same for all: TaintToleration 100*3, NodeResourcesFit 100*1
  2 nodes share the best total: a1, b1; kube-scheduler 1.36 takes the first in its heap's order, not a random one

"#]],
    );
}

#[test]
fn a_label_changed_after_creation_makes_the_selector_contradict_itself() {
    let mut world = DrawnCluster::of(
        "
        node a1 zone=a
        pod web-1 app=web rev=1 spread:zone:1
        ",
    );
    // The API server merged rev=1 when the pod was created; then the label was changed.
    let rev = world.cluster.names.intern("rev");
    let (one, two) = (
        world.cluster.names.intern("1"),
        world.cluster.names.intern("2"),
    );
    let mut spec = world.cluster.spec_of(world.pod).clone();
    let merged = strew_model::Requirement::is_in(rev, vec![one]);
    spec.spread[0].selector = spec.spread[0].selector.and([merged]);
    spec.spread[0].match_label_keys = [rev].into();
    world.cluster.respec(world.pod, &spec);
    let labels = world.cluster.labels_of(world.pod).with([(rev, two)]);
    world.cluster.relabel(world.pod, &labels);
    let text = explained(Profile::default(), world, STYLE);
    snapbox::assert_data_eq!(text, snapbox::str![[r#"
Pod default/web-1 is Pending, but fits now: decided now, it goes to a1.

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web,rev=1,rev=2; matchLabelKeys merged rev=2
  ! the selector wants two different values of rev: it matches no pod, the constraint refuses no node (was the label
    changed after the pod was created?)
  minimum: 0, in a
  domain  pods  nodes  sum                 verdict
  a          0      1  0 + 0 - 0 = 0 <= 1  allowed
  sum: pods there + this pod (if it counts) - minimum, against maxSkew

Scores
  a1 is the only node that takes it: it is not scored.

"#]].raw());
}

#[test]
fn nodes_without_the_label() {
    check(
        "
        node a1 zone=a
        node n1
        node n2 taint:old=:NoSchedule
        pod web-1 on a1 app=web cpu=4
        pod web-2 app=web cpu=1 spread:zone:1
        ",
        snapbox::str![[r#"
Pod default/web-2 is Pending: 2 of 3 nodes are open to it (1 has the taint old:NoSchedule, not tolerated); 1 of those has too little cpu (1 wanted, best 0); 1 has no label topology.kubernetes.io/zone.
0/3 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints (missing required label), 1 node(s) had untolerated taint(s).

Any one of these changes would place it (each was verified)
  - label node n1 with its topology.kubernetes.io/zone (it takes the pod in "a")     -> n1
  - free 1 more cpu on node a1                                                       -> a1
  - add a node like a1 with topology.kubernetes.io/zone=a                            -> the new node
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (topology.kubernetes.io/zone)  -> n1
  - delete pod default/web-1 from node a1                                            -> a1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  minimum: 1, in a
  domain  pods  nodes  sum                                                               verdict
  a          1      1  1 there + 1 this pod - 1 in the emptiest domain = 1 <= maxSkew 1  allowed, but 1 Insufficient cpu
  2 nodes lack the label (refused): n1, n2

1 of 3 nodes is refused by NodeResourcesFit
  a1: cpu: asks 1, 0 free of 4

1 of 3 nodes is refused by PodTopologySpread
  n1: no label topology.kubernetes.io/zone

1 of 3 nodes is refused by TaintToleration
  n2: taint old:NoSchedule [also: no label topology.kubernetes.io/zone]

"#]],
    );
}

#[test]
fn no_node_has_the_label() {
    check(
        "
        node a1 zone=a
        pod web-1 app=web spread:rack:1
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: no node has the label rack of its spread constraint.
0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label).

Any one of these changes would place it (each was verified)
  - label node a1 with its rack (any value will do)           -> a1
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (rack)  -> a1

Constraint 1, hard: rack, maxSkew 1
  counts pods with app=web
  ! no node has this label: every node is refused
  minimum: 0, since no domain exists
  1 node lacks the label (refused): a1

1 of 1 node is refused by PodTopologySpread
  a1: no label rack

"#]],
    );
}

#[test]
fn two_hard_constraints() {
    check(
        "
        node a1 zone=a
        node b1 zone=b cordoned
        pod web-1 on a1 app=web
        pod web-2 app=web spread:zone:1 spread:host:1
        ",
        snapbox::str![[r#"
Pod default/web-2 is Pending: 1 of 2 nodes is open to it (1 is cordoned); it would exceed maxSkew 1 over topology.kubernetes.io/zone: b counts 0, and its only node is cordoned.
0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable.

Any one of these changes would place it (each was verified)
  - uncordon node b1                                                    -> b1
  - add a node like b1 with topology.kubernetes.io/zone=b               -> the new node
  - add a node like a1 with a new value of topology.kubernetes.io/zone  -> the new node

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  ! 1 domain exists only through nodes that the pod cannot use, and holds the minimum down
  minimum: 0, in b
  domain  pods  nodes  sum                                                               verdict
  a          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
      1 refused by another constraint
  b          0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) were unschedulable

Constraint 2, hard: kubernetes.io/hostname, maxSkew 1
  counts pods with app=web
  ! 1 domain exists only through nodes that the pod cannot use, and holds the minimum down
  minimum: 0, in b1
  domain  pods  nodes  sum                                                               verdict
  a1         1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
      1 refused by another constraint
  b1         0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) were unschedulable

1 of 2 nodes is refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "a"; constraint 2: skew 2 > maxSkew 1

1 of 2 nodes is refused by NodeUnschedulable
  b1: cordoned

"#]],
    );
}

#[test]
fn nothing_single_helps() {
    check(
        "
        node a1 cordoned taint:dedicated=db:NoSchedule taint:old=:NoExecute
        pod web-1 app=web cpu=5
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: the only node is cordoned.
0/1 nodes are available: 1 node(s) were unschedulable.

What would change it
  No single change helps. Every node has more than one thing against it; the fewest: a1 (cordoned, taint
    dedicated=db:NoSchedule, taint old:NoExecute, Insufficient cpu).

1 of 1 node is refused by NodeUnschedulable
  a1: cordoned [also: taint dedicated=db:NoSchedule, taint old:NoExecute, Insufficient cpu]

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn taints_and_cordons() {
    check(
        "
        node a1 taint:dedicated=db:NoSchedule
        node a2 taint:dedicated=db:NoSchedule
        node a3 taint:dedicated=gpu:NoExecute taint:soft=:PreferNoSchedule
        node a4 cordoned
        pod web-1 app=web
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: of 4 nodes, 2 have the taint dedicated=db:NoSchedule, not tolerated and 1 has the taint dedicated=gpu:NoExecute, not tolerated and 1 is cordoned.
0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) had untolerated taint(s).

Any one of these changes would place it (each was verified)
  - uncordon node a4                                                                 -> a4
  - tolerate the taint dedicated=db:NoSchedule (all that keeps the pod off 2 nodes)  -> a1
  - tolerate the taint dedicated=gpu:NoExecute (all that keeps the pod off 1 node)   -> a3
  - add a node like a4                                                               -> the new node

3 of 4 nodes are refused by TaintToleration
  a1, a2: taint dedicated=db:NoSchedule
  a3: taint dedicated=gpu:NoExecute

1 of 4 nodes is refused by NodeUnschedulable
  a4: cordoned

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn resources_with_their_numbers() {
    check(
        "
        node a1 cpu=4 mem=16393212Ki
        node a2 cpu=2 gpu=1
        node a3 pods=1
        pod big on a1 app=big cpu=3800m mem=10Gi prio:10
        pod small on a2 app=small cpu=100m gpu=1
        pod other on a3 app=other
        pod web-1 app=web cpu=500m mem=6Gi gpu=1
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: none of 3 nodes has 1 nvidia.com/gpu free (best 0).
0/3 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods, 3 Insufficient nvidia.com/gpu.

Any one of these changes would place it (each was verified)
  - free 1 more nvidia.com/gpu on node a2  -> a2
  - add a node like a2                     -> the new node
  - delete pod default/small from node a2  -> a2

3 of 3 nodes are refused by NodeResourcesFit
  nvidia.com/gpu: asks 1; 3 nodes have less: 0 free on all of them, at most 0 on a1
  a2: nvidia.com/gpu: asks 1, 0 free of 1
  a1: cpu: asks 500m, 200m free of 4; memory: asks 6Gi, 5.6Gi free of 15.6Gi; nvidia.com/gpu: asks 1, 0 free of 0
  a3: pods: asks 1, 0 free of 1; nvidia.com/gpu: asks 1, 0 free of 0

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn a_pod_for_which_every_node_is_too_small() {
    check(
        "
        node a1 cpu=4
        node a2 cpu=8
        pod web-1 app=web cpu=10
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: none of 2 nodes has 10 cpu, even when empty (the largest has 8).
0/2 nodes are available: 2 Insufficient cpu.

Any one of these changes would place it (each was verified)
  - request cpu 8 instead of 10                    -> a2
  - 2 more cpu on node a2, which has 8 cpu in all  -> a2

2 of 2 nodes are refused by NodeResourcesFit
  cpu: asks 10; 2 nodes have less: 12 free on all of them, at most 8 on a2
  a2: cpu: asks 10, 8 free of 8
  a1: cpu: asks 10, 4 free of 4

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn node_selectors_and_names() {
    check(
        "
        node a1 disk=hdd
        node a2
        node a3 disk=ssd cordoned
        pod web-1 app=web want:disk=ssd
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: 1 of 3 nodes has the labels it wants (disk=ssd); it is cordoned.
0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.

Any one of these changes would place it (each was verified)
  - uncordon node a3                      -> a3
  - label node a2 with disk=ssd           -> a2
  - add a node like a3                    -> the new node
  - drop disk=ssd from spec.nodeSelector  -> a1

2 of 3 nodes are refused by NodeAffinity
  a1: nodeSelector wants disk=ssd, the node has hdd
  a2: nodeSelector wants disk=ssd, the node has no such label

1 of 3 nodes is refused by NodeUnschedulable
  a3: cordoned

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
    check(
        "
        node a1 cordoned
        node a2
        pod web-1 app=web names:a1,gone
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: 1 of 2 nodes has the labels it wants; it is cordoned.
0/2 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) were unschedulable.

Any one of these changes would place it (each was verified)
  - uncordon node a1             -> a1
  - drop required node affinity  -> a2

1 of 2 nodes is refused by NodeUnschedulable
  a1: cordoned

1 of 2 nodes is refused by NodeAffinity
  a2: required node affinity names other nodes

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn host_ports() {
    check(
        "
        node a1
        node a2 cordoned
        pod lb on a1 app=lb port:80
        pod web-1 app=web port:80
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: 1 of 2 nodes is open to it (1 is cordoned); it has host port 80/TCP taken (such as pod default/lb).
0/2 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, 1 node(s) were unschedulable.

Any one of these changes would place it (each was verified)
  - uncordon node a2                    -> a2
  - add a node like a1                  -> the new node
  - delete pod default/lb from node a1  -> a1
  - drop host port 80                   -> a1

1 of 2 nodes is refused by NodePorts
  a1: host port 80/TCP is held by pod default/lb

1 of 2 nodes is refused by NodeUnschedulable
  a2: cordoned

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn pod_affinity() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        pod web-1 app=web affinity:zone:app=db
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: each of 2 nodes has no pod with app=db in the same topology.kubernetes.io/zone, which its podAffinity requires.
0/2 nodes are available: 2 node(s) didn't match pod affinity rules.

Any one of these changes would place it (each was verified)
  - start a pod with app=db in namespace default on node a1  -> a1
  - drop required podAffinity term 1                         -> a1

2 of 2 nodes are refused by InterPodAffinity
  a1, b1: required podAffinity term 1 (app=db) finds no pod in this topology.kubernetes.io/zone

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn anti_affinity_both_ways() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        pod web-1 on a1 app=web
        pod hermit on b1 app=hermit anti:zone:app=web
        pod web-2 app=web anti:host:app=web
        ",
        snapbox::str![[r#"
Pod default/web-2 is Pending: 1 of 2 nodes has a pod with app=web in the same kubernetes.io/hostname, which its podAntiAffinity forbids (such as pod default/web-1); 1 has a pod in the same topology.kubernetes.io/zone whose podAntiAffinity forbids it (such as pod default/hermit).
0/2 nodes are available: 1 node(s) didn't match pod anti-affinity rules, 1 node(s) didn't satisfy existing pods anti-affinity rules.

Any one of these changes would place it (each was verified)
  - add a node like a1 with topology.kubernetes.io/zone=a  -> the new node
  - delete pod default/web-1 from node a1                  -> a1
  - delete pod default/hermit from node b1                 -> b1
  - drop required podAntiAffinity term 1                   -> a1

2 of 2 nodes are refused by InterPodAffinity
  a1: required podAntiAffinity term 1 (app=web) finds pod default/web-1 in this kubernetes.io/hostname
  b1: pod default/hermit in this topology.kubernetes.io/zone will not have the pod around (required podAntiAffinity)

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn gates_claims_and_an_empty_cluster() {
    check(
        "
        node a1
        pod web-1 app=web gate:example.com/quota
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: its scheduling gates (example.com/quota). Without, it would go to a1.
waiting for scheduling gates: [example.com/quota]

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

Scores
  a1 is the only node that takes it: it is not scored.

"#]],
    );
    check(
        "
        node a1
        pod web-1 app=web claim:data
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: persistentvolumeclaim "data" not found.
0/1 nodes are available: persistentvolumeclaim "data" not found.

Any one of these changes would place it (each was verified)
  - without volume "data" (persistentvolumeclaim "data")  -> a1

VolumeRestrictions refuses the pod itself
  persistentvolumeclaim "data" not found

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
    check(
        "pod web-1 app=web cpu=500m mem=1Gi",
        snapbox::str![[r#"
Pod default/web-1 is Pending: there is no node.
no nodes available to schedule pods

Any one of these changes would place it (each was verified)
  - add a node with cpu 500m, memory 1Gi  -> the new node

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn a_placed_pod_with_the_scheduler_s_defaults() {
    check(
        "
        node a1 zone=a
        node a2 zone=a
        node b1 zone=b
        service web app=web
        replicaset web-5f app=web
        pod web-1 on a1 app=web cpu=500m mem=1Gi owner:web-5f
        pod web-2 on b1 app=web cpu=500m mem=1Gi owner:web-5f
        pod web-3 on a1 app=web cpu=500m mem=1Gi owner:web-5f
        ",
        snapbox::str![[r#"
Pod default/web-3 is on a1; placed anew, it would go to a2.
Successfully assigned default/web-3 to a1

Default constraint 1 (built into the scheduler), soft: kubernetes.io/hostname, maxSkew 3
  counts pods with app=web; deduced from Service web, ReplicaSet web-5f
  weight: ln(3 + 2) = 1.609 (3 nodes are scored)
  domain  pods  nodes
  a1         1      1
  a2         0      1
  b1         1      1

Default constraint 2 (built into the scheduler), soft: topology.kubernetes.io/zone, maxSkew 5
  counts pods with app=web; deduced from Service web, ReplicaSet web-5f
  weight: ln(2 + 2) = 1.386 (2 domains among the nodes that take the pod)
  domain  pods  nodes
  a          1      2
  b          1      1

Scores of the 3 nodes that take it
  node  total  Fit  Spread
  a2      662   87   100*2  <- taken
  a1      604   75    77*2  <- where it is
  b1      604   75    77*2
  the same for all: TaintToleration 100*3, NodeResourcesBalancedAllocation 75*1
  Spread before it is put on 0 to 100 (lower is better): pods * weight + (maxSkew - 1) each
    node  raw
    a2      7  a2: 0 * 1.609 + 2 = 2.00; a: 1 * 1.386 + 4 = 5.39
    a1      9  a1: 1 * 1.609 + 2 = 3.61; a: 1 * 1.386 + 4 = 5.39
    b1      9  b1: 1 * 1.609 + 2 = 3.61; b: 1 * 1.386 + 4 = 5.39

"#]],
    );
}

#[test]
fn a_placed_pod_that_would_not_be_placed_again() {
    check(
        "
        node a1 zone=a
        node b1 zone=b cpu=1
        pod web-1 on a1 app=web cpu=500m
        pod db on b1 app=db cpu=1
        pod web-2 on a1 app=web cpu=500m spread:zone:1
        ",
        snapbox::str![[r#"
Pod default/web-2 is on a1; placed anew, it would go nowhere: 1 of 2 nodes would exceed maxSkew 1 over topology.kubernetes.io/zone: b counts 0, and its only node has too little cpu; 1 has too little cpu (500m wanted, best 0).
Successfully assigned default/web-2 to a1
Now: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints.

Any one of these changes would place it (each was verified)
  - free 500m more cpu on node b1                                                    -> b1
  - add a node like b1 with topology.kubernetes.io/zone=b                            -> the new node
  - add a node like a1 with a new value of topology.kubernetes.io/zone               -> the new node
  - maxSkew: 2 instead of 1 in constraint 1 (topology.kubernetes.io/zone)            -> a1
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (topology.kubernetes.io/zone)  -> a1
  - delete pod default/db from node b1                                               -> b1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  minimum: 0, in b
  domain  pods  nodes  sum                                                               verdict
  a          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
  b          0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but 1 Insufficient cpu

1 of 2 nodes is refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "a"

1 of 2 nodes is refused by NodeResourcesFit
  b1: cpu: asks 500m, 0 free of 1

"#]],
    );
}

#[test]
fn defaults_that_find_nothing_to_deduce_and_a_tie() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        pod web-1 app=web owner:gone
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending, but fits now: decided now, it goes to a1.

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and its ReplicaSet "gone" is not there (a dump for this needs Services and controllers as well:
    nodes,pods,svc,deploy,rs,sts,rc).

Scores of the 2 nodes that take it
  node  total
  a1      400  <- taken
  b1      400
  the same for all: TaintToleration 100*3, NodeResourcesFit 100*1
  2 nodes share the best total: a1, b1; kube-scheduler 1.36 takes the first in its heap's order, not a random one

"#]],
    );
}

#[test]
fn a_soft_constraint_and_a_node_that_it_ignores() {
    check(
        "
        node a1 zone=a
        node b1 zone=b
        node n1
        pod web-1 on a1 app=web
        pod web-2 on n1 app=web
        pod web-3 app=web spread:zone:1,soft spread:host:2,soft
        ",
        snapbox::str![[r#"
Pod default/web-3 is Pending, but fits now: decided now, it goes to b1.

Constraint 1, soft: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  weight: ln(2 + 2) = 1.386 (2 domains among the nodes that take the pod)
  domain  pods  nodes
  a          1      1
  b          0      1
  1 node lacks the label (not counted): n1

Constraint 2, soft: kubernetes.io/hostname, maxSkew 2
  counts pods with app=web
  weight: ln(2 + 2) = 1.386 (2 nodes are scored)
  domain  pods  nodes
  a1         1      1
  b1         0      1
  n1         1      1

Scores of the 3 nodes that take it
  node  total  Spread
  b1      600   100*2  <- taken
  a1      450    25*2
  n1      400     0*2
  the same for all: TaintToleration 100*3, NodeResourcesFit 100*1
  Spread before it is put on 0 to 100 (lower is better): pods * weight + (maxSkew - 1) each
    node  raw
    b1      1  b: 0 * 1.386 + 0 = 0.00; b1: 0 * 1.386 + 1 = 1.00
    a1      4  a: 1 * 1.386 + 0 = 1.39; a1: 1 * 1.386 + 1 = 2.39
    n1      -  lacks a label that is needed to be scored: 0

"#]],
    );
}

#[test]
fn hard_defaults_of_the_scheduler_s_configuration() {
    let mut world = DrawnCluster::of(
        "
        node a1 zone=a
        node b1 zone=b cordoned
        service web app=web
        pod web-1 on a1 app=web
        pod web-2 app=web
        ",
    );
    let none = strew_model::Labels::default();
    let hard = super::world::constraint(&mut world.cluster, "zone:1,select=none", &none);
    let profile = Profile {
        default_constraints: strew_scheduler::DefaultConstraints::List(vec![hard]),
        ..Profile::default()
    };
    let text = explained(profile, world, STYLE);
    snapbox::assert_data_eq!(text, snapbox::str![[r#"
Pod default/web-2 is Pending: 1 of 2 nodes is open to it (1 is cordoned); it would exceed maxSkew 1 over topology.kubernetes.io/zone: b counts 0, and its only node is cordoned.
0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable.

Any one of these changes would place it (each was verified)
  - uncordon node b1                                                                         -> b1
  - nodeTaintsPolicy: Honor in default constraint 1 (topology.kubernetes.io/zone)            -> a1
  - add a node like b1 with topology.kubernetes.io/zone=b                                    -> the new node
  - add a node like a1 with a new value of topology.kubernetes.io/zone                       -> the new node
  - maxSkew: 2 instead of 1 in default constraint 1 (topology.kubernetes.io/zone)            -> a1
  - whenUnsatisfiable: ScheduleAnyway in default constraint 1 (topology.kubernetes.io/zone)  -> a1

Default constraint 1 (of the scheduler's configuration), hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web; deduced from Service web
  ! 1 domain exists only through nodes that the pod cannot use, and holds the minimum down
  minimum: 0, in b
  domain  pods  nodes  sum                                                               verdict
  a          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
  b          0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) were unschedulable

1 of 2 nodes is refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "a"

1 of 2 nodes is refused by NodeUnschedulable
  b1: cordoned

"#]].raw());
}

#[test]
fn long_lists_are_folded() {
    let mut picture = String::new();
    for i in 0..40 {
        let zone = ["a", "b"][i % 2];
        picture += &format!(
            "node n{i:02} zone={zone} cpu=2\npod web-{i} on n{i:02} app=web cpu={}m\n",
            1200 + 10 * i
        );
    }
    picture += "node spare zone=a taint:old=:NoSchedule\n";
    picture += "pod web-x app=web cpu=1 spread:host:1 spread:zone:1";
    check(
        &picture,
        snapbox::str![[r#"
Pod default/web-x is Pending: 40 of 41 nodes are open to it (1 has the taint old:NoSchedule, not tolerated); none of those 40 has 1 cpu free (best 800m, 24200m on all of them together).
0/41 nodes are available: 1 node(s) had untolerated taint(s), 40 Insufficient cpu.

Any one of these changes would place it (each was verified)
  - tolerate the taint old:NoSchedule (all that keeps the pod off 1 node)  -> spare
  - add a node like n00 with topology.kubernetes.io/zone=a                 -> the new node
  - add a node like n01 with topology.kubernetes.io/zone=b                 -> the new node

Constraint 1, hard: kubernetes.io/hostname, maxSkew 1
  counts pods with app=web
  ! 1 domain exists only through nodes that the pod cannot use, and holds the minimum down
  minimum: 0, in spare
  domain                   pods  nodes  sum                 verdict
  spare                       0      1  0 + 1 - 0 = 1 <= 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) had untolerated taint(s)
  n00 and 39 more like it     1      1  1 + 1 - 0 = 2 > 1   refused
      1 Insufficient cpu
  sum: pods there + this pod (if it counts) - minimum, against maxSkew

Constraint 2, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  minimum: 20, in a, b
  domain  pods  nodes  sum                   verdict
  a         20     21  20 + 1 - 20 = 1 <= 1  allowed, but 20 Insufficient cpu, 1 node(s) had untolerated taint(s)
  b         20     20  20 + 1 - 20 = 1 <= 1  allowed, but 20 Insufficient cpu
  sum: pods there + this pod (if it counts) - minimum, against maxSkew

40 of 41 nodes are refused by NodeResourcesFit
  cpu: asks 1; 40 nodes have less: 24200m free on all of them, at most 800m on n00
  n00: cpu: asks 1, 800m free of 2 [also: skew (constraint 1)]
  n01: cpu: asks 1, 790m free of 2 [also: skew (constraint 1)]
  n02: cpu: asks 1, 780m free of 2 [also: skew (constraint 1)]
  n03: cpu: asks 1, 770m free of 2 [also: skew (constraint 1)]
  n04: cpu: asks 1, 760m free of 2 [also: skew (constraint 1)]
  n05: cpu: asks 1, 750m free of 2 [also: skew (constraint 1)]
  n06: cpu: asks 1, 740m free of 2 [also: skew (constraint 1)]
  n07: cpu: asks 1, 730m free of 2 [also: skew (constraint 1)]
  n08: cpu: asks 1, 720m free of 2 [also: skew (constraint 1)]
  n09: cpu: asks 1, 710m free of 2 [also: skew (constraint 1)]
  n10: cpu: asks 1, 700m free of 2 [also: skew (constraint 1)]
  n11: cpu: asks 1, 690m free of 2 [also: skew (constraint 1)]
  ... and 28 more

1 of 41 nodes is refused by TaintToleration
  spare: taint old:NoSchedule

"#]],
    );
}

#[test]
fn narrow_terminals_get_short_sums() {
    let world = DrawnCluster::of(
        "
        node a1 zone=eu-central-1a
        node b1 zone=eu-central-1b cordoned
        pod web-1 on a1 app=web
        pod web-2 app=web spread:zone:1
        ",
    );
    let style = TextStyle { width: 72, ..STYLE };
    let text = explained(Profile::default(), world, style);
    snapbox::assert_data_eq!(
        text,
        snapbox::str![[r#"
Pod default/web-2 is Pending: 1 of 2 nodes is open to it (1 is cordoned); it would exceed maxSkew 1 over topology.kubernetes.io/zone: eu-central-1b counts 0, and its only node is cordoned.
0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable.

Any one of these changes would place it (each was verified)
  - uncordon node b1  -> b1
  - nodeTaintsPolicy: Honor in constraint 1 (topology.kubernetes.io/zone)  -> a1
  - add a node like b1 with topology.kubernetes.io/zone=eu-central-1b  -> the new node
  - add a node like a1 with a new value of topology.kubernetes.io/zone  -> the new node
  - maxSkew: 2 instead of 1 in constraint 1 (topology.kubernetes.io/zone)  -> a1
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (topology.kubernetes.io/zone)  -> a1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  ! 1 domain exists only through nodes that the pod cannot use, and
    holds the minimum down
  minimum: 0, in eu-central-1b
  domain         pods  nodes  sum                 verdict
  eu-central-1a     1      1  1 + 1 - 0 = 2 > 1   refused
  eu-central-1b     0      1  0 + 1 - 0 = 1 <= 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) were
        unschedulable
  sum: pods there + this pod (if it counts) - minimum, against maxSkew

1 of 2 nodes is refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "eu-central-1a"

1 of 2 nodes is refused by NodeUnschedulable
  b1: cordoned

"#]]
        .raw()
    );
}

#[test]
fn colour_adds_nothing_but_colour() {
    let picture = "
        node a1 zone=a
        node b1 zone=b cordoned
        pod web-1 on a1 app=web
        pod web-2 app=web spread:zone:1
        ";
    let plain = explained(Profile::default(), DrawnCluster::of(picture), STYLE);
    let style = TextStyle {
        colour: true,
        ..STYLE
    };
    let coloured = explained(Profile::default(), DrawnCluster::of(picture), style);
    assert_ne!(plain, coloured);
    assert_eq!(plain, anstream::adapter::strip_str(&coloured).to_string());
}

#[test]
fn a_node_affinity_policy_that_counts_nodes_the_pod_cannot_use() {
    check(
        "
        node a1 zone=a disk=ssd
        node b1 zone=b
        pod web-1 on a1 app=web
        pod web-2 app=web want:disk=ssd spread:zone:1,anynode
        ",
        snapbox::str![[r#"
Pod default/web-2 is Pending: 1 of 2 nodes has the labels it wants (disk=ssd); it would exceed maxSkew 1 over topology.kubernetes.io/zone: b counts 0, and its only node has not the labels it wants.
0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) didn't match pod topology spread constraints.

Any one of these changes would place it (each was verified)
  - nodeAffinityPolicy: Honor in constraint 1 (topology.kubernetes.io/zone)          -> a1
  - label node b1 with disk=ssd                                                      -> b1
  - add a node like a1 with a new value of topology.kubernetes.io/zone               -> the new node
  - maxSkew: 2 instead of 1 in constraint 1 (topology.kubernetes.io/zone)            -> a1
  - whenUnsatisfiable: ScheduleAnyway in constraint 1 (topology.kubernetes.io/zone)  -> a1
  - drop disk=ssd from spec.nodeSelector                                             -> b1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1, nodeAffinityPolicy Ignore
  counts pods with app=web
  ! 1 domain exists only through nodes that the pod cannot use, and holds the minimum down
  minimum: 0, in b
  domain  pods  nodes  sum                                                               verdict
  a          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused
  b          0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) didn't match Pod's node affinity/selector

1 of 2 nodes is refused by PodTopologySpread
  a1: constraint 1: skew 2 > maxSkew 1 in "a"

1 of 2 nodes is refused by NodeAffinity
  b1: nodeSelector wants disk=ssd, the node has no such label

"#]],
    );
}

#[test]
fn a_hard_and_a_soft_constraint_on_one_key() {
    check(
        "
        node a1 zone=a cordoned
        node b1 zone=b
        pod web-1 on b1 app=web
        pod web-2 app=web spread:zone:1 spread:zone:1,soft
        ",
        snapbox::str![[r#"
Pod default/web-2 is Pending: 1 of 2 nodes is open to it (1 is cordoned); it would exceed maxSkew 1 over topology.kubernetes.io/zone: a counts 0, and its only node is cordoned.
0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) were unschedulable.

Any one of these changes would place it (each was verified)
  - uncordon node a1                                                       -> a1
  - nodeTaintsPolicy: Honor in constraint 1 (topology.kubernetes.io/zone)  -> b1
  - add a node like a1 with topology.kubernetes.io/zone=a                  -> the new node
  - add a node like b1 with a new value of topology.kubernetes.io/zone     -> the new node
  - maxSkew: 2 instead of 1 in constraint 1 (topology.kubernetes.io/zone)  -> b1
  - drop constraint 1 (topology.kubernetes.io/zone)                        -> b1

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  ! 1 domain exists only through nodes that the pod cannot use, and holds the minimum down
  minimum: 0, in a
  domain  pods  nodes  sum                                                               verdict
  a          0      1  0 there + 1 this pod - 0 in the emptiest domain = 1 <= maxSkew 1  allowed, but no node takes it
      exists only through nodes that the pod cannot use; 1 node(s) were unschedulable
  b          1      1  1 there + 1 this pod - 0 in the emptiest domain = 2 > maxSkew 1   refused

Constraint 2, soft: topology.kubernetes.io/zone, maxSkew 1
  counts pods with app=web
  domain  pods  nodes
  a          0      1  exists only through nodes that the pod cannot use; 1 node(s) were unschedulable
  b          1      1  1 refused by another constraint

1 of 2 nodes is refused by NodeUnschedulable
  a1: cordoned

1 of 2 nodes is refused by PodTopologySpread
  b1: constraint 1: skew 2 > maxSkew 1 in "b"

"#]],
    );
}

#[test]
fn terms_of_node_affinity() {
    check(
        "
        node a1 gen=2 disk=hdd
        node a2 gen=3
        pod web-1 app=web terms:gen>3,disk=ssd
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: none of 2 nodes has the labels it wants.
0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.

Any one of these changes would place it (each was verified)
  - label node a2 with disk=ssd  -> a2
  - drop required node affinity  -> a1

2 of 2 nodes are refused by NodeAffinity
  a1, a2: required node affinity term 1 wants gen > 3; required node affinity term 2 wants disk=ssd

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
    check(
        "
        node a1 gen=2
        pod web-1 app=web terms:gen>1&disk=ssd
        ",
        snapbox::str![[r#"
Pod default/web-1 is Pending: the only node has not the labels it wants (gen > 1, disk=ssd).
0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.

Any one of these changes would place it (each was verified)
  - label node a1 with disk=ssd                         -> a1
  - drop "disk=ssd" from required node affinity term 1  -> a1
  - drop required node affinity                         -> a1

1 of 1 node is refused by NodeAffinity
  a1: required node affinity wants disk=ssd

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

"#]],
    );
}

#[test]
fn nodes_with_one_key_of_two_and_domains_that_do_not_exist() {
    check(
        "
        node a1 zone=a rack=1
        node a2 zone=a
        node b1 zone=b taint:dedicated=db:NoSchedule
        pod web-1 on a1 app=web
        pod web-2 app=web spread:zone:1,honor spread:rack:1,honor
        ",
        snapbox::str![[r#"
Pod default/web-2 is Pending, but fits now: decided now, it goes to a1.

Constraint 1, hard: topology.kubernetes.io/zone, maxSkew 1, nodeTaintsPolicy Honor
  counts pods with app=web
  minimum: 1, in a
  domain  pods         nodes  sum                 verdict
  a          1  1 of 2 count  1 + 1 - 1 = 1 <= 1  allowed; 1 refused by another constraint
  b          0  0 of 1 count  -                   does not exist for this constraint; 1 node(s) had untolerated taint(s)
  sum: pods there + this pod (if it counts) - minimum, against maxSkew
  not counted: 2 nodes with this label, but without that of another hard constraint

Constraint 2, hard: rack, maxSkew 1, nodeTaintsPolicy Honor
  counts pods with app=web
  minimum: 1, in 1
  domain  pods  nodes  sum                                                               verdict
  1          1      1  1 there + 1 this pod - 1 in the emptiest domain = 1 <= maxSkew 1  allowed
  2 nodes lack the label (refused): a2, b1

1 of 3 nodes is refused by TaintToleration
  b1: taint dedicated=db:NoSchedule [also: no label rack]

1 of 3 nodes is refused by PodTopologySpread
  a2: no label rack

Scores
  a1 is the only node that takes it: it is not scored.

"#]],
    );
}

#[test]
fn runners_up_and_where_the_pod_is() {
    let mut picture = String::new();
    for i in 0..12 {
        picture += &format!(
            "node n{i:02}\npod other-{i} on n{i:02} app=other cpu={}m\n",
            100 * i
        );
    }
    picture += "pod web-1 on n11 app=web cpu=200m tolerate:x=:NoSchedule";
    check(
        &picture,
        snapbox::str![[r#"
Pod default/web-1 is on n11; placed anew, it would go to n00.
Successfully assigned default/web-1 to n11

No topology spread constraint
  The pod has none of its own, and the scheduler's 2 defaults need a selector, which nothing gives: no Service selects
    the pod, and it has no controller.

Scores of 9 of the 12 nodes that take it
  node  total  Fit  Balanced
  n00     470   97        73  <- taken
  n01     470   96        74
  n02     469   95        74
  n03     466   93        73
  n04     465   92        73
  n05     465   91        74
  n06     464   90        74
  n07     461   88        73
  n11     456   83        73  <- where it is
  the same for all: TaintToleration 100*3
  2 nodes share the best total: n00, n01; kube-scheduler 1.36 takes the first in its heap's order, not a random one

"#]],
    );
}
