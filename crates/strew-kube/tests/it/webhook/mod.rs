//! The webhook's process on an API server in memory, asked over HTTP as the API server asks.

mod admission;
mod asking;
mod crowd;
mod evictions;
mod others;

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use strew_kube::clock::Clock;
use strew_kube::serve::Exchange;
use strew_kube::webhook::{About, Blueprint, Process, Served};
use strew_model::Interner;
use strew_scheduler::Profile;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::log::Log;
use crate::world::FakeApiServer;

/// A webhook at work; it ends with its value.
struct Webhook {
    world: FakeApiServer,
    hooks: Router,
    pages: Router,
    end: CancellationToken,
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

fn start(world: FakeApiServer) -> Webhook {
    start_with(world, Log::default())
}

fn start_with(world: FakeApiServer, log: Log) -> Webhook {
    start_as(blueprint(), world, log)
}

/// The process has a thread of its own, as it does where it is one.
fn start_as(blueprint: Blueprint, world: FakeApiServer, log: Log) -> Webhook {
    let end = CancellationToken::new();
    let (to, served) = std::sync::mpsc::channel();
    let (asked, told) = (world.connection(), end.clone());
    std::thread::spawn(move || {
        let _guard = log.take_this_thread();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let clock = Clock::new();
            let (process, served) = Process::start(blueprint, &asked, clock, told.clone());
            to.send(served).expect("the test waits");
            process.run(told).await;
        });
    });
    let Served { hooks, pages } = served.recv().expect("the process starts");
    Webhook {
        world,
        hooks,
        pages,
        end,
    }
}

fn blueprint() -> Blueprint {
    Blueprint {
        profiles: vec![Profile::default()],
        names: Interner::new(),
        namespace: "strew-system".to_owned(),
        allowed_patches: Vec::new(),
        daemon_sets: false,
        writes: None,
        callers: None,
        seed: 1,
        about: About {
            version: "0".to_owned(),
            kubernetes: "v1.36.3".to_owned(),
            configuration: "{}".to_owned(),
        },
        exchange: Exchange::default(),
        rotator: None,
        registration: None,
    }
}

impl Webhook {
    /// Code and text of an answer.
    async fn post(&self, path: &str, body: String) -> (u16, String) {
        let request = Request::post(path)
            .body(Body::from(body))
            .expect("a request");
        answer(self.hooks.clone(), request).await
    }

    /// The answer to a review.
    async fn ask(&self, path: &str, review: &Value) -> Value {
        let (code, text) = self.post(path, review.to_string()).await;
        assert_eq!(code, 200, "{text}");
        let answer: Value = serde_json::from_str(&text).expect("a review");
        answer["response"].clone()
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).expect("a request");
        answer(self.pages.clone(), request).await
    }

    /// Waits until the cluster is known.
    async fn ready(&self) {
        wait(async || self.get("/readyz/watches").await.0 == 200).await;
    }

    /// The number that a metric tells.
    async fn metric(&self, series: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics").await;
        let line = text.lines().find_map(|line| line.strip_prefix(series))?;
        line.trim().parse().ok()
    }
}

async fn answer(router: Router, request: Request<Body>) -> (u16, String) {
    let answer = router.oneshot(request).await.expect("an answer");
    let code = answer.status().as_u16();
    let body = answer
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (code, String::from_utf8(body.to_vec()).expect("a text"))
}

/// Waits until it is so.
#[track_caller]
fn wait<F: AsyncFn() -> bool>(is_so: F) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        for _ in 0..1000 {
            if is_so().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not so in time: {place}");
    }
}

const SPREADS: &str = "/apis/apps.kruise.io/v1beta1/workloadspreads";
const REPLICA_SETS: &str = "/apis/apps/v1/replicasets";
const DEPLOYMENTS: &str = "/apis/apps/v1/deployments";

fn deployment() -> Value {
    let labels = json!({"app": "web"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "web"},
        "spec": {
            "replicas": 10,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "web"}]}},
        },
    })
}

fn replica_set() -> Value {
    let mut set = deployment();
    let labels = json!({"app": "web", "pod-template-hash": "7"});
    set["kind"] = "ReplicaSet".into();
    set["metadata"] = json!({
        "name": "web-7", "namespace": "shop", "uid": "web-7", "labels": labels,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web", "controller": true}],
    });
    set["spec"]["template"]["metadata"]["labels"] = labels;
    set
}

/// A WorkloadSpread of the Deployment: two pods in `own`, the others in `rented`.
fn spread() -> Value {
    let zone = |zone: &str| json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]});
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "ws", "namespace": "shop", "uid": "ws", "generation": 1},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "subsets": [
                {"name": "own", "maxReplicas": 2, "requiredNodeSelector": zone("a")},
                {"name": "rented", "requiredNodeSelector": zone("b")},
            ],
        },
    })
}

/// All of it.
fn world() -> FakeApiServer {
    let world = FakeApiServer::default();
    world.set(DEPLOYMENTS, deployment());
    world.set(REPLICA_SETS, replica_set());
    world.set(SPREADS, spread());
    world
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "shop", "labels": {"app": "web", "pod-template-hash": "7"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7", "uid": "web-7", "controller": true}],
        },
        "spec": {"containers": [{"name": "main", "image": "web"}]},
    })
}

/// A review about a pod.
fn review(operation: &str, name: &str) -> Value {
    let mut request = json!({
        "uid": format!("review of {name}"),
        "operation": operation,
        "namespace": "shop",
        "name": name,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "dryRun": false,
    });
    let key = if operation == "DELETE" {
        "oldObject"
    } else {
        "object"
    };
    request[key] = pod(name);
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}
