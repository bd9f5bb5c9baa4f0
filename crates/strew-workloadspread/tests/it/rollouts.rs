//! Rollouts that do not end, or leave a subset with fewer pods, are reported: spec/workloadspread §5.10.

use std::sync::Arc;

use strew_model::{Labels, Span};
use strew_workloadspread::controller::{EventKind, Input};
use strew_workloadspread::rollout::{may_stick, misfits};
use strew_workloadspread::{
    Adaptive, Kinds, LimitScope, Misfit, Pod, Rolling, Spec, Strategy, Subset, WhenNoRoom,
    WorkloadFact, WorkloadSpread,
};

use crate::desk::*;
use crate::world::*;

fn with(mut ws: WorkloadSpread, change: impl FnOnce(&mut Spec)) -> WorkloadSpread {
    change(Arc::make_mut(&mut ws.spec));
    ws
}

/// A Deployment of four that surges by one, and its ReplicaSets of revisions v1 and v2, the latest.
fn rollout(words: &Words, unavailable: i64) -> [WorkloadFact; 3] {
    let mut deployment = workload(words.target(words.deployment, "web"), 4);
    let surge = 1;
    deployment.rolling = Some(Rolling { surge, unavailable });
    let set = |name: &str, hash: &str, revision| {
        let mut set = workload(words.target(words.replica_set, name), 4);
        set.controller = Some(controller(&deployment));
        set.template_hash = Some(words.of(hash));
        set.revision = Some(revision);
        set
    };
    let [old, new] = [set("web-1", "v1", 1), set("web-2", "v2", 2)];
    [deployment, old, new]
}

fn two() -> Vec<Subset> {
    vec![subset("a", count(2)), subset("b", None)]
}

/// Two old pods in each subset, and a new one that waits for a node of the first.
fn desk(words: &Words, unavailable: i64, change: impl FnOnce(&mut Spec)) -> (Desk, Pod) {
    let facts = rollout(words, unavailable);
    let [deployment, old, new] = &facts;
    let ws = with(spread(deployment.key.target, two()), change);
    let mut desk = Desk::new(words, ws, &facts);
    for (name, at) in [("p0", "a"), ("p1", "a"), ("p2", "b"), ("p3", "b")] {
        let mut pod = pod(old, name, Some(at));
        pod.labels = Labels::new(vec![(words.hash, words.of("v1"))]);
        desk.add(pod);
    }
    let mut waiting = pending(new, "n0", "a", 5);
    waiting.labels = Labels::new(vec![(words.hash, words.of("v2"))]);
    desk.add(waiting.clone());
    desk.run();
    (desk, waiting)
}

/// The conditions of `a` and `b`.
fn told(desk: &Desk) -> [Option<Misfit>; 2] {
    let misfits = &desk.ws.status.misfits;
    ["a", "b"].map(|name| Some(misfits.get(name)?.what))
}

fn n_events(desk: &Desk) -> usize {
    let told = [EventKind::RolloutStuck, EventKind::RolloutShort];
    let events = desk.events.iter();
    events.filter(|(kind, _)| told.contains(kind)).count()
}

#[test]
fn new_pods_that_wait_for_nodes_that_old_ones_hold_are_told_until_they_have_some() {
    let words = words();
    let (mut desk, mut waiting) = desk(&words, 0, |_| {});
    assert_eq!(told(&desk), [Some(Misfit::Stuck), None]);
    assert_eq!(desk.events, [(EventKind::RolloutStuck, "a".to_owned())]);
    desk.pass(60);
    assert_eq!(n_events(&desk), 1, "once");
    waiting.node = Some(words.of("n1"));
    waiting.unschedulable = false;
    desk.add(waiting);
    desk.run();
    assert_eq!(told(&desk), [None, None]);
}

#[test]
fn a_rollout_that_goes_on_is_not_told() {
    let words = words();
    let (desk, _) = desk(&words, 1, |_| {});
    assert_eq!(told(&desk), [None, None], "an old pod goes first");
    let moved_on = |spec: &mut Spec| {
        spec.strategy = Strategy::Adaptive(Adaptive {
            critical: Some(Span::from_secs(30)),
            ..Adaptive::default()
        });
    };
    let (desk, _) = self::desk(&words, 0, moved_on);
    assert_eq!(told(&desk), [None, None], "the pod goes elsewhere");
}

#[test]
fn a_pod_that_starts_may_make_room_and_is_looked_at_again() {
    let words = words();
    let (mut desk, _) = desk(&words, 0, |_| {});
    let mut slow = desk.pods["uid-p3"].clone();
    slow.ready_since = None;
    // A change that triggers a sync, and one that does not.
    slow.node = Some(words.of("n2"));
    desk.add(slow.clone());
    desk.run();
    assert_eq!(told(&desk), [None, None], "it may become ready");
    slow.ready_since = Some(desk.now);
    desk.add(slow);
    desk.run();
    assert_eq!(told(&desk), [None, None], "nobody looked");
    desk.pass(10);
    assert_eq!(told(&desk), [Some(Misfit::Stuck), None]);
}

#[test]
fn settings_that_change_are_looked_at() {
    let words = words();
    let scope = |spec: &mut Spec| spec.limit_scope = LimitScope::Workload;
    let (mut desk, _) = desk(&words, 1, scope);
    assert_eq!(told(&desk), [None, None]);
    let [mut deployment, ..] = rollout(&words, 1);
    deployment.rolling = Some(Rolling {
        surge: 4,
        unavailable: 1,
    });
    desk.tell(Input::WorkloadSet(Box::new(deployment)));
    desk.run();
    assert_eq!(told(&desk), [Some(Misfit::Short(2)), None]);
    assert_eq!(desk.events, [(EventKind::RolloutShort, "a".to_owned())]);
}

#[test]
fn what_a_surge_leaves_of_a_subset_follows_from_limits_and_settings() {
    let mut words = words();
    let kinds = Kinds::new(&mut words.names);
    let three = || {
        vec![
            subset("a", count(2)),
            subset("b", count(3)),
            subset("c", None),
        ]
    };
    let of = |kind, surge, unavailable, change: &dyn Fn(&mut Spec)| {
        let mut target = workload(words.target(kind, "web"), 10);
        target.rolling = Some(Rolling { surge, unavailable });
        let ws = with(spread(target.key.target, three()), change);
        misfits(&ws.spec, Some(&target), 10, &kinds)
    };
    let workload_scope: &dyn Fn(&mut Spec) = &|spec| spec.limit_scope = LimitScope::Workload;
    let by_revision: &dyn Fn(&mut Spec) = &|spec| spec.limit_scope = LimitScope::Revision;
    let short = |place, pods| (place, Misfit::Short(pods));
    let (deployment, clone_set) = (words.deployment, words.clone_set);
    // As many pods may surge as the last subset has, without harm.
    for (surge, expected) in [
        (5, vec![]),
        (6, vec![short(1, 1)]),
        (8, vec![short(1, 3)]),
        (9, vec![short(0, 1), short(1, 3)]),
        (10, vec![short(0, 2), short(1, 3)]),
    ] {
        assert_eq!(of(deployment, surge, 0, workload_scope), expected);
        assert_eq!(of(deployment, surge, 0, &|_| {}), [], "by revision");
    }
    assert_eq!(of(clone_set, 1, 0, &|_| {}), [short(0, 1)]);
    assert_eq!(of(clone_set, 4, 0, &|_| {}), [short(0, 2), short(1, 2)]);
    assert_eq!(of(clone_set, 4, 0, by_revision), []);
    assert_eq!(of(clone_set, 0, 1, &|_| {}), [], "none surges");
    let moving: &dyn Fn(&mut Spec) = &|spec| {
        spec.limit_scope = LimitScope::Workload;
        spec.move_back = Some(Span::from_secs(60));
    };
    assert_eq!(of(deployment, 10, 0, moving), [], "they move back");
    let full = |when| {
        move |spec: &mut Spec| {
            spec.limit_scope = LimitScope::Workload;
            spec.when_no_room = when;
            spec.subsets[2].max_replicas = count(5);
        }
    };
    let held_back = full(WhenNoRoom::Pending);
    assert_eq!(of(deployment, 1, 0, &held_back), [(2, Misfit::NoRoom)]);
    assert_eq!(of(deployment, 1, 1, &held_back), [], "an old one goes");
    let anywhere = full(WhenNoRoom::Unconstrained);
    assert_eq!(of(deployment, 1, 0, &anywhere), []);
}

#[test]
fn a_rollout_may_stick_where_all_new_pods_go_to_a_full_subset() {
    let mut words = words();
    let kinds = Kinds::new(&mut words.names);
    let of = |surge, unavailable, change: &dyn Fn(&mut Spec)| {
        let mut target = workload(words.target(words.deployment, "web"), 4);
        target.rolling = Some(Rolling { surge, unavailable });
        let ws = with(spread(target.key.target, two()), change);
        may_stick(&ws.spec, Some(&target), 4, &kinds)
    };
    assert_eq!(of(2, 0, &|_| {}), Some((0, 2)));
    assert_eq!(of(3, 0, &|_| {}), None, "one goes to the next subset");
    assert_eq!(of(2, 1, &|_| {}), None, "an old one goes first");
    assert_eq!(
        of(2, 0, &|spec| spec.limit_scope = LimitScope::Workload),
        None
    );
    let simulating = Strategy::Adaptive(Adaptive::default());
    assert_eq!(of(2, 0, &|spec| spec.strategy = simulating), None);
    assert_eq!(
        of(2, 0, &|spec| spec.subsets[0].max_replicas = count(5)),
        None,
        "there are fewer pods than the limit"
    );
}
