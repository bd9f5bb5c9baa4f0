//! Pods on their way in and out.

use std::time::Duration;

use serde_json::{Value, json};

use super::*;

const PODS: &str = "/admit/pods";

/// The subset of a pod that was answered with a patch; empty where there is none.
fn subset_of(response: &Value) -> String {
    assert_eq!(response["allowed"], true, "{response}");
    let Some(patch) = response["patch"].as_str() else {
        return String::new();
    };
    let patch = String::from_utf8(from_base_64(patch)).expect("a patch");
    const BEFORE: &str = r#"\"subset\":\""#;
    let at = patch.find(BEFORE).expect("a marker") + BEFORE.len();
    patch[at..].split('\\').next().expect("a name").to_owned()
}

fn from_base_64(text: &str) -> Vec<u8> {
    let quoted = Value::from(text);
    let bytes: k8s_openapi::ByteString = serde_json::from_value(quoted).expect("base 64");
    bytes.0
}

#[tokio::test]
async fn pods_get_their_subsets_and_share_a_write() {
    let webhook = start(world());
    webhook.ready().await;
    webhook.world.hold();
    let names: Vec<String> = (0..5).map(|i| format!("web-7-{i}")).collect();
    let reviews: Vec<Value> = names.iter().map(|name| review("CREATE", name)).collect();
    let asked = reviews.iter().map(|review| webhook.ask(PODS, review));
    let release = async {
        wait(async || webhook.world.n_held() == 1).await;
        webhook.world.release();
    };
    let (answers, ()) = tokio::join!(futures::future::join_all(asked), release);
    let mut subsets: Vec<String> = answers.iter().map(subset_of).collect();
    subsets.sort();
    assert_eq!(subsets, ["own", "own", "rented", "rented", "rented"]);
    let written = webhook.world.written();
    let paths: Vec<&str> = written.iter().map(|(path, _)| path.as_str()).collect();
    let path = "PUT /apis/apps.kruise.io/v1beta1/namespaces/shop/workloadspreads/ws/status";
    // The first pod wrote at once, the others wait for it and share the second.
    assert!(
        (1..=2).contains(&paths.len()) && paths[0] == path,
        "{paths:?}"
    );
    let row = &written.last().unwrap().1["status"]["versionedSubsetStatuses"]["7"][0];
    assert_eq!(
        (&row["name"], &row["missingReplicas"]),
        (&"own".into(), &0.into())
    );
    assert_eq!(row["creatingPods"].as_object().unwrap().len(), 2);
    // Asked again, the same pod has its place already. Which pod came first is the sockets' affair.
    let of_first = subset_of(&answers[0]);
    let again = webhook.ask(PODS, &review("CREATE", &names[0])).await;
    assert_eq!(subset_of(&again), of_first);
    assert_eq!(webhook.world.written().len(), paths.len());
    for (subset, n_pods) in [("own", 2), ("rented", 3)] {
        let injected = format!(
            "strew_workloadspread_injections_total{{namespace=\"shop\",workloadspread=\"ws\",subset=\"{subset}\"}}"
        );
        let n_answers = n_pods + u32::from(of_first == subset);
        assert_eq!(
            webhook.metric(&injected).await,
            Some(f64::from(n_answers)),
            "{subset}"
        );
    }
    let admitted = "strew_webhook_admissions_total{operation=\"create\",result=\"injected\"}";
    assert_eq!(webhook.metric(admitted).await, Some(6.0));
    let shared = webhook
        .metric("strew_webhook_requests_per_status_write_count")
        .await;
    assert_eq!(shared, Some(paths.len() as f64));
}

#[tokio::test]
async fn decisions_are_logged() {
    let log = Log::default();
    let webhook = start_with(world(), log.clone());
    webhook.ready().await;
    webhook.ask(PODS, &review("CREATE", "web-7-0")).await;
    let mut stranger = review("CREATE", "alone");
    stranger["request"]["object"]["metadata"]["ownerReferences"] = json!([]);
    webhook.ask(PODS, &stranger).await;
    webhook.world.conflict(9);
    webhook.ask(PODS, &review("CREATE", "web-7-1")).await;
    for (decision, fields) in [
        (
            "inject",
            "operation=Create pod=\"shop/web-7-0\" workloadspread=\"ws\" subset=\"own\"",
        ),
        (
            "pass",
            "operation=Create pod=\"shop/alone\" why=\"NoController\"",
        ),
        (
            "deny",
            "operation=Create pod=\"shop/web-7-1\" why=\"the WorkloadSpread's status changed",
        ),
    ] {
        let line = log.line(&format!("strew::decision: {decision} "));
        assert!(line.contains(fields), "{line}");
    }
}

#[tokio::test]
async fn a_race_that_is_lost_is_run_again_by_what_there_is_then() {
    let webhook = start(world());
    webhook.ready().await;
    webhook.world.conflict(2);
    let answer = webhook.ask(PODS, &review("CREATE", "web-7-0")).await;
    assert_eq!(subset_of(&answer), "own");
    assert_eq!(webhook.world.written().len(), 3);
    webhook.world.conflict(9);
    let refused = webhook.ask(PODS, &review("CREATE", "web-7-1")).await;
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["status"]["code"], 500);
    assert_eq!(webhook.world.written().len(), 7);
    assert_eq!(
        webhook.metric("strew_webhook_conflicts_total").await,
        Some(6.0)
    );
}

#[tokio::test]
async fn a_deletion_is_counted_and_an_eviction_is_not() {
    let webhook = start(world());
    webhook.ready().await;
    let mut marked = pod("web-7-0");
    marked["metadata"]["annotations"] =
        json!({"apps.kruise.io/matched-workloadspread": r#"{"name":"ws","subset":"own"}"#});
    marked["metadata"]["uid"] = "pod-0".into();
    webhook.world.set("/api/v1/pods", marked.clone());
    // Its budgets are asked afterwards. An API server with an earlier registration asks all the same.
    let eviction = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "e", "operation": "CREATE", "subResource": "eviction", "namespace": "shop", "name": "web-7-0",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "object": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web-7-0"}},
        },
    });
    let answer = webhook.ask("/admit/pods-end", &eviction).await;
    assert_eq!(answer["allowed"], true, "{answer}");
    assert_eq!(webhook.world.written().len(), 0);
    let mut deletion = review("DELETE", "web-7-0");
    deletion["request"]["oldObject"] = marked;
    let answer = webhook.ask("/admit/pods-end", &deletion).await;
    assert_eq!(answer["allowed"], true, "{answer}");
    let written = webhook.world.written();
    let row = &written[0].1["status"]["versionedSubsetStatuses"]["7"][0];
    assert!(row["deletingPods"]["web-7-0"].is_string(), "{row}");
}

#[tokio::test]
async fn nothing_is_written_in_a_dry_run() {
    let webhook = start(world());
    webhook.ready().await;
    for operation in ["CREATE", "DELETE"] {
        let mut dry = review(operation, "web-7-0");
        dry["request"]["dryRun"] = true.into();
        assert_eq!(subset_of(&webhook.ask(PODS, &dry).await), "");
    }
    assert!(webhook.world.written().is_empty());
}

#[tokio::test]
async fn a_pod_waits_for_news_of_its_owner_but_not_for_long() {
    let world = FakeApiServer::default();
    world.set(SPREADS, spread());
    world.set(DEPLOYMENTS, deployment());
    let webhook = start(world);
    webhook.ready().await;
    let creation = review("CREATE", "web-7-0");
    let late = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        webhook.world.set(REPLICA_SETS, replica_set());
    };
    let (answer, ()) = tokio::join!(webhook.ask(PODS, &creation), late);
    assert_eq!(subset_of(&answer), "own");
    let mut orphan = review("CREATE", "api-1");
    orphan["request"]["object"]["metadata"]["ownerReferences"][0]["name"] = "api".into();
    let refused = webhook.ask(PODS, &orphan).await;
    assert_eq!(refused["status"]["code"], 500);
    let message = refused["status"]["message"].as_str().unwrap();
    assert_eq!(message, "the pod's owner ReplicaSet \"api\" was not found");
}

/// A deletion that no review waits for must not be counted later.
#[tokio::test]
async fn who_goes_away_is_forgotten() {
    let webhook = start(world());
    webhook.ready().await;
    webhook.world.hold();
    let (first, second) = (review("CREATE", "web-7-0"), review("CREATE", "web-7-1"));
    let mut first = Box::pin(webhook.ask(PODS, &first));
    let mut second = Box::pin(webhook.ask(PODS, &second));
    tokio::select! {
        _ = &mut first => unreachable!("its write waits"),
        () = wait(async || webhook.world.n_held() == 1) => {}
    }
    let waits = wait(async || webhook.metric("strew_webhook_waiting").await == Some(2.0));
    tokio::select! {
        _ = &mut second => unreachable!("it waits for the first write"),
        () = waits => {}
    }
    drop(second);
    wait(async || webhook.metric("strew_webhook_waiting").await == Some(1.0)).await;
    webhook.world.release();
    assert_eq!(subset_of(&first.await), "own");
    assert_eq!(webhook.world.written().len(), 1);
    let gone = "strew_webhook_admissions_total{operation=\"create\",result=\"given_up\"}";
    assert_eq!(webhook.metric(gone).await, Some(1.0));
}

/// The API server says how long it waits.
#[tokio::test]
async fn an_answer_comes_in_time_or_not_at_all() {
    let webhook = start(world());
    webhook.ready().await;
    webhook.world.hold();
    let body = review("CREATE", "web-7-0").to_string();
    let (code, text) = webhook.post("/admit/pods?timeout=1s", body).await;
    assert_eq!((code, text.as_str()), (504, "no answer in time\n"));
    webhook.world.release();
}

#[tokio::test]
async fn before_the_cluster_is_known_no_pod_passes() {
    let world = world();
    world.break_path(REPLICA_SETS, 403, "forbidden");
    let webhook = start(world);
    let (code, _) = webhook.get("/readyz").await;
    assert_eq!(code, 500);
    let body = review("CREATE", "web-7-0").to_string();
    let (code, text) = webhook.post("/admit/pods?timeout=30s", body).await;
    assert_eq!(code, 503, "{text}");
    assert_eq!(text, "the webhook does not know the cluster yet\n");
    let count = "strew_webhook_admissions_total{operation=\"create\",result=\"not_ready\"}";
    assert_eq!(webhook.metric(count).await, Some(1.0));
}

/// Without its definition there can be no WorkloadSpread: pods must not wait for it.
#[tokio::test]
async fn a_definition_that_is_not_installed_keeps_nobody_waiting() {
    let world = FakeApiServer::default();
    world.set(DEPLOYMENTS, deployment());
    world.set(REPLICA_SETS, replica_set());
    let webhook = start(world);
    webhook.ready().await;
    let answer = webhook.ask(PODS, &review("CREATE", "web-7-0")).await;
    assert_eq!(subset_of(&answer), "");
}

#[tokio::test]
async fn what_cannot_be_read_has_an_answer() {
    let webhook = start(world());
    webhook.ready().await;
    for (path, body, code, expected) in [
        (PODS, "{", 400, "the body is no JSON"),
        (
            PODS,
            "[]",
            400,
            "expected an AdmissionReview with a request",
        ),
        (PODS, "", 400, "the body is no JSON"),
        (
            "/validate/workloadspreads",
            "{}",
            400,
            "expected an AdmissionReview with a request",
        ),
        (
            "/convert/workloadspreads",
            "{}",
            400,
            "expected a ConversionReview with a request",
        ),
        ("/nothing", "{}", 404, ""),
    ] {
        let (found, text) = webhook.post(path, body.to_owned()).await;
        assert_eq!(found, code, "{path} {body}");
        assert!(text.contains(expected), "{path} {body}: {text}");
    }
    let mut other = review("UPDATE", "web-7-0");
    other["apiVersion"] = "admission.k8s.io/v1beta1".into();
    let (code, text) = webhook.post(PODS, other.to_string()).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &answer["apiVersion"]), (200, &other["apiVersion"]));
    assert_eq!(answer["response"]["uid"], "review of web-7-0");
    assert_eq!(answer["response"]["status"]["code"], 400);
    let mut broken = review("CREATE", "web-7-0");
    broken["request"]["object"]["spec"] = 7.into();
    let answer = webhook.ask(PODS, &broken).await;
    assert_eq!(answer["status"]["code"], 400);
}
