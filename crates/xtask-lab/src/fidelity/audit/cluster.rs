//! Draws small clusters: three zones, a few workloads, and room that is tight or ample.
//!
//! All clusters of a run share one control plane. The pods of each select its own nodes, and its zones have names of
//! their own, so that no controller and no filter of the scheduler counts another cluster's nodes or pods.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use strew_model::Prng;
use xtask_lab::lab::node;

/// The label of nodes that names their cluster.
pub(super) const CLUSTER_LABEL: &str = "truth.strew.dev/cluster";

/// The topology key of zones.
pub(super) const ZONE: &str = "topology.kubernetes.io/zone";

const HOSTNAME: &str = "kubernetes.io/hostname";

/// A cluster to make.
#[derive(Debug, Clone)]
pub(super) struct Cluster {
    /// Its name, which is that of its namespace: `c7`.
    pub(super) name: String,
    pub(super) nodes: Vec<Value>,
    /// Workloads and budgets, in the order in which they are made.
    pub(super) objects: Vec<Value>,
}

impl Cluster {
    /// Draws the cluster with this number.
    pub(super) fn draw(seed: u64, number: u64) -> Self {
        let mut dice = Prng::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let name = format!("c{number}");
        let tainted = dice.chance(1, 5).then(|| dice.index(3));
        let n_workloads = dice.between(2, 4);
        let workloads: Vec<Workload> = (0..n_workloads)
            .map(|index| Workload::draw(&mut dice, &name, index))
            .collect();
        let nodes = nodes(&mut dice, &name, tainted, &workloads);
        let objects = workloads.iter().flat_map(Workload::objects).collect();
        Self {
            name,
            nodes,
            objects,
        }
    }

    /// The names of its zones.
    pub(super) fn zones(&self) -> [String; 3] {
        zones(&self.name)
    }

    /// The pods that each workload asks for, by `kind/name`.
    pub(super) fn wanted(&self) -> BTreeMap<String, u64> {
        let asked = self.objects.iter().filter_map(|object| {
            let kind = object["kind"].as_str()?.to_lowercase();
            let replicas = match kind.as_str() {
                "deployment" | "statefulset" => object["spec"]["replicas"].as_u64()?,
                "pod" => 1,
                _ => return None,
            };
            let name = object["metadata"]["name"].as_str()?;
            Some((format!("{kind}/{name}"), replicas))
        });
        asked.collect()
    }
}

fn zones(cluster: &str) -> [String; 3] {
    ["a", "b", "c"].map(|zone| format!("{cluster}-{zone}"))
}

/// Two or three nodes in each zone, all of one size.
fn nodes(
    dice: &mut Prng,
    cluster: &str,
    tainted: Option<usize>,
    workloads: &[Workload],
) -> Vec<Value> {
    let sizes: Vec<u64> = (0..3).map(|_| dice.between(2, 3)).collect();
    let n_nodes: u64 = sizes.iter().sum();
    let asked: u64 = workloads.iter().map(|w| w.replicas * w.milli_cpu).sum();
    let largest = workloads.iter().map(|w| w.milli_cpu).max().unwrap_or(0);
    // From hardly enough for all pods to three times of it.
    let percent = *dice.pick(&[105, 125, 150, 180, 300]);
    let milli_cpu = (asked * percent / 100 / n_nodes).max(largest);
    let mut nodes = Vec::new();
    for (index, (zone, size)) in zones(cluster).iter().zip(&sizes).enumerate() {
        for number in 0..*size {
            let mut one = node(json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": format!("{zone}-{number}"),
                    "labels": {ZONE: zone, CLUSTER_LABEL: cluster},
                },
                "status": {"allocatable": {
                    "cpu": format!("{milli_cpu}m"), "memory": "64Gi", "pods": "110",
                }},
            }));
            if tainted == Some(index) {
                one["spec"]["taints"] =
                    json!([{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]);
            }
            nodes.push(one);
        }
    }
    nodes
}

/// A workload, or a pod without one.
#[derive(Debug)]
struct Workload {
    kind: &'static str,
    cluster: String,
    name: String,
    replicas: u64,
    milli_cpu: u64,
    /// The fields of its spec beside replicas, selector and template.
    spec: Value,
    /// The fields of its pods' spec.
    pod: Value,
    /// The spec of its budget, without the selector.
    budget: Option<Value>,
}

impl Workload {
    fn draw(dice: &mut Prng, cluster: &str, index: u64) -> Self {
        let kind = *dice.pick(&[
            "Deployment",
            "Deployment",
            "Deployment",
            "Deployment",
            "StatefulSet",
            "StatefulSet",
            "StatefulSet",
        ]);
        let kind = if dice.chance(1, 15) { "Pod" } else { kind };
        let replicas = match kind {
            "Pod" => 1,
            _ => dice.between(1, 6),
        };
        let name = format!("{}{index}", kind.get(..1).unwrap_or("x").to_lowercase());
        let milli_cpu = *dice.pick(&[250, 500, 1000, 2000]);
        let spec = spec(dice, kind);
        let pod = pod(dice, cluster, &name, milli_cpu, kind);
        let budget = dice.chance(1, 2).then(|| budget(dice, replicas));
        Self {
            kind,
            cluster: cluster.to_owned(),
            name,
            replicas,
            milli_cpu,
            spec,
            pod,
            budget,
        }
    }

    fn objects(&self) -> Vec<Value> {
        let labels = json!({"app": self.name});
        let metadata =
            json!({"name": self.name, "namespace": self.cluster, "labels": labels.clone()});
        let workload = match self.kind {
            "Pod" => {
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self.pod})
            }
            kind => {
                let mut spec = self.spec.clone();
                spec["replicas"] = json!(self.replicas);
                spec["selector"] = json!({"matchLabels": labels.clone()});
                spec["template"] = json!({"metadata": {"labels": labels}, "spec": self.pod});
                json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec})
            }
        };
        let budget = self.budget.as_ref().map(|budget| {
            let mut spec = budget.clone();
            spec["selector"] = json!({"matchLabels": {"app": self.name}});
            json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": self.name, "namespace": self.cluster},
                "spec": spec,
            })
        });
        [workload].into_iter().chain(budget).collect()
    }
}

fn spec(dice: &mut Prng, kind: &str) -> Value {
    match kind {
        "Deployment" => {
            let rolling = |unavailable: Value, surge: Value| {
                json!({"strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge},
                }})
            };
            match dice.between(1, 10) {
                1..=5 => json!({}),
                6..=7 => rolling(json!(1), json!(0)),
                8 => rolling(json!(0), json!(1)),
                9 => rolling(json!("50%"), json!(0)),
                _ => json!({"strategy": {"type": "Recreate"}}),
            }
        }
        _ => {
            let policy = if dice.chance(1, 3) {
                "Parallel"
            } else {
                "OrderedReady"
            };
            json!({"serviceName": "none", "podManagementPolicy": policy})
        }
    }
}

fn pod(dice: &mut Prng, cluster: &str, name: &str, milli_cpu: u64, kind: &str) -> Value {
    let seconds = *dice.pick(&[2, 5, 15]);
    let evicted = |key: &str| {
        json!({
            "key": key, "operator": "Exists", "effect": "NoExecute",
            "tolerationSeconds": seconds,
        })
    };
    let mut tolerations = vec![
        evicted("node.kubernetes.io/not-ready"),
        evicted("node.kubernetes.io/unreachable"),
    ];
    if dice.chance(1, 2) {
        tolerations.push(json!({"key": "dedicated", "operator": "Exists"}));
    }
    let mut pod = json!({
        "nodeSelector": {CLUSTER_LABEL: cluster},
        "tolerations": tolerations,
        "containers": [{
            "name": "main",
            "image": "example.com/app:1",
            "resources": {"requests": {"cpu": format!("{milli_cpu}m"), "memory": "64Mi"}},
        }],
    });
    let constraints = constraints(dice, name, kind);
    if !constraints.is_empty() {
        pod["topologySpreadConstraints"] = json!(constraints);
    }
    let affinity = affinity(dice, cluster, name);
    if affinity != json!({}) {
        pod["affinity"] = affinity;
    }
    pod
}

fn constraints(dice: &mut Prng, name: &str, kind: &str) -> Vec<Value> {
    let over = |dice: &mut Prng, key: &str, when: &str| {
        let mut constraint = json!({
            "maxSkew": *dice.pick(&[1, 1, 1, 2]),
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": name}},
        });
        if when == "DoNotSchedule" && dice.chance(1, 5) {
            constraint["minDomains"] = json!(dice.between(2, 4));
        }
        if dice.chance(1, 3) {
            constraint["nodeTaintsPolicy"] = json!("Honor");
        }
        if kind == "Deployment" && dice.chance(1, 3) {
            constraint["matchLabelKeys"] = json!(["pod-template-hash"]);
        }
        constraint
    };
    let (hard, soft) = ("DoNotSchedule", "ScheduleAnyway");
    match dice.between(1, 10) {
        1..=3 => vec![],
        4..=6 => vec![over(dice, ZONE, hard)],
        7 => vec![over(dice, ZONE, soft)],
        8 => vec![over(dice, ZONE, soft), over(dice, HOSTNAME, soft)],
        9 => vec![over(dice, ZONE, hard), over(dice, HOSTNAME, soft)],
        _ => vec![over(dice, HOSTNAME, hard)],
    }
}

fn affinity(dice: &mut Prng, cluster: &str, name: &str) -> Value {
    let apart =
        |key: &str| json!({"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": key});
    let zones = zones(cluster);
    let only = |zones: &[String]| {
        let wanted =
            json!([{"matchExpressions": [{"key": ZONE, "operator": "In", "values": zones}]}]);
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": wanted,
        }}})
    };
    match dice.between(1, 20) {
        1..=2 => json!({"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [apart(HOSTNAME)],
        }}),
        3 => json!({"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [apart(ZONE)],
        }}),
        4..=5 => json!({"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": apart(ZONE)},
            ],
        }}),
        6 => only(&zones[..1]),
        7 => only(&zones[..2]),
        _ => json!({}),
    }
}

fn budget(dice: &mut Prng, replicas: u64) -> Value {
    match dice.between(1, 8) {
        1..=3 => json!({"maxUnavailable": 1}),
        4 => json!({"maxUnavailable": "30%"}),
        5 => json!({"maxUnavailable": 0}),
        6 => json!({"minAvailable": "50%"}),
        7 => json!({"minAvailable": replicas.saturating_sub(1)}),
        _ => json!({"minAvailable": replicas}),
    }
}

#[test]
fn a_seed_draws_a_cluster_again_and_another_one_another() {
    let text = |seed, number| format!("{:?}", Cluster::draw(seed, number));
    assert_eq!(text(1, 7), text(1, 7));
    assert_ne!(text(1, 7), text(2, 7));
    let cluster = Cluster::draw(1, 7);
    assert!((6..=9).contains(&cluster.nodes.len()));
    assert_eq!(cluster.zones()[0], "c7-a");
    let budgets = cluster.objects.iter();
    let n_budgets = budgets
        .filter(|o| o["kind"] == "PodDisruptionBudget")
        .count();
    assert_eq!(cluster.wanted().len() + n_budgets, cluster.objects.len());
}
