//! The use cases of Kruise's article, and other effects that users see.

use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};
use xtask_lab::lab::until;

use super::{
    limit, names_of, scale, scale_down, scheduler, subset_of, subsets, until_costs, until_ledger,
    until_observed, until_ready, until_subsets,
};
use crate::e2e::stage::{PAUSE, Stage, name_of, node_of, refusal};

const ZONE: &str = "topology.kubernetes.io/zone";

/// How long a subset takes no pods after some could not be scheduled there.
const CLOSED_S: u64 = 300;

/// Own nodes first, up to a limit; the rest on elastic ones, which shrink first, whatever the limit becomes.
pub(crate) fn elastic(stage: &mut Stage) -> anyhow::Result<()> {
    // The article has 100 pods on its own nodes.
    let own = if stage.is_full { 100 } else { 6 };
    let (more, less) = (own * 10 / 6, own / 2);
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-elastic.yaml")?;
    limit(stage, "front", 0, json!(own))?;
    until_observed(stage, "front")?;

    scale(stage, "deployment/front", less)?;
    until_subsets(stage, &[("own", less)])?;
    scale(stage, "deployment/front", more)?;
    until_subsets(stage, &[("own", own), ("elastic", more - own)])?;
    let pods = stage.until_placed(more, 0)?;
    let pools = stage.spread(&pods, "pool")?;
    ensure!(
        pools == super::counts(&[("own", own), ("elastic", more - own)]),
        "{pools:?}"
    );
    let billed = |pod: &&Value| {
        (pod["metadata"]["labels"]["billing"] == "elastic") != (subset_of(pod) == "elastic")
    };
    let wrong = names_of(&pods, billed);
    ensure!(wrong.is_empty(), "the patch is not in effect: {wrong:?}");
    let row = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let rows = [("own", row(own), 0), ("elastic", row(more - own), -1)];
    until_ledger(stage, "front", &rows)?;
    until_costs(stage, &[("own", 200, own), ("elastic", 100, more - own)])?;

    // A smaller limit moves nothing; pods beyond it go first, and then the elastic ones.
    let fewer = own * 2 / 3;
    limit(stage, "front", 0, json!(fewer))?;
    let costs = [
        ("own", 200, fewer),
        ("own", -100, own - fewer),
        ("elastic", 100, more - own),
    ];
    until_costs(stage, &costs)?;
    scale_down(stage, "deployment/front", more - (own - fewer))?;
    until_subsets(stage, &[("own", fewer), ("elastic", more - own)])?;
    scale_down(stage, "deployment/front", less)?;
    until_subsets(stage, &[("own", less)])?;
    until_ledger(
        stage,
        "front",
        &[("own", row(less), row(fewer - less)), ("elastic", 0, -1)],
    )
}

/// Zones 1:1:3 by percentages, as an autoscaler raises the number. (When it is lowered, pods go by the costs that they
/// have at that moment.)
pub(crate) fn zones(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-zones.yaml")?;
    until_observed(stage, "shop")?;
    for (replicas, each) in [(5, [1, 1, 3]), (10, [2, 2, 6]), (25, [5, 5, 15])] {
        scale(stage, "deployment/shop", replicas)?;
        let [a, b, c] = each;
        until_subsets(stage, &[("subset-a", a), ("subset-b", b), ("subset-c", c)])?;
        let pods = stage.until_placed(replicas, 0)?;
        let zones = stage.spread(&pods, ZONE)?;
        let expected = super::counts(&[("zone-a", a), ("zone-b", b), ("zone-c", c)]);
        ensure!(zones == expected, "{replicas}: {zones:?}");
        let row = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let rows = [
            ("subset-a", row(a), 0),
            ("subset-b", row(b), 0),
            ("subset-c", row(c), 0),
        ];
        until_ledger(stage, "shop", &rows)?;
    }
    Ok(())
}

/// A subset's patch is in its pods; a StatefulSet's subsets go by ordinals, without a ledger.
pub(crate) fn patched(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-patched.yaml")?;
    until_observed(stage, "arch")?;
    until_observed(stage, "db")?;
    scale(stage, "replicaset/arch", 5)?;
    scale(stage, "statefulset/db", 4)?;
    let found = stage.until_placed(9, 0)?;
    let (arch, db): (Vec<Value>, Vec<Value>) = found
        .into_iter()
        .partition(|pod| pod["metadata"]["labels"]["app"] == "arch");
    ensure!(
        subsets(&arch) == super::counts(&[("x86", 2), ("arm", 3)]),
        "{:?}",
        subsets(&arch)
    );
    for pod in &arch {
        let (cpu, memory) = match subset_of(pod).as_str() {
            "x86" => ("500m", "800Mi"),
            _ => ("300m", "600Mi"),
        };
        let label = &pod["metadata"]["labels"]["resource.cpu/arch"];
        ensure!(*label == subset_of(pod), "{}: {label}", name_of(pod));
        let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
        ensure!(
            limits["cpu"] == cpu && limits["memory"] == memory,
            "{}: {limits}",
            name_of(pod)
        );
        // The patch leaves the other container alone.
        let other = &pod["spec"]["containers"][1]["resources"];
        ensure!(other["limits"].is_null(), "{}: {other}", name_of(pod));
    }
    for pod in &db {
        let expected = match name_of(pod) {
            "db-0" | "db-1" => "first",
            _ => "rest",
        };
        ensure!(
            subset_of(pod) == expected,
            "{} is in {}",
            name_of(pod),
            subset_of(pod)
        );
    }
    Ok(())
}

/// Neither subset has a limit: own nodes are full when nothing more fits on them, and no pod waits.
pub(crate) fn simulated(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-simulated.yaml")?;
    until_observed(stage, "front")?;
    // Two nodes with room for three pods each.
    scale(stage, "deployment/front", 10)?;
    until_subsets(stage, &[("normal", 6), ("elastic", 4)])?;
    stage.until_placed(10, 0)?;
    let refused = stage.list("events.events.k8s.io")?;
    let refused: Vec<&Value> = refused
        .iter()
        .filter(|e| e["reason"] == "FailedScheduling")
        .map(|e| &e["regarding"]["name"])
        .collect();
    ensure!(refused.is_empty(), "pods waited for a node: {refused:?}");
    scale_down(stage, "deployment/front", 5)?;
    until_subsets(stage, &[("normal", 5)]).map(drop)
}

/// Without simulated scheduling, the scheduler's condition counts: a pod that waits too long is replaced, and the
/// subset closed.
pub(crate) fn rescheduled(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-rescheduled.yaml")?;
    until_observed(stage, "front")?;
    scale(stage, "deployment/front", 5)?;
    stage.until_pods("two pods wait", |pods| {
        let waiting = pods.iter().filter(|pod| refusal(pod).is_some());
        let is_so = subsets(pods) == super::counts(&[("nowhere", 2), ("somewhere", 3)]);
        (is_so && waiting.count() == 2).then_some(())
    })?;
    until_subsets(stage, &[("somewhere", 5)])?;
    let pods = stage.until_placed(5, 0)?;
    ensure!(
        pods.iter().all(|pod| node_of(pod) == Some("n-1")),
        "{pods:?}"
    );
    let spread = stage.get("workloadspread/front")?;
    let condition = |index: usize| {
        let row = &spread["status"]["subsetStatuses"][index];
        let conditions = row["conditions"].as_array().into_iter().flatten();
        let mut conditions = conditions.filter(|c| c["type"] == "Schedulable");
        conditions.next().map(|c| c["status"].clone())
    };
    ensure!(condition(0) == Some(json!("False")), "{}", spread["status"]);
    ensure!(condition(1) == Some(json!("True")), "{}", spread["status"]);
    // While it is closed, it gets no pod.
    scale(stage, "deployment/front", 7)?;
    until_subsets(stage, &[("somewhere", 7)])?;
    if stage.is_full {
        let within = Duration::from_secs(CLOSED_S + 30);
        until("the subset is open again", within, 10 * PAUSE, || {
            let events = stage.events("front", "RecoverSchedulable")?;
            Ok((!events.is_empty()).then_some(()))
        })?;
    }
    Ok(())
}

/// Pods of a Deployment that is older than its WorkloadSpread: by the nodes that they are on.
pub(crate) fn adopted(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    stage.apply("ws-adopted.yaml")?;
    stage.until_placed(4, 0)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-adopted.more.yaml")?;
    // All pods run on own nodes, on which two pods are one too many each.
    until_subsets(stage, &[("own", 4)])?;
    until_costs(stage, &[("own", 200, 2), ("own", -100, 2)])?;
    until_ledger(stage, "front", &[("own", 4, 0), ("elastic", 0, -1)])?;
    scale(stage, "deployment/front", 6)?;
    until_subsets(stage, &[("own", 4), ("elastic", 2)])?;
    until_costs(
        stage,
        &[("own", 200, 2), ("own", -100, 2), ("elastic", 100, 2)],
    )?;
    scale_down(stage, "deployment/front", 4)?;
    until_subsets(stage, &[("own", 2), ("elastic", 2)])?;
    // Events on a WorkloadSpread report failures, and there was none.
    let mut events = stage.list("events.events.k8s.io")?;
    events.retain(|event| event["regarding"]["kind"] == "WorkloadSpread");
    let notes: Vec<&Value> = events.iter().map(|event| &event["note"]).collect();
    ensure!(notes.is_empty(), "{notes:?}");
    Ok(())
}

/// Kruise's end-to-end case "one subset =2": pods that found no room have neither a marker nor a deletion cost, and go
/// first.
pub(crate) fn full(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-full.yaml")?;
    until_observed(stage, "front")?;
    scale(stage, "deployment/front", 2)?;
    until_ledger(stage, "front", &[("own", 2, 0)])?;
    scale(stage, "deployment/front", 6)?;
    until_ready(stage, "deployment/front")?;
    let expected = super::costs(&[("own", 100, 2), ("", 0, 4)]);
    let found = super::costs_of(&stage.pods()?);
    ensure!(found == expected, "{found:?}, not {expected:?}");
    scale_down(stage, "deployment/front", 2)?;
    until_subsets(stage, &[("own", 2)]).map(drop)
}
