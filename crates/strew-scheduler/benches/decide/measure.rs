//! The measurements themselves.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use strew_cluster::{Cluster, NodeIdx, PodIdx};
use strew_scheduler::naive::NaiveSpread;
use strew_scheduler::{Decision, Engine, PluginId, Profile};

use crate::clock::{cpu_ns, rss_mib};
use crate::machine;
use crate::world::{Config, Maker, Size};

/// One thing that is measured, in a process of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Measurement {
    /// Decisions over a filled cluster, each assumed; and the spread plugin alone.
    Cycle { size: Size, config: Config },
    /// One Deployment from nothing.
    Deployment { nodes: usize, replicas: usize },
    /// The model from facts in memory.
    Build { size: Size },
    /// Pods through the whole machine.
    Queue { nodes: usize, pods: usize },
    /// Pods that fit nowhere, of classes that take turns.
    Refused {
        nodes: usize,
        pods: usize,
        classes: usize,
    },
    /// Every node changes while pods wait.
    Storm { nodes: usize, pods: usize },
}

/// How many decisions a round.
const DECISIONS: usize = 2_000;

impl Measurement {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Cycle { size, config } => format!("cycle/{}", scale(*size, config.name())),
            Self::Deployment { nodes, replicas } => format!("deployment/{nodes}/{replicas}"),
            Self::Build { size } => format!("build/{}", scale(*size, "any")),
            Self::Queue { nodes, pods } => format!("queue/{nodes}/{pods}"),
            Self::Refused {
                nodes,
                pods,
                classes,
            } => format!("refused/{nodes}/{pods}/{classes}"),
            Self::Storm { nodes, pods } => format!("storm/{nodes}/{pods}"),
        }
    }

    pub(crate) fn run(&self) {
        match *self {
            Self::Cycle { size, config } => cycle(size, config),
            Self::Deployment { nodes, replicas } => deployment(nodes, replicas),
            Self::Build { size } => build(size),
            Self::Queue { nodes, pods } => machine::queue(nodes, pods),
            Self::Refused {
                nodes,
                pods,
                classes,
            } => machine::refused(nodes, pods, classes),
            Self::Storm { nodes, pods } => machine::storm(nodes, pods),
        }
    }
}

fn scale(size: Size, config: &str) -> String {
    format!(
        "{}/{}/{}z/{}a/{config}",
        size.nodes,
        size.pods(),
        size.zones,
        size.apps
    )
}

/// One line of the report.
pub(crate) struct Line<'a> {
    pub(crate) bench: &'a str,
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
    pub(crate) config: String,
    pub(crate) samples_ns: Vec<u64>,
    pub(crate) cpu_ns: u64,
    pub(crate) naive_ns: Option<u64>,
    pub(crate) rss: f64,
}

impl Line<'_> {
    pub(crate) fn print(mut self) {
        self.samples_ns.sort_unstable();
        let n = self.samples_ns.len().max(1);
        let quantile = |q: usize| {
            self.samples_ns
                .get((n * q / 100).min(n - 1))
                .copied()
                .unwrap_or(0) as f64
                / 1e3
        };
        let cpu_us = self.cpu_ns as f64 / n as f64 / 1e3;
        let naive_ratio = match self.naive_ns {
            Some(naive) => format!("{:.0}", naive as f64 / 1e3 / cpu_us.max(1e-3)),
            None => "null".to_owned(),
        };
        println!(
            "{{\"bench\":\"{}\",\"nodes\":{},\"pods\":{},\"config\":\"{}\",\"cpu_us_per_pod\":{cpu_us:.2},\"p50_us\":{:.2},\"p99_us\":{:.2},\"rss_mib\":{:.1},\"naive_ratio\":{naive_ratio}}}",
            self.bench,
            self.nodes,
            self.pods,
            self.config,
            quantile(50),
            quantile(99),
            self.rss,
        );
    }
}

/// Calls `act` for each item, timing each; returns the samples and the CPU time of all.
pub(crate) fn timed<T>(items: impl Iterator<Item = T>, mut act: impl FnMut(T)) -> (Vec<u64>, u64) {
    let mut samples = Vec::new();
    let before = cpu_ns();
    for item in items {
        let start = Instant::now();
        act(item);
        samples.push(start.elapsed().as_nanos() as u64);
    }
    (samples, cpu_ns() - before)
}

pub(crate) fn decide_and_assume(engine: &mut Engine, cluster: &mut Cluster, pod: PodIdx) {
    match engine.decide(cluster, pod) {
        Decision::Place { node, .. } => cluster.bind(pod, node),
        Decision::Unfit(why) => panic!("the benchmark's pods fit: {why:?}"),
    }
}

fn cycle(size: Size, config: Config) {
    let mut cluster = Cluster::new();
    let maker = Maker::new(&mut cluster.names, size, config);
    maker.fill(&mut cluster);
    let incoming = |k| maker.pod(1_000_000_000 + k, k % size.apps, None);
    let pods: Vec<PodIdx> = (0..DECISIONS.max(size.apps))
        .map(|k| cluster.set_pod(incoming(k)))
        .collect();
    let rss = rss_mib();
    let line = |bench, (samples_ns, cpu_ns), naive_ns| Line {
        bench,
        nodes: size.nodes,
        pods: size.pods(),
        config: format!("{}{}", config.name(), suffix(size)),
        samples_ns,
        cpu_ns,
        naive_ns,
        rss,
    };
    let cold = cold(&cluster, config.profile(), &pods[..size.apps]);
    let whole = warm(&mut cluster, config.profile(), size, &pods);
    line("cycle", whole, None).print();
    line("cycle-cold", cold, None).print();

    let naive = (size.apps <= 10 && config != Config::SelectorSpread)
        .then(|| naive_spread_ns(&cluster, &Engine::new(config.profile()), &pods));
    let alone = warm(&mut cluster, spread_alone(config), size, &pods);
    line("spread", alone, naive).print();
}

/// The spreading plugin without all others: for each pod its PreFilter, Filter, PreScore, Score and NormalizeScore.
fn spread_alone(config: Config) -> Profile {
    let profile = config.profile();
    let plugin = match config {
        Config::SelectorSpread => PluginId::SelectorSpread,
        _ => PluginId::PodTopologySpread,
    };
    Profile {
        filters: vec![PluginId::PodTopologySpread],
        scores: vec![(plugin, 2)],
        ..profile
    }
}

/// The first pod of each class, on a cluster that has counted nothing yet.
fn cold(cluster: &Cluster, profile: Profile, pods: &[PodIdx]) -> (Vec<u64>, u64) {
    let mut all = (Vec::new(), 0);
    while all.0.len() < 100 {
        let mut cluster = cluster.clone();
        let mut engine = Engine::new(profile.clone());
        let (samples, cpu) = timed(pods.iter(), |&pod| {
            decide_and_assume(&mut engine, &mut cluster, pod)
        });
        all.0.extend(samples);
        all.1 += cpu;
    }
    all
}

/// Rounds of decisions, each assumed; between rounds all are taken off again. Classes are warm when a round begins.
fn warm(cluster: &mut Cluster, profile: Profile, size: Size, pods: &[PodIdx]) -> (Vec<u64>, u64) {
    let mut engine = Engine::new(profile);
    let mut all = (Vec::new(), 0);
    // CPU time comes in ticks of some milliseconds: enough of them make the mean good.
    while all.1 < 150_000_000 && all.0.len() < 100 * DECISIONS {
        for _ in 0..3 {
            pods[..size.apps].iter().for_each(|&pod| {
                black_box(engine.decide(cluster, pod));
            });
        }
        let (samples, cpu) = timed(pods.iter(), |&pod| {
            decide_and_assume(&mut engine, cluster, pod)
        });
        all.0.extend(samples);
        all.1 += cpu;
        pods.iter().for_each(|&pod| cluster.unbind(pod));
    }
    all
}

fn suffix(size: Size) -> String {
    match (size.zones, size.apps) {
        (3, 10) => String::new(),
        (zones, 10) => format!(" zones={zones}"),
        (_, apps) => format!(" apps={apps}"),
    }
}

/// The same question put to the plain recount; time a pod.
fn naive_spread_ns(cluster: &Cluster, engine: &Engine, pods: &[PodIdx]) -> u64 {
    let rounds = 3.min(pods.len());
    let start = Instant::now();
    for &pod in &pods[..rounds] {
        let naive = NaiveSpread::new(cluster, engine.profile(), pod);
        let passing: Vec<NodeIdx> = naive
            .filter()
            .into_iter()
            .filter(|(_, r)| r.is_none())
            .map(|(n, _)| n)
            .collect();
        black_box(naive.score(&passing));
    }
    start.elapsed().as_nanos() as u64 / rounds as u64
}

fn deployment(nodes: usize, replicas: usize) {
    for config in [Config::SystemDefaults, Config::ZoneAndHost] {
        let size = Size {
            nodes,
            pods_per_node: 0,
            zones: 3,
            apps: 1,
        };
        let mut cluster = Cluster::new();
        let maker = Maker::new(&mut cluster.names, size, config);
        maker.fill(&mut cluster);
        let pods: Vec<PodIdx> = (0..replicas)
            .map(|k| cluster.set_pod(maker.pod(k, 0, None)))
            .collect();
        let mut engine = Engine::new(config.profile());
        let (samples_ns, cpu_ns) = timed(pods.iter(), |&p| {
            decide_and_assume(&mut engine, &mut cluster, p)
        });
        let config = config.name().to_owned();
        Line {
            bench: "deployment",
            nodes,
            pods: replicas,
            config,
            samples_ns,
            cpu_ns,
            naive_ns: None,
            rss: rss_mib(),
        }
        .print();
    }
}

fn build(size: Size) {
    let mut cluster = Cluster::new();
    let maker = Maker::new(&mut cluster.names, size, Config::ZoneAndHost);
    let (nodes, pods) = (maker.node_facts(), maker.pod_facts().collect::<Vec<_>>());
    let before = cpu_ns();
    let start = Instant::now();
    nodes.into_iter().for_each(|fact| {
        cluster.set_node(fact);
    });
    pods.into_iter().for_each(|fact| {
        cluster.set_pod(fact);
    });
    let (samples_ns, cpu_ns) = (vec![start.elapsed().as_nanos() as u64], cpu_ns() - before);
    black_box(&cluster);
    let config = "whole model".to_owned();
    Line {
        bench: "build",
        nodes: size.nodes,
        pods: size.pods(),
        config,
        samples_ns,
        cpu_ns,
        naive_ns: None,
        rss: rss_mib(),
    }
    .print();
}
