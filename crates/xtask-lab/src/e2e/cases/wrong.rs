//! Bad input: a clear message and exit code at the start, or one ignored object.

use std::fs;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::https::ask;
use xtask_lab::lab::{free_ports, until};

use crate::e2e::decisions::says;
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of, node_of};

/// The role that `strew install scheduler` prints.
const ROLE: &str = "strew:strew-scheduler";

/// The exit code of wrong input.
const EXIT_INPUT: i32 = 2;

/// The exit code of a failure outside of the process.
const EXIT_OUTSIDE: i32 = 3;

/// What is wrong, the text of a configuration after its kind, and the parts of the message.
const CONFIGURATIONS: &[(&str, &str, &[&str])] = &[
    (
        "an unknown field",
        "parallelizm: 1",
        &["unknown field \"parallelizm\"", ":3:1"],
    ),
    (
        "a field twice",
        "parallelism: 1\nparallelism: 2",
        &["the key \"parallelism\" is there twice", ":4:1"],
    ),
    (
        "two profiles of one name",
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        &["profiles[1].schedulerName: Duplicate value"],
    ),
    (
        "an unknown plugin",
        "profiles: [{schedulerName: a, plugins: {score: {enabled: [{name: Nope}]}}}]",
        &["ScorePlugin \"Nope\" does not exist"],
    ),
    (
        "a bad weight",
        "profiles: [{schedulerName: a, pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]}]",
        &["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
    ),
    (
        "a default constraint with a selector",
        "profiles: [{schedulerName: a, pluginConfig: [{name: PodTopologySpread, args: {defaultingType: List, \
         defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, \
         labelSelector: {matchLabels: {a: b}}}]}}]}]",
        &["defaultConstraints[0].labelSelector", "Forbidden"],
    ),
    (
        "an extender",
        "extenders: [{urlPrefix: \"http://x\", filterVerb: f}]",
        &["strew does not call extenders"],
    ),
];

/// The scheduler refuses each configuration before it asks the API server, so the case names none.
pub(super) fn configuration(stage: &mut Stage) -> anyhow::Result<()> {
    for (what, text, told) in CONFIGURATIONS {
        let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration";
        let file = stage.lab.folder().join("wrong.config.yaml");
        fs::write(&file, format!("{head}\n{text}\n"))?;
        let mut told = told.to_vec();
        told.push("nothing was started: 1 error in the input");
        let args = ["--config=wrong.config.yaml"];
        expect_end(stage, &args, EXIT_INPUT, &told).context(*what)?;
    }
    let election = "--leader-elect-lease-duration=5s";
    let told = ["must be longer than --leader-elect-renew-deadline"];
    expect_end(stage, &[election], EXIT_INPUT, &told)
}

/// Exit code 2 where what a kubeconfig says is at fault, 3 where the file cannot be read or the server refuses.
pub(super) fn access(stage: &mut Stage) -> anyhow::Result<()> {
    let missing = ["kubeconfig nowhere.yaml: ", "No such file"];
    expect_end(
        stage,
        &["--kubeconfig=nowhere.yaml"],
        EXIT_OUTSIDE,
        &missing,
    )?;
    fs::write(stage.lab.folder().join("none.yaml"), "just: text\n")?;
    let none = ["kubeconfig none.yaml: "];
    expect_end(stage, &["--kubeconfig=none.yaml"], EXIT_INPUT, &none)?;
    let other = ["--kubeconfig=kubeconfig", "--context=staging"];
    expect_end(stage, &other, EXIT_INPUT, &["staging"])?;
    // A token ends with the object that it is bound to.
    stage.run(&["create", "serviceaccount", "late"])?;
    stage.run(&["create", "secret", "generic", "short"])?;
    let bound = ["--bound-object-kind=Secret", "--bound-object-name=short"];
    let file = stage.kubeconfig_of(&stage.namespace, "late", &bound)?;
    stage.run(&["delete", "secret", "short"])?;
    let file = format!("--kubeconfig={}", file.display());
    let told = ["does not accept the credentials", "Unauthorized", "hint: "];
    expect_end(stage, &[&file], EXIT_OUTSIDE, &told)
}

/// Processes begin before the API server: they wait, alive and not ready, say it once, and begin when it answers.
pub(super) fn late(stage: &mut Stage) -> anyhow::Result<()> {
    let server = stage.lab.component("apiserver")?;
    server.kill();
    let mut begun = Vec::new();
    for part in ["scheduler", "controller"] {
        let [port] = free_ports()?;
        let port_flag = format!("--secure-port={port}");
        let mut args = vec![part, "--kubeconfig=kubeconfig", "--leader-elect=false"];
        args.extend(["--bind-address=127.0.0.1", &port_flag]);
        begun.push((stage.lab.start_strew(&stage.strew, &args)?, port));
    }
    let status = |port: u16, path: &str| {
        let reply = ask(port, PAUSE * 20, "GET", path, &[], b"");
        reply.ok().flatten().map(|reply| reply.status)
    };
    for (process, port) in &mut begun {
        until("it is alive", SOON, PAUSE, || {
            Ok((status(*port, "/livez") == Some(200)).then_some(()))
        })
        .with_context(|| process.output())?;
        ensure!(status(*port, "/readyz") == Some(500), "it is ready");
        process.expect_running()?;
    }
    stage.lab.component("apiserver")?.restart()?;
    stage.lab.wait_for_server()?;
    for (process, port) in &mut begun {
        until("it is ready", SOON, PAUSE, || {
            Ok((status(*port, "/readyz") == Some(200)).then_some(()))
        })
        .with_context(|| process.output())?;
        let said = process.output().matches("does not answer: ").count();
        ensure!(said == 1, "said {said} times: {}", process.output());
    }
    // A signal ends the wait.
    let closed = ["scheduler", "--kubeconfig=kubeconfig", "--secure-port=0"];
    let mut args = closed.to_vec();
    // Nothing listens on port 1.
    args.push("--master=https://127.0.0.1:1");
    let mut process = stage.lab.start_strew(&stage.strew, &args)?;
    until("it says so", SOON, PAUSE, || {
        let told = process
            .output()
            .contains("https://127.0.0.1:1/ does not answer: ");
        Ok(told.then_some(()))
    })?;
    process.signal("TERM")?;
    let status = process.ended(SOON)?;
    ensure!(status.code() == Some(0), "{status}");
    Ok(())
}

/// Applies what `strew install scheduler` prints, as a person does: the process works with only that service account,
/// and names a verb of a resource that its role lacks.
pub(super) fn rights(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("missing-rights.yaml")?;
    let namespace = format!("--namespace={}", stage.namespace);
    let mut list = stage.printed(&["scheduler", &namespace])?;
    let kubectl = stage.kubectl();
    kubectl.run_with(&["apply", "--dry-run=server", "-f", "-"], &list)?;
    // No containers run here: the case starts the program as a process.
    let items = list["items"].as_array_mut().context("a list has items")?;
    items.retain(|object| object["kind"] != "Deployment");
    kubectl.run_with(&["apply", "-f", "-"], &list)?;

    let file = stage.kubeconfig_of(&stage.namespace, "strew-scheduler", &[])?;
    let file = format!("--kubeconfig={}", file.display());
    let lease = format!("--leader-elect-resource-namespace={}", stage.namespace);
    let args = [file.as_str(), lease.as_str()];
    let role = stage.get(&format!("clusterrole/{ROLE}"))?;
    let mut lacking = role.clone();
    let rules = lacking["rules"]
        .as_array_mut()
        .context("a role has rules")?;
    let rule = rules
        .iter_mut()
        .find(|rule| rule["resources"] == json!(["replicasets"]))
        .context("the role has a rule for replicasets")?;
    rule["verbs"] = json!(["get", "list"]);
    set_rules(stage, &lacking)?;
    let told = ["the API server does not allow: watch replicasets.apps\n"];
    // The authorizer learns of roles by a watch of its own.
    until("the right is lacked", SOON, PAUSE, || {
        Ok(expect_end(stage, &args, EXIT_OUTSIDE, &told).ok())
    })?;
    set_rules(stage, &role)?;
    until("the right is there", SOON, PAUSE, || {
        let who = format!("system:serviceaccount:{}:strew-scheduler", stage.namespace);
        let ask = [
            "auth",
            "can-i",
            "watch",
            "replicasets.apps",
            "--all-namespaces",
            "--as",
            &who,
        ];
        Ok(stage.run(&ask).ok())
    })?;
    let all = ["scheduler", "--secure-port=0", &file, &lease];
    let process = stage.lab.start_strew(&stage.strew, &all)?;
    stage.until_event("plain", "Scheduled")?;
    let refused = process.output();
    ensure!(
        !refused.contains("forbidden"),
        "something is forbidden:\n{refused}"
    );
    drop(process);
    one_installation(stage)
}

/// Where strew is installed, a second installation is refused, and taking it out leaves the first one alone. Takes the
/// first one out.
fn one_installation(stage: &Stage) -> anyhow::Result<()> {
    const SECOND: &str = "second";
    let install = || stage.printed(&["scheduler", &format!("--namespace={SECOND}")]);
    let refused = install()
        .err()
        .context("a second installation is printed")?;
    let expected = format!("strew is installed in namespace {}", stage.namespace);
    ensure!(format!("{refused:#}").contains(&expected), "{refused:#}");
    let gone = |namespace: &str| -> anyhow::Result<Value> {
        let namespace = format!("--namespace={namespace}");
        let printed = stage.strew(&["uninstall", "scheduler", &namespace, "--output=json"])?;
        Ok(serde_json::from_str(&printed)?)
    };
    let of_second = gone(SECOND)?;
    let items = of_second["items"].as_array().context("a list has items")?;
    let others = items
        .iter()
        .filter(|object| object["metadata"]["namespace"] != SECOND);
    let others: Vec<&Value> = others.collect();
    ensure!(others.is_empty() && !items.is_empty(), "{others:?}");
    let delete = ["delete", "--ignore-not-found", "--filename=-"];
    stage
        .kubectl()
        .run_with(&delete, &gone(&stage.namespace)?)?;
    install().map(drop)
}

/// More CPU than can be counted in thousandths: in a pod, and on a node that another client wrote.
pub(super) fn set_aside(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("set-aside.yaml")?;
    let scheduler = stage.scheduler(&[])?;
    stage.until_event("plain", "Scheduled")?;
    let mut log = String::new();
    let warned = until("two warnings", SOON, PAUSE, || {
        log = scheduler.output();
        let lines = log.lines().filter(|line| line.contains("\"read failed\""));
        let told: Vec<&str> = lines.collect();
        let is_told = |kind: &str, namespace: &str| {
            let fields = format!("\"kind\":\"{kind}\",{namespace}\"name\":\"absurd\"");
            told.iter().any(|line| line.contains(&fields))
        };
        let pod = is_told("Pod", "\"namespace\":\"set-aside\",");
        Ok((pod && is_told("Node", "")).then_some(()))
    });
    warned.with_context(|| log.clone())?;
    ensure!(says(&log, "the cluster is known"), "{log}");
    // The node counts again after a valid write.
    let patch = json!({"status": {"allocatable": {"cpu": "2"}}}).to_string();
    let args = [
        "patch",
        "node",
        "absurd",
        "--subresource=status",
        "--patch",
        &patch,
    ];
    stage.run(&args)?;
    stage.apply("set-aside.more.yaml")?;
    stage.until_pods("a pod on the node that was absurd", |pods| {
        let more = pods.iter().find(|pod| name_of(pod) == "more")?;
        (node_of(more) == Some("absurd")).then_some(())
    })
}

/// Starts the scheduler, which must end by itself with this code and print all of `told`.
fn expect_end(stage: &mut Stage, args: &[&str], code: i32, told: &[&str]) -> anyhow::Result<()> {
    let mut all = vec!["scheduler", "--secure-port=0"];
    all.extend(args);
    let mut process = stage.lab.start_strew(&stage.strew, &all)?;
    let ended = process.ended(SOON);
    let output = process.output();
    let status = ended.with_context(|| output.clone())?;
    ensure!(
        status.code() == Some(code),
        "{status}, not {code}:\n{output}"
    );
    for text in told {
        ensure!(output.contains(text), "{text:?} is not said:\n{output}");
    }
    Ok(())
}

fn set_rules(stage: &Stage, role: &Value) -> anyhow::Result<()> {
    let patch = json!({"rules": role["rules"]}).to_string();
    let args = [
        "patch",
        "clusterrole",
        ROLE,
        "--type=merge",
        "--patch",
        &patch,
    ];
    stage.run(&args).map(drop)
}
