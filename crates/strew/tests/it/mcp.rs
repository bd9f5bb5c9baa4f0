//! `strew mcp`: the protocol, as an assistant speaks it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::root;

/// A server, with both ends of its streams.
struct Session {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Session {
    fn start(words: &[&str]) -> Self {
        let mut server = Command::new(snapbox::cmd::cargo_bin!("strew"))
            .arg("mcp")
            .args(words)
            .current_dir(root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        Self {
            input: server.stdin.take(),
            output: BufReader::new(server.stdout.take().unwrap()),
            server,
            next: 1,
        }
    }

    fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "an answer");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request. Returns its id.
    fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// The answer to a request.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let answer = self.read();
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!(id))
        );
        answer
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = self.ask("tools/call", params);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Ends the input. Returns the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.server.wait().unwrap().code()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn example(name: &str) -> Value {
    let content = std::fs::read_to_string(root().join("examples").join(name)).unwrap();
    let name = name.rsplit('/').next().unwrap();
    json!({"name": name, "content": content})
}

#[test]
fn a_session_begins_with_what_there_is() {
    let mut session = Session::start(&[]);
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let hello = session.ask("initialize", params);
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(hello["result"]["serverInfo"]["name"], "strew");
    assert!(hello["result"]["capabilities"]["tools"].is_object());
    session.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(session.ask("ping", json!({}))["result"], json!({}));
    let tools = session.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["simulate", "explain", "lint", "place"]);
    // An unknown revision is answered with a known one.
    let newer = session.ask("initialize", json!({"protocolVersion": "2099-01-01"}));
    assert_eq!(newer["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        session.ask("resources/list", json!({}))["error"]["code"],
        -32601
    );
    session.write("{");
    assert_eq!(session.read()["error"]["code"], -32700);
    // None of these inputs ends the server.
    assert_eq!(session.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(session.end(), Some(0));
}

/// The result equals the command's output, for people and for programs.
fn same(result: &Value, command: &str) {
    assert_eq!(result["isError"], false, "{result}");
    let printed = crate::strew(command).assert();
    assert!(
        text(result).ends_with(&crate::stdout(&printed)),
        "{}",
        text(result)
    );
    let printed = crate::json(&crate::strew(&format!("{command} -o json")).assert());
    // Files have other names here; only commands to paste and places contain them.
    let keys = |value: &Value| {
        let object = value.as_object().unwrap();
        object.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&result["structuredContent"]), keys(&printed));
    assert_eq!(result["structuredContent"]["kind"], printed["kind"]);
}

#[test]
fn simulate_answers_where_pods_go() {
    let mut session = Session::start(&[]);
    let arguments =
        json!({"files": [example("shop.yaml")], "until": "deploy", "nodes": 9, "zones": 3});
    let result = session.call("simulate", arguments);
    same(
        &result,
        "simulate examples/shop.yaml --until deploy --nodes 9 --zones 3",
    );
    let report = &result["structuredContent"];
    assert_eq!(report["kind"], "SimulationReport");
    assert_eq!(report["summary"]["red"], false);
    // The answer no is an answer.
    let arguments = json!({"files": [example("tight.yaml")], "until": "deploy"});
    let result = session.call("simulate", arguments);
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["summary"]["red"], true);
    assert_eq!(session.end(), Some(0));
}

#[test]
fn explain_answers_why() {
    let mut session = Session::start(&[]);
    let arguments = json!({"target": "deployment/web", "files": [example("tight.yaml")]});
    let result = session.call("explain", arguments);
    assert_eq!(result["structuredContent"]["kind"], "PodExplanation");
    assert!(
        text(&result).contains("Any one of these changes would place it"),
        "{result}"
    );
    // Without a target: all Pending pods.
    let result = session.call("explain", json!({"files": [example("tight.yaml")]}));
    assert_eq!(result["structuredContent"]["kind"], "PendingPods");
    assert!(text(&result).contains("by cause"), "{result}");
    let arguments = json!({"target": "node/a1", "files": [example("tight.yaml")]});
    let result = session.call("explain", arguments);
    assert_eq!(result["isError"], true);
    let arguments = json!({"target": "pod/nobody", "files": [example("tight.yaml")]});
    let result = session.call("explain", arguments);
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("nobody"), "{result}");
    assert_eq!(session.end(), Some(0));
}

#[test]
fn lint_and_place_answer() {
    let mut session = Session::start(&[]);
    let result = session.call("lint", json!({"files": [example("elastic.yaml")]}));
    same(&result, "lint examples/elastic.yaml");
    assert_eq!(result["structuredContent"]["items"], json!([]));
    let files = [
        example("placement/use-case-4.yaml"),
        example("placement/fleet.yaml"),
    ];
    let result = session.call("place", json!({"files": files}));
    same(
        &result,
        "place examples/placement/use-case-4.yaml examples/placement/fleet.yaml",
    );
    assert_eq!(result["structuredContent"]["kind"], "PlacementDecisionList");
    assert_eq!(session.end(), Some(0));
}

#[test]
fn mistakes_are_told_as_at_the_desk() {
    let mut session = Session::start(&["--max-input", "64Ki", "--max-output", "4Ki"]);
    let mut wrong = example("shop.yaml");
    wrong["content"] = wrong["content"]
        .as_str()
        .unwrap()
        .replace("maxSkew", "maxSkwe")
        .into();
    let result = session.call("simulate", json!({"files": [wrong]}));
    assert_eq!(result["isError"], true);
    let said = text(&result);
    assert!(
        said.contains("unknown field \"maxSkwe\", did you mean \"maxSkew\"?"),
        "{said}"
    );
    assert!(said.contains("--> shop.yaml:"), "{said}");
    for (tool, arguments, word) in [
        ("simulate", json!({}), "no file"),
        (
            "simulate",
            json!({"files": [], "flies": 1}),
            "unknown field `flies`",
        ),
        (
            "simulate",
            json!({"files": [example("shop.yaml")], "seeds": 1000}),
            "more than 100",
        ),
        (
            "simulate",
            json!({"files": [{"name": "../x.yaml", "content": ""}]}),
            "file name \"../x.yaml\"",
        ),
        (
            "simulate",
            json!({"files": [{"name": "x.yaml", "content": "#".repeat(70000)}]}),
            "more than 65536",
        ),
        (
            "simulate",
            json!({"files": [example("shop.yaml"), example("shop.yaml")]}),
            "two files",
        ),
        (
            "lint",
            json!({"paths": ["examples/elastic.yaml"]}),
            "without strew mcp --root",
        ),
        // A typed result is complete or missing; then the text is returned.
        (
            "simulate",
            json!({"files": [example("shop.yaml")]}),
            "more than 4096",
        ),
    ] {
        let result = session.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        assert!(text(&result).contains(word), "{word}: {result}");
        assert!(text(&result).len() < 9000);
    }
    let mut arguments = long();
    let many = arguments["files"][0]["content"].as_str().unwrap();
    let many = many.replace("seeds: 100", "seeds: 101");
    arguments["files"][0]["content"] = many.into();
    let result = session.call("simulate", arguments);
    assert!(
        text(&result).contains("more than --max-seeds 100"),
        "{result}"
    );
    let answer = session.ask("tools/call", json!({"name": "delete"}));
    assert_eq!(answer["error"]["code"], -32602);
    session.write(&format!("\"{}\"", "x".repeat(300_000)));
    assert_eq!(session.read()["error"]["code"], -32600);
    assert_eq!(session.end(), Some(0));
}

#[test]
fn paths_stay_below_the_root() {
    let mut session = Session::start(&["--root", "examples"]);
    let result = session.call("lint", json!({"paths": ["elastic.yaml"]}));
    assert_eq!(result["isError"], false, "{result}");
    for path in ["../README.md", "/etc/hostname", "nothing.yaml"] {
        let result = session.call("lint", json!({"paths": [path]}));
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains("no such file below"), "{result}");
    }
    // Text and files together.
    let node = "{apiVersion: v1, kind: Node, metadata: {name: extra}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}";
    let arguments = json!({
        "paths": ["tight.yaml"], "files": [{"name": "more.yaml", "content": node}], "target": "deployment/web",
    });
    let result = session.call("explain", arguments);
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(session.end(), Some(0));
}

/// A scenario that takes minutes.
fn long() -> Value {
    let pods = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3000, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}";
    let scenario = "apiVersion: sim.strew.dev/v1alpha1\nkind: Scenario\nmetadata: {name: long}\nspec:\n  seeds: 100\n  nodeGroups:\n  - {name: a, size: 60, template: {status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}}\n  timeline:\n  - {at: 10m, expect: [{pods: {count: 3000}}]}\n";
    json!({"files": [{"name": "long.yaml", "content": format!("{pods}\n---\n{scenario}")}]})
}

/// The temporary folders of a server's calls.
fn folders(server: u32) -> Vec<PathBuf> {
    let prefix = format!("strew-mcp-{server}-");
    let all = std::fs::read_dir(std::env::temp_dir()).unwrap();
    all.map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(&prefix)
        })
        .collect()
}

#[test]
fn a_call_ends_with_its_time_its_cancellation_and_the_input() {
    let mut session = Session::start(&["--time-limit", "300ms"]);
    let result = session.call("simulate", long());
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("no result within 0.3 s"), "{result}");
    assert_eq!(session.end(), Some(0));

    let mut session = Session::start(&["--time-limit", "10m"]);
    let params = json!({"name": "simulate", "arguments": long()});
    let id = session.send("tools/call", params.clone());
    // Other requests are answered in the meantime.
    assert_eq!(session.ask("ping", json!({}))["result"], json!({}));
    let cancelled = json!({"requestId": id, "reason": "test"});
    session.write(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
            .to_string(),
    );
    // It has no answer: the next answer is that of the next request.
    let result = session.call("lint", json!({"files": [example("elastic.yaml")]}));
    assert_eq!(result["isError"], false);
    // The end of the input ends calls, and no temporary folder is left.
    session.send("tools/call", params);
    let server = session.server.id();
    assert_eq!(session.end(), Some(0));
    assert_eq!(folders(server), Vec::<PathBuf>::new());
}
