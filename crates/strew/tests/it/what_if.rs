//! `strew explain --what-if`: the results of a change of the cluster.

use serde_json::{Value, json};

use crate::{json as parsed, stderr, stdout, strew};

/// Two zones of two nodes, room for three pods of 1 CPU on each node; a Deployment, a DaemonSet and a bare pod.
const CLUSTER: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a1, labels: {kubernetes.io/hostname: a1, zone: a}}, status: {allocatable: {cpu: "3", memory: 8Gi, pods: "110"}}}
- {apiVersion: v1, kind: Node, metadata: {name: a2, labels: {kubernetes.io/hostname: a2, zone: a}}, status: {allocatable: {cpu: "3", memory: 8Gi, pods: "110"}}}
- {apiVersion: v1, kind: Node, metadata: {name: b1, labels: {kubernetes.io/hostname: b1, zone: b}}, status: {allocatable: {cpu: "3", memory: 8Gi, pods: "110"}}}
- {apiVersion: v1, kind: Node, metadata: {name: b2, labels: {kubernetes.io/hostname: b2, zone: b}}, status: {allocatable: {cpu: "3", memory: 8Gi, pods: "110"}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 8
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]
      topologySpreadConstraints:
      - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: agent, image: agent}]
---
apiVersion: v1
kind: Pod
metadata: {name: lone}
spec:
  nodeSelector: {kubernetes.io/hostname: a1}
  containers: [{name: lone, image: lone}]
"#;

fn explained(words: &str) -> Value {
    let run = strew(&format!("explain deployment/web - -o json {words}"));
    parsed(&run.stdin(CLUSTER).assert().code(0))
}

/// The pods of each kind of change, by name: those of the Deployment in one word.
fn pods(explained: &Value, becomes: &str) -> Vec<String> {
    let pods = explained["turned"]["pods"].as_array().unwrap().iter();
    let of = pods.filter(|pod| pod["becomes"] == becomes);
    let name = |pod: &Value| {
        let name = pod["name"].as_str().unwrap();
        name.split('-').next().unwrap().to_owned()
    };
    of.map(name).collect()
}

#[test]
fn a_zone_that_is_lost() {
    let explained = explained("--what-if lose=zone/a");
    let turned = &explained["turned"];
    assert_eq!(
        turned["changes"],
        json!([{"change": "lose=zone/a", "nodes": 2}])
    );
    // Four pods were in zone a; zone b has room for two more.
    assert_eq!(pods(&explained, "Placed"), ["web", "web"]);
    assert_eq!(pods(&explained, "Pending"), ["web", "web"]);
    assert_eq!(pods(&explained, "Gone"), ["agent", "agent", "lone"]);
    let pods = turned["pods"].as_array().unwrap();
    for pod in pods {
        let node = |field: &str| pod[field].as_str().map(|node| node[..1].to_owned());
        assert_eq!(node("from").as_deref(), Some("a"), "{pod}");
        assert!(matches!(node("to").as_deref(), None | Some("b")), "{pod}");
    }
    // The explanation is about a pod that has no place any more.
    assert_eq!(explained["moment"], "changed");
    assert_eq!(explained["standing"], "Pending");
    assert_eq!(explained["nodes"], 2);
    assert_eq!(
        explained["message"].as_str().unwrap().split('.').next(),
        Some("0/2 nodes are available: 2 Insufficient cpu")
    );
    // One domain is left: there is no skew.
    assert_eq!(turned["skews"], json!([]));
}

#[test]
fn a_node_that_is_drained_keeps_the_pods_of_daemon_sets() {
    // kubectl drain refuses a node with a pod without a workload: nothing leaves a1.
    let refused = explained("--what-if drain=a1,a2");
    assert_eq!(pods(&refused, "Kept"), ["lone", "web", "web"]);
    assert_eq!(pods(&refused, "Pending"), ["web"; 2]);
    let explained = explained("--what-if delete=lone --what-if drain=a1,a2");
    assert_eq!(pods(&explained, "Gone"), ["lone"]);
    assert_eq!(pods(&explained, "Pending"), ["web"; 4]);
    // Cordoned nodes still are a domain: it is empty, so zone b takes at most maxSkew pods, and has four already.
    let skew = &explained["turned"]["skews"][0];
    assert_eq!(skew["workload"], "deployment/web");
    assert_eq!((&skew["before"], &skew["after"]), (&json!(0), &json!(4)));
}

#[test]
fn several_changes_are_carried_out_in_their_order() {
    let explained = explained("--what-if label=b2:zone=c --what-if lose=b1");
    assert_eq!(explained["turned"]["changes"][1]["change"], "lose=b1");
    // Domain a has four pods and room for two, c has two and room for one.
    assert_eq!(pods(&explained, "Placed"), ["web", "web"]);
    assert_eq!(pods(&explained, "Gone"), ["agent"]);
    let tainted = explained_text("--what-if taint=zone/a:dedicated=db:NoExecute");
    assert!(
        tainted.contains("\nAfter taint=zone/a:dedicated=db:NoExecute (2 nodes):\n"),
        "{tainted}"
    );
    assert!(
        tainted.contains("  3 pods gone, no controller makes another\n"),
        "{tainted}"
    );
    assert!(
        tainted.contains("  skew of default/deployment/web over zone: 0 -> "),
        "{tainted}"
    );
}

fn explained_text(words: &str) -> String {
    let run = strew(&format!("explain deployment/web - {words}"));
    stdout(&run.stdin(CLUSTER).assert().code(0))
}

#[test]
fn a_workload_that_is_edited() {
    // Without zone a there is room for two more; with a drained zone a the constraint has none.
    let explained = explained("--what-if delete=lone --what-if drain=zone/a --what-if soften=zone");
    let placed = pods(&explained, "Placed");
    assert!(placed.iter().all(|name| name == "web"), "{placed:?}");
    let on_b = |pod: &&Value| pod["to"].as_str().is_some_and(|to| to.starts_with('b'));
    let turned = explained["turned"]["pods"].as_array().unwrap();
    assert!(turned.iter().filter(on_b).count() >= 2, "{turned:?}");
    assert_eq!(pods(&explained, "Pending"), ["web", "web"]);
    let run = strew("explain deployment/web - --what-if drop=rack");
    let run = run.stdin(CLUSTER).assert().code(2);
    assert!(
        stderr(&run).contains("they have one on zone"),
        "{}",
        stderr(&run)
    );
}

#[test]
fn a_pod_that_is_moved_or_deleted() {
    let before = explained("--what-if cordon=b2");
    assert_eq!(before["turned"]["pods"], json!([]));
    let text = explained_text("--what-if cordon=b2");
    assert!(text.contains("  no pod moves\n"), "{text}");
    let moved = explained("--what-if move=default/lone:b1");
    let pod = &moved["turned"]["pods"][0];
    assert_eq!(
        (&pod["name"], &pod["from"], &pod["to"]),
        (&json!("lone"), &json!("a1"), &json!("b1"))
    );
    let deleted = explained("--what-if delete=lone");
    assert_eq!(pods(&deleted, "Gone"), ["lone"]);
}

#[test]
fn what_is_not_there_is_told_with_the_nearest() {
    for (change, told) in [
        ("lose=zone/aa", "there are a, b"),
        ("lose=a11", "there is no node \"a11\"\n"),
        ("lose=a11", "did you mean a1?"),
        ("drain=rack/1", "no node has rack at all"),
        ("explode=a1", "known are lose="),
        (
            "delete=web",
            "there is no pod \"web\" in namespace \"default\"",
        ),
    ] {
        let run = strew(&format!("explain deployment/web - --what-if {change}"));
        let run = run.stdin(CLUSTER).assert().code(2);
        assert!(stderr(&run).contains(told), "{}", stderr(&run));
    }
    let run = strew("explain pod/lone - --what-if lose=a1");
    let run = run.stdin(CLUSTER).assert().code(2);
    assert!(
        stderr(&run).contains("no controller makes one"),
        "{}",
        stderr(&run)
    );
}
