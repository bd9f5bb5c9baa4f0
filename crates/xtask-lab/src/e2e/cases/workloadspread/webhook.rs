//! The webhook alone: versions, validation, many pods at once.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{now, until};

use super::by_hand::{Made, make_pods};
use super::{expect_truth, limit, scale, scheduler, until_observed, writes};
use crate::e2e::histogram::Histogram;
use crate::e2e::parts::Spreading;
use crate::e2e::stage::{PAUSE, Stage};

/// The time for many pods on a busy machine.
const DONE_WITHIN: Duration = Duration::from_secs(240);

/// Pods a second through two API servers.
const RATE: u32 = 200;

/// An invalid change of the object `new`, its type, and the message.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        r#"[{"op": "replace", "path": "/spec/subsets/0/maxReplicas", "value": "50"}]"#,
        "json",
        "spec.subsets[0].maxReplicas",
    ),
    (
        r#"[{"op": "replace", "path": "/spec/subsets/1/name", "value": "a"}]"#,
        "json",
        "spec.subsets[1].name",
    ),
    (
        r#"{"spec": {"targetRef": {"name": "other"}}}"#,
        "merge",
        "spec.targetRef",
    ),
    (
        r#"{"spec": {"scheduleStrategy": {"type": "Fixed", "adaptive": {"rescheduleCriticalSeconds": 5}}}}"#,
        "merge",
        "spec.scheduleStrategy",
    ),
    // The API server refuses it by the schema.
    (
        r#"{"spec": {"scheduleStrategy": {"type": "Sometimes"}}}"#,
        "merge",
        "Unsupported value: \"Sometimes\"",
    ),
];

/// One object in two versions, whichever it was written in; and invalid fields, in each.
pub(crate) fn versions(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-versions.yaml")?;
    let of = |version: &str, name: &str| -> anyhow::Result<Value> {
        stage.get(&format!("workloadspreads.{version}.apps.kruise.io/{name}"))
    };
    for name in ["old", "new"] {
        let (old, new) = (of("v1alpha1", name)?, of("v1beta1", name)?);
        ensure!(old["apiVersion"] == "apps.kruise.io/v1alpha1", "{old}");
        let subset = |object: &Value| object["spec"]["subsets"][0].clone();
        let selector =
            json!({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]});
        let preferred = json!([{
            "weight": 7, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]},
        }]);
        ensure!(
            subset(&old)
                == json!({
                    "name": "a", "maxReplicas": 1,
                    "requiredNodeSelectorTerm": selector, "preferredNodeSelectorTerms": preferred,
                }),
            "{old}"
        );
        ensure!(
            subset(&new)
                == json!({
                    "name": "a", "maxReplicas": 1,
                    "requiredNodeSelector": selector, "preferredNodeSelector": preferred,
                }),
            "{new}"
        );
        ensure!(
            old["metadata"]["uid"] == new["metadata"]["uid"],
            "two objects"
        );
    }
    // What is written in one version is read in the other, the status too.
    let patch = r#"[{"op": "replace", "path": "/spec/subsets/0/maxReplicas", "value": 2}]"#;
    let old = "workloadspreads.v1alpha1.apps.kruise.io/old";
    stage.run(&["patch", old, "--type=json", "--patch", patch])?;
    until_observed(stage, "old")?;
    scale(stage, "deployment/old", 3)?;
    super::until_ledger(stage, "old", &[("a", 2, 0), ("b", 1, -1)])?;
    let old = of("v1alpha1", "old")?;
    let rows = super::rows_of(&old["status"]["subsetStatuses"]);
    ensure!(rows == [json!(["a", 2, 0]), json!(["b", 1, -1])], "{old}");
    for pod in stage.pods()? {
        if super::subset_of(&pod) == "a" {
            let affinity = &pod["spec"]["affinity"]["nodeAffinity"];
            let required = &affinity["requiredDuringSchedulingIgnoredDuringExecution"];
            let key = &required["nodeSelectorTerms"][0]["matchExpressions"][0]["key"];
            ensure!(*key == "pool", "{affinity}");
        }
    }
    refused(stage)
}

fn refused(stage: &Stage) -> anyhow::Result<()> {
    for version in ["v1beta1", "v1alpha1"] {
        let spread = format!("workloadspreads.{version}.apps.kruise.io/new");
        for (patch, of_type, told) in REFUSED {
            let of_type = format!("--type={of_type}");
            let Err(error) = stage.run(&["patch", &spread, &of_type, "--patch", patch]) else {
                bail!("{version} takes {patch}");
            };
            let said = format!("{error:#}");
            ensure!(said.contains(told), "{patch}: {said}");
        }
    }
    // A second WorkloadSpread for the same target.
    let mut second = stage.get("workloadspreads.v1beta1.apps.kruise.io/new")?;
    second["metadata"] = json!({"name": "second", "namespace": stage.namespace});
    let create = ["create", "--filename=-"];
    let Err(error) = stage.kubectl().run_with(&create, &second) else {
        bail!("two WorkloadSpreads for one target");
    };
    let said = format!("{error:#}");
    ensure!(said.contains("spec.targetRef"), "{said}");
    Ok(())
}

/// Pods as fast as a controller makes them, admitted by two replicas that know of each other by the ledger alone.
pub(crate) fn burst(stage: &mut Stage) -> anyhow::Result<()> {
    let n_pods = if stage.is_full { 500 } else { 120 };
    let (first, second) = (n_pods / 3, n_pods / 5);
    let spreading = stage.spreading(2)?;
    stage.apply("ws-many.yaml")?;
    limit(stage, "front", 0, json!(first))?;
    limit(stage, "front", 1, json!(second))?;
    until_observed(stage, "front")?;
    let (before, asked) = (writes(stage)?, questions(stage)?);
    let begin = now();
    scale(stage, "deployment/front", n_pods)?;
    // No scheduler places the pods: it is enough that they exist.
    until("all pods are there", DONE_WITHIN, 2 * PAUSE, || {
        let front = stage.get("deployment/front")?;
        Ok((front["status"]["replicas"] == n_pods).then_some(()))
    })?;
    let took = begin.elapsed();
    let found = expect_truth(stage, "front")?;
    let n_writes = writes(stage)? - before;
    println!(
        "  {n_pods} pods in {:.1} s, with {n_writes} writes of the status",
        took.as_secs_f64()
    );
    let (n_questions, seconds) = questions(stage)?;
    let (n_questions, seconds) = (n_questions - asked.0, seconds - asked.1);
    println!(
        "  {n_questions} questions about rights took {:.1} ms in all",
        seconds * 1000.0
    );
    // One user in one namespace; two replicas, and creations that come before the first answer.
    ensure!(n_questions <= 64.0, "{n_questions} questions for one user");
    let expected = [
        ("first", first),
        ("second", second),
        ("rest", n_pods - first - second),
    ];
    ensure!(found == super::counts(&expected), "{found:?}");

    // An API server keeps to one replica, by HTTP/2. With two API servers both replicas are asked: which one it is
    // depends on how often the first one connected, so the second connection goes to the replica that has had no
    // request.
    let before = all_admitted(stage, &spreading)?;
    let least = spreading.webhooks.iter().zip(&before);
    let least = least.min_by_key(|(_, n)| **n).context("no webhook")?;
    spreading.service.give_only(least.0.port);
    let (_other, url) = stage.lab.start_other_server(&[], &[])?;
    let servers = [None, Some(url)];
    let none = |stage: &Stage| {
        stage.run(&["delete", "pods", "--all", "--wait=false"])?;
        let all_gone = until("all pods go", DONE_WITHIN, 2 * PAUSE, || {
            Ok(stage.pods()?.is_empty().then_some(()))
        });
        all_gone.and_then(|()| expect_truth(stage, "front").map(drop))
    };
    let look = |stage: &Stage, made: Made| Ok((expect_truth(stage, "front")?, made.repeated));
    let (found, repeated) = make_pods(stage, none, &servers, n_pods, RATE, look)?;
    ensure!(found == super::counts(&expected), "{found:?}");
    let after = all_admitted(stage, &spreading)?;
    let n_admitted: Vec<u64> = after.iter().zip(before).map(|(n, m)| n - m).collect();
    println!(
        "  two API servers, two webhooks: {n_admitted:?} admissions, {repeated} refused at first"
    );
    ensure!(
        n_admitted.iter().all(|n| *n >= n_pods as u64 / 4),
        "one webhook was hardly asked"
    );
    Ok(())
}

/// How many questions about rights the API server has answered, and how many seconds that took.
fn questions(stage: &Stage) -> anyhow::Result<(f64, f64)> {
    let metrics = stage.run(&["get", "--raw", "/metrics"])?;
    let of_kind = |end: &str| -> anyhow::Result<f64> {
        let name = format!("apiserver_request_duration_seconds_{end}{{");
        let lines = metrics.lines().filter(|line| {
            line.starts_with(&name) && line.contains(r#"resource="subjectaccessreviews""#)
        });
        let numbers = lines.map(|line| line.rsplit(' ').next().unwrap_or_default().parse::<f64>());
        Ok(numbers.sum::<Result<f64, _>>()?)
    };
    Ok((of_kind("count")?, of_kind("sum")?))
}

/// How many creations each webhook was asked about.
fn all_admitted(stage: &Stage, spreading: &Spreading) -> anyhow::Result<Vec<u64>> {
    let admitted = |webhook| {
        let mut taken = Histogram::default();
        taken.read_admissions(stage, webhook)?;
        Ok(taken.total())
    };
    spreading.webhooks.iter().map(admitted).collect()
}
