//! Bad input: malformed reviews, missing rights, statuses and CAs that were edited.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::https::{Https, Reply, ask};
use xtask_lab::lab::{now, until};

use super::{scale, scheduler, until_ledger, until_observed, until_subsets};
use crate::e2e::parts::Webhook;
use crate::e2e::stage::{PAUSE, SOON, Stage};

/// The exit code of a failure outside of the process.
const EXIT_OUTSIDE: i32 = 3;

/// Longer than any answer takes. The webhook cuts off a client that never ends the head of a request after 100 seconds,
/// since an API server keeps connections without use for 90.
const PATIENCE: Duration = Duration::from_secs(120);

/// The path, the request, and the code of the answer.
const SAID: &[(&str, &str, &str, u16)] = &[
    ("GET", "/admit/pods", "", 405),
    ("POST", "/", "{}", 404),
    ("POST", "/admit/pods", "no JSON", 400),
    ("POST", "/admit/pods", "{}", 400),
    (
        "POST",
        "/admit/pods",
        r#"{"kind": "AdmissionReview", "request": {}}"#,
        400,
    ),
    ("POST", "/validate/workloadspreads", "[]", 400),
    (
        "POST",
        "/convert/workloadspreads",
        r#"{"kind": "ConversionReview"}"#,
        400,
    ),
    // The webhook answers a readable review with a review.
    (
        "POST",
        "/admit/pods",
        r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE", "resource": {"resource": "pods"}, "object": 7}}"#,
        200,
    ),
];

/// The webhook answers malformed requests with an error, goes on, and serves other clients meanwhile.
pub(crate) fn wrong(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let mut spreading = stage.spreading(1)?;
    let webhook = &spreading.webhooks[0];
    // Two clients that stall: one before the rest of a head, one before the rest of a body.
    let slow_head = begun(webhook, b"POST /admit/pods HTTP/1.1\r\nHost: x\r\n")?;
    let slow_body = begun(
        webhook,
        b"POST /admit/pods HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{",
    )?;
    let since = now();
    for (method, path, body, code) in SAID {
        let reply = said(webhook, method, path, body.as_bytes())?;
        ensure!(
            reply.status == *code,
            "{method} {path} {body}: {} {}, not {code}",
            reply.status,
            reply.body
        );
    }
    let large = vec![b' '; 10 << 20];
    let reply = said(webhook, "POST", "/admit/pods", &large)?;
    ensure!(
        reply.status == 413,
        "10 MB: {} {}",
        reply.status,
        reply.body
    );
    stage.try_a_pod(&stage.namespace)?;
    let told = slow_body.reply()?.map(|reply| reply.status);
    ensure!(told == Some(408), "a slow body: {told:?}");
    println!(
        "  a slow body was cut off within {:.1} s",
        since.elapsed().as_secs_f64()
    );
    if stage.is_full {
        let told = slow_head.reply()?.map(|reply| reply.status);
        ensure!(told.is_none() || told == Some(408), "a slow head: {told:?}");
    }
    spreading.webhooks[0].process.expect_running()?;

    mended(stage)?;
    without_a_right(stage)
}

fn begun(webhook: &Webhook, words: &[u8]) -> anyhow::Result<Https> {
    let mut https = Https::connect(webhook.port, PATIENCE)?;
    https.say(words)?;
    Ok(https)
}

fn said(webhook: &Webhook, method: &str, path: &str, body: &[u8]) -> anyhow::Result<Reply> {
    let headers = [("Content-Type", "application/json")];
    let reply = ask(webhook.port, PATIENCE, method, path, &headers, body);
    reply?.with_context(|| format!("{method} {path}: no answer"))
}

/// The processes restore trust and status after another writer has changed them.
fn mended(stage: &Stage) -> anyhow::Result<()> {
    stage.apply("ws-elastic.yaml")?;
    until_observed(stage, "front")?;
    scale(stage, "deployment/front", 8)?;
    until_subsets(stage, &[("own", 6), ("elastic", 2)])?;
    let rows = [("own", 6, 0), ("elastic", 2, -1)];
    until_ledger(stage, "front", &rows)?;
    for status in [
        json!({"subsetStatuses": [{"name": "own", "replicas": 99, "missingReplicas": 99}], "versionedSubsetStatuses": null}),
        json!({"observedGeneration": 99, "versionedSubsetStatuses": {"nonsense": [
            {"name": "", "replicas": -5, "missingReplicas": -5, "creatingPods": {"x": "1969-01-01T00:00:00Z"}},
        ]}}),
    ] {
        let patch = json!({ "status": status }).to_string();
        let args = [
            "patch",
            "workloadspread/front",
            "--type=merge",
            "--subresource=status",
            "--patch",
            &patch,
        ];
        stage.run(&args)?;
        until_ledger(stage, "front", &rows).context(patch)?;
    }
    scale(stage, "deployment/front", 9)?;
    until_subsets(stage, &[("own", 6), ("elastic", 3)])?;

    // An authority of another: the API server could make no call.
    let bundle = |stage: &Stage| -> anyhow::Result<Value> {
        let configuration = stage.get("mutatingwebhookconfiguration/strew-webhook")?;
        Ok(configuration["webhooks"][0]["clientConfig"]["caBundle"].clone())
    };
    let ours = bundle(stage)?;
    let config = stage.run(&["config", "view", "--raw", "--output=json"])?;
    let config: Value = serde_json::from_str(&config)?;
    let foreign = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    let path = "/webhooks/0/clientConfig/caBundle";
    let patch = match foreign.is_string() {
        true => json!([{"op": "replace", "path": path, "value": foreign}]),
        false => json!([{"op": "remove", "path": path}]),
    };
    let of_type = "--type=json";
    let configuration = "mutatingwebhookconfiguration/strew-webhook";
    stage.run(&[
        "patch",
        configuration,
        of_type,
        "--patch",
        &patch.to_string(),
    ])?;
    until("the trust is mended", SOON, PAUSE, || {
        Ok((bundle(stage)? == ours).then_some(()))
    })?;
    stage.until_called()
}

/// Without a right the process names the right, and ends.
fn without_a_right(stage: &mut Stage) -> anyhow::Result<()> {
    for (account, role) in [
        ("strew-webhook", "strew:strew-webhook"),
        ("strew-controller", "strew:strew-controller"),
    ] {
        let role = format!("clusterrole/{role}");
        let rules = stage.get(&role)?["rules"].take();
        let mut fewer = rules.clone();
        let lacking = fewer.as_array_mut().context("a role has rules")?;
        lacking.retain(|rule| rule["resources"] != json!(["workloadspreads/status"]));
        let set = |rules: &Value| {
            let patch = json!({ "rules": rules }).to_string();
            stage
                .kubectl()
                .run(&["patch", &role, "--type=merge", "--patch", &patch])
        };
        set(&fewer)?;
        let told = "the API server does not allow: update workloadspreads/status.apps.kruise.io\n";
        let user = format!("--as=system:serviceaccount:strew-system:{account}");
        let ask = [
            "auth",
            "can-i",
            "update",
            "workloadspreads.apps.kruise.io/status",
            &user,
        ];
        until("the right is lacked", SOON, PAUSE, || {
            Ok(stage.kubectl().run(&ask).is_err().then_some(()))
        })?;
        let rules = rules.clone();
        let mut process = match account {
            "strew-webhook" => {
                let service = xtask_lab::lab::Service::start()?;
                stage.webhook(&service, &[])?.process
            }
            _ => stage.spread_controller(&[])?,
        };
        let ended = process.ended(SOON);
        let output = process.output();
        let status = ended.with_context(|| output.clone())?;
        ensure!(status.code() == Some(EXIT_OUTSIDE), "{status}:\n{output}");
        ensure!(output.contains(told), "{told:?} is not said:\n{output}");
        let patch = json!({ "rules": rules }).to_string();
        stage
            .kubectl()
            .run(&["patch", &role, "--type=merge", "--patch", &patch])?;
    }
    Ok(())
}
