//! Short rollouts, played by the code that `strew simulate` plays with, on nodes that are made for it.

use std::collections::HashMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde_json::{Value, json};
use strew_manifest::read::Sources;
use strew_scenario::format::{API_VERSION, KIND, load};
use strew_scenario::run::{Plan, play as play_seed, scheduler_of};

/// How often a rollout is played.
pub(crate) const SEEDS: i64 = 10;

/// The most pods of a rollout that is played.
const PODS_MAX: i32 = 50;

/// The most different rollouts that are played, with and without matchLabelKeys; equal ones are played once.
const PLAYS_MAX: usize = 80;

/// How many domains the nodes are in where the files do not say it.
const DOMAINS: i64 = 3;

/// The most domains that are made.
const DOMAINS_MAX: i64 = 12;

/// How often a rollout ended over its maxSkew.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uneven {
    pub(crate) times: i64,
    /// The largest skew.
    pub(crate) skew: i64,
    pub(crate) n_domains: i64,
}

/// What was played already.
#[derive(Default)]
pub(crate) struct Plays {
    known: HashMap<String, Option<Uneven>>,
}

impl Plays {
    /// Why the rollout of a Deployment of so many pods is not played; `None`: it is.
    pub(crate) fn refusal(&self, n_pods: i64) -> Option<String> {
        match n_pods {
            n if n > i64::from(PODS_MAX) => {
                Some(format!("{n} pods, and at most {PODS_MAX} are played"))
            }
            _ if self.known.len() >= PLAYS_MAX => Some(format!(
                "{} different rollouts of these files were played",
                PLAYS_MAX / 2
            )),
            _ => None,
        }
    }
}

/// Plays a rollout of a Deployment with one constraint, which counts all of its pods, over this number of domains, or over
/// three for 0; `None`: it was not played, since
/// it is too large or too much was played already.
pub(crate) fn play(
    deployment: &Deployment,
    constraint: &TopologySpreadConstraint,
    n_domains: usize,
    plays: &mut Plays,
) -> Option<Uneven> {
    let n_domains = match i64::try_from(n_domains).ok()? {
        0 => DOMAINS,
        n => n.min(DOMAINS_MAX),
    };
    let spec = deployment.spec.as_ref()?;
    let replicas = spec.replicas.unwrap_or(1);
    if !(2..=PODS_MAX).contains(&replicas) {
        return None;
    }
    let keys = constraint.match_label_keys.iter().flatten();
    let keys: Vec<&String> = keys.filter(|key| *key == "pod-template-hash").collect();
    // Only what decides about the spread, so that equal rollouts are played once.
    let workload = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "w"},
        "spec": {
            "replicas": replicas,
            "minReadySeconds": 0,
            "strategy": serde_json::to_value(&spec.strategy).unwrap_or(Value::Null),
            "selector": {"matchLabels": {"app": "w"}},
            "template": {
                "metadata": {"labels": {"app": "w"}},
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "topologySpreadConstraints": [{
                        "maxSkew": constraint.max_skew,
                        "topologyKey": DOMAIN,
                        "whenUnsatisfiable": "DoNotSchedule",
                        "minDomains": constraint.min_domains.map(|min| i64::from(min).min(n_domains)),
                        "matchLabelKeys": keys,
                        "labelSelector": {"matchLabels": {"app": "w"}},
                    }],
                },
            },
        },
    });
    let text = format!("{n_domains} {workload}");
    if let Some(known) = plays.known.get(&text) {
        return *known;
    }
    if plays.known.len() >= PLAYS_MAX {
        return None;
    }
    let played = rollouts(&workload, n_domains);
    plays.known.insert(text, played);
    played
}

const DOMAIN: &str = "topology.kubernetes.io/zone";

fn rollouts(workload: &Value, n_domains: i64) -> Option<Uneven> {
    let nodes = (0..n_domains).map(|domain| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": format!("node-{domain}"), "labels": {DOMAIN: format!("{domain}")}},
            "status": {"allocatable": {"cpu": "1000", "memory": "1000Gi", "pods": "1000"}},
        })
    });
    let scenario = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "lint"},
        "spec": {"timeline": [
            {"name": "deploy", "rest": {}},
            {"name": "rollout", "rollout-restart": ["deployment/w"], "rest": {}, "expect": [{"withinConstraints": {}}]},
        ]},
    });
    let documents: Vec<String> = nodes
        .chain([workload.clone(), scenario])
        .map(|value| value.to_string())
        .collect();
    let mut sources = Sources::new();
    sources.add("lint", documents.join("\n---\n"));
    let loaded = load(&sources);
    let variant = loaded.variants.first()?;
    let gates = &variant.scenario.feature_gates;
    let configure = scheduler_of(&sources, &variant.objects, gates).ok()?;
    let plan = Plan::new(&variant.scenario, &variant.objects, configure).ok()?;
    let mut uneven = Uneven {
        times: 0,
        skew: 0,
        n_domains,
    };
    for seed in 1..=SEEDS {
        let played = play_seed(&plan, u64::try_from(seed).ok()?, None, &mut ()).ok()?;
        let outcome = played.steps.get(1)?.expectations.first()?;
        if outcome.held || outcome.is_unknown || outcome.is_open {
            continue;
        }
        uneven.times += 1;
        let skews = outcome
            .findings
            .iter()
            .filter_map(|f| f.numbers.get("skew"));
        uneven.skew = skews.copied().max().unwrap_or(0).max(uneven.skew);
    }
    Some(uneven)
}
