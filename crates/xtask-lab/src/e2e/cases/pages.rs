//! The HTTPS pages of a process, and the rights that reading them takes.

use anyhow::{Context, ensure};
use serde_json::json;
use xtask_lab::lab::https::{Reply, ask};
use xtask_lab::lab::{free_ports, until};

use crate::e2e::stage::{PAUSE, SOON, Stage};

/// The name of a role that may read metrics.
const ROLE: &str = "strew-e2e-reads-metrics";

/// The lines that a metrics page must contain after one pod was placed and another refused.
const TOLD: &[&str] = &[
    "scheduler_schedule_attempts_total{result=\"scheduled\",profile=\"strew\"} 1",
    "scheduler_schedule_attempts_total{result=\"unschedulable\",profile=\"strew\"} ",
    "scheduler_plugin_execution_duration_seconds_bucket{",
    "scheduler_framework_extension_point_duration_seconds_bucket{",
    "scheduler_scheduling_algorithm_duration_seconds_bucket{",
    "scheduler_e2e_scheduling_duration_seconds_bucket{",
    "rest_client_requests_total{",
    "process_resident_memory_bytes ",
];

/// Health is open to every client, metrics to clients with the right; other pages do not exist.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    stage.apply("messages.yaml")?;
    let [port] = free_ports()?;
    let at = format!("--secure-port={port}");
    let args = [
        "scheduler",
        "--kubeconfig=kubeconfig",
        "--leader-elect=false",
    ];
    let args = [&args[..], &["--bind-address=127.0.0.1", &at]].concat();
    let mut process = stage.lab.start_strew(&stage.strew, &args)?;
    stage.until_event("placed", "Scheduled")?;
    stage.until_event("refused", "FailedScheduling")?;
    process.expect_running()?;

    stage.run(&["create", "serviceaccount", "reader"])?;
    stage.run(&[
        "create",
        "clusterrole",
        ROLE,
        "--verb=get",
        "--non-resource-url=/metrics",
    ])?;
    let reader = stage.run(&["create", "token", "reader"])?;
    let reader = reader.trim();
    let of_all = stage.lab.token()?;
    let expect = |who: Option<&str>, path: &str, code: u16| {
        let found = page(port, who, path)?.status;
        ensure!(found == code, "{path}: {found}, not {code}");
        Ok(())
    };
    for path in ["/healthz", "/livez", "/readyz"] {
        expect(None, path, 200)?;
    }
    // A client without a token is `system:anonymous`, as with kube-scheduler.
    expect(None, "/metrics", 403)?;
    expect(Some("no token of anybody"), "/metrics", 401)?;
    expect(Some(reader), "/metrics", 403)?;
    expect(Some(&of_all), "/nothing", 404)?;

    let told = page(port, Some(&of_all), "/metrics")?.body;
    for line in TOLD {
        ensure!(
            told.contains(line),
            "/metrics does not tell {line:?}:\n{told}"
        );
    }
    let account = format!("--serviceaccount={}:reader", stage.namespace);
    let role = format!("--clusterrole={ROLE}");
    stage.run(&["create", "clusterrolebinding", ROLE, &role, &account])?;
    // The API server and the process both cache a refusal for a while.
    let may = until("who may now reads metrics", SOON, PAUSE, || {
        let reply = page(port, Some(reader), "/metrics")?;
        Ok((reply.status == 200).then_some(()))
    });
    stage.run(&["delete", "clusterrolebinding,clusterrole", ROLE])?;
    may
}

/// A page as a client with this token sees it.
pub(super) fn page(port: u16, token: Option<&str>, path: &str) -> anyhow::Result<Reply> {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<_> = bearer
        .iter()
        .map(|b| ("Authorization", b.as_str()))
        .collect();
    ask(port, SOON, "GET", path, &headers, b"")?.context("hung up")
}

/// Credentials that expire while a process works: it reports that, decides nothing more, and goes on with new ones.
pub(super) fn credentials(stage: &mut Stage) -> anyhow::Result<()> {
    stage.run(&["create", "serviceaccount", "short"])?;
    let account = format!("--serviceaccount={}:short", stage.namespace);
    let binding = "strew-e2e-short";
    let binding_args = ["create", "clusterrolebinding", binding];
    stage.run(
        &[
            &binding_args[..],
            &["--clusterrole=cluster-admin", &account],
        ]
        .concat(),
    )?;
    let token = |stage: &Stage, secret: &str| -> anyhow::Result<String> {
        stage.run(&["create", "secret", "generic", secret])?;
        let name = format!("--bound-object-name={secret}");
        let token = stage.run(&[
            "create",
            "token",
            "short",
            "--bound-object-kind=Secret",
            &name,
        ])?;
        Ok(token.trim().to_owned())
    };
    let folder = stage.lab.folder().to_owned();
    let file = folder.join("short.token");
    std::fs::write(&file, token(stage, "first")?)?;
    let own = stage.run(&["config", "view", "--raw", "--output=json"])?;
    let mut own: serde_json::Value = serde_json::from_str(&own)?;
    own["users"][0]["user"] = json!({"tokenFile": file});
    std::fs::write(folder.join("short.kubeconfig"), own.to_string())?;

    stage.apply("scheduling-gates.yaml")?;
    let lease = format!("--leader-elect-resource-namespace={}", stage.namespace);
    let args = [
        "scheduler",
        "--kubeconfig=short.kubeconfig",
        "--secure-port=0",
    ];
    let mut process = stage
        .lab
        .start_strew(&stage.strew, &[&args[..], &[&lease]].concat())?;
    let says = |process: &xtask_lab::lab::Component, text: &str| {
        let what = format!("the log says {text:?}");
        until(&what, SOON, PAUSE, || {
            Ok(process.output().contains(text).then_some(()))
        })
        .with_context(|| process.output())
    };
    says(&process, "this replica leads")?;
    stage.run(&["delete", "secret", "first"])?;
    says(&process, "action=\"read or renew\" error=Unauthorized")?;
    says(&process, "keep the lead failed")?;
    process.expect_running()?;
    let n_led = process.output().matches("this replica leads").count();
    std::fs::write(&file, token(stage, "second")?)?;
    // The process reads such a file again each minute.
    let again = until("it leads again", 2 * SOON, PAUSE, || {
        let n = process.output().matches("this replica leads").count();
        Ok((n > n_led).then_some(()))
    });
    stage.run(&["delete", "clusterrolebinding", binding])?;
    again.with_context(|| process.output())
}
