//! The built-in story as a Scenario: deploy, roll out, lose the largest zone, restore it, run CronJobs, scale to half.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1::Node;
use serde_json::{Map, Value, json};
use strew_manifest::kinds::{self, Pods};
use strew_manifest::read::{KubeObject, Located};

use crate::format::{API_VERSION, KIND};

/// The first step.
pub const FIRST_STEP: &str = "deploy";

/// The scenario's annotation `story`.
pub(crate) const STORY: &str = "deploy, roll out, lose the largest zone, restore it, scale to half";

/// [`lost_within`], as a scenario writes it.
fn lost_within_text(n_nodes: u64) -> String {
    format!("{}m", lost_within(n_nodes).div_ceil(60))
}

/// How long a cluster may take to come to rest without a domain of so many nodes, in seconds: pods are evicted node by
/// node, one every 10 seconds.
///
/// Source: spec/controllers §7.3, §7.4
pub(crate) fn lost_within(n_nodes: u64) -> u64 {
    const USUAL: u64 = 20 * 60;
    const EVICTED_EVERY: u64 = 10;
    match n_nodes {
        0..=60 => USUAL,
        n => USUAL.saturating_add(n.saturating_mul(EVICTED_EVERY)),
    }
}

/// The largest number of seeds that the story plays by itself.
const SEEDS_MAX: u64 = 20;

/// Pods and nodes that all seeds of the story may have together. A run of fewer than 1,000 takes well under a second.
const PLAYED_MAX: u64 = 5_000;

/// The topology keys of zones, the present one first.
pub const ZONE_KEYS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
];

/// The number of seeds that the story of such a cluster plays: chance decides ties, and one seed hides what it can
/// decide otherwise. It depends on the size alone, so that equal files give equal reports.
pub fn seeds(n_pods: u64, n_nodes: u64) -> u64 {
    let size = n_pods.saturating_add(n_nodes).max(1);
    (PLAYED_MAX / size).clamp(1, SEEDS_MAX)
}

/// What a CronJob counts for: one that comes around every minute makes hundreds of pods in a run.
const PODS_OF_A_CRON_JOB: u64 = 900;

/// The story of a stream of manifests, with these nodes in addition to the stream's, and these manifests applied when it
/// begins: a document of kind Scenario. `seed` is the only one that it plays; `None`: as many as cost little.
///
/// Each step ends when the cluster is at rest. Then all workloads must be rolled out, and keep their hard constraints
/// where a manifest can see to it. After the loss, which comes at full size, they must have a ready pod and be within
/// their budgets: the remaining nodes may have no room for all pods.
pub fn story(
    stream: &[Located],
    nodes: &[Node],
    applied: &[Value],
    seed: Option<u64>,
    feature_gates: &BTreeMap<String, bool>,
) -> Value {
    let workloads = Workloads::of(stream, applied);
    let mut spec = Map::new();
    spec.insert("seed".to_owned(), seed.unwrap_or(0).into());
    let n_cron_jobs = workloads.scheduled.len() as u64;
    let of_jobs = n_cron_jobs.saturating_mul(PODS_OF_A_CRON_JOB);
    let n_seeds = seeds(
        workloads.n_pods.saturating_add(of_jobs),
        n_nodes(stream, nodes),
    );
    let n_seeds = seed.map_or(n_seeds, |_| 1);
    spec.insert("seeds".to_owned(), n_seeds.into());
    if !feature_gates.is_empty() {
        spec.insert("featureGates".to_owned(), json!(feature_gates));
    }
    let halves = workloads.scaled.iter();
    let halves = halves.map(|name| (name.clone(), "50%".into()));
    let halves = Value::Object(halves.collect());
    let halves = (!workloads.scaled.is_empty()).then_some(("scale", halves));
    let restarted = some(&workloads.restarted).map(|names| ("rollout-restart", names));
    let rolled_out = || json!({"rolledOut": {}});
    // A manifest can keep its rollouts even.
    let even = || json!([rolled_out(), {"withinConstraints": {}}]);
    // Pods that run are not moved, and a ReplicaSet does not ask its constraints which pods to delete.
    let told = || json!([rolled_out(), {"withinConstraints": {}, "warn": true}]);
    // Schedules that come around every few minutes leave no cluster at rest.
    let rest = || match n_cron_jobs {
        0 => json!({}),
        _ => json!({"within": lost_within_text(0)}),
    };
    let applied = (!applied.is_empty()).then(|| ("apply", json!(applied)));
    let mut timeline = vec![
        step(FIRST_STEP, applied, rest(), even()),
        step("rollout", restarted, rest(), even()),
    ];
    if let Some((lost, n_lost)) = lost(stream, nodes) {
        let restored = Some(("restore", "<lost>".into()));
        let within = json!({"within": lost_within_text(n_lost)});
        let survives = json!([{"survives": {}}]);
        timeline.extend([
            step("lose", Some(("lose", lost.into())), within, survives),
            step("restore", restored, rest(), told()),
        ]);
    }
    if let Some(names) = some(&workloads.scheduled) {
        let once = Some(("run-once", names));
        timeline.push(step("cronjobs", once, rest(), json!([rolled_out()])));
    }
    timeline.push(step("scale", halves, rest(), told()));
    spec.insert("timeline".to_owned(), timeline.into());
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": "story", "annotations": {"story": STORY}},
        "spec": spec,
    })
}

/// A step that ends at rest.
fn step(name: &str, verb: Option<(&str, Value)>, rest: Value, expect: Value) -> Value {
    let mut step = Map::new();
    step.insert("name".to_owned(), name.into());
    if let Some((verb, targets)) = verb {
        step.insert(verb.to_owned(), targets);
    }
    step.insert("rest".to_owned(), rest);
    step.insert("expect".to_owned(), expect);
    Value::Object(step)
}

fn n_nodes(stream: &[Located], made: &[Node]) -> u64 {
    let is_node = |located: &&Located| matches!(located.object, KubeObject::Node(_));
    (stream.iter().filter(is_node).count() + made.len()) as u64
}

fn some(names: &[String]) -> Option<Value> {
    (!names.is_empty()).then(|| json!(names))
}

/// The names of the workloads, as targets of verbs, and the number of their pods.
#[derive(Default)]
struct Workloads {
    restarted: Vec<String>,
    scaled: Vec<String>,
    /// CronJobs.
    scheduled: Vec<String>,
    n_pods: u64,
}

/// What the story does with a workload, and the order in which it names it.
struct Part {
    order: u8,
    is_restarted: bool,
    is_scaled: bool,
}

impl Part {
    const fn new(order: u8, is_restarted: bool, is_scaled: bool) -> Self {
        Self {
            order,
            is_restarted,
            is_scaled,
        }
    }
}

impl Workloads {
    fn of(stream: &[Located], applied: &[Value]) -> Self {
        let is_new = |object: &KubeObject| {
            let uid = object.metadata().and_then(|meta| meta.uid.as_deref());
            uid.is_none_or(str::is_empty) || applied.iter().any(|value| is_of(value, object))
        };
        // Where something new comes beside a dump, the steps are about what is new.
        let has_new = stream
            .iter()
            .any(|located| makes_pods(&located.object) && is_new(&located.object));
        let is_meant = |object: &KubeObject| !has_new || is_new(object);
        let uids = stream
            .iter()
            .filter_map(|located| located.object.metadata()?.uid.as_deref());
        let uids: HashSet<&str> = uids.collect();
        let mut workloads = Self::default();
        let mut found = BTreeMap::new();
        for located in stream {
            let object = &located.object;
            workloads.n_pods = workloads.n_pods.saturating_add(pods_asked_for(object));
            if !is_meant(object) {
                continue;
            }
            let part = match object {
                KubeObject::Deployment(deployment) => {
                    let paused = deployment.spec.as_ref().and_then(|spec| spec.paused);
                    Part::new(0, paused != Some(true), true)
                }
                KubeObject::ReplicaSet(set) => {
                    let owners = set.metadata.owner_references.iter().flatten();
                    let mut owners = owners.filter(|owner| uids.contains(owner.uid.as_str()));
                    let is_owned = owners.any(|owner| owner.controller == Some(true));
                    Part::new(1, false, !is_owned)
                }
                KubeObject::StatefulSet(_) => Part::new(2, true, true),
                KubeObject::CloneSet(_) => Part::new(3, true, true),
                KubeObject::DaemonSet(_) => Part::new(4, true, false),
                KubeObject::CronJob(cron_job) => {
                    if cron_job.spec.suspend != Some(true) {
                        workloads.scheduled.push(target(object));
                    }
                    continue;
                }
                _ => continue,
            };
            let namespace = object.namespace().unwrap_or("default").to_owned();
            let place = (part.order, namespace, object.name().to_owned());
            found.insert(place, (target(object), part));
        }
        for (name, part) in found.into_values() {
            if part.is_restarted {
                workloads.restarted.push(name.clone());
            }
            if part.is_scaled {
                workloads.scaled.push(name);
            }
        }
        workloads
    }
}

/// True if the object is a pod, or makes pods.
fn makes_pods(object: &KubeObject) -> bool {
    kinds::of_kind(object.kind()).is_some_and(|row| row.pods != Pods::No)
}

/// True if a manifest is of this object.
fn is_of(manifest: &Value, object: &KubeObject) -> bool {
    let meta = &manifest["metadata"];
    manifest["kind"] == object.kind()
        && meta["name"] == object.name()
        && meta["namespace"].as_str().unwrap_or("default")
            == object.namespace().unwrap_or("default")
}

/// A workload as the target of a verb: `deployment/web`; `shop/deployment/web` outside the namespace `default`.
pub fn target(object: &KubeObject) -> String {
    let (kind, name) = (object.kind().to_lowercase(), object.name());
    match object.namespace().unwrap_or("default") {
        "default" => format!("{kind}/{name}"),
        namespace => format!("{namespace}/{kind}/{name}"),
    }
}

/// The pods that an object asks for; a pod counts as one. Those of ReplicaSets are mostly a Deployment's.
fn pods_asked_for(object: &KubeObject) -> u64 {
    let replicas = match object {
        KubeObject::Pod(_) => 1,
        KubeObject::ReplicaSet(_)
        | KubeObject::ReplicationController(_)
        | KubeObject::AdvancedStatefulSet(_)
        | KubeObject::CronJob(_) => 0,
        _ => object.replicas().unwrap_or(0),
    };
    u64::try_from(replicas).unwrap_or(0)
}

/// What the story loses, and at most how many nodes: the zone with most pods; without two zones the node with most pods;
/// `None` if there is one node, without which nothing is left to look at.
fn lost(stream: &[Located], nodes: &[Node]) -> Option<(String, u64)> {
    let given = stream.iter().filter_map(|located| match &located.object {
        KubeObject::Node(node) => Some(&**node),
        _ => None,
    });
    let all: Vec<&Node> = given.chain(nodes).collect();
    let zones = ZONE_KEYS.into_iter().find_map(|key| {
        let labels = all.iter().filter_map(|node| node.metadata.labels.as_ref());
        let mut n_nodes: BTreeMap<&str, u64> = BTreeMap::new();
        for value in labels.filter_map(|labels| labels.get(key)) {
            *n_nodes.entry(value).or_default() += 1;
        }
        let most = n_nodes.values().max().copied()?;
        (n_nodes.len() > 1).then(|| (format!("{key}=<most pods>"), most))
    });
    zones.or_else(|| (all.len() > 1).then(|| ("<most pods>".to_owned(), 1)))
}
