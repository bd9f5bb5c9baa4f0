//! `strew ui`: what it serves of files, and what it refuses. Its page in a browser, and a live cluster, are
//! `cargo xtask web --test`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::{json, only_run, program, root, stderr, strew};

/// A running `strew ui`, ended when it is dropped.
struct Ui {
    child: Child,
    address: String,
    _stdout: BufReader<ChildStdout>,
}

impl Drop for Ui {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Starts it with these files; its first line is the address.
fn ui(args: &str) -> Ui {
    let mut child = Command::new(program())
        .current_dir(root())
        .arg("ui")
        .args(args.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap();
    Ui {
        address: address.trim_end_matches('/').to_owned(),
        child,
        _stdout: stdout,
    }
}

impl Ui {
    /// The body of a page.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 OK"), "{head}");
        body.to_owned()
    }

    fn data(&self) -> Value {
        serde_json::from_str(&self.get("/data.json")).unwrap()
    }
}

/// Three zones with a node each, and a Deployment of which two pods are in zone a and none in zone c.
fn dump() -> String {
    let meta = |name: &str, uid: &str| json!({"name": name, "namespace": "shop", "uid": uid, "labels": {"app": "web"}});
    let spec = json!({
        "containers": [{"name": "c", "image": "i", "env": [{"name": "P", "value": "hunter2"}]}],
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }],
    });
    let mut items = vec![json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta("web", "r"),
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": spec}},
        "status": {"replicas": 3, "readyReplicas": 3},
    })];
    for zone in ["a", "b", "c"] {
        items.push(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": format!("n-{zone}"), "uid": zone, "labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "20"},
                "conditions": [{"type": "Ready", "status": "True"}]},
        }));
    }
    for (n, node) in ["n-a", "n-a", "n-b"].iter().enumerate() {
        let mut metadata = meta(&format!("web-{n}"), &format!("p{n}"));
        metadata["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true}]);
        let mut spec = spec.clone();
        spec["nodeName"] = json!(node);
        items.push(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }));
    }
    let path = format!("{}/ui-dump.json", env!("CARGO_TARGET_TMPDIR"));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    std::fs::write(&path, list.to_string()).unwrap();
    path
}

#[test]
fn a_dump_is_served_as_it_is_with_the_numbers_of_explain() {
    let dump = dump();
    let ui = ui(&dump);
    let data = ui.data();
    let rows = &data["rows"];
    let spread = &rows["workload ReplicaSet shop/web"]["spread"][0];
    assert_eq!(spread["counts"], json!({"a": 2, "b": 1, "c": 0}));
    assert_eq!(spread["skew"], 2);
    // The first step plays the same objects, and nothing moves.
    let simulated = strew(&format!("simulate {dump} --until deploy --seed 0 -o json"));
    let report = json(&simulated.assert());
    let workload = &only_run(&report)["steps"][0]["workloads"][0];
    assert_eq!(workload["spread"][0]["counts"], spread["counts"]);
    assert_eq!(rows["sums"]["hard"], json!({"within": 0, "all": 1}));
    assert_eq!(rows["finding 00000"]["code"], "uneven");
    assert_eq!(rows["finding 00000"]["object"], "ReplicaSet shop/web");
    let document = ui.get("/");
    assert!(document.contains(r#"<script type="module" src="script.js"></script>"#));
    for text in [document, data.to_string()] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert!(ui.get("/script.js").len() > 10_000 && ui.get("/style.css").len() > 1_000);
}

#[test]
fn a_scenario_and_manifests_are_served_as_simulate_shows_them() {
    for args in [
        "examples/scenarios/rollout.yaml --seeds 1",
        "examples/shop.yaml --nodes 6 --zones 3 --seed 0 --until deploy",
        "examples/shop.yaml --seed 0 --until deploy",
    ] {
        let data = ui(args).data();
        assert_eq!(data["report"]["kind"], "SimulationReport", "{args}");
        assert!(!data["runs"].as_array().unwrap().is_empty(), "{args}");
    }
}

#[test]
fn what_cannot_be_shown_is_refused_before_anything_is_served() {
    let alone = |args: &str| {
        let run = strew(args).env("HOME", "/nowhere");
        run.env_remove("KUBECONFIG")
            .env_remove("KUBERNETES_SERVICE_HOST")
    };
    let both = alone("ui examples/shop.yaml --context x").assert().code(2);
    assert!(stderr(&both).contains("files were named, and an API server"));
    let nowhere = alone("ui").assert().code(2);
    assert!(stderr(&nowhere).contains("found neither a kubeconfig"));
    alone("ui nowhere.yaml").assert().code(3);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let run = alone(&format!("ui {} --port {port}", dump())).assert();
    assert!(stderr(&run.code(3)).contains("--port takes another port"));
}
