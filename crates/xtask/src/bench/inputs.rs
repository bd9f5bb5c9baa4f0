//! The inputs of the measured commands: clusters and workloads of sizes that people have.

use std::fmt::Write;

use serde_json::{Value, json};

const ZONES: [&str; 3] = ["a", "b", "c"];

fn deployment(name: &str, replicas: usize, cpu: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}],
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels},
                    }],
                },
            },
        },
    })
}

/// A stream of documents in JSON, which YAML contains.
fn stream(documents: impl IntoIterator<Item = Value>) -> String {
    let mut text = String::new();
    for document in documents {
        let _ = writeln!(text, "---\n{document}");
    }
    text
}

/// One Deployment.
pub(super) fn one(replicas: usize) -> String {
    stream([deployment("web", replicas, "100m")])
}

/// So many Deployments of two pods.
pub(super) fn many(n: usize) -> String {
    stream((0..n).map(|number| deployment(&format!("app-{number:04}"), 2, "100m")))
}

/// Unlike nodes: sizes, taints and zones of different size, as clusters have them after some years.
fn unlike_groups() -> Value {
    let sizes = [("4", 40), ("8", 30), ("16", 20), ("64", 7), ("96", 3)];
    let mut groups = Vec::new();
    for (number, zone) in ZONES.iter().enumerate() {
        for (place, (cpu, size)) in sizes.iter().enumerate() {
            let mut template = json!({
                "metadata": {"labels": {"topology.kubernetes.io/zone": zone}},
                "status": {"allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "110"}},
            });
            if place == 3 {
                template["spec"] = json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]});
            }
            let size = size - number;
            groups.push(
                json!({"name": format!("{zone}{place}"), "size": size, "template": template}),
            );
        }
    }
    Value::Array(groups)
}

/// A zone of a cluster of unlike nodes goes and comes back.
pub(super) fn lost_zone(n_workloads: usize) -> String {
    let workloads = (0..n_workloads).map(|number| {
        let cpu = ["100m", "250m", "500m"][number % 3];
        deployment(&format!("app-{number:04}"), 2 + number % 5, cpu)
    });
    let scenario = json!({
        "apiVersion": "sim.strew.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "lost-zone"},
        "spec": {
            "nodeGroups": unlike_groups(),
            "timeline": [
                {"at": "10m", "lose": "topology.kubernetes.io/zone=c"},
                {"at": "30m", "restore": "topology.kubernetes.io/zone=c", "rest": {}},
            ],
        },
    });
    stream(workloads.chain([scenario]))
}

/// A rollout, with a claim in CEL that is judged at every instant.
pub(super) fn always_cel(replicas: usize) -> String {
    let group = |zone: &&str| {
        json!({"name": zone, "size": 20, "template": {
            "metadata": {"labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
        }})
    };
    let scenario = json!({
        "apiVersion": "sim.strew.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "cel"},
        "spec": {
            "nodeGroups": ZONES.iter().map(group).collect::<Vec<_>>(),
            "always": [{"cel": "pods.size() < 100000"}],
            "timeline": [{"at": "2m", "rollout-restart": "deployment/web", "rest": {}}],
        },
    });
    stream([deployment("web", replicas, "100m"), scenario])
}

/// A dump of a cluster, as `kubectl get -o json` prints it: pods of Deployments on nodes, one of them Pending.
pub(super) fn dump(n_nodes: usize, n_workloads: usize, pods_each: usize) -> String {
    let mut items = Vec::new();
    let mut uid = 0;
    let mut meta = |name: &str, namespaced: bool| {
        uid += 1;
        let mut meta = json!({
            "name": name, "uid": format!("00000000-0000-4000-8000-{uid:012}"),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        });
        if namespaced {
            meta["namespace"] = "shop".into();
        }
        meta
    };
    for number in 0..n_nodes {
        let name = format!("node-{number:04}");
        let mut metadata = meta(&name, false);
        metadata["labels"] = json!({
            "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": ZONES[number % ZONES.len()],
        });
        items.push(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": metadata,
            "status": {
                "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }));
    }
    for number in 0..n_workloads {
        let name = format!("app-{number:04}");
        let mut object = deployment(&name, pods_each, "100m");
        let template = object["spec"]["template"].clone();
        object["metadata"] = meta(&name, true);
        let owner = |kind: &str, object: &Value| {
            json!([{
                "apiVersion": "apps/v1", "kind": kind, "controller": true,
                "name": object["metadata"]["name"], "uid": object["metadata"]["uid"],
            }])
        };
        let set_name = format!("{name}-5d9c");
        let mut set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta(&set_name, true)});
        set["spec"] = object["spec"].clone();
        let hash = json!({"app": name, "pod-template-hash": "5d9c"});
        set["spec"]["selector"] = json!({"matchLabels": hash});
        set["spec"]["template"]["metadata"]["labels"] = hash.clone();
        set["metadata"]["labels"] = hash.clone();
        set["metadata"]["ownerReferences"] = owner("Deployment", &object);
        for pod in 0..pods_each {
            let mut metadata = meta(&format!("{set_name}-{pod:03}"), true);
            metadata["labels"] = hash.clone();
            metadata["ownerReferences"] = owner("ReplicaSet", &set);
            let mut spec = template["spec"].clone();
            let is_pending = number == 0 && pod == 0;
            let status = match is_pending {
                true => json!({"phase": "Pending"}),
                false => {
                    let node = (number * pods_each + pod) % n_nodes;
                    spec["nodeName"] = format!("node-{node:04}").into();
                    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
                }
            };
            items.push(json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status,
            }));
        }
        items.extend([object, set]);
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// A hub: Placements that spread over regions.
pub(super) fn fleet(n_clusters: usize, n_placements: usize) -> String {
    let clusters = (0..n_clusters).map(|number| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": format!("cluster-{number:04}"), "labels": {
                "region": ZONES[number % ZONES.len()], "cluster.open-cluster-management.io/clusterset": "global",
            }},
            "spec": {"hubAcceptsClient": true},
            "status": {"conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True"}]},
        })
    });
    let set = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": "global"},
    });
    let binding = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "global", "namespace": "default"}, "spec": {"clusterSet": "global"},
    });
    let placements = (0..n_placements).map(|number| {
        json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
            "metadata": {"name": format!("placement-{number:04}"), "namespace": "default"},
            "spec": {
                "numberOfClusters": 3 + number % 5,
                "spreadPolicy": {"spreadConstraints": [{
                    "topologyKey": "region", "topologyKeyType": "Label", "maxSkew": 1,
                    "whenUnsatisfiable": "DoNotSchedule",
                }]},
            },
        })
    });
    stream(clusters.chain([set, binding]).chain(placements))
}
