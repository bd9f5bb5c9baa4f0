//! What Kruise's users asked for: one owner for each pod.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::until;

use super::{scale, scheduler, until_ledger, until_observed, until_subsets};
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of};

const DEPLOYMENT: &str = "deployment/shop";

const SPREAD: &str = "workloadspread/shop";

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
