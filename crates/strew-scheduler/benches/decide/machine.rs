//! The machine around the decisions: what queue, assumption and confirmation add, and storms of events.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant as Clock;

use strew_cluster::{NodeFact, PodFact};
use strew_model::{Instant, Interner, Labels, Symbol};
use strew_scheduler::machine::{Effect, Input, Limits, Outcome, Scheduler};

use crate::clock::{cpu_ns, rss_mib};
use crate::measure::{Line, decide_and_assume, timed};
use crate::world::{Config, Maker, Size};

/// How many pods are handed over at a time.
const CHUNK: usize = 1_000;

const NOW: Instant = Instant::from_secs(1_000_000);

fn pod_set(fact: PodFact) -> Input {
    Input::PodSet {
        fact: Box::new(fact),
        condition: None,
    }
}

fn scheduler(size: Size, config: Config) -> (Scheduler, Maker) {
    let mut names = Interner::new();
    let maker = Maker::new(&mut names, size, config);
    names.intern("rack");
    let mut scheduler = Scheduler::new(names, vec![config.profile()], Limits::production(), NOW);
    for fact in maker.node_facts() {
        scheduler.handle(NOW, Input::NodeSet(fact));
    }
    for (namespace, name, selector) in maker.services() {
        scheduler.handle(
            NOW,
            Input::ServiceSet {
                namespace,
                name,
                selector: Some(selector),
            },
        );
    }
    (scheduler, maker)
}

/// Pods through queue, decision, assumption and confirmation; and the bare decisions on as many for comparison.
pub(crate) fn queue(nodes: usize, pods: usize) {
    let size = Size {
        nodes,
        pods_per_node: 0,
        zones: 3,
        apps: 10,
    };
    for config in [Config::Nothing, Config::SystemDefaults, Config::ZoneAndHost] {
        let line = |bench, samples_ns, cpu_ns| Line {
            bench,
            nodes,
            pods,
            config: config.name().to_owned(),
            samples_ns,
            cpu_ns,
            naive_ns: None,
            rss: rss_mib(),
        };
        let (samples, cpu) = bare(size, config, pods);
        line("queue-bare", samples, cpu).print();
        let (samples, cpu) = through(size, config, pods);
        line("queue", samples, cpu).print();
    }
}

fn bare(size: Size, config: Config, pods: usize) -> (Vec<u64>, u64) {
    let (scheduler, maker) = scheduler(size, config);
    let mut cluster = scheduler.cluster().clone();
    let mut engine = strew_scheduler::Engine::new(config.profile());
    let pods: Vec<_> = (0..pods)
        .map(|k| cluster.set_pod(maker.pod(k, k % size.apps, None)))
        .collect();
    timed(pods.into_iter(), |pod| {
        decide_and_assume(&mut engine, &mut cluster, pod);
    })
}

fn through(size: Size, config: Config, pods: usize) -> (Vec<u64>, u64) {
    let (mut scheduler, maker) = scheduler(size, config);
    let chunks = || {
        (0..pods)
            .step_by(CHUNK)
            .map(|from| from..(from + CHUNK).min(pods))
    };
    let (mut samples, mut cpu) = (Vec::new(), 0);
    let before = rss_mib();
    for chunk in chunks() {
        let facts: Vec<Input> = chunk
            .map(|k| pod_set(maker.pod(k, k % size.apps, None)))
            .collect();
        let start = cpu_ns();
        facts
            .into_iter()
            .for_each(|fact| scheduler.handle(NOW, fact));
        cpu += cpu_ns() - start;
    }
    let bytes = (rss_mib() - before) * f64::from(1 << 20) / pods as f64;
    eprintln!("a pending pod takes {bytes:.0} bytes");
    for chunk in chunks() {
        let mut bound: Vec<(usize, Symbol)> = Vec::new();
        let start = cpu_ns();
        while bound.len() < chunk.len() {
            let sample = Clock::now();
            match scheduler.poll_effect() {
                Some(Effect::Bind { id, pod, node }) => {
                    let number = pod.uid.rsplit('-').next().and_then(|n| n.parse().ok());
                    bound.push((number.unwrap_or_default(), node));
                    let (effect, outcome) = (id, Outcome::Ok);
                    scheduler.handle(NOW, Input::Outcome { effect, outcome });
                    samples.push(sample.elapsed().as_nanos() as u64);
                }
                Some(_) => {}
                None => panic!("the benchmark's pods fit"),
            }
        }
        cpu += cpu_ns() - start;
        let fact = |(k, node): (usize, Symbol)| pod_set(maker.pod(k, k % size.apps, Some(node)));
        let facts: Vec<Input> = bound.into_iter().map(fact).collect();
        let start = cpu_ns();
        facts
            .into_iter()
            .for_each(|fact| scheduler.handle(NOW, fact));
        cpu += cpu_ns() - start;
    }
    (samples, cpu)
}

/// Pods that ask for more than any node has, of classes that take turns: what each refusal costs.
pub(crate) fn refused(nodes: usize, pods: usize, classes: usize) {
    let size = Size {
        nodes,
        pods_per_node: 0,
        zones: 3,
        apps: classes,
    };
    let (mut scheduler, maker) = scheduler(size, Config::ZoneAndHost);
    for k in 0..pods {
        let mut fact = maker.pod(k, k % classes, None);
        fact.spec.requests.cpu_milli = 65_000;
        scheduler.handle(NOW, pod_set(fact));
    }
    let (samples_ns, cpu_ns) = timed(0..pods, |_| while scheduler.poll_effect().is_some() {});
    assert_eq!(scheduler.queue_counts().unschedulable, pods);
    eprintln!("a refusal took {:.1} µs", cpu_ns as f64 / 1e3 / pods as f64);
    Line {
        bench: "refused",
        nodes,
        pods,
        config: format!("{classes} classes"),
        samples_ns,
        cpu_ns,
        naive_ns: None,
        rss: rss_mib(),
    }
    .print();
}

/// Each node changes its allocatable, a label and a taint, while many pods wait that none of it helps.
pub(crate) fn storm(nodes: usize, pods: usize) {
    let apps = 100;
    let size = Size {
        nodes,
        pods_per_node: 0,
        zones: 3,
        apps,
    };
    let (mut scheduler, maker) = scheduler(size, Config::ZoneAndHost);
    let rack = scheduler.names_mut().intern("rack");
    for k in 0..pods {
        let mut fact = maker.pod(k, k % apps, None);
        match k / apps % 3 {
            // More than any node has.
            0 => fact.spec.requests.cpu_milli = 65_000,
            // A label that no node has.
            1 => fact.spec.node_affinity.node_selector = Labels::new(vec![(rack, rack)]),
            // A topology key that no node has.
            _ => fact.spec.spread.iter_mut().for_each(|c| c.key = rack),
        }
        scheduler.handle(NOW, pod_set(fact));
    }
    while scheduler.poll_effect().is_some() {}
    let counts = scheduler.queue_counts();
    assert_eq!(counts.unschedulable, pods, "{counts:?}");
    let changed = |mut fact: NodeFact| {
        fact.allocatable.memory += 1;
        fact.taints = [strew_model::Taint::UNSCHEDULABLE].into();
        fact.labels = fact.labels.with([(strew_model::well_known::REGION, rack)]);
        Input::NodeSet(fact)
    };
    let updates: Vec<Input> = maker.node_facts().into_iter().map(changed).collect();
    let (samples_ns, cpu_ns) = timed(updates.into_iter(), |update| scheduler.handle(NOW, update));
    assert_eq!(scheduler.queue_counts(), counts, "nothing helped");
    eprintln!("the storm took {:.1} ms", cpu_ns as f64 / 1e6);
    Line {
        bench: "storm",
        nodes,
        pods,
        config: "allocatable, label and taint of each node".to_owned(),
        samples_ns,
        cpu_ns,
        naive_ns: None,
        rss: rss_mib(),
    }
    .print();
}
