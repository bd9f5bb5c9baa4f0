//! Clients without credentials that send reviews of their own.

use std::convert::Infallible;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use h2::client::SendRequest;
use http::Request;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::tally::Tally;
use super::{AGAIN_AFTER, HOOK, Way, connect_by_tls};

/// What the streams of a connection send, each again as soon as it is answered.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sent {
    /// The first byte of a body, on two streams.
    Unfinished,
    /// Reviews of pods in a namespace, of users that do not exist, on 64 streams.
    Pods,
    /// Reviews of WorkloadSpreads in a namespace, by the most powerful group, on 32 streams.
    Spreads,
}

/// The number of the next forged name.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Sent {
    fn n_streams(self) -> usize {
        match self {
            Self::Unfinished => 2,
            Self::Pods => 64,
            Self::Spreads => 32,
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Unfinished | Self::Pods => HOOK,
            Self::Spreads => "/validate/workloadspreads",
        }
    }

    fn body(self, namespace: &str) -> Value {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("forged-{number}");
        let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        let spread = json!({
            "apiVersion": "apps.kruise.io/v1beta1", "kind": "WorkloadSpread",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"targetRef": target, "subsets": [{"name": "a"}]},
        });
        let (resource, user, object) = match self {
            Self::Spreads => (
                "workloadspreads",
                json!({"username": "admin", "groups": ["system:masters"]}),
                spread,
            ),
            _ => ("pods", json!({"username": name}), pod),
        };
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": name, "operation": "CREATE", "namespace": namespace, "userInfo": user,
                "resource": {"version": "v1", "resource": resource}, "object": object,
            },
        })
    }
}

/// Keeps one connection busy; it is opened again a second after its end.
pub(super) async fn busy(
    way: Way,
    sent: Sent,
    namespace: Arc<str>,
    tally: Arc<Tally>,
) -> Infallible {
    loop {
        match once(way, sent, &namespace, &tally).await {
            Ok(()) => tally.count("closed"),
            Err(_) => tally.count("refused"),
        }
        sleep(AGAIN_AFTER).await;
    }
}

async fn once(
    way: Way,
    sent: Sent,
    namespace: &Arc<str>,
    tally: &Arc<Tally>,
) -> anyhow::Result<()> {
    let stream = connect_by_tls(way, "h2").await?;
    let client = h2::client::Builder::new();
    let (requests, connection) = client.handshake::<_, Cursor<Vec<u8>>>(stream).await?;
    let mut streams = JoinSet::new();
    for _ in 0..sent.n_streams() {
        let (requests, namespace) = (requests.clone(), Arc::clone(namespace));
        let tally = Arc::clone(tally);
        streams.spawn(async move {
            while let Ok(code) = ask(requests.clone(), sent, &namespace).await {
                tally.count(code.to_string());
            }
        });
    }
    // With the last stream's end, the task is dropped.
    connection.await.context("the connection")
}

async fn ask(
    requests: SendRequest<Cursor<Vec<u8>>>,
    sent: Sent,
    namespace: &str,
) -> anyhow::Result<u16> {
    let mut requests = requests.ready().await?;
    let request = Request::post(format!("https://localhost{}?timeout=30s", sent.path()));
    let (answer, mut body) = requests.send_request(request.body(())?, false)?;
    let (text, is_end) = match sent {
        Sent::Unfinished => ("{".to_owned(), false),
        _ => (sent.body(namespace).to_string(), true),
    };
    body.send_data(Cursor::new(text.into_bytes()), is_end)?;
    Ok(answer.await?.status().as_u16())
}
