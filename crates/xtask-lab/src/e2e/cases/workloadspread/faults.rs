//! Webhook and controller that are killed, an API server that goes away.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::https::Https;
use xtask_lab::lab::{now, until};

use super::{
    expect_truth, limit, scale, scheduler, subset_of, until_ledger, until_observed, until_subsets,
};
use crate::e2e::parts::SYSTEM;
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of};

/// The time for pods of which some were refused, and are tried again with longer and longer pauses.
const DONE_WITHIN: Duration = Duration::from_secs(240);

/// Kills one of two webhooks, and the controller, while pods are made; starts them again.
pub(crate) fn killed(stage: &mut Stage) -> anyhow::Result<()> {
    let n_pods = if stage.is_full { 500 } else { 80 };
    let mut spreading = stage.spreading(2)?;
    prepare(stage, n_pods)?;
    scale(stage, "deployment/front", n_pods)?;
    until_more_than(stage, n_pods / 4)?;
    let fault = now();
    spreading.webhooks[0].process.kill();
    spreading.controller.kill();
    until_more_than(stage, n_pods / 2)?;
    spreading.webhooks[0].process.restart()?;
    spreading.controller.restart()?;
    until_all(stage, n_pods)?;
    let found = expect_truth(stage, "front")?;
    println!(
        "  all pods are there {:.1} s after the fault: {found:?}",
        fault.elapsed().as_secs_f64()
    );
    // At the end all pods go, and the status counts none.
    scale(stage, "deployment/front", 0)?;
    expect_none(stage, n_pods)?;
    stage.until_ready(&spreading, 2)
}

/// Kills the API server while pods are made: the processes stay, and go on.
pub(crate) fn server_killed(stage: &mut Stage) -> anyhow::Result<()> {
    let n_pods = 500;
    let mut spreading = stage.spreading(2)?;
    prepare(stage, n_pods)?;
    scale(stage, "deployment/front", n_pods)?;
    until_more_than(stage, n_pods / 4)?;
    let server = stage.lab.component("apiserver")?;
    server.kill();
    server.restart()?;
    stage.lab.wait_for_server()?;
    until_all(stage, n_pods)?;
    let found = expect_truth(stage, "front")?;
    println!("  {found:?}");
    spreading.controller.expect_running()?;
    for webhook in &mut spreading.webhooks {
        webhook.process.expect_running()?;
    }
    Ok(())
}

fn prepare(stage: &Stage, n_pods: usize) -> anyhow::Result<()> {
    stage.apply("ws-many.yaml")?;
    limit(stage, "front", 0, json!(n_pods / 3))?;
    limit(stage, "front", 1, json!(n_pods / 5))?;
    until_observed(stage, "front").map(drop)
}

fn until_more_than(stage: &Stage, n: usize) -> anyhow::Result<()> {
    until("the middle of it", DONE_WITHIN, PAUSE / 5, || {
        Ok((stage.pods()?.len() > n).then_some(()))
    })
}

fn until_all(stage: &Stage, n_pods: usize) -> anyhow::Result<()> {
    let mut last = Value::Null;
    let all = until("all pods are there", DONE_WITHIN, 5 * PAUSE, || {
        last = stage.get("deployment/front")?["status"].take();
        Ok((last["replicas"] == n_pods).then_some(()))
    });
    all.with_context(|| last.to_string())
}

fn expect_none(stage: &Stage, n_pods: usize) -> anyhow::Result<()> {
    until("all pods go", DONE_WITHIN, 2 * PAUSE, || {
        Ok(stage.pods()?.is_empty().then_some(()))
    })?;
    let row = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let rows = [
        ("first", 0, row(n_pods / 3)),
        ("second", 0, row(n_pods / 5)),
        ("rest", 0, 100_000),
    ];
    until_ledger(stage, "front", &rows)
}

/// All webhooks are gone, the policy is Fail, and strict: pods that must start, start.
pub(crate) fn down(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let [excluded, labelled, plugin] =
        ["excluded", "labelled", "cni-system"].map(|name| format!("{}-{name}", stage.namespace));
    for namespace in [&excluded, &labelled, &plugin] {
        stage.kubectl().run(&["create", "namespace", namespace])?;
    }
    let opt_out = "strew.dev/workloadspread=disabled";
    let label = ["label", "namespace", &labelled, opt_out];
    stage.kubectl().run(&label)?;
    let exclude = format!("--exclude-namespace={excluded}");
    let flags = ["--strict", exclude.as_str()];
    let mut spreading = stage.installed_spreading(&flags, &["--strict"])?;
    stage.add_webhook(&mut spreading, &flags)?;
    stage.until_ready(&spreading, 1)?;
    stage.until_called()?;
    stage.apply("ws-elastic.yaml")?;
    until_observed(stage, "front")?;
    scale(stage, "deployment/front", 2)?;
    let pods = until_subsets(stage, &[("own", 2)])?;
    let [gone, other] = [0, 1].map(|i| name_of(&pods[i]).to_owned());
    stage.run(&["run", "bare", "--image=bare"])?;
    spreading.webhooks[0].process.kill();

    // In this namespace a controller can make no pod.
    let Err(error) = stage.try_a_pod(&stage.namespace) else {
        bail!("a pod passed without the webhook");
    };
    let said = format!("{error:#}");
    ensure!(said.contains("failed calling webhook"), "{said}");
    // Pods can be deleted, also those of a subset: the webhook itself may need their room. No pod replaces them yet.
    let begin = now();
    let gone = format!("pod/{gone}");
    stage.run(&["delete", &gone, "--wait=false"])?;
    println!("  a deletion took {:.1} s", begin.elapsed().as_secs_f64());
    until("a replacement is refused", SOON, PAUSE, || {
        let events = stage.list("events")?;
        let mut refused = events.iter().filter(|e| e["reason"] == "FailedCreate");
        let is_so = refused.any(|e| e["message"].as_str().is_some_and(|m| m.contains("webhook")));
        Ok(is_so.then_some(()))
    })?;
    // The webhook is not asked about a pod without a controller.
    stage.run(&["delete", "pod/bare", "--wait=false"])?;
    stage.run(&["run", "other", "--image=other"])?;
    // Real controllers start the pods of the system and of strew.
    for namespace in ["kube-system", SYSTEM, excluded.as_str(), labelled.as_str()] {
        starts(stage, namespace)?;
    }
    plugged_in(stage, &plugin)?;
    for namespace in [&excluded, &labelled, &plugin] {
        let delete = ["delete", "namespace", namespace, "--wait=false"];
        stage.kubectl().run(&delete)?;
    }

    spreading.webhooks[0].process.restart()?;
    stage.until_ready(&spreading, 1)?;
    stage.until_called()?;
    until("another one in its place", SOON, PAUSE, || {
        let mut pods = stage.pods()?;
        pods.retain(|pod| subset_of(pod) == "own");
        let is_so = pods.len() == 2
            && pods.iter().any(|pod| name_of(pod) == other)
            && !pods.iter().any(|pod| gone.ends_with(name_of(pod)));
        Ok(is_so.then_some(()))
    })?;
    until_ledger(stage, "front", &[("own", 2, 4), ("elastic", 0, -1)])
}

/// A DaemonSet in this namespace gets its pods, one a node: it may be a network plugin, without which the API server
/// cannot reach the webhook.
fn plugged_in(stage: &Stage, namespace: &str) -> anyhow::Result<()> {
    let labels = json!({"app": "cni"});
    let daemon_set = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "cni", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": "cni", "image": "cni"}]},
            },
        },
    });
    let n_nodes = stage.kubectl().objects("nodes")?.len();
    let create = ["create", "--filename=-"];
    stage.kubectl().run_with(&create, &daemon_set)?;
    let mut last = String::new();
    let made = until("a pod of the DaemonSet on each node", SOON, PAUSE, || {
        let pods = ["--namespace", namespace, "get", "pods", "--output=name"];
        last = stage.kubectl().run(&pods)?;
        Ok((last.lines().count() == n_nodes).then_some(()))
    });
    made.with_context(|| format!("{last:?} on {n_nodes} nodes"))?;
    let delete = ["--namespace", namespace, "delete", "daemonset", "cni"];
    stage.kubectl().run(&delete).map(drop)
}

/// A Deployment in this namespace gets its pod, which can be deleted, and gets another one.
fn starts(stage: &Stage, namespace: &str) -> anyhow::Result<()> {
    let kubectl = |args: &[&str]| {
        let mut all = vec!["--namespace", namespace];
        all.extend(args);
        stage.kubectl().run(&all)
    };
    let pod_beside = |known: &str| {
        until(&format!("a pod in {namespace}"), SOON, PAUSE, || {
            let names = kubectl(&["get", "pods", "--selector=app=starts", "--output=name"])?;
            let mut names = names.lines().filter(|name| *name != known);
            Ok(names.next().map(str::to_owned))
        })
    };
    // As strict as strew's own namespace requires.
    let labels = json!({"app": "starts"});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "starts", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [{
                        "name": "starts",
                        "image": "starts",
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    });
    stage
        .kubectl()
        .run_with(&["create", "--filename=-"], &deployment)?;
    let first = pod_beside("")?;
    kubectl(&["delete", &first, "--now", "--wait=false"])?;
    pod_beside(&first)?;
    kubectl(&[
        "delete",
        "deployment",
        "starts",
        "--cascade=foreground",
        "--wait=false",
    ])?;
    Ok(())
}

/// Certificates that live for seconds, and pods all the while: the authority is exchanged without a failed call, and
/// without a restart of a process.
pub(crate) fn rotated(stage: &mut Stage) -> anyhow::Result<()> {
    let n_pods = if stage.is_full { 300 } else { 100 };
    let mut spreading = stage.installed_spreading(&[], &[])?;
    // Renewed after 10 seconds, and valid for 5 more.
    let lives = [
        "--authority-lifetime=15s",
        "--certificate-lifetime=9s",
        "--authority-overlap=2s",
    ];
    for _ in 0..2 {
        stage.add_webhook(&mut spreading, &lives)?;
    }
    stage.until_ready(&spreading, 2)?;
    stage.until_called()?;
    prepare(stage, n_pods)?;
    let shown = || -> anyhow::Result<Vec<Vec<u8>>> {
        let each = spreading.webhooks.iter();
        let each = each.map(|webhook| Https::connect(webhook.port, SOON));
        let shown = each.map(|https| https.map(|https| https.certificates().swap_remove(0)));
        shown.collect()
    };
    let signing = || -> anyhow::Result<Value> {
        let secret = [
            "--namespace",
            SYSTEM,
            "get",
            "secret",
            "strew-webhook-ca",
            "--output=json",
        ];
        let secret: Value = serde_json::from_str(&stage.kubectl().run(&secret)?)?;
        Ok(secret["data"]["ca.crt"].clone())
    };
    let (first_signing, first_shown) = (signing()?, shown()?);
    let begin = now();
    // A few pods at a time, until every certificate was exchanged: the API server calls at each step.
    let mut n = 0;
    until("the authority is exchanged", DONE_WITHIN, 3 * PAUSE, || {
        n = (n + n_pods / 20).min(n_pods);
        scale(stage, "deployment/front", n)?;
        stage.try_a_pod(&stage.namespace)?;
        let is_new = signing()? != first_signing;
        let all_new = shown()?
            .iter()
            .zip(&first_shown)
            .all(|(new, old)| new != old);
        Ok((is_new && all_new).then_some(()))
    })?;
    println!(
        "  exchanged {:.1} s after the start",
        begin.elapsed().as_secs_f64()
    );
    scale(stage, "deployment/front", n_pods)?;
    until_all(stage, n_pods)?;
    expect_truth(stage, "front")?;
    let events = stage.list("events")?;
    let refused = events.iter().filter(|e| e["reason"] == "FailedCreate");
    let refused: Vec<&Value> = refused.map(|e| &e["message"]).collect();
    ensure!(refused.is_empty(), "calls failed: {refused:?}");
    for webhook in &mut spreading.webhooks {
        webhook.process.expect_running()?;
    }
    Ok(())
}
