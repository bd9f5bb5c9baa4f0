//! Tasks that panic: what waited for them goes on, and each is told of.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use strew_kube::panics;
use strew_kube::watch::Streams;
use strew_kube::work::Worker;
use strew_runtime::watch::{Kind, Reading, Scope, Update, Watches};
use strew_scheduler::machine::Outcome;
use strew_scheduler::metrics::Value;
use tokio::time::timeout;

use crate::log::Log;
use crate::sending::{Errands, done, send, worker_of};

/// A client whose first requests panic on their way; those after them get an answer.
fn client(n_panics: usize, answer: &serde_json::Value) -> Client {
    let (n_sent, answer) = (Arc::new(AtomicUsize::new(0)), answer.to_string());
    let service = tower::service_fn(move |_: Request<Body>| {
        let (n, answer) = (n_sent.fetch_add(1, Ordering::Relaxed), answer.clone());
        async move {
            assert!(n >= n_panics, "request {n}");
            Ok::<_, std::io::Error>(Response::new(Body::from(answer.into_bytes())))
        }
    });
    Client::new(service, "default")
}

async fn ended(worker: &mut Worker<Errands>) -> (u64, Outcome) {
    let done = timeout(Duration::from_secs(600), done(worker));
    done.await.expect("it is waited for in vain")
}

fn n_panics() -> u64 {
    match panics::families()[0].samples[0].value {
        Value::Count(n) => n,
        _ => panic!("panics are counted"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_task_panics_keeps_no_object_waiting() {
    panics::install();
    let (log, _guard) = Log::begin();
    let before = n_panics();
    let mut worker = worker_of(client(2, &json!({"kind": "Status", "status": "Success"})));
    send(&mut worker, 1, "uid-1");
    send(&mut worker, 2, "uid-1");
    assert_eq!(ended(&mut worker).await, (1, Outcome::Ok));
    assert_eq!(ended(&mut worker).await, (2, Outcome::Ok));
    assert_eq!(worker.driver().outbox().waiting(), 0);
    assert!(n_panics() >= before + 2, "each is counted");
    let line = log.line("a task panicked");
    assert!(
        line.contains("request 0") && line.contains("panicking.rs"),
        "{line}"
    );

    // One that panics whenever it is sent is given up.
    let mut worker = worker_of(client(usize::MAX, &json!({})));
    send(&mut worker, 1, "uid-1");
    let (_, outcome) = ended(&mut worker).await;
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    assert_eq!(worker.driver().outbox().waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_task_panics_begins_anew() {
    let list = json!({
        "apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "10"}, "items": [],
    });
    let mut watches = Watches::default();
    let mut streams = Streams::new(client(3, &list));
    watches.start(Kind::of::<Node>(), Reading::Known, &Scope::default());
    let begun = tokio::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(600) {
        while let Some(action) = watches.poll() {
            streams.carry_out(action);
        }
        if let Some(update) = watches.next_update() {
            assert!(matches!(update, Update::Listed(_)));
            return;
        }
        if let Ok((id, event)) = timeout(Duration::from_secs(60), streams.next()).await {
            watches.take_in(id, event);
        }
    }
    panic!("the watch tells nothing");
}
