//! Checks that the control plane works on this machine: `cargo xtask fidelity --check-lab`.

use std::path::Path;

use anyhow::ensure;
use serde_json::json;
use xtask::go::{Build, binary};
use xtask_lab::lab::{Lab, Options, Scheduler, Timing, node, now};

use super::{crds, observe, real, verb};

/// Starts the control plane, runs a Deployment on one node, ends it, and prints the time of each step.
pub(crate) fn run(top: &Path) -> anyhow::Result<()> {
    let mut last = now();
    let mut tell = |what: &str| {
        println!("{what:20} {:>6.1} s", last.elapsed().as_secs_f64());
        last = now();
    };
    let binary = binary(top, Build::ControlPlane)?;
    tell("binary");
    let megabytes = binary.metadata()?.len() / 1_000_000;
    println!("{:20} {megabytes:>6} MB", "");
    let options = Options {
        timing: Timing::new(),
        scheduler: Scheduler::Kube(None),
        feature_gates: Vec::new(),
        grace: None,
    };
    let lab = Lab::start(top, &options)?;
    tell("control plane ready");
    let node = node(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n-0"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }));
    real::make_nodes(lab.kubectl(), &[node])?;
    tell("node Ready");
    let labels = json!({"app": "web"});
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "web"}]},
            },
        },
    });
    verb::apply(lab.kubectl(), "apply", &[deployment])?;
    let outcome = observe::outcome(&real::settled(lab.kubectl())?, Vec::new());
    tell("pods Running, calm");
    let ready = outcome.workloads.get("deployment/web").map(|w| w.ready);
    ensure!(ready == Some(3), "3 pods should be ready: {outcome:?}");
    crds::check(lab.kubectl(), top)?;
    tell("definitions");
    drop(lab);
    tell("ended");
    Ok(())
}
