//! Watches of a server that goes on, cuts, and forgets.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use strew_api::facts::Watched;
use strew_kube::watch::{Told, watch};
use tokio::sync::mpsc;

use crate::server::{Server, start};

fn node(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "resourceVersion": version},
    })
}

fn list(version: &str, items: &[Value]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "NodeList",
        "metadata": {"resourceVersion": version},
        "items": items,
    })
}

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

fn start_watch() -> (mpsc::Receiver<Told>, Server) {
    let (client, server) = start();
    let (to, told) = mpsc::channel(64);
    tokio::spawn(watch::<Node>(client, Watched::Node, None, to));
    (told, server)
}

/// What is told next, in short.
async fn next(told: &mut mpsc::Receiver<Told>) -> String {
    match told.recv().await.expect("the watch goes on") {
        Told::ListBegins(_) => "list".to_owned(),
        Told::ListEnds(_) => "end".to_owned(),
        Told::Set(_, object) => {
            let metadata = object.metadata().cloned().unwrap_or_default();
            format!("set {}", metadata.name.unwrap_or_default())
        }
        Told::Gone(_, named) => format!("gone {}", named.name),
        Told::Failed { code, .. } => format!("failed {}", code.unwrap_or_default()),
    }
}

async fn several(told: &mut mpsc::Receiver<Told>, n: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..n {
        all.push(next(told).await);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_goes_on_where_it_stopped() {
    let (mut told, mut server) = start_watch();
    server
        .next()
        .await
        .answer(200, list("10", &[node("a", "5")]));
    let asked = server.next().await;
    assert!(asked.what.contains("watch=true") && asked.what.contains("resourceVersion=10"));
    asked.answer_with(200, &[], line("ADDED", &node("b", "11")));
    assert_eq!(
        several(&mut told, 4).await,
        ["list", "set a", "end", "set b"]
    );
    // The stream has ended: the next one begins after what was told last.
    let asked = server.next().await;
    assert!(asked.what.contains("resourceVersion=11"), "{}", asked.what);
    asked.answer_with(200, &[], line("DELETED", &node("a", "12")));
    assert_eq!(next(&mut told).await, "gone a");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_has_forgotten_begins_anew_with_a_list() {
    let (mut told, mut server) = start_watch();
    server
        .next()
        .await
        .answer(200, list("10", &[node("a", "5"), node("b", "6")]));
    let gone = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 410,
        "reason": "Expired", "message": "too old resource version",
    });
    server
        .next()
        .await
        .answer_with(200, &[], line("ERROR", &gone));
    let before = several(&mut told, 5).await;
    assert_eq!(before, ["list", "set a", "set b", "end", "failed 410"]);
    server
        .next()
        .await
        .answer(200, list("90", &[node("b", "80")]));
    assert_eq!(several(&mut told, 3).await, ["list", "set b", "end"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_left_alone_as_long_as_it_asks() {
    let (mut told, mut server) = start_watch();
    let busy = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 429,
        "reason": "TooManyRequests", "message": "later", "details": {"retryAfterSeconds": 9},
    });
    let begun = tokio::time::Instant::now();
    server.next().await.answer(429, busy);
    assert_eq!(several(&mut told, 2).await, ["list", "failed 429"]);
    server.next().await.answer(200, list("10", &[]));
    assert!(begun.elapsed().as_secs() >= 9, "{:?}", begun.elapsed());
    assert_eq!(several(&mut told, 2).await, ["list", "end"]);
}
