//! `strew controller --controllers=audit` on a cluster: its metrics follow what changes, with the rights that
//! `strew install audit` gives.

use anyhow::{Context, ensure};
use serde_json::json;
use xtask_lab::lab::{free_ports, until};

use super::pages::page;
use crate::e2e::stage::{PAUSE, SOON, Stage};

/// A workload in one zone is LOST with it: its node selector admits no other. After a rollout without the selector and
/// with a constraint it survives.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = stage.scheduler(&["--scheduler-name=default-scheduler"])?;
    stage.apply("audited.yaml")?;
    let rolled_out = ["rollout", "status", "deployment/web", "--timeout=60s"];
    stage.run(&rolled_out)?;
    stage.install(&["audit"])?;
    let [port] = free_ports()?;
    let mut process = stage.audit_controller(port)?;
    let token = stage.lab.token()?;
    let is_told = |line: &str| {
        let mut last = String::new();
        let told = until(&format!("the metrics tell {line}"), SOON, PAUSE, || {
            // It does not listen at once.
            last = match page(port, Some(&token), "/metrics") {
                Ok(page) => page.body,
                Err(error) => format!("{error:#}"),
            };
            Ok(last.lines().any(|other| other == line).then_some(()))
        });
        told.with_context(|| last)
    };
    let series = |metric: &str, zone: &str, value: &str| {
        format!(
            "strew_audit_workload_{metric}{{namespace=\"audited\",workload=\"Deployment/web\",\
             topology_key=\"topology.kubernetes.io/zone\",domain=\"{zone}\",event=\"loss\"}} {value}"
        )
    };
    is_told(&series("survives", "zone-a", "0.0")).with_context(|| process.output())?;
    is_told(&series("lost", "zone-a", "1.0"))?;
    is_told(&series("survives", "zone-b", "1.0"))?;
    let spread = json!({"spec": {"template": {"spec": {
        "nodeSelector": null,
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["pod-template-hash"],
        }],
    }}}});
    let patch = format!("--patch={spread}");
    stage.run(&["patch", "deployment/web", "--type=merge", &patch])?;
    stage.run(&rolled_out)?;
    is_told(&series("survives", "zone-a", "1.0"))?;
    let told = page(port, Some(&token), "/metrics")?.body;
    let harmed = told
        .lines()
        .find(|line| line.starts_with("strew_audit_workload_lost{"));
    ensure!(harmed.is_none(), "still told: {harmed:?}");
    ensure!(
        told.contains("strew_audit_last_success_timestamp_seconds "),
        "no time of an audit:\n{told}"
    );
    process.expect_running()
}
