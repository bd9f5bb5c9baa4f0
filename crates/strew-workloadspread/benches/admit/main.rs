//! Measures the cost of admissions and syncs. Prints one line of JSON per measurement on stdout, with its bound.
//!
//! Arguments select measurements by parts of their names.

mod measure;
mod world;

use std::collections::VecDeque;
use std::process::ExitCode;

use measure::{Measured, mean_us};
use strew_model::{Instant, Span};
use strew_workloadspread::admission::{Effect, Input, Outcome};
use strew_workloadspread::controller::{self, SpreadController};
use strew_workloadspread::{NoPatches, WorkloadSpread};
use world::{BenchCluster, admission, pod, request, spread, workload};

/// The number of WorkloadSpreads in the world.
const SPREADS: usize = 1_000;

/// The number of pods in the world.
const PODS: usize = 5_000;

/// The number of admissions and syncs per mean: the kernel counts CPU time in ticks.
const ADMISSIONS: u64 = 20_000;
const SYNCS: u64 = 50;

/// A measurement with its name.
type Named = (&'static str, fn() -> Measured);

fn main() -> ExitCode {
    // `cargo bench` adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let all: [Named; 7] = [
        ("admit_fixed", || admit(false, 0)),
        ("admit_simulated", || admit(true, 0)),
        ("admit_simulated_overflow", || admit(true, 200)),
        ("admit_simulated_churn", || admit(true, 201)),
        ("sync", sync),
        ("group_commit_slow_start", group_commit_slow_start),
        ("group_commit_open", group_commit_open),
    ];
    let mut met = true;
    for (name, measure) in all {
        if wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())) {
            let measured = measure();
            met &= measured.is_met();
            println!("{}", measured.line(name));
        }
    }
    match met {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    }
}

/// One admission from the request to the answer, with its status write. `full`: the nodes of the first subset are full,
/// and this number of nodes is left in the second. If the number is odd, a pod comes and goes before each admission, so
/// that no result is cached.
fn admit(simulates: bool, full: usize) -> Measured {
    let mut world = BenchCluster::new();
    let spreads: Vec<WorkloadSpread> = (0..SPREADS).map(|i| spread(&world, i, simulates)).collect();
    let mut machine = admission(&world);
    let now = Instant::from_secs(1_000);
    for (i, ws) in spreads.iter().enumerate() {
        machine.handle(now, Input::SpreadSet(Box::new(ws.clone())));
        machine.handle(now, Input::WorkloadSet(Box::new(workload(&world, i))));
    }
    for i in 0..1_000 {
        let pool = usize::from(full > 0 && i >= 1_000 - full);
        let cpu = if full > 0 && pool == 0 {
            5_000
        } else {
            256_000
        };
        machine.handle(
            now,
            Input::NodeSet(Box::new(world.node(i, pool, cpu + i as i64))),
        );
    }
    for i in 0..PODS {
        let (fact, marker) = world.bound(i);
        machine.handle(now, Input::PodSet(Box::new(fact), Some(marker)));
    }
    let mut version = 10;
    let requests: Vec<Input> = (0..ADMISSIONS)
        .map(|i| Input::AdmitAsked(Box::new(request(&world, i, i as usize % SPREADS))))
        .collect();
    let began = measure::cpu_ns();
    for (i, asked) in requests.into_iter().enumerate() {
        let now = now + Span::from_millis(i as u64);
        if full % 2 == 1 {
            let (fact, marker) = world.bound(i % PODS);
            machine.handle(now, Input::PodGone(fact.uid.clone()));
            machine.handle(now, Input::PodSet(Box::new(fact), Some(marker)));
        }
        machine.handle(now, asked);
        let mut answered = false;
        while let Some(effect) = machine.poll_effect(&mut NoPatches) {
            match effect {
                Effect::WriteStatus { id, .. } => {
                    version += 1;
                    machine.handle(now, Input::Outcome(id, Outcome::Written(version)));
                }
                Effect::Answer(_) => answered = true,
                Effect::ReadSpread { .. } => {}
            }
        }
        assert!(answered, "an admission is answered");
    }
    let bound = if simulates { 200.0 } else { 20.0 };
    Measured::time_us(mean_us(began, ADMISSIONS), bound)
}

/// A sync of a workload with 10,000 pods in four subsets, from the trigger to rest. Only the status has to be written.
fn sync() -> Measured {
    let world = BenchCluster::new();
    let limits = controller::Limits {
        pause: Span::default(),
        ..controller::Limits::production()
    };
    let mut machine = SpreadController::new(world.names.clone(), limits);
    let now = Instant::from_secs(10_000);
    let owner = workload(&world, 0);
    machine.handle(now, controller::Input::WorkloadSet(Box::new(owner.clone())));
    for i in 0..10_000 {
        let pod = pod(&owner, i);
        machine.handle(now, controller::Input::PodSet(Box::new(pod)));
    }
    let mut ws = world::spread_of_four(&world);
    let began = measure::cpu_ns();
    for i in 0..SYNCS {
        ws.generation += 1;
        ws.version += 1;
        machine.handle(now, controller::Input::SpreadSet(Box::new(ws.clone())));
        while let Some(effect) = machine.poll_effect(&mut NoPatches) {
            use controller::Effect;
            match effect {
                Effect::WriteStatus { id, status, .. } => {
                    ws.status = status;
                    machine.handle(now, controller::Input::Outcome(id, controller::Outcome::Ok));
                }
                other => panic!("nothing else is to be written: {other:?}"),
            }
        }
        assert!(
            ws.status.overall.iter().map(|r| r.replicas).sum::<i32>() == 10_000,
            "{i}"
        );
    }
    Measured::time_us(mean_us(began, SYNCS), 20_000.0)
}

/// 2,000 creates as a ReplicaSet's controller makes them: batches of 1, 2, 4 …, each after the answers to the previous
/// one.
fn group_commit_slow_start() -> Measured {
    let mut sizes = Vec::new();
    let (mut size, mut left) = (1, 2_000);
    while left > 0 {
        let n = size.min(left);
        sizes.push(n);
        left -= n;
        size *= 2;
    }
    group_commit(|tick, idle| match idle {
        true => sizes.get(tick).copied().map(|n| (n, true)),
        false => Some((0, false)),
    })
}

/// 2,000 creates, ten per millisecond, without waiting for answers.
fn group_commit_open() -> Measured {
    group_commit(|tick, _| (tick < 200).then_some((10, true)))
}

/// Pods per write, if a write takes 5 ms. `arrivals` is called each millisecond: it returns the number of creates, and
/// true if that was a step of its own; `None` ends the measurement.
fn group_commit(mut arrivals: impl FnMut(usize, bool) -> Option<(usize, bool)>) -> Measured {
    let world = BenchCluster::new();
    let mut machine = admission(&world);
    let mut now = Instant::from_secs(1_000);
    let mut ws = spread(&world, 0, false);
    let mut subsets = ws.spec.subsets.to_vec();
    subsets[0].max_replicas = Some(strew_workloadspread::MaxReplicas::Count(5_000));
    ws.spec = std::sync::Arc::new(strew_workloadspread::Spec {
        any_kind: false,
        subsets: subsets.into(),
        ..(*ws.spec).clone()
    });
    ws.status = Default::default();
    machine.handle(now, Input::SpreadSet(Box::new(ws)));
    machine.handle(now, Input::WorkloadSet(Box::new(workload(&world, 0))));
    let (mut asked, mut answered, mut writes, mut version, mut step) = (0u64, 0u64, 0u64, 10, 0);
    let mut under_way = VecDeque::new();
    for _ in 0..100_000 {
        match arrivals(step, asked == answered) {
            Some((n, steps)) => {
                step += usize::from(steps);
                for _ in 0..n {
                    let one = request(&world, asked, 0);
                    machine.handle(now, Input::AdmitAsked(Box::new(one)));
                    asked += 1;
                }
            }
            None if asked == answered => break,
            None => {}
        }
        if under_way.front().is_some_and(|&(at, _)| at <= now)
            && let Some((_, id)) = under_way.pop_front()
        {
            version += 1;
            machine.handle(now, Input::Outcome(id, Outcome::Written(version)));
        }
        while let Some(effect) = machine.poll_effect(&mut NoPatches) {
            match effect {
                Effect::WriteStatus { id, .. } => {
                    writes += 1;
                    under_way.push_back((now + Span::from_millis(5), id));
                }
                Effect::Answer(_) => answered += 1,
                Effect::ReadSpread { .. } => {}
            }
        }
        now = now + Span::from_millis(1);
    }
    assert_eq!((asked, answered), (2_000, 2_000), "everybody is answered");
    Measured::pods_a_write(answered as f64 / writes as f64, 20.0)
}
