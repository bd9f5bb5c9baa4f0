//! `strew ui` on a cluster, with the rights that it names: the page's stream tells what is scaled.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, anyhow, ensure};
use serde_json::{Value, json};
use strew_kube::mirror;
use xtask_lab::lab::{free_ports, until};

use crate::e2e::stage::{PAUSE, SOON, Stage};

const ACCOUNT: &str = "viewer";
const WORKLOAD: &str = "workload Deployment ui/web";

/// A Deployment of 3 is scaled to 6: the page's stream tells it, with its pods by zone.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = stage.scheduler(&["--scheduler-name=default-scheduler"])?;
    stage.apply("ui.yaml")?;
    let kubeconfig = may_only_look(stage)?;
    let [port] = free_ports()?;
    let kubeconfig = format!("--kubeconfig={kubeconfig}");
    let port_flag = format!("--port={port}");
    let mut process = stage
        .lab
        .start_strew(&stage.strew, &["ui", &kubeconfig, &port_flag])?;
    let mut events = until("a page", SOON, PAUSE, || Ok(Events::open(port).ok()))?;
    events.until_ready(3).with_context(|| process.output())?;
    stage.run(&["scale", "deployment/web", "--replicas=6"])?;
    let row = events.until_ready(6).with_context(|| process.output())?;
    let zones = row["spread"].as_array().into_iter().flatten();
    let mut zones = zones.filter(|spread| spread["by"] == "topology.kubernetes.io/zone");
    let counts = zones.next().map(|spread| &spread["counts"]);
    let expected = json!({"zone-a": 2, "zone-b": 2, "zone-c": 2});
    ensure!(counts == Some(&expected), "{row}");
    process.expect_running()
}

/// The kubeconfig of an account with the rights of `strew ui --rights`.
fn may_only_look(stage: &Stage) -> anyhow::Result<String> {
    let rules: Vec<Value> = mirror::permissions()
        .iter()
        .map(|right| json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": &*right.verbs}))
        .collect();
    let namespace = &stage.namespace;
    let subject = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "strew-ui-viewer"});
    stage.apply_all(vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "strew-ui-viewer"}, "rules": rules}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "strew-ui-viewer"}, "subjects": [subject], "roleRef": role}),
    ])?;
    let user = format!("--as=system:serviceaccount:{namespace}:{ACCOUNT}");
    until("the rights of an account", SOON, PAUSE, || {
        Ok(stage
            .kubectl()
            .run(&["auth", "can-i", &user, "watch", "pods"])
            .ok())
    })?;
    let file = stage.kubeconfig_of(namespace, ACCOUNT, &[])?;
    Ok(file.display().to_string())
}

/// The page's stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(port: u16) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(SOON))?;
        write!(stream, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        Ok(Self(BufReader::new(stream)))
    }

    /// The row of the workload when this many of as many pods are ready.
    fn until_ready(&mut self, n: u64) -> anyhow::Result<Value> {
        let mut last = Value::Null;
        for line in self.0.by_ref().lines() {
            let line = line.with_context(|| format!("no {n} ready pods; last: {last}"))?;
            let Some(data) = line.strip_prefix("data: ") else {
                continue;
            };
            let data: Value = serde_json::from_str(data)?;
            let row = ["rows", "set"]
                .into_iter()
                .find_map(|part| data[part].get(WORKLOAD));
            let Some(row) = row else {
                continue;
            };
            if row["ready"] == n && row["replicas"] == n {
                return Ok(row.clone());
            }
            last = row.clone();
        }
        Err(anyhow!("the stream ended; last: {last}"))
    }
}
