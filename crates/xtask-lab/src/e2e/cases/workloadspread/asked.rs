//! What Kruise's users asked for: evictions that are refused make no room, one owner for each pod, pods without room, and
//! moving back.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::until;

use super::{
    expect_truth, limit, scale, scheduler, subset_of, subsets, until_ledger, until_observed,
    until_subsets,
};
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of};

const DEPLOYMENT: &str = "deployment/shop";

const SPREAD: &str = "workloadspread/shop";

/// A budget refuses evictions while the workload grows: the first subset keeps its limit. When an eviction is let through,
/// the replacement takes the place.
pub(crate) fn evicted(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(2)?;
    stage.apply("ws-shop.yaml")?;
    until_observed(stage, "shop")?;
    scale(stage, DEPLOYMENT, 6)?;
    until_subsets(stage, &[("own", 4), ("elastic", 2)])?;
    let pods = stage.until_placed(6, 0)?;
    let budget = |n: usize| {
        json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all"},
            "spec": {"maxUnavailable": n, "selector": {"matchLabels": {"app": "shop"}}},
        })
    };
    stage.apply_all(vec![budget(0)])?;
    until_allowed(stage, 0)?;
    let own: Vec<&Value> = pods.iter().filter(|pod| subset_of(pod) == "own").collect();
    for pod in &own {
        let Err(error) = evict(stage, pod) else {
            bail!("{} was evicted", name_of(pod));
        };
        let said = format!("{error:#}");
        ensure!(said.contains("disruption budget"), "{said}");
    }
    // At once, while the ledger would still tell of room.
    scale(stage, DEPLOYMENT, 12)?;
    until_subsets(stage, &[("own", 4), ("elastic", 8)])?;
    until_ledger(stage, "shop", &[("own", 4, 0), ("elastic", 8, -1)])?;

    stage.until_placed(12, 0)?;
    stage.apply_all(vec![budget(1)])?;
    until_allowed(stage, 1)?;
    let gone = own.first().context("a pod in the first subset")?;
    evict(stage, gone)?;
    until("it is replaced", SOON, PAUSE, || {
        let pods = stage.pods()?;
        let is_gone = !pods.iter().any(|pod| name_of(pod) == name_of(gone));
        let is_whole = subsets(&pods) == super::counts(&[("own", 4), ("elastic", 8)]);
        Ok((is_gone && is_whole).then_some(()))
    })?;
    expect_truth(stage, "shop").map(drop)
}

/// Waits until the budget allows this number of disruptions.
fn until_allowed(stage: &Stage, n: usize) -> anyhow::Result<()> {
    let mut last = Value::Null;
    let allowed = until("the budget counts", SOON, PAUSE, || {
        last = stage.get("poddisruptionbudget/all")?;
        let status = &last["status"];
        let is_so = status["observedGeneration"] == last["metadata"]["generation"]
            && status["disruptionsAllowed"] == n
            && status["currentHealthy"] == status["expectedPods"];
        Ok(is_so.then_some(()))
    });
    allowed.with_context(|| last.to_string())
}

/// Asks the API server to evict a pod.
pub(crate) fn evict(stage: &Stage, pod: &Value) -> anyhow::Result<()> {
    let (namespace, name) = (&stage.namespace, name_of(pod));
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    });
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
    let create = ["create", "--raw", &path, "--filename=-"];
    stage.kubectl().run_with(&create, &eviction).map(drop)
}

/// A WorkloadSpread of a Deployment and one of its ReplicaSet: the second is refused at creation. Where both are there all
/// the same, the older one has the pods, the other says so, and the pods come to rest.
pub(crate) fn two_owners(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-shop.yaml")?;
    until_observed(stage, "shop")?;
    scale(stage, DEPLOYMENT, 9)?;
    until_subsets(stage, &[("own", 4), ("elastic", 5)])?;
    let sets = stage.list("replicasets")?;
    let set = sets.first().context("the Deployment has a ReplicaSet")?;
    let mut second = stage.get(SPREAD)?;
    second["spec"]["targetRef"]["kind"] = "ReplicaSet".into();
    second["spec"]["targetRef"]["name"] = name_of(set).into();
    let second = json!({
        "apiVersion": second["apiVersion"],
        "kind": second["kind"],
        "metadata": {"name": "second"},
        "spec": second["spec"],
    });
    let Err(error) = stage.apply_all(vec![second.clone()]) else {
        bail!("two WorkloadSpreads have the same pods");
    };
    let said = format!("{error:#}");
    let is_told = said.contains("spec.targetRef") && said.contains("has the pods of this target");
    ensure!(is_told, "{said}");

    // The API server asks no webhook any more.
    stage.run(&["delete", "validatingwebhookconfiguration", "strew-webhook"])?;
    let mut refused = Ok(());
    let made = until("a second WorkloadSpread", SOON, PAUSE, || {
        refused = stage.apply_all(vec![second.clone()]);
        Ok(refused.is_ok().then_some(()))
    });
    refused.and(made)?;
    let mut last = Value::Null;
    let told = until("it says who has the pods", SOON, PAUSE, || {
        last = stage.get("workloadspread/second")?["status"].take();
        let rows = last["subsetStatuses"].as_array();
        let is_told = |row: &Value| row["replicas"] == 0 && is_outranked(row);
        let is_so = rows.is_some_and(|rows| rows.len() == 2 && rows.iter().all(is_told));
        Ok(is_so.then_some(()))
    });
    told.with_context(|| last.to_string())?;
    stage.until_event("second", "PodsOfAnother")?;

    scale(stage, DEPLOYMENT, 5)?;
    let pods = until_subsets(stage, &[("own", 4), ("elastic", 1)])?;
    let marked = |pod: &Value| {
        let marker = pod["metadata"]["annotations"][super::MARKER].as_str();
        marker.is_some_and(|marker| marker.contains("\"name\":\"shop\""))
    };
    ensure!(pods.iter().all(marked), "pods of the younger one: {pods:?}");
    until_at_rest(stage)?;
    until_ledger(stage, "shop", &[("own", 4, 0), ("elastic", 1, -1)])?;

    // It has them as soon as it is alone.
    stage.run(&["delete", SPREAD])?;
    until_ledger(stage, "second", &[("own", 4, 0), ("elastic", 1, -1)])
}

fn is_outranked(row: &Value) -> bool {
    let mut conditions = row["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| {
        let message = condition["message"].as_str().unwrap_or_default();
        condition["type"] == "OwnsPods"
            && condition["status"] == "False"
            && message.ends_with("shop")
    })
}

/// Looks between which no pod may change.
const LOOKS_AT_REST: usize = 20;

/// Waits until nothing is written to the pods any more.
fn until_at_rest(stage: &Stage) -> anyhow::Result<()> {
    let versions = || -> anyhow::Result<BTreeMap<String, Value>> {
        let pods = stage.pods()?;
        let each = pods.iter().map(|pod| {
            let version = pod["metadata"]["resourceVersion"].clone();
            (name_of(pod).to_owned(), version)
        });
        Ok(each.collect())
    };
    let mut before = BTreeMap::new();
    let mut n_same = 0;
    until("pods come to rest", SOON, PAUSE, || {
        let found = versions()?;
        n_same = if found == before { n_same + 1 } else { 0 };
        before = found;
        Ok((n_same >= LOOKS_AT_REST).then_some(()))
    })
}

/// All subsets are full: pods wait with a gate until there is room, or are not made.
pub(crate) fn without_room(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(2)?;
    stage.apply("ws-shop.yaml")?;
    annotate(stage, "strew.dev/when-no-room=Pending")?;
    limited(stage, 2)?;
    until_observed(stage, "shop")?;
    scale(stage, DEPLOYMENT, 9)?;
    let pods = until_subsets(stage, &[("own", 4), ("elastic", 2), ("", 3)])?;
    let waits = |pod: &&Value| {
        let gates = &pod["spec"]["schedulingGates"];
        subset_of(pod).is_empty() && gates[0]["name"] == "strew.dev/no-room"
    };
    ensure!(pods.iter().filter(waits).count() == 3, "{pods:?}");
    // Room for two: as many are replaced, and the third waits on.
    limit(stage, "shop", 1, json!(4))?;
    until_subsets(stage, &[("own", 4), ("elastic", 4), ("", 1)])?;
    until_ledger(stage, "shop", &[("own", 4, 0), ("elastic", 4, 0)])?;
    annotate(stage, "strew.dev/when-no-room=Reject")?;
    limit(stage, "shop", 0, json!(5))?;
    until_subsets(stage, &[("own", 5), ("elastic", 4)])?;
    stage.until_placed(9, 0)?;

    scale(stage, DEPLOYMENT, 11)?;
    let refused = until("a pod is refused", SOON, PAUSE, || {
        let events = stage.list("events")?;
        let mut refused = events
            .into_iter()
            .filter(|event| event["reason"] == "FailedCreate");
        Ok(refused.next())
    })?;
    let said = refused["message"].as_str().unwrap_or_default();
    ensure!(
        said.contains("no subset of the WorkloadSpread has room"),
        "{said}"
    );
    let found = expect_truth(stage, "shop")?;
    ensure!(
        found == super::counts(&[("own", 5), ("elastic", 4)]),
        "{found:?}"
    );
    Ok(())
}

/// Gives the last subset a limit.
fn limited(stage: &Stage, max_replicas: usize) -> anyhow::Result<()> {
    let patch =
        json!([{"op": "add", "path": "/spec/subsets/1/maxReplicas", "value": max_replicas}]);
    let patch = patch.to_string();
    let args = ["patch", SPREAD, "--type=json", "--patch", &patch];
    stage.run(&args).map(drop)
}

fn annotate(stage: &Stage, annotation: &str) -> anyhow::Result<()> {
    let args = ["annotate", SPREAD, annotation, "--overwrite"];
    stage.run(&args).map(drop)
}

/// The first subset gets room: pods of the later one move back, one after the other, and never more than one is missing.
pub(crate) fn moved_back(stage: &mut Stage) -> anyhow::Result<()> {
    let _scheduler = scheduler(stage)?;
    let _spreading = stage.spreading(1)?;
    stage.apply("ws-shop.yaml")?;
    annotate(stage, "strew.dev/move-back-seconds=3")?;
    limit(stage, "shop", 0, json!(2))?;
    until_observed(stage, "shop")?;
    scale(stage, DEPLOYMENT, 6)?;
    until_subsets(stage, &[("own", 2), ("elastic", 4)])?;
    stage.until_placed(6, 0)?;
    // Only one may be missing: its budget is asked.
    stage.apply_all(vec![json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "all"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "shop"}}},
    })])?;
    until_allowed(stage, 1)?;
    limit(stage, "shop", 0, json!(4))?;
    let mut least = usize::MAX;
    until("two have moved", SOON, PAUSE, || {
        let found = subsets(&stage.pods()?);
        least = least.min(found.values().sum());
        Ok((found == super::counts(&[("own", 4), ("elastic", 2)])).then_some(()))
    })?;
    ensure!(least >= 5, "only {least} of 6 pods were there");
    until_ledger(stage, "shop", &[("own", 4, 0), ("elastic", 2, -1)])?;
    // No pod moves any more.
    until_at_rest(stage)
}
