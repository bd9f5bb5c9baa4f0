//! Reviews from clients that are no API server.

use serde_json::{Value, json};

use super::*;

const PODS: &str = "/admit/pods";

fn by(user: &str, mut review: Value) -> Value {
    review["request"]["userInfo"] = json!({"username": user, "groups": ["system:authenticated"]});
    review
}

#[tokio::test]
async fn a_slot_is_taken_only_for_who_may_create_pods() {
    let webhook = start(world());
    webhook.ready().await;
    let forged = by("mallory", review("CREATE", "web-7-0"));
    let refused = webhook.ask(PODS, &forged).await;
    assert_eq!(refused["status"]["code"], 403, "{refused}");
    let why = refused["status"]["message"].as_str().unwrap();
    assert_eq!(
        why,
        "user \"mallory\" may not create pods in namespace \"shop\""
    );
    // A dry run tells nothing.
    let mut dry_run = forged.clone();
    dry_run["request"]["dryRun"] = true.into();
    let told = webhook.ask(PODS, &dry_run).await;
    assert_eq!(told["patch"], Value::Null, "{told}");
    assert_eq!(webhook.world.written(), []);
    // What ends is not hindered by it, and not counted.
    let mut end = by("mallory", review("DELETE", "web-7-1"));
    end["request"]["oldObject"]["metadata"]["annotations"] =
        json!({"apps.kruise.io/matched-workloadspread": r#"{"name":"ws","subset":"own"}"#});
    let passed = webhook.ask(PODS, &end).await;
    assert_eq!(passed["allowed"], true, "{passed}");
    assert_eq!(webhook.world.written(), []);

    let asked = webhook.world.n_rights();
    for i in 0..3 {
        let answer = webhook
            .ask(PODS, &by("alice", review("CREATE", &format!("web-7-{i}"))))
            .await;
        assert!(answer["patch"].is_string(), "{answer}");
    }
    assert_eq!(webhook.world.n_rights(), asked + 1, "the answer is kept");
}

/// Most pods are in namespaces without a WorkloadSpread.
#[tokio::test]
async fn where_there_is_no_ledger_nobody_is_asked_for_rights() {
    let webhook = start(world());
    webhook.ready().await;
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    webhook.world.break_path(path, 500, "etcd is away");
    let mut elsewhere = by("mallory", review("CREATE", "web-7-0"));
    elsewhere["request"]["namespace"] = "other".into();
    elsewhere["request"]["object"]["metadata"]["namespace"] = "other".into();
    elsewhere["request"]["object"]["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(webhook.ask(PODS, &elsewhere).await["allowed"], true);
    assert_eq!(webhook.world.n_refused(), 0);
    // With a ledger, what is not known is not answered: the registration says what becomes of the pod.
    let body = by("alice", review("CREATE", "web-7-0")).to_string();
    let (code, why) = webhook.post(PODS, body).await;
    assert_eq!(code, 503, "{why}");
    let unknown = "strew_webhook_admissions_total{operation=\"create\",result=\"right_unknown\"}";
    assert_eq!(webhook.metric(unknown).await, Some(1.0));
}

/// A replica's own review shows what others would be told of a pod.
#[tokio::test]
async fn nobody_else_asks_as_the_replica_itself_does() {
    let webhook = start(world());
    webhook.ready().await;
    let mut own = review("CREATE", "web-7-0");
    own["request"]["dryRun"] = true.into();
    let (code, _) = webhook.post("/admit/own", own.to_string()).await;
    assert_eq!(code, 401);
}
