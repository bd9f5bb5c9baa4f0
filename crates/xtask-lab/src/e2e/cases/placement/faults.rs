//! Controllers that are killed, and other writers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{Component, now, until};

use super::{bind_all, cluster, clusters_of, placement, until_selected, until_told};
use crate::e2e::decisions::says;
use crate::e2e::follow::Follow;
use crate::e2e::stage::{PAUSE, SOON, Stage, name_of};

const LEADS: &str = "this replica leads";

/// Which clusters PlacementDecisions hold, event by event.
#[derive(Default)]
struct Held {
    by_decision: BTreeMap<String, BTreeSet<String>>,
    /// Clusters that PlacementDecisions must hold from now on.
    kept: BTreeSet<String>,
    /// What was absent nevertheless: the clusters, and the decision after whose event.
    absent: Vec<(String, usize)>,
    n_events: usize,
}

impl Held {
    fn take_in(&mut self, of_type: &str, decision: &Value) {
        let name = name_of(decision).to_owned();
        self.n_events += 1;
        match of_type {
            "DELETED" => {
                self.by_decision.remove(&name);
            }
            _ => {
                let clusters = clusters_of(decision).map(str::to_owned).collect();
                self.by_decision.insert(name.clone(), clusters);
            }
        }
        let held = self.all();
        let missing = self
            .kept
            .iter()
            .filter(|cluster| !held.contains(cluster.as_str()))
            .count();
        if missing > 0 {
            self.absent.push((name, missing));
        }
    }

    fn all(&self) -> BTreeSet<&str> {
        self.by_decision
            .values()
            .flatten()
            .map(String::as_str)
            .collect()
    }
}

/// Clusters that shift all others from one PlacementDecision to the next, and a controller that is killed each time.
pub(crate) fn kept(stage: &mut Stage) -> anyhow::Result<()> {
    let (n, n_rounds) = if stage.is_full { (250, 20) } else { (250, 5) };
    // The only replica: it need not wait for the lease of a killed one.
    let mut controllers = stage.hub(1, &["--leader-elect=false"])?;
    bind_all(stage)?;
    let named = |number: usize| format!("m-{number:03}");
    stage.apply_all(
        (0..n)
            .map(|i| cluster(&named(i), json!({}), json!([])))
            .collect(),
    )?;
    let mut held = Follow::start(stage, "placementdecisions", Held::take_in)?;
    stage.apply_all(vec![placement("all", json!({}))])?;
    until_selected(stage, "all", |got| got.len() == n)?;
    until("the watch has told all", SOON, PAUSE, || {
        Ok(held.look(|held| held.all().len() == n).then_some(()))
    })?;
    held.change(|held| held.kept = (0..n).map(named).collect());
    for round in 0..n_rounds {
        // First by name, so that every other cluster moves up by one.
        let first = format!("a-{:03}", n_rounds - round);
        let before = held.look(|held| held.n_events);
        stage.apply_all(vec![cluster(&first, json!({}), json!([]))])?;
        // Often in the middle of three writes.
        until("a first write", SOON, Duration::from_millis(1), || {
            Ok((held.look(|held| held.n_events) > before).then_some(()))
        })?;
        let [controller] = controllers.as_mut_slice() else {
            anyhow::bail!("one controller was asked for");
        };
        controller.kill();
        controller.restart()?;
        until_selected(stage, "all", |got| got.len() == n + round + 1)?;
    }
    let n_all = n + n_rounds;
    until("the watch has told all", SOON, PAUSE, || {
        Ok(held.look(|held| held.all().len() == n_all).then_some(()))
    })?;
    let (absent, n_events) = held.look(|held| (held.absent.clone(), held.n_events));
    println!("  {n_events} events of PlacementDecisions in {n_rounds} rounds");
    ensure!(
        absent.is_empty(),
        "kept clusters were absent after the event of: {absent:?}"
    );
    let decisions = stage.list("placementdecisions")?;
    let full: Vec<usize> = decisions.iter().map(|d| clusters_of(d).count()).collect();
    ensure!(full.iter().all(|&n| n <= 100), "{full:?}");
    until_told(
        stage,
        "all",
        ("PlacementSatisfied", "True", "AllDecisionsScheduled"),
        n_all,
    )
}

/// Two replicas: the leader is killed, and the other one decides on later changes.
pub(crate) fn failover(stage: &mut Stage) -> anyhow::Result<()> {
    let mut controllers = stage.hub(2, &[])?;
    bind_all(stage)?;
    for name in ["c1", "c2"] {
        stage.apply_all(vec![cluster(name, json!({}), json!([]))])?;
    }
    stage.apply_all(vec![placement("all", json!({}))])?;
    until_selected(stage, "all", |got| got.len() == 2)?;
    let leads = |controller: &Component| says(&controller.output(), LEADS);
    let leader = controllers
        .iter()
        .position(leads)
        .context("nobody says that it leads")?;
    ensure!(!leads(&controllers[1 - leader]), "both lead");
    controllers[leader].kill();
    let fault = now();
    stage.apply_all(vec![cluster("c3", json!({}), json!([]))])?;
    until_selected(stage, "all", |got| got.len() == 3)?;
    println!(
        "  decided {:.1} s after the leader was killed",
        fault.elapsed().as_secs_f64()
    );
    ensure!(
        leads(&controllers[1 - leader]),
        "who decided, if not the follower?"
    );
    until_told(
        stage,
        "all",
        ("PlacementSatisfied", "True", "AllDecisionsScheduled"),
        3,
    )
}

/// Another writer changes the status between each read and write of the controller.
pub(crate) fn conflicts(stage: &mut Stage) -> anyhow::Result<()> {
    let _controllers = stage.hub(1, &[])?;
    bind_all(stage)?;
    for number in 0..20 {
        stage.apply_all(vec![cluster(
            &format!("c-{number:02}"),
            json!({}),
            json!([]),
        )])?;
    }
    stage.apply_all(vec![placement("some", json!({"numberOfClusters": 1}))])?;
    until_selected(stage, "some", |got| got.len() == 1)?;
    for wanted in 2..=20usize {
        let spec = json!({"spec": {"numberOfClusters": wanted}}).to_string();
        stage.run(&["patch", "placement/some", "--type=merge", "--patch", &spec])?;
        for number in 0..3 {
            let status = json!({"status": {"numberOfSelectedClusters": 1000 + number}}).to_string();
            let args = [
                "patch",
                "placement/some",
                "--type=merge",
                "--subresource=status",
                "--patch",
                &status,
            ];
            stage.run(&args)?;
        }
    }
    until_selected(stage, "some", |got| got.len() == 20)?;
    until_told(
        stage,
        "some",
        ("PlacementSatisfied", "True", "AllDecisionsScheduled"),
        20,
    )
}

/// The hub goes away during a change: the controller waits for it, and comes to the same result.
pub(crate) fn server_killed(stage: &mut Stage) -> anyhow::Result<()> {
    let n = 250;
    let mut controllers = stage.hub(1, &[])?;
    bind_all(stage)?;
    let named = |number: usize| format!("m-{number:03}");
    let all = (0..n).map(|i| cluster(&named(i), json!({}), json!([])));
    stage.apply_all(all.collect())?;
    let held = Follow::start(stage, "placementdecisions", Held::take_in)?;
    stage.apply_all(vec![placement("all", json!({}))])?;
    until("a first write", SOON, Duration::from_millis(1), || {
        Ok((held.look(|held| held.n_events) > 0).then_some(()))
    })?;
    let server = stage.lab.component("apiserver")?;
    server.kill();
    server.restart()?;
    stage.lab.wait_for_server()?;
    let back = now();
    until_selected(stage, "all", |got| got.len() == n)?;
    println!(
        "  decided {:.1} s after the hub was back",
        back.elapsed().as_secs_f64()
    );
    // The controller also sees later changes.
    stage.apply_all(vec![cluster("later", json!({}), json!([]))])?;
    until_selected(stage, "all", |got| got.len() == n + 1)?;
    for controller in &mut controllers {
        controller.expect_running()?;
    }
    let told = ("PlacementSatisfied", "True", "AllDecisionsScheduled");
    until_told(stage, "all", told, n + 1)
}
