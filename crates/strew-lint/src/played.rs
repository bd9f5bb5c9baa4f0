//! Short rollouts, played by the code that `strew simulate` plays with, on the nodes that it makes up.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};
use strew_manifest::read::KubeObject;
use strew_scenario::format::{API_VERSION, KIND};
use strew_scenario::made::{NODES, Shape};
use strew_scenario::run::play as play_seed;

use crate::stage::{StagePlays, plan};

/// How often a rollout is played: as often as the story of a small cluster.
pub(crate) const SEEDS: u32 = 20;

/// The most pods of a rollout that is played.
const PODS_MAX: i64 = 50;

/// The most nodes on which a rollout is played; more than a rollout has pods tell nothing new.
const NODES_MAX: usize = 110;

/// The most pods that all plays together make; equal rollouts are played once.
const PLAYED_MAX: i64 = 5_000;

/// The label by which a constraint counts one revision only.
pub(crate) const REVISION: &str = "pod-template-hash";

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A rollout to play: what decides about the spread, and nothing else, so that equal ones are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Rollout {
    deployment: String,
    /// Those of `strew simulate`, and larger ones for pods that find no room there.
    nodes: [String; 2],
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
    /// Those on the nodes of the files.
    pub(crate) staged: StagePlays,
}

impl Rollout {
    /// The rollout of a Deployment, with an eye on one of its constraints. `counts` says which constraints count the
    /// Deployment's pods; others do not matter. `domains` has the number of domains of each key in which the pods may
    /// be; 0 where the files have no nodes.
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
                0 if key == HOSTNAME => NODES,
                0 => Shape::default().zones,
                n => n.min(NODES_MAX),
            };
            keys.insert(key, n_domains);
            let is_above = |min: u64| min > n_domains as u64;
            if constraint["minDomains"].as_u64().is_some_and(is_above) {
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
        // A node is a domain of its own: there are as many as the pods may use, and otherwise enough for all domains.
        let n_nodes = match keys.get(HOSTNAME) {
            Some(n) => *n,
            None => keys.values().copied().fold(NODES, usize::max),
        };
        // Other sizes score otherwise, and other ties would be drawn than in `strew simulate`.
        let usual = Shape {
            zones: keys.get(ZONE).copied().unwrap_or(Shape::default().zones),
            ..Shape::default()
        };
        let large = Shape {
            cpu: "128".to_owned(),
            memory: "1Ti".to_owned(),
            ..usual.clone()
        };
        Some(Self {
            deployment: deployment.to_string(),
            nodes: [usual, large].map(|shape| nodes(&shape, &keys, n_nodes)),
            n_pods: replicas,
            key: written.get(index)?["topologyKey"].as_str()?.to_owned(),
        })
    }
}

/// Nodes as documents, with labels for these keys by their numbers of domains.
fn nodes(shape: &Shape, keys: &BTreeMap<&str, usize>, n_nodes: usize) -> String {
    let nodes = (0..n_nodes).map(|number| {
        let mut node = shape.node(number);
        let labels = node.metadata.labels.get_or_insert_default();
        for (key, n) in keys {
            if ![ZONE, HOSTNAME].contains(key) {
                labels.insert((*key).to_owned(), (number % n).to_string());
            }
        }
        KubeObject::from(node).to_json().to_string()
    });
    nodes.collect::<Vec<_>>().join("\n---\n")
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
        let mut sizes = rollout.nodes.iter();
        let played = sizes.find_map(|nodes| played(rollout, nodes));
        self.known.insert(rollout.clone(), played);
        played
    }
}

/// Plays a rollout on these nodes; `None`: it cannot be played, or not all pods find room.
fn played(rollout: &Rollout, nodes: &str) -> Option<Uneven> {
    let scenario = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "lint"},
        "spec": {"timeline": [
            {"name": "deploy", "rest": {}},
            {"name": "rollout", "rollout-restart": ["deployment/w"], "rest": {},
             "expect": [{"rolledOut": {}}, {"withinConstraints": {}}]},
        ]},
    });
    let scenario = scenario.to_string();
    let plan = plan([nodes, &*rollout.deployment, &*scenario].join("\n---\n"))?;
    let mut uneven = Uneven { times: 0, skew: 0 };
    for seed in 0..SEEDS {
        let run = play_seed(&plan, seed.into(), None, &mut ()).ok()?;
        let step = run.steps.get(1)?;
        let [rolled_out, outcome] = step.expectations.as_slice() else {
            return None;
        };
        if !rolled_out.held || outcome.is_unknown || outcome.is_open {
            return None;
        }
        let mut exceeded = step.facts.exceeded.iter();
        if let Some(exceeded) = exceeded.find(|exceeded| exceeded.by == rollout.key) {
            uneven.times += 1;
            uneven.skew = uneven.skew.max(exceeded.skew);
        }
    }
    Some(uneven)
}
