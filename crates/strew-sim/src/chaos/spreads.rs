//! Generates a story with WorkloadSpreads from a seed.
//!
//! Workloads are never deleted or scaled to zero, and WorkloadSpreads stay. Otherwise a controller would count no pods,
//! and a rebuilt ledger would admit more pods than the limit, as Kruise's does (spec/workloadspread §5.3, I1).

use strew_model::Prng;
use strew_model::time::Span;

use super::generate::fault;
use super::settings;
use super::story::{
    Action, ClusterPlan, Event, NodePlan, SpreadPlan, Story, SubsetPlan, TaintEffect, Worker,
    Workload,
};
use crate::fault::{Component, Crash, Fault};
use crate::registration::{Edit, HookDeed, Lives, RegistrationPlan};
use crate::workloadspread::WebhookFault;

/// Faults end at most this many seconds after the start.
const STORM_SECS: u64 = 300;

/// The story of a seed.
pub fn generate_spreads(seed: u64) -> Story {
    let mut dice = Prng::new(seed ^ 0x3a11_0c8e_d000_0001);
    let mut world = world(&mut dice);
    let mut events: Vec<Event> = Vec::new();
    for workload in world.workloads.iter().filter(|w| w.is_late) {
        let at = Span::from_millis(dice.between(0, 60_000));
        let action = Action::Create(workload.name.clone());
        events.push(Event { at, action });
    }
    for _ in 0..dice.between(3, 24) {
        let at = Span::from_millis(dice.between(0, STORM_SECS * 1000));
        let action = match dice.between(0, 9) {
            0..=1 => fault(&mut dice, &world),
            2..=3 => own_fault(&mut dice),
            _ => deed(&mut dice, &world),
        };
        events.push(Event { at, action });
    }
    events.sort_by_key(|event| event.at);
    crowd(seed, &mut world, &mut events);
    let mut dice = Prng::new(seed ^ 0x3a11_0c8e_d000_0003);
    for spread in &mut world.spreads {
        spread.is_whole = dice.chance(1, 4);
    }
    together(seed, &mut world, &mut events);
    Story {
        seed,
        limits: settings::draw(seed, &["scheduler", "admission", "spreads", "reviews"]),
        world,
        events,
        calm: Span::from_secs(dice.between(60, STORM_SECS)),
    }
}

/// In one story of six some scale-ups are by dozens of small pods, and some subsets take as many, so that requests are
/// batched. It has its own generator, so that the other stories stay the same.
fn crowd(seed: u64, world: &mut ClusterPlan, events: &mut [Event]) {
    let mut dice = Prng::new(seed ^ 0x3a11_0c8e_d000_0002);
    if !dice.chance(1, 6) {
        return;
    }
    for workload in &mut world.workloads {
        workload.cpu = 0;
    }
    let subsets = world.spreads.iter_mut().flat_map(|s| &mut s.subsets);
    for subset in subsets {
        if let SubsetPlan::Count(max) = subset
            && dice.chance(1, 2)
        {
            *max = small(&mut dice, 0, 50);
        }
    }
    for event in events {
        if let Action::Scale(_, replicas) = &mut event.action
            && dice.chance(1, 2)
        {
            *replicas = small(&mut dice, 16, 80);
        }
    }
}

/// In one story of three a WorkloadSpread takes further workloads, by the labels of their pods: those that are there
/// already, which mostly lose their own WorkloadSpread, and some that come with events of their own. It has its own
/// generator, too.
fn together(seed: u64, world: &mut ClusterPlan, events: &mut Vec<Event>) {
    let mut dice = Prng::new(seed ^ 0x3a11_0c8e_d000_0004);
    if !dice.chance(1, 3) {
        return;
    }
    let is_taken = |world: &ClusterPlan, spread: &SpreadPlan| {
        let mut workloads = world.workloads.iter();
        workloads.any(|w| w.name == spread.of && is_selectable(w.worker))
    };
    let Some(taking) = world.spreads.iter().position(|s| is_taken(world, s)) else {
        return;
    };
    let of = world.spreads[taking].of.clone();
    world.spreads[taking].takes_others = true;
    // Where another one stays, the first by name has all pods.
    if dice.chance(3, 4) {
        let spreads = std::mem::take(&mut world.spreads).into_iter();
        let stays = |s: &SpreadPlan| s.of == of || !is_taken(world, s);
        world.spreads = spreads.filter(stays).collect();
    }
    for _ in 0..dice.between(0, 2) {
        let number = world.workloads.len() as u64;
        let more = Workload {
            worker: *dice.pick(&[
                Worker::Deployment(false),
                Worker::ReplicaSet,
                Worker::CloneSet,
            ]),
            is_late: false,
            ..workload(&mut dice, number)
        };
        for _ in 0..dice.between(1, 4) {
            let at = Span::from_millis(dice.between(0, STORM_SECS * 1000));
            let name = more.name.clone();
            let action = match dice.chance(1, 3) {
                true => Action::SetImage(name, small(&mut dice, 1, 3)),
                false => Action::Scale(name, small(&mut dice, 1, 12)),
            };
            events.push(Event { at, action });
        }
        world.workloads.push(more);
    }
    events.sort_by_key(|event| event.at);
}

/// The story of a seed; in one of three the webhook's replicas register themselves, and things happen to that.
pub fn generate_registrations(seed: u64) -> Story {
    let mut story = generate_spreads(seed);
    register(seed, &mut story.world, &mut story.events);
    story
}

fn register(seed: u64, world: &mut ClusterPlan, events: &mut Vec<Event>) {
    let mut dice = Prng::new(seed ^ 0x3a11_0c8e_d000_0005);
    if !dice.chance(1, 3) {
        return;
    }
    world.registration = Some(RegistrationPlan {
        is_strict: dice.chance(1, 4),
        n_guards: *dice.pick(&[1, 2]),
        lag: *dice.pick(&[Span(0), Span::from_millis(300), Span::from_millis(1_000)]),
        lives: lives(&mut dice),
    });
    for _ in 0..dice.between(1, 8) {
        let at = Span::from_millis(dice.between(0, STORM_SECS * 1000));
        let action = match dice.chance(1, 4) {
            true => own_fault(&mut dice),
            false => Action::Hooks(hook_deed(&mut dice, world.n_webhooks)),
        };
        events.push(Event { at, action });
    }
    events.sort_by_key(|event| event.at);
}

/// Certificates that are renewed while the story lasts. Two CAs are trusted for longer than a replica is cut off.
fn lives(dice: &mut Prng) -> Lives {
    Lives {
        authority: Span::from_secs(dice.between(600, 900)),
        serving: Span::from_secs(dice.between(60, 300)),
        overlap: Span::from_secs(dice.between(75, 90)),
        age: Span::from_secs(dice.between(0, 390)),
    }
}

fn hook_deed(dice: &mut Prng, n_webhooks: u8) -> HookDeed {
    let lasts = Span::from_millis(dice.between(500, 60_000));
    let place = u8::try_from(dice.between(1, u64::from(n_webhooks.max(1))) - 1).unwrap_or(0);
    match dice.between(0, 9) {
        0..=2 => HookDeed::End(place, lasts),
        3 | 4 => HookDeed::Cut(place, lasts),
        5 => HookDeed::Busy(place, lasts),
        6 => HookDeed::Closed(lasts),
        7 => HookDeed::Hidden(lasts),
        8 => HookDeed::Delete(lasts),
        _ => HookDeed::Edit(*dice.pick(&[
            Edit::Empty,
            Edit::Bundle,
            Edit::Ignore,
            Edit::Mark,
            Edit::Secret,
        ])),
    }
}

/// True if a WorkloadSpread of another workload can take the pods of such a workload, and theirs can take others.
fn is_selectable(worker: Worker) -> bool {
    matches!(
        worker,
        Worker::Deployment(_) | Worker::ReplicaSet | Worker::CloneSet
    )
}

fn world(dice: &mut Prng) -> ClusterPlan {
    let n_zones = dice.between(2, 3);
    let nodes = (0..dice.between(n_zones, 8)).map(|i| NodePlan {
        name: format!("n{i}"),
        zone: Some(u8::try_from(i % n_zones).unwrap_or(0)),
        cpu: *dice.pick(&[1000, 4000, 16_000]),
        pods: 110,
        is_tainted: false,
        is_cordoned: false,
    });
    let nodes = nodes.collect();
    let n_workloads = dice.between(1, 2);
    let workloads: Vec<Workload> = (0..n_workloads).map(|i| workload(dice, i)).collect();
    let spreads = workloads.iter().map(|w| spread(dice, w, n_zones));
    let spreads = spreads.collect();
    ClusterPlan {
        nodes,
        workloads,
        elects: false,
        quota: None,
        group: None,
        spreads,
        n_webhooks: *dice.pick(&[1, 2, 3]),
        registration: None,
    }
}

fn workload(dice: &mut Prng, i: u64) -> Workload {
    let worker = match dice.between(0, 9) {
        0..=4 => Worker::Deployment(dice.chance(1, 6)),
        5 => Worker::ReplicaSet,
        6 | 7 => Worker::CloneSet,
        8 => Worker::StatefulSet(dice.chance(1, 2)),
        _ => Worker::Job,
    };
    Workload {
        name: format!("w{i}"),
        worker,
        replicas: u32::try_from(dice.between(1, 8)).unwrap_or(1),
        cpu: *dice.pick(&[0, 100, 500, 900]),
        priority: 0,
        tolerates: false,
        has_port: false,
        spread: Vec::new(),
        anti: None,
        budget: None,
        is_late: dice.chance(1, 3),
        is_zone_aware: false,
        keeps_spread: false,
        scaling: None,
    }
}

fn spread(dice: &mut Prng, of: &Workload, n_zones: u64) -> SpreadPlan {
    let adaptive = dice.chance(1, 4).then(|| {
        let critical = *dice.pick(&[0, 5, 30]);
        (critical, dice.chance(1, 2))
    });
    let in_percent = !matches!(of.worker, Worker::StatefulSet(_)) && dice.chance(1, 4);
    let last_is_open = adaptive.is_some() || in_percent || dice.chance(3, 4);
    let limit = |dice: &mut Prng, number: u64| {
        let number_is_last = number + 1 == n_zones;
        match () {
            () if number_is_last && last_is_open => SubsetPlan::Unlimited,
            () if in_percent => SubsetPlan::Percent(*dice.pick(&[10, 30, 50])),
            () => SubsetPlan::Count(u32::try_from(dice.between(0, 5)).unwrap_or(1)),
        }
    };
    SpreadPlan {
        of: of.name.clone(),
        subsets: (0..n_zones).map(|number| limit(dice, number)).collect(),
        adaptive,
        is_whole: false,
        takes_others: false,
    }
}

fn deed(dice: &mut Prng, world: &ClusterPlan) -> Action {
    let workload = dice.pick(&world.workloads).name.clone();
    let node = dice.pick(&world.nodes).name.clone();
    match dice.between(0, 19) {
        0..=6 => Action::Scale(workload, small(dice, 1, 12)),
        7..=9 => Action::SetImage(workload, small(dice, 1, 3)),
        10 => Action::Ready(workload, dice.chance(2, 3)),
        11..=12 => Action::DeletePod(small(dice, 0, 100)),
        13 => Action::Drain(node),
        14 => Action::Uncordon(node),
        15 => Action::Taint(
            node,
            *dice.pick(&[TaintEffect::NoSchedule, TaintEffect::NoExecute]),
        ),
        16 => Action::Untaint(node),
        17 => match dice.chance(1, 2) {
            true => Action::Pause(workload),
            false => Action::Resume(workload),
        },
        _ => Action::Limit(workload, small(dice, 0, 2), small(dice, 0, 6)),
    }
}

fn small(dice: &mut Prng, low: u64, high: u64) -> u32 {
    u32::try_from(dice.between(low, high)).unwrap_or(1)
}

fn own_fault(dice: &mut Prng) -> Action {
    let lasts = Span::from_secs(dice.between(5, 60));
    let ppm = |dice: &mut Prng| u32::try_from(dice.between(0, 300_000)).unwrap_or(0);
    match dice.between(0, 4) {
        0 => {
            let fault = WebhookFault {
                lost_ppm: ppm(dice),
                write_lost_ppm: ppm(dice) / 3,
                // Up to more than the API server's timeout.
                slower: Span::from_millis(*dice.pick(&[0, 50, 1_000, 12_000])),
            };
            Action::Fault(Fault::Webhook(fault), lasts)
        }
        _ => Action::Crash(Crash {
            component: *dice.pick(&[
                Component::Webhook,
                Component::WebhookReplica,
                Component::WebhookReplica,
                Component::Controller,
                Component::Controllers,
            ]),
            after_writes: u32::try_from(dice.between(0, 6)).unwrap_or(0),
            down: Span::from_millis(dice.between(0, 40_000)),
        }),
    }
}
