//! How a command without files finds its API server, and what it says if it cannot.

use std::path::PathBuf;

use crate::{stderr, strew};

/// A kubeconfig that names this server, with more fields of its cluster.
fn kubeconfig(name: &str, server: &str, more: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"{server}\"{more}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{}}}}]\n"
    );
    std::fs::write(&path, text).unwrap();
    path
}

/// An image from scratch has no CA certificates: they are loaded only where a connection is checked by them.
#[test]
fn certificates_of_the_machine_are_needed_only_where_they_check_something() {
    for (number, (server, more, said)) in [
        ("http://127.0.0.1:1", "", "does not answer"),
        (
            "https://127.0.0.1:1",
            ", insecure-skip-tls-verify: true",
            "does not answer",
        ),
        (
            "https://127.0.0.1:1",
            "",
            "hint: the kubeconfig has no certificate-authority-data",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let file = kubeconfig(&format!("connecting-{number}.yaml"), server, more);
        let run = strew("snapshot --kubeconfig")
            .arg(&file)
            .env("SSL_CERT_FILE", "/nowhere")
            .env("SSL_CERT_DIR", "/nowhere")
            .assert()
            .code(3);
        let stderr = stderr(&run);
        assert!(stderr.contains(said), "{server}{more}: {stderr}");
    }
}
