//! Clusters from a seed: nodes with zones, taints and sizes; pods with constraints.

use serde_json::{Value, json};
use strew_model::Prng;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const APPS: [&str; 2] = ["web", "db"];
const DISKS: [&str; 2] = ["ssd", "hdd"];

/// One of a cluster's nodes; some are in no zone.
pub(super) fn node(number: u64, dice: &mut Prng) -> Value {
    let mut labels = json!({"disk": one_of(&DISKS, dice)});
    if !chance(10, dice) {
        labels[ZONE] = json!(one_of(&["a", "b", "c"], dice));
    }
    let mut taints = Vec::new();
    if chance(20, dice) {
        taints.push(json!({"key": "dedicated", "value": "db", "effect": "NoSchedule"}));
    }
    if chance(20, dice) {
        taints.push(json!({"key": "slow", "value": "yes", "effect": "PreferNoSchedule"}));
    }
    let cpu = one_of(&["2", "3", "4"], dice);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": format!("n-{number:02}"), "labels": labels},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "20"}},
    })
}

/// One of the pods that come one after another.
pub(super) fn pod(number: usize, dice: &mut Prng) -> Value {
    let app = one_of(&APPS, dice);
    let mut spec = json!({
        "schedulerName": "strew",
        "terminationGracePeriodSeconds": 0,
        "containers": [{
            "name": "c",
            "image": "i",
            "resources": {"requests": {
                "cpu": one_of(&["100m", "500m", "1", "2500m"], dice),
                "memory": one_of(&["64Mi", "1Gi"], dice),
            }},
        }],
        "topologySpreadConstraints": constraints(app, dice),
        "affinity": affinity(app, dice),
    });
    if chance(30, dice) {
        spec["tolerations"] = json!([{"key": "dedicated", "operator": "Exists"}]);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("p-{number:02}"),
            "labels": {"app": app, "revision": one_of(&["1", "2"], dice)},
        },
        "spec": spec,
    })
}

/// At most one constraint for each key.
fn constraints(app: &str, dice: &mut Prng) -> Vec<Value> {
    let mut constraints = Vec::new();
    for key in [ZONE, HOSTNAME] {
        if !chance(60, dice) {
            continue;
        }
        let is_hard = chance(60, dice);
        let mut constraint = json!({
            "maxSkew": dice.between(1, 2),
            "topologyKey": key,
            "whenUnsatisfiable": if is_hard { "DoNotSchedule" } else { "ScheduleAnyway" },
            "labelSelector": {"matchLabels": {"app": app}},
        });
        if is_hard && chance(30, dice) {
            constraint["minDomains"] = json!(dice.between(1, 5));
        }
        if chance(30, dice) {
            constraint["matchLabelKeys"] = json!(["revision"]);
        }
        if chance(30, dice) {
            constraint["nodeTaintsPolicy"] = json!("Honor");
        }
        if chance(20, dice) {
            constraint["nodeAffinityPolicy"] = json!("Ignore");
        }
        constraints.push(constraint);
    }
    constraints
}

fn affinity(app: &str, dice: &mut Prng) -> Value {
    let mut affinity = json!({});
    let disk = json!({"matchExpressions": [
        {"key": "disk", "operator": "In", "values": [one_of(&DISKS, dice)]},
    ]});
    if chance(20, dice) {
        affinity["nodeAffinity"] = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [disk]}});
    } else if chance(25, dice) {
        affinity["nodeAffinity"] = json!({
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 20, "preference": disk}],
        });
    }
    let term = |of: &str, key: &str| json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": of}}});
    if chance(15, dice) {
        affinity["podAntiAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [term(app, HOSTNAME)]});
    }
    if chance(25, dice) {
        let other = one_of(&APPS, dice);
        affinity["podAffinity"] = json!({
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 50, "podAffinityTerm": term(other, ZONE)},
            ],
        });
    }
    affinity
}

fn chance(percent: u64, dice: &mut Prng) -> bool {
    dice.chance(percent, 100)
}

fn one_of<'a>(choices: &[&'a str], dice: &mut Prng) -> &'a str {
    dice.pick::<&str>(choices)
}

#[test]
fn a_seed_always_makes_the_same_cluster() {
    let made = |seed| {
        let mut dice = Prng::new(seed);
        (node(0, &mut dice), pod(0, &mut dice))
    };
    assert_eq!(made(1), made(1));
    assert_ne!(made(1), made(2));
}
