//! The controller of WorkloadSpreads on an API server that does not keep still.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::LocalSet;

use crate::hub::{Fault, Hub, State};
use crate::running::{alone, start};

const KRUISE: &str = "apps.kruise.io";

const STATUS: &str = "PUT /apis/apps.kruise.io/v1beta1/namespaces/shop/workloadspreads/web/status";

fn kinds() -> Vec<[&'static str; 4]> {
    vec![
        [KRUISE, "v1beta1", "WorkloadSpread", "workloadspreads"],
        ["example.org", "v1", "Game", "games"],
    ]
}

fn node(name: &str, zone: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"zone": zone}}})
}

fn owned_by(kind: &str, owner: &Value) -> Value {
    json!([{
        "apiVersion": "apps/v1", "kind": kind, "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }])
}

/// A Deployment with its ReplicaSet, and pods on these nodes.
fn deploy(state: &mut State, nodes: &[&str]) {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}});
    let n = nodes.len();
    let deployment = json!({
        "metadata": {"namespace": "shop", "name": "web"},
        "spec": {"replicas": n, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    let deployment = state.set("deployments", deployment);
    let mut template = template;
    template["metadata"]["labels"]["pod-template-hash"] = json!("v1");
    let set = json!({
        "metadata": {
            "namespace": "shop", "name": "web-v1", "labels": {"pod-template-hash": "v1"},
            "ownerReferences": owned_by("Deployment", &deployment),
        },
        "spec": {"replicas": n, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    });
    let set = state.set("replicasets", set);
    for (i, node) in nodes.iter().enumerate() {
        let pod = json!({
            "metadata": {
                "namespace": "shop", "name": format!("web-v1-{i}"),
                "labels": {"app": "web", "pod-template-hash": "v1", "tier": "gold"},
                "ownerReferences": owned_by("ReplicaSet", &set),
            },
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
            "status": {"phase": "Running"},
        });
        state.set("pods", pod);
    }
}

fn spread(name: &str, target: &Value, subsets: &Value) -> Value {
    json!({
        "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
        "metadata": {"namespace": "shop", "name": name, "generation": 1},
        "spec": {"targetRef": target, "subsets": subsets},
    })
}

fn web(subsets: &Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    spread("web", &target, subsets)
}

/// Two zones; at most two pods in the first.
fn zones() -> Value {
    let zone = |value: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]});
    json!([
        {"name": "own", "maxReplicas": 2, "requiredNodeSelector": zone("a")},
        {"name": "elastic", "requiredNodeSelector": zone("b")},
    ])
}

/// Replicas of the subsets, as the status has them.
fn replicas(state: &State, name: &str) -> Vec<i64> {
    let spread = state.get("workloadspreads", &format!("shop/{name}"));
    let rows = spread.and_then(|ws| ws.pointer("/status/subsetStatuses")?.as_array());
    let rows = rows.into_iter().flatten();
    rows.filter_map(|row| row["replicas"].as_i64()).collect()
}

/// Of each pod its subset, and its deletion cost.
fn pods(state: &State) -> Vec<String> {
    let each = state.all("pods").map(|pod| {
        let annotation = |key: &str| {
            let all = &pod["metadata"]["annotations"];
            all[key].as_str().unwrap_or("-").to_owned()
        };
        let marker = annotation("apps.kruise.io/matched-workloadspread");
        let marker: Value = serde_json::from_str(&marker).unwrap_or_default();
        let cost = annotation("controller.kubernetes.io/pod-deletion-cost");
        format!("{} {cost}", marker["subset"].as_str().unwrap_or("-"))
    });
    each.collect()
}

#[tokio::test]
async fn pods_that_were_there_are_adopted_whoever_else_writes_the_status() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    {
        let mut state = hub.lock();
        state.kinds = kinds();
        for (name, zone) in [("n1", "a"), ("n2", "b")] {
            state.set("nodes", node(name, zone));
        }
        deploy(&mut state, &["n1", "n1", "n1", "n2"]);
        state.set("workloadspreads", web(&zones()));
        // Admission writes first, and then an answer is lost.
        let conflict = Fault::Before(Box::new(|state| {
            let known = state.get("workloadspreads", "shop/web").cloned();
            let mut spread = known.expect("it is there");
            spread["metadata"]["annotations"] = json!({"seen": "1"});
            state.set("workloadspreads", spread);
        }));
        state.faults.push((STATUS, conflict));
        state.faults.push((STATUS, Fault::LostAnswer));
    }
    let running = local.run_until(start(client, alone(), &local)).await;
    let settled = |state: &State| replicas(state, "web") == [3, 1] && state.faults.is_empty();
    local.run_until(hub.until("all are adopted", settled)).await;
    assert_eq!(
        pods(&hub.lock()),
        ["own -100", "own 200", "own 200", "elastic 100"]
    );
    // What was written and not heard of is not written again: nothing has changed.
    local
        .run_until(tokio::time::sleep(Duration::from_millis(500)))
        .await;
    let state = hub.lock();
    let writes = state.writes.iter().filter(|write| *write == STATUS).count();
    assert!((2..=3).contains(&writes), "{:#?}", state.writes);
    drop(running);
}

#[tokio::test]
async fn a_patch_that_is_in_effect_already_is_seen_in_pods_that_were_told_before() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    {
        let mut state = hub.lock();
        state.kinds = kinds();
        state.set("nodes", node("n1", "a"));
        deploy(&mut state, &["n1"]);
    }
    let running = local.run_until(start(client, alone(), &local)).await;
    // The pods are told before there is any WorkloadSpread.
    let is_watched = |state: &State| state.has_watched("pods");
    local
        .run_until(hub.until("pods are watched", is_watched))
        .await;
    let patch = |tier: &str| json!({"metadata": {"labels": {"tier": tier}}});
    let subsets = json!([
        {"name": "silver", "patch": patch("silver")},
        {"name": "gold", "patch": patch("gold")},
    ]);
    hub.lock().set("workloadspreads", web(&subsets));
    // Both subsets fit; the pod is what the second makes of it.
    local
        .run_until(hub.until("it is adopted", |state| replicas(state, "web") == [0, 1]))
        .await;
    assert_eq!(pods(&hub.lock()), ["gold 100"]);
    let pod = hub.lock().get("pods", "shop/web-v1-0").cloned();
    assert_eq!(
        pod.expect("it is there")["metadata"]["labels"]["tier"],
        "gold"
    );
    drop(running);
}

#[tokio::test]
async fn a_target_of_a_kind_that_nobody_may_list_holds_back_its_own_spread_alone() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    {
        let mut state = hub.lock();
        state.kinds = kinds();
        state.forbidden = vec!["games"];
        state.set("nodes", node("n1", "a"));
        deploy(&mut state, &["n1", "n1"]);
        state.set("workloadspreads", web(&zones()));
        let target = json!({"apiVersion": "example.org/v1", "kind": "Game", "name": "chess"});
        let half = json!([{"name": "a", "maxReplicas": "50%"}, {"name": "b"}]);
        let mut chess = spread("chess", &target, &half);
        chess["metadata"]["annotations"] = json!({"strew.dev/any-kind": "true"});
        state.set("workloadspreads", chess);
        let list = json!({"workloads": [{
            "Group": "example.org", "Version": "v1", "Kind": "Game", "replicasPath": "spec.players",
        }]});
        let key = "WorkloadSpread_Watch_Custom_Workload_WhiteList";
        let configuration = json!({
            "metadata": {"namespace": "strew-system", "name": "kruise-configuration"},
            "data": {key: list.to_string()},
        });
        state.set("configmaps", configuration);
        let game = json!({
            "metadata": {"namespace": "shop", "name": "chess"}, "spec": {"players": 7},
        });
        state.set("games", game);
    }
    let running = local.run_until(start(client, alone(), &local)).await;
    local
        .run_until(hub.until("the others go on", |state| replicas(state, "web") == [2, 0]))
        .await;
    assert_eq!(replicas(&hub.lock(), "chess"), Vec::<i64>::new());
    hub.lock().forbidden.clear();
    local
        .run_until(hub.until("it goes on, too", |state| {
            replicas(state, "chess") == [0, 0]
        }))
        .await;
    let chess = hub.lock().get("workloadspreads", "shop/chess").cloned();
    let rows = chess.expect("it is there")["status"]["subsetStatuses"].clone();
    // Half of seven, rounded up.
    assert_eq!(rows[0]["missingReplicas"], 4);
    drop(running);
}
