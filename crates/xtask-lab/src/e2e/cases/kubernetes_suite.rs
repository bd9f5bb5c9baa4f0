//! Kubernetes' own end-to-end suite for scheduling, on real nodes where strew is `default-scheduler`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::json;
use xtask::go::{Build, binary};
use xtask_lab::lab::{PAUSE_IMAGE, RealLab, Scheduler, now, until};

use super::super::stage::{PAUSE, Stage, name_of};

/// How many specs of this release run with the filter below; fewer mean that some were passed over.
const N_SPECS_MIN: usize = 28;

/// Specs that need no feature, and the one of asynchronous preemption, whose gate (SchedulerAsyncPreemption) is on by
/// default. Two are left out, those of the Workload API (gate GenericWorkload, alpha and off): strew schedules no pod
/// groups (docs/differences.md), and these specs ask the API server alone.
const FILTER: &str = "Feature: isSubsetOf SchedulerAsyncPreemption";

/// The suite stops itself after this time; it takes 11 minutes, and waits most of them.
const SUITE_WITHIN: &str = "60m";

/// The same, and the time in which it cleans up.
const WITHIN: Duration = Duration::from_secs(65 * 60);

/// The suite's report in the lab's folder.
const REPORT: &str = "suite.json";

/// Plays the suite on three nodes in three zones.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    RealLab::check()?;
    let suite = binary(stage.top(), Build::Suite)?;
    let agnhost = binary(stage.top(), Build::Agnhost)?;
    let mut lab = RealLab::start(stage.top(), &stage.strew, 3, &Scheduler::None)?;
    let own = [
        ("agnhost", lab.add_image(&agnhost, "agnhost")?),
        ("pause", PAUSE_IMAGE.to_owned()),
    ];
    for (name, public) in images(&suite)? {
        let own = own.iter().find(|(own, _)| *own == name);
        let (_, own) = own.with_context(|| format!("the suite needs an image {name}"))?;
        lab.tag_image(own, &public)?;
    }
    add_system_pods(&lab)?;
    let mut strew = lab.start_beside(
        "strew",
        &stage.strew,
        &[
            "scheduler",
            "--kubeconfig=kubeconfig",
            "--scheduler-name=default-scheduler",
            "--leader-elect=false",
            "--secure-port=0",
        ],
    )?;
    let folder = lab.folder().to_owned();
    println!(
        "  the suite takes 11 minutes, its log: {}/suite.log",
        folder.display()
    );
    let begin = now();
    let mut run = lab.start_beside(
        "suite",
        &suite,
        &[
            "run",
            "--kubeconfig=kubeconfig",
            "--provider=local",
            "--num-nodes=3",
            "--ginkgo.v",
            "--ginkgo.no-color",
            &format!("--ginkgo.timeout={SUITE_WITHIN}"),
            &format!("--ginkgo.label-filter={FILTER}"),
            &format!("--ginkgo.json-report={REPORT}"),
        ],
    )?;
    let status = until("the end of the suite", WITHIN, PAUSE, || {
        lab.expect_running()?;
        strew.expect_running()?;
        run.has_ended()
    })?;
    let report = fs::read_to_string(folder.join(REPORT))
        .with_context(|| format!("the suite ended ({status}) without a report"))?;
    judge(&report, begin.elapsed()).with_context(|| format!("logs: {}", folder.display()))?;
    ensure!(status.success(), "the suite ended ({status})");
    Ok(())
}

/// Adds a pod to each node whose name has the names of all system pods that the suite looks for: before half of the
/// specs it waits a minute for them, and goes on without.
fn add_system_pods(lab: &RealLab) -> anyhow::Result<()> {
    let kubectl = lab.kubectl();
    for node in kubectl.objects("nodes")? {
        let node = name_of(&node);
        let name = format!("kube-proxy-fluentd-elasticsearch-node-problem-detector-{node}");
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system"},
            "spec": {
                "nodeName": node,
                "priorityClassName": "system-node-critical",
                "containers": [{"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}],
            },
        });
        kubectl.run_with(&["create", "-f", "-"], &pod)?;
    }
    Ok(())
}

/// The images that specs run: our name and the name in pods.
fn images(suite: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let output = Command::new(suite).arg("images").output()?;
    ensure!(output.status.success(), "suite images: {}", output.status);
    let text = String::from_utf8(output.stdout)?;
    let pairs = text.lines().map(|line| line.split_once(' '));
    let pairs = pairs.map(|pair| pair.map(|(own, public)| (own.to_owned(), public.to_owned())));
    let pairs: Option<_> = pairs.collect();
    pairs.with_context(|| format!("suite images: {text:?}"))
}

/// Tells how many specs passed, and which ones failed and why; an error if one failed, or too few ran.
fn judge(report: &str, took: Duration) -> anyhow::Result<()> {
    let suites: Vec<Suite> = serde_json::from_str(report).context("the suite's report")?;
    let all = || suites.iter().flat_map(|suite| &suite.spec_reports);
    let ran: Vec<&Node> = all()
        .filter(|node| node.is_spec() && node.has_run())
        .collect();
    let n_passed = ran.iter().filter(|spec| spec.state == "passed").count();
    println!(
        "  {n_passed} of {} specs passed, in {:.0} s",
        ran.len(),
        took.as_secs_f64()
    );
    // What surrounds all specs can fail as well.
    let failed: Vec<&Node> = all()
        .filter(|node| node.has_run() && node.state != "passed")
        .collect();
    for node in &failed {
        println!("  {} {}: {}", node.state, node.name(), node.reason());
    }
    if !failed.is_empty() {
        bail!("{} failed", failed.len());
    }
    let n_ran = ran.len();
    ensure!(n_ran >= N_SPECS_MIN, "{n_ran} of {N_SPECS_MIN} specs ran");
    Ok(())
}

/// What Ginkgo reports of a suite.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    #[serde(default)]
    spec_reports: Vec<Node>,
}

/// A spec, or what surrounds all of them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
}

impl Node {
    fn is_spec(&self) -> bool {
        self.leaf_node_type == "It"
    }

    /// Not where the filter left it out, or where it found that it cannot run here.
    fn has_run(&self) -> bool {
        !matches!(self.state.as_str(), "skipped" | "pending")
    }

    fn name(&self) -> String {
        let containers = self.container_hierarchy_texts.iter().flatten();
        let texts: Vec<&str> = containers
            .chain([&self.leaf_node_text])
            .map(String::as_str)
            .collect();
        texts.join(" ")
    }

    /// The first line of its failure.
    fn reason(&self) -> &str {
        let message = self.failure.as_ref().map_or("", |f| &f.message);
        message.lines().next().unwrap_or("no message")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn node(kind: &str, state: &str, message: &str) -> Value {
        json!({
            "ContainerHierarchyTexts": ["[sig-scheduling] Predicates"],
            "LeafNodeType": kind,
            "LeafNodeText": "respects a label",
            "State": state,
            "Failure": {"Message": message},
        })
    }

    fn judged(nodes: &[Value]) -> Result<(), String> {
        let report = json!([{"SpecReports": nodes}]).to_string();
        judge(&report, Duration::from_secs(1)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_spec_that_fails_or_does_not_run_is_a_failure() {
        let mut nodes = vec![node("It", "passed", ""); N_SPECS_MIN];
        nodes.push(node("It", "skipped", "a feature is off"));
        assert_eq!(judged(&nodes), Ok(()));
        assert_eq!(
            judged(&nodes[1..]),
            Err(format!("{} of {N_SPECS_MIN} specs ran", N_SPECS_MIN - 1))
        );
        nodes.push(node("ReportAfterSuite", "panicked", ""));
        nodes.push(node("It", "timedout", "after 60 s\nmore"));
        assert_eq!(judged(&nodes), Err("2 failed".to_owned()));
        assert!(judged(&[json!({})]).is_err(), "no report of Ginkgo");
    }

    #[test]
    fn a_failure_has_the_names_of_its_containers_and_one_line() {
        let node = node("It", "failed", "not within 60 s\nmore");
        let node: Node = serde_json::from_value(node).unwrap();
        assert_eq!(node.name(), "[sig-scheduling] Predicates respects a label");
        assert_eq!(node.reason(), "not within 60 s");
    }
}
