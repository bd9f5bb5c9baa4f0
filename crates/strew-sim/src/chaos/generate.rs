//! Generates a [`Story`] from a seed.

use strew_apiserver::Propagation;
use strew_model::Prng;
use strew_model::time::Span;

use super::settings;
use super::story::{
    Action, Anti, Budgeting, ClusterPlan, Concurrency, Event, Group, NodePlan, Quota, Scaling,
    Spread, Story, TaintEffect, Worker, Workload,
};
use crate::client::WriteFault;
use crate::fault::{Component, Crash, Fault, LeaseFault};
use crate::feed::WatchFault;
use crate::scheduler::BindFault;

/// Faults end at most this many seconds after the start.
const STORM_SECS: u64 = 300;

/// The story of a seed.
pub fn generate(seed: u64) -> Story {
    let mut dice = Prng::new(seed ^ 0x5eed_0fc4_a050_0000);
    let mut world = world(&mut dice);
    let mut more = Prng::new(seed ^ 0x5eed_0fc4_a050_0001);
    let mut events: Vec<Event> = uses(&mut more, &mut world);
    for workload in world.workloads.iter().filter(|w| w.is_late) {
        let at = Span::from_millis(dice.between(0, 120_000));
        let action = Action::Create(workload.name.clone());
        events.push(Event { at, action });
    }
    for _ in 0..dice.between(3, 30) {
        let at = Span::from_millis(dice.between(0, STORM_SECS * 1000));
        let action = match dice.chance(2, 5) {
            true => fault(&mut dice, &world),
            false => deed(&mut dice, &world),
        };
        events.push(Event { at, action });
    }
    events.sort_by_key(|event| event.at);
    Story {
        seed,
        limits: settings::draw(seed, &["scheduler"]),
        world,
        events,
        calm: Span::from_secs(dice.between(60, STORM_SECS)),
    }
}

fn world(dice: &mut Prng) -> ClusterPlan {
    let n_nodes = dice.between(2, 12);
    let n_zones = dice.between(1, 4);
    let nodes: Vec<NodePlan> = (0..n_nodes)
        .map(|i| NodePlan {
            name: format!("n{i}"),
            zone: (!dice.chance(1, 20)).then(|| u8::try_from(i % n_zones).unwrap_or(0)),
            cpu: *dice.pick(&[1000, 2000, 4000]),
            pods: *dice.pick(&[3, 10, 110]),
            is_tainted: dice.chance(1, 8),
            is_cordoned: dice.chance(1, 15),
        })
        .collect();
    let n_workloads = dice.between(1, 5);
    let workloads = (0..n_workloads)
        .map(|i| workload(dice, i, n_workloads))
        .collect();
    ClusterPlan {
        nodes,
        workloads,
        quota: None,
        group: None,
        elects: dice.chance(1, 2),
        ..ClusterPlan::default()
    }
}

/// Features added after the first stories, with a generator of their own, so that the older parts of each story stay
/// the same: other kinds of workloads, a quota, autoscalers of pods and of nodes, and the use of CPU.
fn uses(dice: &mut Prng, world: &mut ClusterPlan) -> Vec<Event> {
    let mut events = Vec::new();
    for workload in &mut world.workloads {
        workload.worker = match workload.worker {
            Worker::ReplicaSet if dice.chance(1, 2) => Worker::ReplicationController,
            Worker::Job if dice.chance(1, 2) => Worker::CronJob(*dice.pick(&[
                Concurrency::Allow,
                Concurrency::Forbid,
                Concurrency::Replace,
            ])),
            worker => worker,
        };
        let scales = matches!(
            workload.worker,
            Worker::Deployment(_)
                | Worker::ReplicaSet
                | Worker::ReplicationController
                | Worker::StatefulSet(_)
        );
        if !scales || workload.cpu == 0 || !dice.chance(1, 4) {
            continue;
        }
        let min = u32::try_from(dice.between(1, 3)).unwrap_or(1);
        let max = min + u32::try_from(dice.between(0, 5)).unwrap_or(0);
        workload.scaling = Some(Scaling { min, max });
        for _ in 0..dice.between(1, 4) {
            let at = Span::from_millis(dice.between(0, STORM_SECS * 1000));
            let percent = *dice.pick(&[5, 30, 50, 75, 100, 200]);
            let action = Action::Use(workload.name.clone(), percent);
            events.push(Event { at, action });
        }
    }
    world.quota = dice.chance(1, 8).then(|| Quota {
        pods: u32::try_from(dice.between(1, 20)).unwrap_or(1),
        cpu: *dice.pick(&[0, 0, 1000, 5000]),
    });
    // With hard rules between pods the autoscaler may remove a node whose pods fit only on a new one, and repeat that
    // for ever.
    let is_plain = |w: &Workload| w.anti.is_none() && !w.spread.iter().any(|spread| spread.is_hard);
    let all_plain = world.workloads.iter().all(is_plain);
    world.group = (dice.chance(1, 3) && all_plain).then(|| Group {
        max: u32::try_from(dice.between(1, 4)).unwrap_or(1),
        zone: u8::try_from(dice.between(0, 3)).unwrap_or(0),
        cpu: *dice.pick(&[1000, 4000]),
    });
    events
}

fn workload(dice: &mut Prng, i: u64, n_workloads: u64) -> Workload {
    let worker = match dice.between(0, 9) {
        0..=4 => Worker::Deployment(dice.chance(1, 5)),
        5 => Worker::ReplicaSet,
        6 | 7 => Worker::StatefulSet(dice.chance(1, 2)),
        8 => Worker::DaemonSet,
        _ => Worker::Job,
    };
    let n_spread = *dice.pick(&[0, 1, 1, 2]);
    let has_budget = !matches!(worker, Worker::DaemonSet | Worker::Job) && dice.chance(1, 3);
    Workload {
        name: format!("w{i}"),
        worker,
        replicas: u32::try_from(dice.between(0, 7)).unwrap_or(1),
        cpu: *dice.pick(&[0, 100, 500, 900]),
        priority: *dice.pick(&[0, 0, 1, 2]),
        tolerates: dice.chance(1, 4),
        has_port: dice.chance(1, 12),
        spread: (0..n_spread).map(|n| spread(dice, n == 0)).collect(),
        anti: dice.chance(1, 5).then(|| Anti {
            by_zone: dice.chance(1, 3),
            from: format!("w{}", dice.between(0, n_workloads - 1)),
        }),
        budget: has_budget.then(|| match dice.between(0, 2) {
            0 => Budgeting::MaxUnavailable(u32::from(dice.chance(2, 3))),
            1 => Budgeting::MinAvailable(2),
            _ => Budgeting::MinPercent(60),
        }),
        is_zone_aware: false,
        keeps_spread: false,
        scaling: None,
        is_late: dice.chance(1, 5),
    }
}

/// Two constraints of a pod never have the same key and the same rule.
fn spread(dice: &mut Prng, by_zone: bool) -> Spread {
    let is_hard = dice.chance(2, 3);
    Spread {
        by_zone,
        max_skew: *dice.pick(&[1, 1, 2]),
        is_hard,
        min_domains: match is_hard && dice.chance(1, 4) {
            true => *dice.pick(&[1, 2, 3]),
            false => 0,
        },
        by_revision: dice.chance(1, 4),
        honors_taints: dice.chance(1, 3),
        of_all: dice.chance(1, 6),
    }
}

fn deed(dice: &mut Prng, world: &ClusterPlan) -> Action {
    let workload = dice.pick(&world.workloads).name.clone();
    let node = dice.pick(&world.nodes).name.clone();
    match dice.between(0, 25) {
        0..=4 => Action::Scale(workload, u32::try_from(dice.between(0, 8)).unwrap_or(0)),
        5..=7 => Action::SetImage(workload, u32::try_from(dice.between(1, 3)).unwrap_or(1)),
        8 => Action::Restart(workload),
        9 => Action::Undo(workload),
        10 => Action::Pause(workload),
        11 => Action::Resume(workload),
        12 => Action::Ready(workload, dice.chance(2, 3)),
        13 => Action::Delete(
            workload,
            *dice.pick(&[
                Propagation::Background,
                Propagation::Background,
                Propagation::Foreground,
                Propagation::Orphan,
            ]),
        ),
        14 => Action::Create(workload),
        15 | 16 => Action::DeletePod(u32::try_from(dice.between(0, 100)).unwrap_or(0)),
        17 | 18 => Action::Drain(node),
        19 => Action::Cordon(node),
        20 | 21 => Action::Uncordon(node),
        22 => Action::Taint(
            node,
            *dice.pick(&[TaintEffect::NoSchedule, TaintEffect::NoExecute]),
        ),
        23 => Action::Untaint(node),
        24 => Action::Rezone(node, u8::try_from(dice.between(0, 3)).unwrap_or(0)),
        _ => Action::Restore(node),
    }
}

pub(super) fn fault(dice: &mut Prng, world: &ClusterPlan) -> Action {
    let lasts = Span::from_secs(dice.between(5, 60));
    let node = dice.pick(&world.nodes).name.clone();
    let ppm = |dice: &mut Prng, most: u64| u32::try_from(dice.between(0, most)).unwrap_or(0);
    let fault = match dice.between(0, 15) {
        0 | 1 => Fault::Watch(WatchFault {
            delay: Span::from_millis(dice.between(0, 20_000)),
            repeat_ppm: ppm(dice, 300_000),
            cut_ppm: 0,
        }),
        2 | 3 => Fault::Watch(WatchFault {
            delay: Span::from_millis(dice.between(0, 5_000)),
            repeat_ppm: ppm(dice, 100_000),
            cut_ppm: ppm(dice, 200_000),
        }),
        4 | 5 => Fault::Write(WriteFault {
            conflict_ppm: ppm(dice, 300_000),
            lost_ppm: 0,
        }),
        6 | 7 => Fault::Bind(BindFault {
            slow: Span::from_millis(*dice.pick(&[0, 100, 5_000, 30_000])),
            fail_ppm: ppm(dice, 500_000),
        }),
        8 | 9 if world.elects => Fault::SecondScheduler,
        10 if world.elects => Fault::Lease(LeaseFault {
            lost_ppm: *dice.pick(&[300_000, 800_000, 1_000_000]),
        }),
        8..=11 => {
            return Action::Crash(Crash {
                component: *dice.pick(&[Component::Scheduler, Component::Controllers]),
                after_writes: u32::try_from(dice.between(0, 12)).unwrap_or(0),
                down: Span::from_millis(dice.between(0, 20_000)),
            });
        }
        12 if world.elects => return Action::Jump(Span::from_millis(dice.between(0, 30_000))),
        12..=14 => return Action::Lose(node),
        _ => {
            return match dice.chance(1, 2) {
                true => Action::DeleteNode(node),
                false => Action::CreateNode(node),
            };
        }
    };
    Action::Fault(fault, lasts)
}
