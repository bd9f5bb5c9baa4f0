//! Counts that follow a cluster are those of the same cluster counted anew.

use serde_json::json;
use strew_apiserver::DeleteOptions;
use strew_apiserver::object::{Key, Name, Object};
use strew_manifest::read::KubeObject;
use strew_model::{Instant, Interner, Prng, Span};
use strew_scheduler::Profile;
use strew_wire::config::AdmissionOptions;

use super::*;

const NODES: u64 = 6;
const PODS: u64 = 12;

fn object(value: serde_json::Value) -> Object {
    Object::of_wire(KubeObject::of_json(value).unwrap())
}

/// A node with other labels and taints each time.
fn node(dice: &mut Prng) -> Object {
    let name = format!("n{}", dice.between(0, NODES - 1));
    let mut labels = json!({"kubernetes.io/hostname": name});
    if dice.chance(4, 5) {
        labels["topology.kubernetes.io/zone"] = (*dice.pick(&["a", "b", "c"])).into();
    }
    if dice.chance(1, 2) {
        labels["disk"] = (*dice.pick(&["ssd", "hdd"])).into();
    }
    let taints = match dice.chance(1, 4) {
        true => json!([{"key": "away", "effect": "NoSchedule"}]),
        false => json!([]),
    };
    object(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
    }))
}

/// Pods of three ReplicaSets. Those of the first are of two revisions, of which one looks at taints, so that other nodes
/// count by zone alone; those of the third are of two subsets.
fn pod(dice: &mut Prng) -> Object {
    let number = dice.between(0, PODS - 1);
    let name = format!("p{number}");
    let set = number % 3;
    let subset = (number % 6 == 2).then_some("ssd");
    let mut spec = json!({
        "containers": [{"name": "c", "image": "i"}],
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": if set == 1 || number % 6 == 3 { "Honor" } else { "Ignore" },
            "labelSelector": {"matchLabels": {"app": format!("r{set}")}},
        }],
    });
    if let Some(disk) = subset {
        spec["nodeSelector"] = json!({"disk": disk});
    }
    if dice.chance(5, 6) {
        spec["nodeName"] = format!("n{}", dice.between(0, NODES - 1)).into();
    }
    object(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"app": format!("r{set}")},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("r{set}"),
                "uid": format!("r{set}"), "controller": true,
            }],
        },
        "spec": spec,
        "status": {"phase": "Running"},
    }))
}

fn act(server: &mut Server, dice: &mut Prng) {
    let now = Instant(0);
    match dice.between(0, 9) {
        0..=2 => server.preload(now, node(dice)),
        3 => {
            let node = format!("n{}", dice.between(0, NODES - 1));
            let key = Key {
                kind: Kind::Node,
                name: Name::new("", node),
            };
            let _ = server.delete(now, &key, &DeleteOptions::KUBECTL);
        }
        4 => {
            let pod = format!("p{}", dice.between(0, PODS - 1));
            let key = Key {
                kind: Kind::Pod,
                name: Name::new("default", pod),
            };
            let options = DeleteOptions {
                grace: Some(Span::default()),
                ..DeleteOptions::KUBECTL
            };
            let _ = server.delete(now, &key, &options);
        }
        _ => server.preload(now, pod(dice)),
    }
}

type Shown = Vec<(String, Vec<(String, i32)>, i32)>;

fn shown(skews: &Skews, workload: usize) -> Shown {
    let each = skews.now(workload).map(|now| {
        let domains = now.domains.iter();
        let mut domains: Vec<_> = domains.map(|(d, n)| ((*d).to_owned(), *n)).collect();
        domains.sort();
        (now.key.to_owned(), domains, now.skew)
    });
    let mut each: Shown = each.collect();
    each.sort();
    each
}

#[test]
fn counts_that_follow_are_counts_made_anew() {
    let mut n_seen = 0;
    for seed in 0..300 {
        let mut dice = Prng::new(seed);
        let mut server = Server::new(AdmissionOptions::KUBERNETES_1_36, Prng::new(seed));
        let mut frame = Frame {
            names: Interner::new(),
            profiles: vec![Profile::default()],
            workloads: Workloads::default(),
            keys: Vec::new(),
        };
        let mut skews = Skews::new(&server, &mut frame);
        for _ in 0..40 {
            for _ in 0..dice.between(1, 4) {
                act(&mut server, &mut dice);
            }
            let before: Vec<Shown> = (0..frame.workloads.list.len())
                .map(|workload| shown(&skews, workload))
                .collect();
            let touched = skews.observe(&server, &mut frame);
            let anew = Skews::new(&server, &mut frame);
            for workload in 0..frame.workloads.list.len() {
                let now = shown(&skews, workload);
                // A workload without pods keeps its keys.
                let has_pods = now
                    .iter()
                    .any(|(_, domains, _)| domains.iter().any(|d| d.1 > 0));
                if has_pods {
                    assert_eq!(now, shown(&anew, workload), "seed {seed}");
                    n_seen += 1;
                }
                let is_as_before = before.get(workload) == Some(&now);
                assert!(is_as_before || touched.contains(&workload), "seed {seed}");
            }
        }
    }
    assert!(n_seen > 1_000, "{n_seen}");
}
