//! Short rollouts, played by the code that `strew simulate` plays with, on nodes that are made for it.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use strew_manifest::read::Sources;
use strew_scenario::format::{API_VERSION, KIND, load};
use strew_scenario::run::{Plan, play as play_seed, scheduler_of};

/// How often a rollout is played: as often as the story of a small cluster.
pub(crate) const SEEDS: u32 = 20;

/// The most pods of a rollout that is played.
const PODS_MAX: i64 = 50;

/// The most pods that all plays together make; equal rollouts are played once.
const PLAYED_MAX: i64 = 5_000;

/// The nodes that are made, and the domains that they are in where the files do not say it: those of `strew simulate`.
const NODES: usize = 12;
const DOMAINS: usize = 3;

/// The label by which a constraint counts one revision only.
pub(crate) const REVISION: &str = "pod-template-hash";

const HOSTNAME: &str = "kubernetes.io/hostname";

/// A rollout to play: what decides about the spread, and nothing else, so that equal ones are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Rollout {
    deployment: String,
    nodes: String,
    n_pods: i64,
    /// The topology key of the constraint that is looked at.
    key: String,
}

/// How often a rollout ended over its maxSkew.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uneven {
    pub(crate) times: i64,
    /// The largest skew.
    pub(crate) skew: i64,
}

/// What was played already.
#[derive(Default)]
pub(crate) struct Plays {
    known: HashMap<Rollout, Option<Uneven>>,
    n_pods: i64,
}

impl Rollout {
    /// The rollout of a Deployment, with an eye on one of its constraints. `counts` says which constraints count the
    /// Deployment's pods; others do not matter. `domains` has the number of domains of each key in the files.
    pub(crate) fn of(
        deployment: &Value,
        index: usize,
        counts: impl Fn(usize) -> bool,
        domains: impl Fn(&str) -> usize,
    ) -> Option<Self> {
        let spec = &deployment["spec"];
        let pod = &spec["template"]["spec"];
        let own = json!({"matchLabels": {"app": "w"}});
        let written = pod["topologySpreadConstraints"].as_array()?;
        let mut constraints = Vec::new();
        let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
        let counted = written.iter().enumerate().filter(|(i, _)| counts(*i));
        for (_, constraint) in counted {
            let mut value = constraint.clone();
            value["labelSelector"] = own.clone();
            let key = constraint["topologyKey"].as_str()?;
            let n_domains = match domains(key) {
                0 => DOMAINS,
                n => n.min(NODES),
            };
            keys.insert(key, n_domains);
            let is_above = |min: u64| min > n_domains as u64;
            if key != HOSTNAME && constraint["minDomains"].as_u64().is_some_and(is_above) {
                value["minDomains"] = n_domains.into();
            }
            // Other labels tell no revisions apart.
            let revisions = constraint["matchLabelKeys"]
                .as_array()
                .into_iter()
                .flatten();
            let revisions: Vec<&Value> = revisions.filter(|key| **key == REVISION).collect();
            value["matchLabelKeys"] = json!(revisions);
            constraints.push(value);
        }
        let containers = pod["containers"].as_array()?.iter().enumerate();
        let containers = containers.map(|(i, container)| {
            let requests = &container["resources"]["requests"];
            json!({"name": format!("c{i}"), "image": "i", "resources": {"requests": requests}})
        });
        let replicas = spec["replicas"].as_i64().unwrap_or(1);
        let deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "w"},
            "spec": {
                "replicas": replicas,
                "strategy": spec["strategy"],
                "selector": own,
                "template": {
                    "metadata": {"labels": {"app": "w"}},
                    "spec": {
                        "containers": containers.collect::<Vec<_>>(),
                        "topologySpreadConstraints": constraints,
                    },
                },
            },
        });
        let nodes = (0..NODES).map(|number| {
            let name = format!("node-{number}");
            let labels = keys.iter().map(|(key, n)| ((*key).to_owned(), json!((number % n).to_string())));
            let mut labels: Map<String, Value> = labels.collect();
            labels.insert(HOSTNAME.to_owned(), json!(name));
            let node = json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "status": {"allocatable": {"cpu": "64", "memory": "1Ti", "ephemeral-storage": "10Ti", "pods": "110"}},
            });
            node.to_string()
        });
        Some(Self {
            deployment: deployment.to_string(),
            nodes: nodes.collect::<Vec<_>>().join("\n---\n"),
            n_pods: replicas,
            key: written.get(index)?["topologyKey"].as_str()?.to_owned(),
        })
    }
}

impl Plays {
    /// Why a rollout is not played; `None`: it is.
    pub(crate) fn refusal(&self, rollout: &Rollout) -> Option<String> {
        match rollout.n_pods {
            _ if self.known.contains_key(rollout) => None,
            n if n > PODS_MAX => Some(format!("{n} pods, and at most {PODS_MAX} are played")),
            n if self.n_pods + n * i64::from(SEEDS) > PLAYED_MAX => Some(format!(
                "{} other rollouts of these files were",
                self.known.len()
            )),
            _ => None,
        }
    }

    /// Plays a rollout; `None`: it cannot be played.
    pub(crate) fn play(&mut self, rollout: &Rollout) -> Option<Uneven> {
        if let Some(known) = self.known.get(rollout) {
            return *known;
        }
        self.n_pods += rollout.n_pods * i64::from(SEEDS);
        let played = played(rollout);
        self.known.insert(rollout.clone(), played);
        played
    }
}

fn played(rollout: &Rollout) -> Option<Uneven> {
    let scenario = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "lint"},
        "spec": {"timeline": [
            {"name": "deploy", "rest": {}},
            {"name": "rollout", "rollout-restart": ["deployment/w"], "rest": {}, "expect": [{"withinConstraints": {}}]},
        ]},
    });
    let scenario = scenario.to_string();
    let mut sources = Sources::new();
    sources.add(
        "lint",
        [&*rollout.nodes, &*rollout.deployment, &*scenario].join("\n---\n"),
    );
    let loaded = load(&sources);
    let variant = loaded.variants.first()?;
    let gates = &variant.scenario.feature_gates;
    let configure = scheduler_of(&sources, &variant.objects, gates).ok()?;
    let plan = Plan::new(&variant.scenario, &variant.objects, configure).ok()?;
    // The judge's sentence names the key in short.
    let by = match rollout.key.as_str() {
        "topology.kubernetes.io/zone" => " by zone: ".to_owned(),
        HOSTNAME => " by hostname: ".to_owned(),
        key => format!(" by {key}: "),
    };
    let mut uneven = Uneven { times: 0, skew: 0 };
    for seed in 0..SEEDS {
        let run = play_seed(&plan, seed.into(), None, &mut ()).ok()?;
        let outcome = run.steps.get(1)?.expectations.first()?;
        if outcome.is_unknown || outcome.is_open {
            return None;
        }
        let of_key = outcome.findings.iter().filter(|f| f.message.contains(&by));
        let skew = of_key.filter_map(|f| f.numbers.get("skew")).max();
        if let Some(skew) = skew {
            uneven.times += 1;
            uneven.skew = uneven.skew.max(*skew);
        }
    }
    Some(uneven)
}
