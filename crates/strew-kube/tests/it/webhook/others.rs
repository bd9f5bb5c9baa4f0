//! WorkloadSpreads that are written, and their versions.

use serde_json::{Value, json};

use super::*;

fn validation(object: Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {"uid": "v", "operation": "CREATE", "namespace": "shop", "object": object},
    })
}

const VALIDATE: &str = "/validate/workloadspreads";

#[tokio::test]
async fn a_spread_is_judged_by_what_there_is() {
    let webhook = start(world());
    // The review waits for the watches.
    let allowed = webhook.ask(VALIDATE, &validation(spread())).await;
    assert_eq!(allowed, json!({"uid": "v", "allowed": true}));
    let mut second = spread();
    second["metadata"]["name"] = "second".into();
    second["spec"]["subsets"][0]["patch"] = json!({"spec": {"containers": 7}});
    let refused = webhook.ask(VALIDATE, &validation(second)).await;
    let message = refused["status"]["message"].as_str().unwrap();
    assert_eq!(refused["status"]["code"], 400);
    for part in [
        "spec.targetRef: Invalid value: ",
        // This client shows no certificate, and is not told the name of the other one.
        "another WorkloadSpread of the namespace has the same target",
        "spec.subsets[0].patch",
    ] {
        assert!(message.contains(part), "{part} is not in {message}");
    }
    let denied = "strew_webhook_validations_total{result=\"denied\"}";
    assert_eq!(webhook.metric(denied).await, Some(1.0));
}

const IN_SHOP: &str = "/apis/apps.kruise.io/v1beta1/namespaces/shop/workloadspreads";

/// A tenant that wrote one of 1,349 WorkloadSpreads again and again had all of them listed each time, and its target
/// read.
#[tokio::test]
async fn only_a_new_spec_is_judged_by_others_and_none_of_them_is_listed() {
    let world = world();
    let target = "/apis/apps/v1/namespaces/shop/deployments/web";
    for path in [IN_SHOP, target] {
        world.break_path(path, 500, "this costs too much");
    }
    let webhook = start(world);
    let ask = async |operation: &str, object: Value| {
        let mut review = validation(object);
        review["request"]["operation"] = operation.into();
        review["request"]["oldObject"] = spread();
        webhook.ask(VALIDATE, &review).await
    };
    let mut labelled = spread();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let mut annotated = spread();
    annotated["metadata"]["annotations"] = json!({"a": "b"});
    let mut changed = spread();
    changed["spec"]["subsets"][0]["maxReplicas"] = 5.into();
    for object in [labelled, annotated, changed] {
        let answer = ask("UPDATE", object.clone()).await;
        assert_eq!(answer["allowed"], true, "{object}: {answer}");
    }
    let mut wrong = spread();
    wrong["metadata"]["annotations"] = json!({"strew.dev/limit-scope": "?"});
    assert_eq!(ask("UPDATE", wrong).await["allowed"], false);
    let mut other = spread();
    other["metadata"]["name"] = "other".into();
    other["spec"]["targetRef"]["name"] = "api".into();
    assert_eq!(ask("CREATE", other).await["allowed"], true);
    assert_eq!(webhook.world.n_refused(), 0);
}

#[tokio::test]
async fn a_spread_of_an_owner_is_in_the_way_and_one_that_is_gone_is_not() {
    let webhook = start(world());
    let mut of_set = spread();
    of_set["metadata"]["name"] = "of-set".into();
    of_set["spec"]["targetRef"] =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7"});
    let refused = webhook.ask(VALIDATE, &validation(of_set.clone())).await;
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(
        message.contains("has the pods of this target: it names its owner"),
        "{message}"
    );
    // The other way round, and the watch has not told yet that one is gone.
    let world = FakeApiServer::default();
    world.set(DEPLOYMENTS, deployment());
    world.set(REPLICA_SETS, replica_set());
    world.set(SPREADS, of_set);
    let webhook = start(world);
    let refused = webhook.ask(VALIDATE, &validation(spread())).await;
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(message.contains("which this one owns"), "{message}");
    let gone = format!("{IN_SHOP}/of-set");
    webhook.world.break_path(&gone, 404, "not found");
    let allowed = webhook.ask(VALIDATE, &validation(spread())).await;
    assert_eq!(allowed["allowed"], true, "{allowed}");
}

/// Before, they waited on one connection behind a thousand reads of validations.
#[tokio::test]
async fn status_writes_have_a_client_of_their_own() {
    let (world, apart) = (world(), super::world());
    let writes = Some(apart.connection().client);
    let blueprint = Blueprint {
        writes,
        ..blueprint()
    };
    let webhook = start_as(blueprint, world, Log::default());
    webhook.ready().await;
    let admitted = webhook
        .ask("/admit/pods", &review("CREATE", "web-7-0"))
        .await;
    assert!(admitted["patch"].is_string(), "{admitted}");
    let written = |world: &FakeApiServer| world.written().len();
    assert_eq!((written(&webhook.world), written(&apart)), (0, 1));
}

#[tokio::test]
async fn a_kind_of_the_list_is_a_target_and_others_are_not() {
    let world = world();
    let list = r#"{"workloads": [{"Group": "example.org", "Version": "v1", "Kind": "Game"}]}"#;
    world.set(
        "/api/v1/configmaps",
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "kruise-configuration", "namespace": "strew-system"},
            "data": {"WorkloadSpread_Watch_Custom_Workload_WhiteList": list},
        }),
    );
    let webhook = start(world);
    let of = |kind: &str| {
        let mut spread = spread();
        spread["metadata"]["name"] = "games".into();
        spread["spec"]["targetRef"] =
            json!({"apiVersion": "example.org/v1", "kind": kind, "name": "chess"});
        validation(spread)
    };
    assert_eq!(webhook.ask(VALIDATE, &of("Game")).await["allowed"], true);
    let refused = webhook.ask(VALIDATE, &of("Hall")).await;
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(message.contains("is not in the white list"), "{message}");
    let path = "/api/v1/namespaces/strew-system/configmaps/kruise-configuration";
    webhook.world.break_path(path, 403, "no rights to read it");
    let unknown = webhook.ask(VALIDATE, &of("Game")).await;
    let message = unknown["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("spec.targetRef: Internal error: "),
        "{message}"
    );
    assert!(message.contains("no rights to read it"), "{message}");
}

/// The audit's Mallory, who may write WorkloadSpreads and nothing else.
#[tokio::test]
async fn who_may_not_create_pods_may_not_say_what_they_become() {
    let webhook = start(world());
    let by = |user: &str, operation: &str, object: Value| {
        let mut review = validation(object);
        review["request"]["operation"] = operation.into();
        review["request"]["userInfo"] =
            json!({"username": user, "groups": ["system:authenticated"]});
        review["request"]["oldObject"] = spread();
        review
    };
    let refused = webhook
        .ask(VALIDATE, &by("mallory", "CREATE", spread()))
        .await;
    assert_eq!(refused["status"]["code"], 403);
    let message = refused["status"]["message"].as_str().unwrap();
    assert!(
        message
            .starts_with("user \"mallory\" must be allowed to create pods in namespace \"shop\""),
        "{message}"
    );
    // What changes nothing for pods asks for no right.
    let mut labelled = spread();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let mut changed = spread();
    changed["spec"]["subsets"][0]["maxReplicas"] = 5.into();
    for (user, object, allowed) in [
        ("mallory", labelled, true),
        ("mallory", changed.clone(), false),
        ("alice", changed.clone(), true),
    ] {
        let answer = webhook.ask(VALIDATE, &by(user, "UPDATE", object)).await;
        assert_eq!(answer["allowed"], allowed, "{user}: {answer}");
    }
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    webhook.world.break_path(path, 500, "etcd is away");
    let unknown = webhook.ask(VALIDATE, &by("bob", "UPDATE", changed)).await;
    assert_eq!(unknown["status"]["code"], 500);
}

/// What makes it ready early is the code, not the API server's words.
#[tokio::test]
async fn only_a_list_that_cannot_be_made_is_no_reason_to_wait() {
    let unlike = world();
    unlike.break_path(SPREADS, 500, "something else in other words");
    start(unlike).ready().await;

    let forbidden = world();
    forbidden.break_path(SPREADS, 403, "the conversion webhook is forbidden");
    let log = Log::default();
    let webhook = start_with(forbidden, log.clone());
    wait(async || log.text().contains("webhook is forbidden")).await;
    assert_ne!(webhook.get("/readyz/watches").await.0, 200);
}

/// The watch of WorkloadSpreads may itself need the conversion.
#[tokio::test]
async fn versions_are_converted_before_the_cluster_is_known() {
    let world = world();
    let why = "conversion webhook for apps.kruise.io/v1alpha1, Kind=WorkloadSpread failed: no endpoints available";
    world.break_path(SPREADS, 500, why);
    let webhook = start(world);
    let mut old = spread();
    old["apiVersion"] = "apps.kruise.io/v1alpha1".into();
    for subset in old["spec"]["subsets"].as_array_mut().unwrap() {
        let term = subset
            .as_object_mut()
            .unwrap()
            .remove("requiredNodeSelector");
        subset["requiredNodeSelectorTerm"] = term.unwrap();
    }
    let review = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "c", "desiredAPIVersion": "apps.kruise.io/v1beta1", "objects": [old]},
    });
    let answer = webhook.ask("/convert/workloadspreads", &review).await;
    assert_eq!(answer["result"], json!({"status": "Success"}));
    assert_eq!(answer["convertedObjects"], json!([spread()]));
    // A webhook that is not ready is asked nothing, and would never get ready.
    webhook.ready().await;
    let body = super::review("CREATE", "web-7-0").to_string();
    assert_eq!(webhook.post("/admit/pods", body).await.0, 503);
}
