//! API servers that are too old, too new, or somebody else's.

use std::path::PathBuf;

use serde_json::json;
use strew_kube::connect::{Access, ConnectError, Connection, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Connects to a server that answers everything with this.
async fn to(code: &str, body: serde_json::Value) -> Result<Connection, ConnectError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = format!("http://{}", listener.local_addr().expect("an address"));
    let body = body.to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {code}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.expect("a client");
            // Its head is all of it, and fits.
            let _ = stream.read(&mut [0; 4096]).await;
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
    let connected = connect(&access).await;
    serving.abort();
    std::fs::remove_file(file).expect("it was there");
    connected
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
