//! The controller of Placements on a hub that does not keep still.

use std::collections::BTreeSet;
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use strew_wire::config::LeaderElection;
use tokio::task::LocalSet;
use tower::ServiceExt;

use crate::hub::{Fault, Hub, State};
use crate::running::{Running, alone, start};

/// The beginning of a write of the first decision.
const FIRST_DECISION: &str = "PATCH /apis/cluster.open-cluster-management.io/v1beta1/namespaces/shop/placementdecisions/web-decision-1/";

/// The creation of a decision.
const CREATION: &str =
    "POST /apis/cluster.open-cluster-management.io/v1beta1/namespaces/shop/placementdecisions";

const OCM: &str = "cluster.open-cluster-management.io";

const KINDS: [[&str; 4]; 6] = [
    [OCM, "v1", "ManagedCluster", "managedclusters"],
    [OCM, "v1beta2", "ManagedClusterSet", "managedclustersets"],
    [
        OCM,
        "v1beta2",
        "ManagedClusterSetBinding",
        "managedclustersetbindings",
    ],
    [
        OCM,
        "v1alpha1",
        "AddOnPlacementScore",
        "addonplacementscores",
    ],
    [OCM, "v1beta1", "Placement", "placements"],
    [OCM, "v1beta1", "PlacementDecision", "placementdecisions"],
];

fn object(kind: &str, namespace: &str, name: &str, spec: Value) -> Value {
    let found = KINDS.iter().find(|[_, _, known, _]| *known == kind);
    let [group, version, ..] = found.expect("a kind of OCM");
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = namespace.into();
    }
    json!({"apiVersion": format!("{group}/{version}"), "kind": kind, "metadata": metadata, "spec": spec})
}

fn add_cluster(state: &mut State, i: usize) {
    let cluster = object("ManagedCluster", "", &format!("c{i:03}"), json!({}));
    state.set("managedclusters", cluster);
}

/// `n_clusters` clusters, all in a set that is bound, and a Placement that takes all.
fn fill(state: &mut State, n_clusters: usize) {
    state.kinds = KINDS.to_vec();
    (0..n_clusters).for_each(|i| add_cluster(state, i));
    let all = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
    state.set(
        "managedclustersets",
        object("ManagedClusterSet", "", "all", all),
    );
    let binding = object(
        "ManagedClusterSetBinding",
        "shop",
        "all",
        json!({"clusterSet": "all"}),
    );
    state.set("managedclustersetbindings", binding);
    state.set("placements", object("Placement", "shop", "web", json!({})));
}

/// The clusters of a PlacementDecision.
fn clusters(decision: &Value) -> Vec<String> {
    let decisions = decision["status"]["decisions"]
        .as_array()
        .into_iter()
        .flatten();
    let names = decisions.filter_map(|d| d["clusterName"].as_str());
    names.map(str::to_owned).collect()
}

/// How many clusters are held, and how many times all together.
fn held(state: &State) -> (usize, usize) {
    let all: Vec<String> = state.all("placementdecisions").flat_map(clusters).collect();
    let different: BTreeSet<&String> = all.iter().collect();
    (different.len(), all.len())
}

fn selected(state: &State) -> i64 {
    let placement = state.get("placements", "shop/web");
    placement.map_or(0, |p| {
        p["status"]["numberOfSelectedClusters"]
            .as_i64()
            .unwrap_or(0)
    })
}

fn is_settled(state: &State, n: usize) -> bool {
    held(state) == (n, n) && usize::try_from(selected(state)) == Ok(n)
}

/// Writes of decisions, in order.
fn decision_writes(state: &State) -> Vec<String> {
    let prefix =
        "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/shop/placementdecisions";
    let writes = state.writes.iter().filter(|write| write.contains(prefix));
    writes.map(|write| write.replace(prefix, "")).collect()
}

#[tokio::test]
async fn a_placement_is_decided_and_its_writes_come_one_after_another() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    fill(&mut hub.lock(), 102);
    let running = local.run_until(start(client, alone(), &local)).await;
    local
        .run_until(hub.until("it is decided", |state| is_settled(state, 102)))
        .await;
    assert_eq!(
        decision_writes(&hub.lock()),
        [
            "POST ",
            "PATCH /web-decision-1/status",
            "POST ",
            "PATCH /web-decision-2/status",
        ]
    );
    // One that goes makes two move up: they are written where they go before they are taken from where they were.
    hub.lock().writes.clear();
    hub.lock().delete("managedclusters", "/c000");
    local
        .run_until(hub.until("it is decided anew", |state| is_settled(state, 101)))
        .await;
    assert_eq!(
        decision_writes(&hub.lock()),
        [
            "PATCH /web-decision-1/status",
            "PATCH /web-decision-2/status"
        ]
    );
    drop(running);
}

#[tokio::test]
async fn an_answer_that_is_lost_and_a_decision_somebody_edits_lose_no_cluster() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    {
        let mut state = hub.lock();
        fill(&mut state, 150);
        state.faults.push((FIRST_DECISION, Fault::LostAnswer));
    }
    let running = local.run_until(start(client, alone(), &local)).await;
    local
        .run_until(hub.until("it is decided", |state| is_settled(state, 150)))
        .await;
    // A user empties one by hand, just when the controller writes the other.
    let emptied = Fault::Then(
        Duration::ZERO,
        Box::new(|state| {
            let decision = state
                .get("placementdecisions", "shop/web-decision-2")
                .cloned();
            let mut decision = decision.expect("the second");
            decision["status"]["decisions"] = json!([]);
            state.set("placementdecisions", decision);
        }),
    );
    {
        let mut state = hub.lock();
        state.faults.push((FIRST_DECISION, emptied));
        state.delete("managedclusters", "/c001");
    }
    local
        .run_until(hub.until("it is mended", |state| is_settled(state, 149)))
        .await;
    drop(running);
}

/// One of several replicas, with a lease that is soon over.
fn one_of_several() -> LeaderElection {
    LeaderElection {
        lease_duration: Duration::from_secs(2),
        renew_deadline: Duration::from_millis(1_000),
        retry_period: Duration::from_millis(200),
        resource_name: "strew-controller".to_owned(),
        resource_namespace: "strew-system".to_owned(),
        ..LeaderElection::default()
    }
}

fn hand_lease_to(state: &mut State, holder: &str) {
    state.leases_are_taken = !holder.is_empty();
    let key = "strew-system/strew-controller";
    let mut lease = state.get("leases", key).cloned().expect("a lease");
    lease["spec"]["holderIdentity"] = holder.into();
    state.set("leases", lease);
}

/// Another one has the lease by then, and the answer comes when this replica's time is over.
fn lease_is_lost() -> Fault {
    let late = Duration::from_millis(1_300);
    Fault::Then(late, Box::new(|state| hand_lease_to(state, "another")))
}

#[tokio::test]
async fn a_replica_that_loses_the_lease_between_two_writes_sends_no_second() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    fill(&mut hub.lock(), 150);
    let running = local
        .run_until(start(client, one_of_several(), &local))
        .await;
    local
        .run_until(hub.until("it is decided", |state| is_settled(state, 150)))
        .await;
    {
        let mut state = hub.lock();
        state.writes.clear();
        state.faults.push((FIRST_DECISION, lease_is_lost()));
        state.delete("managedclusters", "/c000");
    }
    local
        .run_until(hub.until("one is written", |state| !state.writes.is_empty()))
        .await;
    local
        .run_until(tokio::time::sleep(Duration::from_secs(2)))
        .await;
    let written = decision_writes(&hub.lock());
    assert_eq!(written, ["PATCH /web-decision-1/status"]);
    // In between nothing is missing: the cluster that moves up is in both.
    assert_eq!(held(&hub.lock()), (149, 150));
    // The other one goes away, and leaves its lease: what is left to do is done.
    hand_lease_to(&mut hub.lock(), "");
    local
        .run_until(hub.until("the rest is written", |state| is_settled(state, 149)))
        .await;
    drop(running);
}

#[tokio::test]
async fn a_replica_that_loses_the_lease_within_a_write_leaves_it_half_done() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    {
        let mut state = hub.lock();
        fill(&mut state, 3);
        state.faults.push((CREATION, lease_is_lost()));
    }
    let running = local
        .run_until(start(client, one_of_several(), &local))
        .await;
    local
        .run_until(hub.until("one is made", |state| !state.writes.is_empty()))
        .await;
    local
        .run_until(tokio::time::sleep(Duration::from_secs(2)))
        .await;
    // What it holds would be a request of its own.
    assert_eq!(decision_writes(&hub.lock()), ["POST "]);
    hand_lease_to(&mut hub.lock(), "");
    local
        .run_until(hub.until("it is filled", |state| is_settled(state, 3)))
        .await;
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn definitions_that_are_installed_later_are_picked_up() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    let running = local.run_until(start(client, alone(), &local)).await;
    local
        .run_until(tokio::time::sleep(Duration::from_secs(60)))
        .await;
    assert_eq!(hub.lock().all("placementdecisions").count(), 0);
    // One of another version is no reason to begin.
    {
        let mut state = hub.lock();
        fill(&mut state, 3);
        state.kinds[4][1] = "v1";
    }
    local
        .run_until(tokio::time::sleep(Duration::from_secs(60)))
        .await;
    assert_eq!(hub.lock().all("placementdecisions").count(), 0);
    hub.lock().kinds = KINDS.to_vec();
    local
        .run_until(hub.until("it is decided", |state| is_settled(state, 3)))
        .await;
    drop(running);
}

async fn ask(
    running: &Running,
    method: &str,
    path: &str,
    token: &str,
    body: Value,
) -> (u16, String) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .body(axum::body::Body::from(body.to_string()))
        .expect("a request");
    let answer = running
        .pages
        .clone()
        .oneshot(request)
        .await
        .expect("an answer");
    let code = answer.status().as_u16();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (code, String::from_utf8(body.to_vec()).expect("a text"))
}

#[tokio::test]
async fn the_debug_page_tells_each_what_it_may_see_of_a_namespace() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    fill(&mut hub.lock(), 2);
    let running = local.run_until(start(client, alone(), &local)).await;
    local
        .run_until(hub.until("it is decided", |state| is_settled(state, 2)))
        .await;
    let web = object("Placement", "shop", "web", json!({}));
    let cases = [
        (
            "GET",
            "/debug/placements/shop/web",
            "good",
            200,
            "\"selectedClusters\":[\"c000\",\"c001\"]",
        ),
        (
            "GET",
            "/debug/placements/shop/web",
            "bad",
            401,
            "Unauthorized",
        ),
        (
            "GET",
            "/debug/placements/shop/nothing",
            "good",
            404,
            "placement 'nothing' not found",
        ),
        (
            "GET",
            "/debug/placements/bank/web",
            "good",
            403,
            "user does not have permission to get placements in namespace bank: no role says so",
        ),
        (
            "GET",
            "/debug/placements/shop",
            "good",
            400,
            "invalid debug path: namespace and name required",
        ),
        (
            "GET",
            "/debug/placements/",
            "good",
            400,
            "invalid debug path: namespace and name required",
        ),
        (
            "DELETE",
            "/debug/placements/shop/web",
            "good",
            405,
            "method DELETE not allowed",
        ),
        (
            "POST",
            "/debug/placements/",
            "good",
            403,
            "permission to create placements in namespace shop",
        ),
        ("GET", "/configz", "good", 403, "forbidden"),
    ];
    for (method, path, token, code, part) in cases {
        let asked = ask(&running, method, path, token, web.clone());
        let (got, text) = local.run_until(asked).await;
        assert_eq!(got, code, "{method} {path}: {text}");
        assert!(text.contains(part), "{method} {path}: {text}");
        // The page's own refusals are the object that its answers are.
        if path.starts_with("/debug/") && ![200, 401].contains(&code) {
            assert!(text.starts_with("{\"error\":\""), "{method} {path}: {text}");
        }
    }
}

#[tokio::test]
async fn objects_that_cannot_be_read_are_counted_while_the_others_are_decided() {
    let local = LocalSet::new();
    let (client, hub) = Hub::start();
    {
        let mut state = hub.lock();
        fill(&mut state, 2);
        let odd = json!({"numberOfClusters": "many"});
        state.set("placements", object("Placement", "shop", "odd", odd));
    }
    let running = local.run_until(start(client, alone(), &local)).await;
    let decided = hub.until("it is decided", |state| is_settled(state, 2));
    local.run_until(decided).await;
    let unreadable = async |kind: &str| {
        let asked = ask(&running, "GET", "/metrics", "good", Value::Null);
        let (code, text) = local.run_until(asked).await;
        assert_eq!(code, 200, "{text}");
        let name = format!("strew_objects_unreadable{{kind=\"{kind}\"}} ");
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(&name));
        value.map(|value| value.parse::<f64>().expect("a number"))
    };
    assert_eq!(unreadable("Placement").await, Some(1.0));
    assert_eq!(unreadable("ManagedCluster").await, Some(0.0));
}
