//! Many seeds on many machines: shards, their sum, and the Job that plays them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json as value};
use snapbox::cmd::Command;

use crate::{json, stderr, stdout, strew};

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("sweep-{name}"));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// The scenario of the README: one variant holds, one must break and does.
const FILE: &str = "examples/scenarios/rollout.yaml";

/// Seeds of each variant.
const N: u64 = 21;

fn shard(words: &str, shard: &str) -> String {
    let run = strew(&format!("simulate {words} --shard {shard}"));
    stdout(&run.assert().code(0))
}

fn merge(files: &[PathBuf], words: &str) -> Command {
    files
        .iter()
        .fold(strew(&format!("merge {words}")), |run, file| run.arg(file))
}

/// Writes the shards of a sweep. Returns their files.
fn shards(folder: &Path, words: &str, n: u32) -> Vec<PathBuf> {
    let each = (0..n).map(|i| {
        let file = folder.join(format!("shard-{i}.json"));
        let run = strew(&format!("simulate {words} --shard {i}/{n} --out")).arg(&file);
        assert_eq!(stdout(&run.assert().code(0)), "");
        file
    });
    each.collect()
}

#[test]
fn shards_in_any_order_come_to_what_one_process_writes() {
    let folder = folder("equal");
    let words = format!("{FILE} --seeds 0..{N}");
    let whole = strew(&format!("simulate {words} -o summary"))
        .assert()
        .code(0);
    let whole = stdout(&whole);
    let mut files = shards(&folder, &words, 7);
    let merged = merge(&files, "-o summary").assert().code(0);
    assert_eq!(stdout(&merged), whole);
    // In another order, and some twice: a pod that was thought lost may still end.
    files.reverse();
    let copy = folder.join("again.json");
    std::fs::copy(&files[2], &copy).unwrap();
    files.extend([copy, files[4].clone()]);
    let merged = merge(&files, "-o summary").assert().code(0);
    assert_eq!(stdout(&merged), whole);
    let said = stderr(&merged);
    assert_eq!(said.matches("is the same as").count(), 2, "{said}");
    // All in one text, as cat writes them.
    let all = files[..7]
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap());
    let all: String = all.collect();
    let merged = strew("merge - -o summary").stdin(all).assert().code(0);
    assert_eq!(stdout(&merged), whole);
    // Parts of parts.
    let (left, right) = files[..7].split_at(3);
    let parts: Vec<PathBuf> = [left, right]
        .iter()
        .enumerate()
        .map(|(i, files)| {
            let run = merge(files, "-o summary").assert().code(3);
            let file = folder.join(format!("part-{i}"));
            std::fs::write(&file, stdout(&run)).unwrap();
            file
        })
        .collect();
    assert_eq!(stdout(&merge(&parts, "-o summary").assert().code(0)), whole);
    // Other formats are made from the sum, too.
    for format in ["junit", "sarif"] {
        let one = strew(&format!("simulate {words} -o {format}")).assert();
        let all = merge(&files, &format!("-o {format}")).assert().code(0);
        assert_eq!(stdout(&all), stdout(&one), "{format}");
    }
    let people = stdout(&merge(&files, "").assert().code(0));
    let one = stdout(&strew(&format!("simulate {words}")).assert().code(0));
    assert!(
        people.contains(&format!("base: held in {N} of {N} seeds")),
        "{people}"
    );
    let last = |text: &str| {
        text.lines()
            .last()
            .unwrap()
            .split(" in ")
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(last(&people), last(&one));
    // The number of threads of a process does not matter either.
    let alone = strew(&format!("simulate {words} -o summary --jobs 1")).assert();
    assert_eq!(stdout(&alone), whole);
}

/// Breaks with about every third seed: the node of a pod is drawn.
const DRAWN: &str = "apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}
- {apiVersion: v1, kind: Node, metadata: {name: b}, status: {allocatable: {cpu: 8, memory: 8Gi, pods: 110}}}
- {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
---
apiVersion: sim.strew.dev/v1alpha1
kind: Scenario
metadata: {name: drawn}
spec:
  seeds: 30
  timeline:
  - at: 1m
    expect:
    - object: {kind: Pod, metadata: {name: p}, spec: {nodeName: a}}
";

#[test]
fn a_breach_of_any_shard_is_told_with_what_plays_it_again() {
    let folder = folder("breach");
    let file = folder.join("drawn.yaml");
    std::fs::write(&file, DRAWN).unwrap();
    let words = format!("{} --seeds 0..30", file.display());
    // The result of a part alone does not decide.
    let files = shards(&folder, &words, 4);
    let run = merge(&files, "").assert().code(1);
    let text = stdout(&run);
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("again: strew "))
        .collect();
    assert!(commands.len() > 1, "{text}");
    let one = strew(&format!("simulate {words} -o summary"))
        .assert()
        .code(1);
    assert_eq!(
        stdout(&one),
        stdout(&merge(&files, "-o summary").assert().code(1))
    );
    let broken = json(&one)["scenarios"][0]["variants"][0]["broken"].clone();
    assert_eq!(commands.len() as u64, broken.as_u64().unwrap().min(10));
    for command in &commands[..2] {
        strew(command).assert().code(1);
    }
}

#[test]
fn what_is_no_whole_part_is_refused_by_its_name() {
    let folder = folder("refused");
    let words = "examples/shop.yaml --until deploy --seeds 0..6";
    let files = shards(&folder, words, 2);
    let good = std::fs::read_to_string(&files[0]).unwrap();
    let bad = folder.join("bad.json");
    let refused = |text: &str, with: &[PathBuf], word: &str| {
        std::fs::write(&bad, text).unwrap();
        let mut all = with.to_vec();
        all.push(bad.clone());
        let said = stderr(&merge(&all, "").assert().code(2));
        assert!(said.contains("bad.json") && said.contains(word), "{said}");
        assert!(said.contains("hint: "), "{said}");
    };
    // Cut at any place.
    for at in [1, 40, good.len() / 2, good.len() - 3] {
        refused(&good[..at], &[], "");
    }
    refused(
        &good[..good.len() / 2],
        &files[1..],
        "in the midst of its summary",
    );
    refused("", &[], "is empty");
    refused("hello\n", &[], "holds no SimulationSummary");
    let report = strew("simulate examples/shop.yaml --until deploy -o json").assert();
    refused(&stdout(&report), &[], "holds a SimulationReport");
    refused(
        &good.replace("\"strew\":\"", "\"strew\":\"9"),
        &[],
        "this is strew",
    );
    refused(
        &good.replace("\"broken\":0", "\"broken\":9"),
        &[],
        "contradicts itself",
    );
    refused(
        &good.replace("\"inputs\":\"sha256:", "\"inputs\":\"sha256:0"),
        &files[1..],
        "other contents",
    );
    // The same seeds, with another result.
    refused(
        &good.replace("\"heldAtOnce\":0", "\"heldAtOnce\":1"),
        &files[..1],
        "different results",
    );
    // Other options, other seeds, another division.
    refused(
        &shard("examples/shop.yaml --until deploy --seeds 0..7", "1/2"),
        &files[..1],
        "it was played by",
    );
    refused(
        &shard(
            "examples/shop.yaml --until deploy --seeds 0..6 --nodes 9",
            "1/2",
        ),
        &files[..1],
        "it was played by",
    );
    refused(&shard(words, "1/3"), &files[..1], "that came before");
    // The log of a pod has other lines, too.
    std::fs::write(&bad, format!("note: something\n{good}bye\n")).unwrap();
    let all = [bad.clone(), files[1].clone()];
    merge(&all, "").assert().code(0);
}

#[test]
fn what_is_missing_is_named() {
    let folder = folder("missing");
    let words = "examples/shop.yaml --until deploy --seeds 0..6";
    let mut files = shards(&folder, words, 3);
    files.remove(1);
    let run = merge(&files, "").assert().code(3);
    let said = stderr(&run);
    assert!(
        said.contains("not all seeds were played: shard 1/3 missing"),
        "{said}"
    );
    let command = "strew simulate examples/shop.yaml --seeds 0..6 --until deploy --shard 1/3 --out shard-1.json";
    assert!(said.contains(command), "{said}");
    // A part of another division has no number.
    let part = folder.join("part.json");
    std::fs::write(&part, stdout(&merge(&files, "-o summary").assert().code(3))).unwrap();
    let said = stderr(&merge(&[part], "").assert().code(3));
    assert!(
        said.contains("seeds 2..4 of variant base missing"),
        "{said}"
    );
}

#[test]
fn words_that_do_not_go_together_are_refused() {
    for (words, said) in [
        (
            "simulate examples/shop.yaml --shard 0/2 -o json",
            "another format",
        ),
        (
            "simulate examples/shop.yaml --shard 2/2",
            "2 shards are 0/2 to 1/2",
        ),
        ("simulate examples/shop.yaml --seeds 5..5", "no range"),
        (
            "simulate examples/shop.yaml --seeds 0..5 --seed 3",
            "which seed is the first",
        ),
        (
            "simulate examples/shop.yaml --shard 0/2 --html x.html",
            "cannot be used with",
        ),
        ("sweep examples/shop.yaml", "--image"),
        (
            "sweep examples/shop.yaml --image strew --shards 30",
            "have nothing to play",
        ),
        (
            "sweep /etc/hostname --image strew",
            "not below the current folder",
        ),
        ("sweep . --image strew", "not below the current folder"),
        ("sweep --collect x -o yaml", "forms of the Job"),
        (
            "sweep examples/shop.yaml --image strew -o junit",
            "as yaml or json",
        ),
    ] {
        let run = strew(words).assert().code(2);
        let text = stderr(&run);
        assert!(text.contains(said), "{words}: {text}");
    }
}

fn sweep(words: &str) -> Value {
    let run = strew(&format!(
        "sweep {words} --image registry.example.com/strew:0.1.0 -o json"
    ));
    json(&run.assert().code(0))
}

/// What a pod of the Job runs: its files, its folder, its arguments.
fn as_pod(list: &Value, folder: &Path, index: u32) -> String {
    let (files, job) = (&list["items"][0], &list["items"][1]);
    let pod = &job["spec"]["template"]["spec"];
    for item in pod["volumes"][0]["configMap"]["items"].as_array().unwrap() {
        let path = folder.join(item["path"].as_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = files["data"][item["key"].as_str().unwrap()].as_str();
        std::fs::write(path, text.unwrap()).unwrap();
    }
    let words = pod["containers"][0]["args"].as_array().unwrap().iter();
    let words = words.map(|word| {
        let word = word.as_str().unwrap();
        let word = word.replace("$(JOB_COMPLETION_INDEX)", &index.to_string());
        word.replace("$$", "$")
    });
    let run = strew("").current_dir(folder).args(words);
    let run = run.assert().code(0);
    stdout(&run)
}

#[test]
fn pods_of_the_job_play_what_the_desk_plays() {
    let folder = folder("job");
    let list = sweep(&format!("{FILE} --seeds 0..6 --shards 3 --variant base"));
    let job = &list["items"][1];
    let spec = &job["spec"];
    assert_eq!(
        [
            &spec["completionMode"],
            &spec["completions"],
            &spec["parallelism"]
        ],
        [&value!("Indexed"), &value!(3), &value!(3)]
    );
    assert!(spec["backoffLimitPerIndex"].as_u64().unwrap() > 0);
    let pod = &spec["template"]["spec"];
    let constraint = &pod["topologySpreadConstraints"][0];
    assert_eq!(constraint["whenUnsatisfiable"], "DoNotSchedule");
    assert_eq!(constraint["topologyKey"], "topology.kubernetes.io/zone");
    assert_eq!(
        constraint["labelSelector"]["matchLabels"]["batch.kubernetes.io/job-name"],
        job["metadata"]["name"]
    );
    let mut files: Vec<PathBuf> = Vec::new();
    for index in 0..3 {
        let file = folder.join(format!("{index}.log"));
        std::fs::write(&file, as_pod(&list, &folder, index)).unwrap();
        files.push(file);
    }
    let one = strew(&format!(
        "simulate {FILE} --seeds 0..6 --variant base -o summary"
    ));
    let all = merge(&files, "-o summary").assert().code(0);
    assert_eq!(stdout(&all), stdout(&one.assert().code(0)));
    // Equal sweeps have equal names; different ones have different names.
    let name = |words: &str| sweep(words)["items"][1]["metadata"]["name"].clone();
    let words = format!("{FILE} --seeds 0..6 --shards 3 --variant base");
    assert_eq!(name(&words), job["metadata"]["name"]);
    assert_ne!(
        name(&words.replace("0..6", "0..7")),
        job["metadata"]["name"]
    );
    assert_ne!(
        name(&words.replace("--shards 3", "--shards 2")),
        job["metadata"]["name"]
    );
}

#[test]
fn the_job_is_what_it_was() {
    let run = strew(&format!(
        "sweep {FILE} --seeds 0..1000 --shards 50 --image registry.example.com/strew:0.1.0 --name sweep \
         --results-claim results -n simulations"
    ));
    let text = stdout(&run.assert().code(0));
    let job = text.split("---\n").nth(1).unwrap().to_owned();
    snapbox::assert_data_eq!(job, snapbox::file!["snapshots/sweep-job.yaml"]);
}

#[test]
fn files_that_a_config_map_does_not_hold_come_from_a_volume() {
    let folder = folder("large");
    let large = format!("# {}\n{DRAWN}", "x".repeat(1 << 20));
    std::fs::write(folder.join("large.yaml"), large).unwrap();
    let words = "sweep large.yaml --seeds 0..4 --shards 2 --image strew:0.1.0 -o json";
    let run = |more: &str| strew(&format!("{words} {more}")).current_dir(&folder);
    let refused = stderr(&run("").assert().code(2));
    assert!(refused.contains("--files-claim"), "{refused}");
    let run = run("--files-claim sweeps").assert().code(0);
    let list = json(&run);
    let [job] = list["items"].as_array().unwrap().as_slice() else {
        panic!("{list}");
    };
    let name = job["metadata"]["name"].as_str().unwrap();
    let pod = &job["spec"]["template"]["spec"];
    let claim = value!({"claimName": "sweeps", "readOnly": true});
    assert_eq!(pod["volumes"][0]["persistentVolumeClaim"], claim);
    let mount = &pod["containers"][0]["volumeMounts"][0];
    assert_eq!(
        (mount["subPath"].as_str(), &mount["mountPath"]),
        (Some(name), &value!("/sweep"))
    );
    let told = stderr(&run);
    assert!(
        told.contains(&format!("folder {name} of volume claim sweeps")),
        "{told}"
    );
}

#[test]
fn a_job_has_what_its_cluster_wants() {
    let list = sweep(&format!(
        "{FILE} --seeds 0..2 --shards 2 --label team=core --annotation example.com/owner=a@b \
         --image-pull-secret registry --toleration batch=yes:NoSchedule --toleration spot \
         --node-selector pool=batch --pod-priority-class low --queue sweeps --ttl 3600"
    ));
    assert_eq!(list["items"][0]["metadata"]["labels"]["team"], "core");
    let job = &list["items"][1];
    let labels = &job["metadata"]["labels"];
    assert_eq!(labels["team"], "core");
    assert_eq!(labels["kueue.x-k8s.io/queue-name"], "sweeps");
    assert_eq!(job["metadata"]["annotations"]["example.com/owner"], "a@b");
    assert_eq!(
        job["metadata"]["annotations"]["sweep.strew.dev/results"],
        "logs"
    );
    // Kueue refuses a Job that runs already.
    assert_eq!(job["spec"]["suspend"], true);
    assert_eq!(job["spec"]["ttlSecondsAfterFinished"], 3600);
    let template = &job["spec"]["template"];
    assert_eq!(template["metadata"]["labels"]["team"], "core");
    assert_eq!(
        template["metadata"]["annotations"]["example.com/owner"],
        "a@b"
    );
    let pod = &template["spec"];
    assert_eq!(pod["nodeSelector"], value!({"pool": "batch"}));
    assert_eq!(pod["priorityClassName"], "low");
    assert_eq!(pod["imagePullSecrets"], value!([{"name": "registry"}]));
    let tolerations = pod["tolerations"].as_array().unwrap();
    let added = [
        value!({"key": "batch", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}),
        value!({"key": "spot", "operator": "Exists"}),
    ];
    assert_eq!(tolerations[tolerations.len() - 2..], added);
    // What strew itself plays, it must read: the Job is played, and its pods take the tainted nodes alone.
    let nodes = "apiVersion: v1\nkind: Node\nmetadata: {name: b-1, labels: {pool: batch, topology.kubernetes.io/zone: a}}\n\
                 spec: {taints: [{key: batch, value: 'yes', effect: NoSchedule}]}\n\
                 status: {allocatable: {cpu: '8', memory: 32Gi, pods: '110'}}\n";
    let mut job = job.clone();
    job["spec"]["suspend"] = false.into();
    job["spec"]["template"]["spec"]["volumes"] = value!([]);
    job["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = value!([]);
    let class =
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: low}\nvalue: 1\n";
    let input = format!("{nodes}---\n{class}---\n{job}\n");
    let run = strew("simulate - --until deploy")
        .stdin(input)
        .assert()
        .code(0);
    assert!(stdout(&run).contains("job/"), "{}", stdout(&run));
}

#[test]
fn what_no_cluster_takes_is_refused_at_the_flag() {
    for (words, said) in [
        ("--label team", "expected KEY=VALUE"),
        ("--label te!am=a", "--label"),
        ("--label app.kubernetes.io/name=a", "is set already"),
        ("--label kueue.x-k8s.io/queue-name=a", "--queue sets it"),
        ("--annotation sweep.strew.dev/results=x", "is set already"),
        (
            "--toleration a:Never",
            "NoSchedule, PreferNoSchedule, NoExecute",
        ),
        ("--toleration =x", "--toleration"),
        ("--node-selector pool=a/b", "--node-selector"),
        ("--pod-priority-class Low", "--pod-priority-class"),
        ("--image-pull-secret a_b", "--image-pull-secret"),
    ] {
        let run = strew(&format!("sweep {FILE} --image strew:0.1.0 {words}"));
        let text = stderr(&run.assert().code(2));
        assert!(text.contains(said), "{words}: {text}");
    }
}

/// An API server with one Job: pods and their logs by name.
#[derive(Default)]
struct Cluster {
    job: Value,
    /// Index, phase, log; `None`: its node does not respond.
    pods: BTreeMap<String, (u32, &'static str, Option<String>)>,
}

fn serve(cluster: Arc<Mutex<Cluster>>) -> PathBuf {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            while lines
                .next()
                .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
            {}
            let (status, body) = answer(&cluster.lock().unwrap(), &request);
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
    });
    let server = format!("http://{address}");
    let config = value!({
        "apiVersion": "v1", "kind": "Config", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c",
    });
    let file = folder("cluster").join("config.json");
    std::fs::write(&file, config.to_string()).unwrap();
    file
}

fn answer(cluster: &Cluster, request: &str) -> (&'static str, String) {
    let path = request.split(' ').nth(1).unwrap();
    let path = path.split('?').next().unwrap();
    let status = |code: u16, message: &str| {
        value!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": message, "reason": "NotFound", "code": code})
        .to_string()
    };
    let missing = || ("404 Not Found", status(404, "it is not there"));
    if path == "/version" {
        let version = value!({"major": "1", "minor": "36", "gitVersion": "v1.36.3", "gitCommit": "", "gitTreeState": "",
                    "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
        return ("200 OK", version.to_string());
    }
    if let Some(name) = path.strip_prefix("/apis/batch/v1/namespaces/default/jobs/") {
        return match cluster.job["metadata"]["name"] == name {
            true => ("200 OK", cluster.job.to_string()),
            false => missing(),
        };
    }
    let Some(rest) = path.strip_prefix("/api/v1/namespaces/default/pods") else {
        return missing();
    };
    if let Some(name) = rest
        .strip_prefix('/')
        .and_then(|rest| rest.strip_suffix("/log"))
    {
        return match cluster.pods.get(name) {
            Some((_, _, Some(log))) => ("200 OK", log.clone()),
            Some(_) => ("500 Internal Server Error", status(500, "no route to host")),
            None => missing(),
        };
    }
    let items: Vec<Value> = cluster
        .pods
        .iter()
        .map(|(name, (index, phase, _))| {
            let annotations =
                value!({"batch.kubernetes.io/job-completion-index": index.to_string()});
            value!({"metadata": {"name": name, "annotations": annotations}, "status": {"phase": phase}})
        })
        .collect();
    let list = value!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items});
    ("200 OK", list.to_string())
}

/// A killed shard and a lost node change nothing in the result; missing parts are named.
#[test]
fn results_are_collected_from_the_logs_of_pods() {
    let words = format!("{FILE} --seeds 0..6 --shards 3");
    let list = sweep(&words);
    let name = list["items"][1]["metadata"]["name"].as_str().unwrap();
    let desk = folder("collect");
    let logs: Vec<String> = (0..3).map(|index| as_pod(&list, &desk, index)).collect();
    let pod = |index: u32, phase, log: Option<&str>| (index, phase, log.map(str::to_owned));
    let half = &logs[1][..logs[1].len() / 2];
    let pods = BTreeMap::from([
        ("a-0".to_owned(), pod(0, "Succeeded", Some(&logs[0]))),
        // Killed, and not created again yet.
        ("a-1".to_owned(), pod(1, "Failed", Some(half))),
        // Its node is lost.
        ("a-2".to_owned(), pod(2, "Succeeded", None)),
    ]);
    let cluster = Arc::new(Mutex::new(Cluster {
        job: list["items"][1].clone(),
        pods,
    }));
    let config = serve(Arc::clone(&cluster));
    let collect =
        |words: &str| strew(&format!("sweep --collect {name} {words} --kubeconfig")).arg(&config);
    let said = stderr(&collect("").assert().code(3));
    assert!(said.contains("shard 1/3: pod/a-1 is Failed"), "{said}");
    assert!(
        said.contains("shard 2/3: pod/a-2") && said.contains("no route to host"),
        "{said}"
    );
    assert!(said.contains("shard 1/3, shard 2/3 missing"), "{said}");
    {
        let pods = &mut cluster.lock().unwrap().pods;
        pods.insert("b-1".to_owned(), pod(1, "Succeeded", Some(&logs[1])));
        // The node was thought lost: its pod ended, and its replacement, too.
        pods.insert(
            "a-2".to_owned(),
            pod(2, "Succeeded", Some(&format!("note: x\n{}", logs[2]))),
        );
        pods.insert("b-2".to_owned(), pod(2, "Succeeded", Some(&logs[2])));
    }
    let one = strew(&format!("simulate {FILE} --seeds 0..6 -o summary"))
        .assert()
        .code(0);
    assert_eq!(
        stdout(&collect("-o summary").assert().code(0)),
        stdout(&one)
    );
    assert!(stdout(&collect("").assert().code(0)).contains("base: held in 6 of 6 seeds"));
    let said = stderr(
        &strew("sweep --collect other --kubeconfig")
            .arg(&config)
            .assert()
            .code(2),
    );
    assert!(
        said.contains("there is no Job other in namespace default"),
        "{said}"
    );
}

/// Each pod audits the dump of one cluster, as the command at the desk does.
#[test]
fn pods_of_a_sweep_audit_one_dump_each() {
    let folder = folder("audits");
    let list = sweep("examples/shop.yaml examples/elastic.yaml --audit --nodes 6 --losing 1");
    let job = &list["items"][1];
    assert_eq!(job["spec"]["completions"], 2);
    let names = &job["metadata"]["annotations"]["sweep.strew.dev/clusters"];
    assert_eq!(names, r#"["shop","elastic"]"#);
    let of_other = sweep("examples/shop.yaml examples/tight.yaml --audit --nodes 6 --losing 1");
    let name = |list: &Value| list["items"][1]["metadata"]["name"].clone();
    assert_ne!(name(&list), name(&of_other), "other dumps, another name");
    let mut files = Vec::new();
    for (index, name) in [(0, "shop"), (1, "elastic")] {
        let log = as_pod(&list, &folder, index);
        let here = strew(&format!(
            "audit examples/{name}.yaml --nodes 6 --no-fix --fail-on NEVER -o json"
        ));
        assert_eq!(log, stdout(&here.assert().code(0)), "{name}");
        let file = folder.join(format!("{name}.json"));
        std::fs::write(&file, log).unwrap();
        files.push(file);
    }
    let fleet = stdout(&merge(&files, "").assert());
    assert!(
        fleet.contains("shop") && fleet.contains("elastic"),
        "{fleet}"
    );
    for (words, said) in [
        ("--audit --seeds 5", "cannot be used with"),
        ("--audit --shards 5", "cannot be used with"),
        ("--by zone", "--audit"),
        (
            "examples/../examples/shop.yaml --audit",
            "not below the current folder",
        ),
        (
            "examples/scenarios/rollout.yaml --audit",
            "holds a Scenario",
        ),
    ] {
        let run = strew(&format!("sweep examples/shop.yaml {words} --image strew"));
        let text = stderr(&run.assert().code(2));
        assert!(text.contains(said), "{words}: {text}");
    }
}
