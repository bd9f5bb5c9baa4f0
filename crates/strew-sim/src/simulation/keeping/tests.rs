use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::{Value, json};
use strew_apiserver::object::{Object, Pod};
use strew_manifest::read::KubeObject;
use strew_model::time::Span;
use strew_model::{Interner, Prng};
use strew_wire::config::{AdmissionOptions, FeatureGates, Given, configure};

use super::*;
use crate::{Blueprint, Settings, Timing};

const ZONE: &str = "topology.kubernetes.io/zone";

/// A Deployment with this label over three zones, maxSkew 1.
struct SpreadDeployment {
    sim: Simulation,
    n_nodes: usize,
    label: &'static str,
}

fn object(manifest: Value) -> Object {
    Object::of_wire(KubeObject::of_json(manifest).unwrap())
}

fn node(index: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": format!("node-{index}"),
            "labels": {ZONE: format!("zone-{}", index % 3), "kubernetes.io/hostname": format!("node-{index}")},
        },
        "status": {
            "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn deployment(replicas: usize, label: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": {LABEL: label}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "c", "image": "a"}],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
                        "labelSelector": {"matchLabels": {"app": "web"}},
                    }],
                },
            },
        },
    })
}

impl SpreadDeployment {
    fn new(seed: u64, n_nodes: usize, replicas: usize, label: &'static str) -> Self {
        let manifests = (0..n_nodes).map(node);
        let mut names = Interner::new();
        let configured = configure(Given::Nothing, &FeatureGates::default(), &mut names).unwrap();
        let mut sim = Simulation::new(Settings {
            seed,
            objects: manifests.map(object).collect(),
            options: AdmissionOptions::KUBERNETES_1_36,
            scheduler: Blueprint::of(&configured, names),
            elects: false,
            controllers: Arc::new(crate::controllers),
            timing: Timing::default(),
            groups: Vec::new(),
            autoscaler: None,
        });
        // Applied, so that it has the API server's defaults.
        sim.apply(&deployment(replicas, label)).unwrap();
        Self {
            sim,
            n_nodes,
            label,
        }
    }

    fn live(&mut self, secs: u64) {
        let end = Span(self.sim.elapsed().0 + Span::from_secs(secs).0);
        let ended = self.sim.run_until(end, &mut |_| ControlFlow::Continue(()));
        assert_eq!(ended, Ok(ControlFlow::Continue(())));
    }

    fn scale(&mut self, replicas: usize) {
        let manifest = deployment(replicas, self.label);
        self.sim.apply(&manifest).unwrap();
    }

    fn per_zone(&self) -> BTreeMap<usize, usize> {
        let mut zones: BTreeMap<usize, usize> = (0..3).map(|zone| (zone, 0)).collect();
        for pod in self.sim.server().tables().of::<Pod>().iter() {
            if !pod.is_active() {
                continue;
            }
            let node = pod.node.as_deref().unwrap();
            let index: usize = node.trim_start_matches("node-").parse().unwrap();
            assert!(index < self.n_nodes);
            *zones.entry(index % 3).or_default() += 1;
        }
        zones
    }

    fn is_even(&self) -> bool {
        let zones = self.per_zone();
        let (least, most) = (zones.values().min().unwrap(), zones.values().max().unwrap());
        most - least <= 1
    }
}

#[test]
fn twelve_to_six_to_three_stays_even() {
    let mut n_uneven_without = 0;
    for seed in 0..20 {
        for label in ["true", "false"] {
            let mut world = SpreadDeployment::new(seed, 12, 12, label);
            world.live(60);
            for n in [6, 3] {
                world.scale(n);
                world.live(30);
                assert_eq!(world.per_zone().values().sum::<usize>(), n);
                match label {
                    "true" => assert!(world.is_even(), "seed {seed}: {:?}", world.per_zone()),
                    _ => n_uneven_without += usize::from(!world.is_even()),
                }
            }
            let keeper = world.sim.keeper();
            assert_eq!(keeper.is_some(), label == "true");
            if let Some(keeper) = keeper {
                let written = keeper.counters().written;
                assert!(written <= 24, "seed {seed}: {written} writes");
            }
        }
    }
    assert!(n_uneven_without > 20, "{n_uneven_without} of 40");
}

/// The numbers of docs/keep.md: random sizes, each a scale-down from the one before.
#[test]
fn random_scale_downs_end_within_max_skew() {
    let n_wanted = if cfg!(debug_assertions) { 100 } else { 1_000 };
    let mut counts = BTreeMap::new();
    for label in ["true", "false"] {
        let mut dice = Prng::new(41);
        let (mut n, mut n_even, mut n_written) = (0, 0, 0);
        for seed in 0.. {
            let n_nodes = 3 * dice.between(1, 6) as usize;
            let mut replicas = dice.between(6, 30) as usize;
            let mut world = SpreadDeployment::new(seed, n_nodes, replicas, label);
            world.live(60);
            let written =
                |world: &SpreadDeployment| world.sim.keeper().map_or(0, |k| k.counters().written);
            let at_first = written(&world);
            while replicas > 1 && n < n_wanted {
                replicas = dice.between(1, replicas as u64 - 1) as usize;
                world.scale(replicas);
                world.live(20);
                n += 1;
                n_even += usize::from(world.is_even());
            }
            n_written += written(&world) - at_first;
            if n == n_wanted {
                break;
            }
        }
        assert_eq!(n_written, 0, "a scale-down needs no write");
        counts.insert(label, n_even);
    }
    assert_eq!(counts["true"], n_wanted);
    assert!(counts["false"] < n_wanted, "{counts:?}");
}
