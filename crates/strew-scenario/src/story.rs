//! The built-in story as a Scenario: deploy, roll out, scale to half, lose the largest zone, restore it.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1::Node;
use serde_json::{Map, Value, json};
use strew_manifest::read::{KubeObject, Located};

use crate::format::{API_VERSION, KIND};

/// The steps of the story, in order.
pub const STEPS: [&str; 5] = ["deploy", "rollout", "scale", "lose", "restore"];

/// The scenario's annotation `story`.
const STORY: &str = "deploy, roll out, scale to half, lose the largest zone, restore it";

/// The time for the pods of a lost zone to be evicted and replaced.
const LOST_WITHIN: &str = "10m";

const ZONE_KEYS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];

/// The story of a stream of manifests, with these nodes in addition to the stream's: a document of kind Scenario.
///
/// Each step ends when the cluster is at rest. Then all workloads must be rolled out. After the loss they only have to
/// be within their budgets: the remaining nodes may have no room for all pods.
pub fn story(
    stream: &[Located],
    nodes: &[Node],
    seed: u64,
    feature_gates: &BTreeMap<String, bool>,
) -> Value {
    let workloads = Workloads::of(stream);
    let mut spec = Map::new();
    spec.insert("seed".to_owned(), seed.into());
    if !feature_gates.is_empty() {
        spec.insert("featureGates".to_owned(), json!(feature_gates));
    }
    let rest = || json!({});
    let step = |name: &str, verb: Option<(&str, Value)>, rest: Value| {
        let mut step = Map::new();
        step.insert("name".to_owned(), name.into());
        if let Some((verb, targets)) = verb {
            step.insert(verb.to_owned(), targets);
        }
        step.insert("rest".to_owned(), rest);
        Value::Object(step)
    };
    let [deploy, rollout, scale, lose, restore] = STEPS;
    let expecting = |claim: &str, mut step: Value| {
        step["expect"] = json!([{claim: {}}]);
        step
    };
    let whole = |step| expecting("rolledOut", step);
    let restarted = some(&workloads.restarted).map(|names| ("rollout-restart", names));
    let halves = workloads
        .scaled
        .iter()
        .map(|name| (name.clone(), "50%".into()));
    let halves = Value::Object(halves.collect());
    let halves = (!workloads.scaled.is_empty()).then_some(("scale", halves));
    let most = match zone_key(stream, nodes) {
        Some(key) => format!("{key}=<most pods>"),
        None => "<most pods>".to_owned(),
    };
    let timeline = json!([
        whole(step(deploy, None, rest())),
        whole(step(rollout, restarted, rest())),
        whole(step(scale, halves, rest())),
        expecting(
            "withinBudget",
            step(
                lose,
                Some(("lose", most.into())),
                json!({"within": LOST_WITHIN})
            )
        ),
        whole(step(restore, Some(("restore", "<lost>".into())), rest())),
    ]);
    spec.insert("timeline".to_owned(), timeline);
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "story", "annotations": {"story": STORY}},
        "spec": spec,
    })
}

fn some(names: &[String]) -> Option<Value> {
    (!names.is_empty()).then(|| json!(names))
}

/// The names of the workloads, as targets of verbs.
#[derive(Default)]
struct Workloads {
    restarted: Vec<String>,
    scaled: Vec<String>,
}

impl Workloads {
    fn of(stream: &[Located]) -> Self {
        let uids = stream
            .iter()
            .filter_map(|located| located.object.metadata()?.uid.as_deref());
        let uids: HashSet<&str> = uids.collect();
        let mut found = BTreeMap::new();
        for located in stream {
            let object = &located.object;
            let (order, is_restarted, is_scaled) = match object {
                KubeObject::Deployment(deployment) => {
                    let paused = deployment.spec.as_ref().and_then(|spec| spec.paused);
                    (0, paused != Some(true), true)
                }
                KubeObject::ReplicaSet(set) => {
                    let owners = set.metadata.owner_references.iter().flatten();
                    let mut owners = owners.filter(|owner| uids.contains(owner.uid.as_str()));
                    let is_owned = owners.any(|owner| owner.controller == Some(true));
                    (1, false, !is_owned)
                }
                KubeObject::StatefulSet(_) => (2, true, true),
                KubeObject::DaemonSet(_) => (3, true, false),
                _ => continue,
            };
            let namespace = object.namespace().unwrap_or("default").to_owned();
            let place = (order, namespace, object.name().to_owned());
            found.insert(place, (object.kind(), is_restarted, is_scaled));
        }
        let mut workloads = Self::default();
        for ((_, namespace, name), (kind, is_restarted, is_scaled)) in found {
            let name = match namespace.as_str() {
                "default" => format!("{}/{name}", kind.to_lowercase()),
                _ => format!("{namespace}/{}/{name}", kind.to_lowercase()),
            };
            if is_restarted {
                workloads.restarted.push(name.clone());
            }
            if is_scaled {
                workloads.scaled.push(name);
            }
        }
        workloads
    }
}

/// The topology key of the nodes' zones; `None` if they have none.
fn zone_key(stream: &[Located], nodes: &[Node]) -> Option<&'static str> {
    let given = stream.iter().filter_map(|located| match &located.object {
        KubeObject::Node(node) => Some(&**node),
        _ => None,
    });
    let labels = given
        .chain(nodes)
        .filter_map(|node| node.metadata.labels.as_ref());
    let labels: Vec<_> = labels.collect();
    ZONE_KEYS
        .into_iter()
        .find(|key| labels.iter().any(|labels| labels.contains_key(*key)))
}
