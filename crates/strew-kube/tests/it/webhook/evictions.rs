//! Reviews of evictions of pods whose budget is kept by zone.

use serde_json::{Value, json};

use super::{pod, start, wait, world};

const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";
const EVICT: &str = "/admit/evictions";

fn budget() -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web", "generation": 1,
                     "annotations": {"strew.dev/zone-aware": "zone"}},
        "spec": {"maxUnavailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"observedGeneration": 1, "disruptionsAllowed": 2, "expectedPods": 3, "currentHealthy": 3,
                   "desiredHealthy": 1},
    })
}

fn node(name: &str, zone: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"zone": zone}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"cpu": "4"}},
    })
}

fn on(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["uid"] = name.into();
    pod["spec"]["nodeName"] = node.into();
    pod["status"] =
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    pod
}

fn eviction(name: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": name, "operation": "CREATE", "subResource": "eviction", "namespace": "shop", "name": name,
            "userInfo": {"username": "drain"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
        },
    })
}

#[tokio::test]
async fn one_zone_waits_for_the_other() {
    let world = world();
    world.set("/api/v1/nodes", node("na", "a"));
    world.set("/api/v1/nodes", node("nb", "b"));
    for (name, node) in [("web-7-0", "na"), ("web-7-1", "na"), ("web-7-2", "nb")] {
        world.set("/api/v1/pods", on(name, node));
    }
    world.set(BUDGETS, budget());
    let webhook = start(world);
    webhook.ready().await;
    let asked = async |name: &str| webhook.ask(EVICT, &eviction(name)).await;
    wait(async || asked("web-7-0").await["allowed"] == true).await;
    let claim = || {
        let budgets = webhook.world.objects(BUDGETS);
        budgets[0]["metadata"]["annotations"]["strew.dev/disrupted-zone"].clone()
    };
    let text = claim();
    let text = text.as_str().expect("the zone is claimed");
    assert!(text.contains(r#""zone":"a""#), "{text}");
    let refused = asked("web-7-2").await;
    assert_eq!(refused["allowed"], false, "{refused}");
    assert_eq!(refused["status"]["code"], 429);
    assert_eq!(refused["status"]["reason"], "TooManyRequests");
    assert_eq!(refused["status"]["details"]["retryAfterSeconds"], 5);
    assert_eq!(asked("web-7-1").await["allowed"], true);
    // Of another budget, or of none.
    assert_eq!(asked("other").await["allowed"], true);
    let mut dry = eviction("web-7-2");
    dry["request"]["dryRun"] = true.into();
    assert_eq!(webhook.ask(EVICT, &dry).await["allowed"], false);
    let n_refused = webhook
        .metric(r#"strew_webhook_evictions_total{result="refused"}"#)
        .await;
    assert!(n_refused >= Some(2.0), "{n_refused:?}");
}

#[tokio::test]
async fn without_an_annotated_budget_no_pod_is_looked_at() {
    let world = world();
    let mut plain = budget();
    plain["metadata"]["annotations"] = json!({});
    world.set(BUDGETS, plain);
    world.set("/api/v1/pods", on("web-7-0", "na"));
    let webhook = start(world);
    webhook.ready().await;
    wait(async || webhook.ask(EVICT, &eviction("web-7-0")).await["allowed"] == true).await;
    let stored = webhook.world.objects(BUDGETS);
    assert_eq!(stored[0]["metadata"]["annotations"], json!({}));
}

#[tokio::test]
async fn budgets_that_cannot_be_read_refuse_no_eviction() {
    let world = world();
    world.break_path(BUDGETS, 403, "forbidden");
    let webhook = start(world);
    webhook.ready().await;
    wait(async || webhook.ask(EVICT, &eviction("web-7-0")).await["allowed"] == true).await;
}
