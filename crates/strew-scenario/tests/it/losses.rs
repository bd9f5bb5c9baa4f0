//! What a loss does to a workload: the verdicts of the story against a second, plain reading of their rules.
//!
//! A thousand files: a Deployment or StatefulSet of 1 to 12 replicas, with each usual budget, over 2 to 4 zones with room
//! for all, with and without a hard constraint over zones.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde_json::json;
use strew_apiserver::object::{Name, Node, Pod};
use strew_manifest::read::Sources;
use strew_scenario::format::{Step, load};
use strew_scenario::run::{Plan, StepResult, Watcher, play, scheduler_of};
use strew_scenario::story::story;
use strew_sim::Simulation;

const ZONE: &str = "topology.kubernetes.io/zone";

/// A budget as a person writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Budget {
    None,
    MinAvailable(u32),
    MinAvailablePercent(u32),
    MaxUnavailable(u32),
    MaxUnavailablePercent(u32),
}

/// One file.
#[derive(Debug, Clone, Copy)]
struct Case {
    replicas: u32,
    budget: Budget,
    n_zones: u32,
    is_hard: bool,
    is_stateful: bool,
}

impl Case {
    fn manifests(self) -> String {
        let labels = json!({"app": "web"});
        let mut pod = json!({"containers": [{"name": "c", "image": "i"}]});
        if self.is_hard {
            pod["topologySpreadConstraints"] = json!([{
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": labels},
            }]);
        }
        let mut spec = json!({
            "replicas": self.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        });
        let kind = match self.is_stateful {
            true => "StatefulSet",
            false => "Deployment",
        };
        if self.is_stateful {
            spec["podManagementPolicy"] = "Parallel".into();
            spec["serviceName"] = "web".into();
        }
        let workload = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec});
        let budget = match self.budget {
            Budget::None => None,
            Budget::MinAvailable(n) => Some(("minAvailable", json!(n))),
            Budget::MinAvailablePercent(n) => Some(("minAvailable", json!(format!("{n}%")))),
            Budget::MaxUnavailable(n) => Some(("maxUnavailable", json!(n))),
            Budget::MaxUnavailablePercent(n) => Some(("maxUnavailable", json!(format!("{n}%")))),
        };
        let budget = budget.map(|(field, value)| {
            json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "web"},
                "spec": {field: value, "selector": {"matchLabels": labels}},
            })
        });
        let nodes = (0..self.n_zones * 2).map(|n| {
            let (name, zone) = (format!("n{n}"), format!("z{}", n % self.n_zones));
            json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {ZONE: zone}},
                "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
            })
        });
        let all = std::iter::once(workload).chain(budget).chain(nodes);
        all.map(|object| format!("{object}\n---\n")).collect()
    }

    /// The pods that must stay healthy, of those that the workload asks for.
    fn budget_asks(self) -> u32 {
        let n = self.replicas;
        let up = |percent: u32| (n * percent).div_ceil(100);
        match self.budget {
            Budget::None => 0,
            Budget::MinAvailable(k) => k.min(n),
            Budget::MinAvailablePercent(p) => up(p).min(n),
            Budget::MaxUnavailable(k) => n.saturating_sub(k),
            Budget::MaxUnavailablePercent(p) => n.saturating_sub(up(p)),
        }
    }

    /// The verdict, from the pods by zone before the loss and the ready pods at rest.
    fn verdict(self, by_zone: &BTreeMap<String, u32>, lost: &str, ready: u32) -> &'static str {
        let gone = by_zone.get(lost).copied().unwrap_or(0);
        let left: u32 = self.replicas - gone;
        match (self.is_stateful, self.is_hard) {
            // The name is taken while the old pod is Terminating.
            (true, _) => assert_eq!(ready, left, "{self:?}"),
            (false, false) => assert_eq!(ready, self.replicas, "{self:?}"),
            // How many come back depends on which pod of the lost zone is evicted first, and counts no longer.
            (false, true) => assert!((left..=self.replicas).contains(&ready), "{self:?}"),
        }
        match () {
            () if ready == 0 || ready < self.budget_asks() => "LOST",
            () if left == 0 => "OUTAGE",
            () if ready < self.replicas => "DEGRADED",
            () => "SURVIVES",
        }
    }
}

/// Pods by zone when the step `lose` begins, and ready pods outside the lost zone when it is over.
#[derive(Default)]
struct Counted {
    before: BTreeMap<String, u32>,
    ready: u32,
}

impl Watcher for Counted {
    fn begin_step(&mut self, _number: usize, step: &Step, simulation: &Simulation) {
        if step.name.as_deref() != Some("lose") {
            return;
        }
        let tables = simulation.server().tables();
        let zone = |node: &Node| node.meta.label(ZONE).unwrap().to_owned();
        self.before = tables.of::<Node>().iter().map(|n| (zone(n), 0)).collect();
        for pod in tables.of::<Pod>().iter() {
            let node = pod.node.clone().unwrap();
            let node = tables.get::<Node>(&Name::new("", node)).unwrap();
            *self.before.get_mut(&zone(node)).unwrap() += 1;
        }
    }

    fn step(
        &mut self,
        _number: usize,
        _step: &Step,
        result: &StepResult,
        simulation: &Simulation,
    ) -> ControlFlow<()> {
        let tables = simulation.server().tables();
        let lost = result.chosen.first();
        let is_there = |pod: &&Arc<Pod>| {
            let node = pod.node.clone().map(|node| Name::new("", node));
            let node = node.and_then(|node| tables.get::<Node>(&node).cloned());
            let zone = node.and_then(|node| node.meta.label(ZONE).map(str::to_owned));
            pod.is_ready() && pod.is_active() && zone.is_some() && zone.as_ref() != lost
        };
        self.ready = tables.of::<Pod>().iter().filter(is_there).count() as u32;
        ControlFlow::Continue(())
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for replicas in 1..=12 {
        for budget in [
            Budget::None,
            Budget::MinAvailable(1),
            Budget::MinAvailable(2),
            Budget::MinAvailable(replicas.max(2) - 1),
            Budget::MinAvailable(replicas),
            Budget::MinAvailablePercent(50),
            Budget::MinAvailablePercent(80),
            Budget::MaxUnavailable(1),
            Budget::MaxUnavailable(2),
            Budget::MaxUnavailablePercent(25),
        ] {
            for n_zones in 2..=4 {
                for (is_hard, is_stateful) in [(false, false), (true, false), (false, true)] {
                    cases.push(Case {
                        replicas,
                        budget,
                        n_zones,
                        is_hard,
                        is_stateful,
                    });
                }
            }
        }
    }
    cases
}

#[test]
fn verdicts_are_those_of_a_plain_reading() {
    let cases = cases();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let manifests = case.manifests();
        let mut sources = Sources::new();
        sources.add("in.yaml", manifests.as_str());
        let stream = load(&sources).objects;
        let mut document = story(&stream, &[], &[], Some(number as u64), &BTreeMap::new());
        let timeline = document["spec"]["timeline"].as_array_mut().unwrap();
        timeline.retain(|step| ["deploy", "lose"].contains(&step["name"].as_str().unwrap()));
        let loaded = crate::good(&format!("{manifests}{document}"));
        let variant = &loaded.variants[0];
        let gates = &variant.scenario.feature_gates;
        let scheduler = scheduler_of(&Sources::new(), &variant.objects, gates).unwrap();
        let plan = Plan::new(&variant.scenario, &variant.objects, scheduler).unwrap();
        let mut counted = Counted::default();
        let played = play(&plan, number as u64, None, &mut counted).unwrap();
        let lose = &played.steps[1];
        let lost = lose.chosen[0].as_str();
        let expected = case.verdict(&counted.before, lost, counted.ready);
        let found = &lose.facts.losses[0].loss;
        assert_eq!(
            found.verdict().name(),
            expected,
            "seed {number}: {case:?}, {:?} without {lost}: {found:?}",
            counted.before
        );
        assert_eq!(played.held(), expected != "LOST", "{case:?}: {played:?}");
        *seen.entry(expected).or_default() += 1;
    }
    assert!(cases.len() >= 1000, "{} files", cases.len());
    let kinds: Vec<&str> = seen.keys().copied().collect();
    assert_eq!(
        kinds,
        ["DEGRADED", "LOST", "OUTAGE", "SURVIVES"],
        "{seen:?}"
    );
}
