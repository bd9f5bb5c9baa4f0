//! The mirror of a cluster: what it asks, what it keeps of an object, and what it says of kinds that it cannot read.

use serde_json::{Value, json};
use strew_kube::mirror::{Change, Mirror, READS, permissions};

use crate::server::{Asked, Server, start};

fn resource(plural: &str, kind: &str) -> Value {
    json!({"resource": plural, "scope": "Namespaced", "responseKind": {"group": "", "version": "v1", "kind": kind}})
}

/// A cluster that serves nodes, pods and Services.
fn discovered(asked: &Asked) -> Value {
    let resources = match asked.what.as_str() {
        "GET /api" => json!([
            resource("nodes", "Node"),
            resource("pods", "Pod"),
            resource("services", "Service"),
            resource("secrets", "Secret"),
        ]),
        _ => json!([]),
    };
    let version = json!({"version": "v1", "resources": resources});
    let group = json!({"metadata": {"name": ""}, "versions": [version]});
    json!({"kind": "APIGroupDiscoveryList", "items": [group]})
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {"resourceVersion": "10"}, "items": items})
}

fn pod() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "p", "resourceVersion": "5",
            "annotations": {"note": "hunter2"}, "managedFields": [{"manager": "hunter2"}]},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i", "args": ["hunter2"],
            "env": [{"name": "PASSWORD", "value": "hunter2"}]}]},
    })
}

/// Answers until the mirror is whole; Services are forbidden. Returns the changes.
async fn whole(mirror: &mut Mirror, server: &mut Server) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut held = Vec::new();
    while !mirror.standing().is_whole {
        tokio::select! {
            more = mirror.next() => changes.extend(more),
            asked = server.next() => {
                assert!(!asked.what.contains("secrets"), "{}", asked.what);
                let path = asked.what.clone();
                let forbidden = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                    "code": 403, "reason": "Forbidden", "message": "services is forbidden"});
                match path.as_str() {
                    "GET /api" | "GET /apis" => {
                        let body = discovered(&asked);
                        asked.answer(200, body);
                    }
                    path if path.contains("watch=true") => held.push(asked),
                    path if path.contains("/nodes") => asked.answer(200, list("Node", &[json!({"metadata": {"name": "n", "uid": "n"}})])),
                    path if path.contains("/pods") => asked.answer(200, list("Pod", &[pod()])),
                    path if path.contains("/services") => asked.answer(403, forbidden),
                    other => panic!("{other}"),
                }
            }
        }
    }
    changes
}

#[tokio::test(start_paused = true)]
async fn objects_are_scrubbed_and_a_forbidden_kind_is_left_out() {
    let (client, mut server) = start();
    let mut mirror = Mirror::begin(client);
    assert!(!mirror.standing().is_whole);
    let changes = whole(&mut mirror, &mut server).await;
    let texts: Vec<String> = changes
        .iter()
        .map(|change| match change {
            Change::Set(object) => object.to_json().to_string(),
            Change::Gone(object) => panic!("{object:?}"),
        })
        .collect();
    assert_eq!(texts.len(), 2);
    assert!(texts.iter().any(|text| text.contains(r#""nodeName":"n""#)));
    assert!(!texts.iter().any(|text| text.contains("hunter2")));
    let standing = mirror.standing();
    assert_eq!(
        standing.left_out,
        ["services: services is forbidden".to_owned()]
    );
    assert!(standing.failing.is_empty(), "{:?}", standing.failing);
}

#[test]
fn it_may_read_and_watch_its_kinds_and_do_nothing_else() {
    let rights = permissions();
    assert_eq!(rights.len(), READS.len());
    for right in rights {
        assert_eq!(*right.verbs, ["list", "watch"]);
        assert!(!["secrets", "configmaps"].contains(&right.resource));
    }
}
