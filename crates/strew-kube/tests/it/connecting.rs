//! API servers that are too old, too new, or of another cluster.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use strew_kube::connect::{Access, ConnectError, Connection, connect};
use strew_kube::send::once;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::sending::bind;

/// Heads of requests, in the order in which they came.
type Heads = Arc<Mutex<Vec<String>>>;

/// Connects to a server that answers everything with this, and uses the connection.
async fn with<R>(
    code: &str,
    body: serde_json::Value,
    f: impl AsyncFnOnce(Result<Connection, ConnectError>) -> R,
) -> (R, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = format!("http://{}", listener.local_addr().expect("an address"));
    let body = body.to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {code}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let heads = Heads::default();
    let all = Arc::clone(&heads);
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client");
            // Its head is all of it, or comes with the body, and fits.
            let mut head = [0; 4096];
            let length = stream.read(&mut head).await.unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            all.lock().expect("a head").push(head);
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    });
    let file = file_of(&server);
    std::fs::write(&file, kubeconfig.to_string()).expect("a file");
    let access = Access {
        kubeconfig: Some(file.clone()),
        ..Access::default()
    };
    let done = f(connect(&access, "strew-scheduler").await).await;
    serving.abort();
    std::fs::remove_file(file).expect("it was there");
    let heads = std::mem::take(&mut *heads.lock().expect("heads"));
    (done, heads)
}

/// Connects to a server that answers everything with this.
async fn to(code: &str, body: serde_json::Value) -> Result<Connection, ConnectError> {
    with(code, body, async |connected| connected).await.0
}

fn file_of(server: &str) -> PathBuf {
    let port = server.rsplit(':').next().unwrap_or_default();
    let name = format!("strew-connecting-{}-{port}", std::process::id());
    std::env::temp_dir().join(name)
}

fn version(major: &str, minor: &str) -> serde_json::Value {
    json!({
        "major": major, "minor": minor, "gitVersion": format!("v{major}.{minor}.1"),
        "buildDate": "", "compiler": "", "gitCommit": "", "gitTreeState": "", "goVersion": "", "platform": "",
    })
}

#[tokio::test]
async fn a_version_is_refused_warned_of_or_taken() {
    // Version, whether it is refused, and what is said.
    for (major, minor, is_refused, told) in [
        (
            "1",
            "29",
            true,
            Some("is Kubernetes v1.29.1; 1.30 or later is needed"),
        ),
        ("1", "30", false, None),
        ("1", "36+", false, None),
        ("1", "37", false, None),
        ("1", "38", false, Some("strew knows the fields of 1.36")),
        ("2", "1", false, Some("no version that is known")),
    ] {
        let said = match to("200 OK", version(major, minor)).await {
            Ok(connection) => {
                assert!(!is_refused, "{major}.{minor} is taken");
                connection.warning
            }
            Err(error) => {
                assert!(is_refused, "{major}.{minor}: {error}");
                Some(error.to_string())
            }
        };
        match (said, told) {
            (None, None) => {}
            (Some(said), Some(told)) => assert!(said.contains(told), "{said}"),
            (said, told) => panic!("{major}.{minor}: {said:?}, not {told:?}"),
        }
    }
}

#[tokio::test]
async fn credentials_that_are_not_accepted_are_told_apart_from_a_server_that_is_none() {
    let status = json!({"kind": "Status", "status": "Failure", "code": 401, "reason": "Unauthorized", "message": "Unauthorized"});
    let error = to("401 Unauthorized", status)
        .await
        .err()
        .expect("it is refused");
    assert!(
        matches!(&error, ConnectError::Unauthorized { text, .. } if text == "Unauthorized"),
        "{error}"
    );
    let error = to("200 OK", json!("hello"))
        .await
        .err()
        .expect("it is no API server");
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn every_request_says_who_asks_and_every_write_who_manages_its_fields() {
    let ((), heads) = with("200 OK", version("1", "36"), async |connected| {
        let client = connected.expect("an API server").client;
        // A machine's request; then kube's own ways, as of leases and certificates.
        once(&client, &bind().remove(0), Duration::from_secs(9)).await;
        let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
        let post = PostParams::default();
        // The answers are no ConfigMaps: what was asked counts.
        drop(maps.create(&post, &ConfigMap::default()).await);
        drop(maps.replace("a", &post, &ConfigMap::default()).await);
        let patch = Patch::Merge(json!({}));
        drop(maps.patch("a", &PatchParams::default(), &patch).await);
        drop(maps.get("a").await);
    })
    .await;
    let first = |head: &String| head.lines().next().unwrap_or_default().to_owned();
    let asked: Vec<String> = heads.iter().map(first).collect();
    let managed = "fieldManager=strew-scheduler HTTP/1.1";
    for (line, what) in asked
        .iter()
        .zip(["GET", "POST", "POST", "PUT", "PATCH", "GET"])
    {
        assert!(line.starts_with(&format!("{what} ")), "{asked:?}");
        assert_eq!(line.ends_with(managed), what != "GET", "{line}");
    }
    assert_eq!(asked.len(), 6);
    for head in heads {
        let agent = head
            .lines()
            .find_map(|line| line.strip_prefix("user-agent: "));
        let agent = agent.expect("each says who asks");
        assert!(
            agent.starts_with("strew-scheduler/") && agent.contains(" ("),
            "{agent}"
        );
    }
}
