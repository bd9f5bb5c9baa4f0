//! `strew rebalance` beside the descheduler's plugin RemovePodsViolatingTopologySpreadConstraint, on ten unbalanced
//! clusters on which kube-scheduler places the pods that come in place of evicted ones.
//!
//! The case asserts what strew promises, and prints what both did.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use strew_model::Prng;
use xtask::go::{Build, binary};
use xtask_lab::lab::{free_ports, now, until};

use crate::e2e::stage::{PAUSE, SOON, Stage, node_of};

const N_CLUSTERS: u64 = 10;
const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = "example.com/rack";
const ZONES: [&str; 3] = ["a", "b", "c"];

/// The pause between two rounds of the descheduler; its default is longer, and pods start at once here.
const INTERVAL: Duration = Duration::from_secs(5);

/// It has ended when it evicts nothing for this time: three rounds.
const QUIET: Duration = Duration::from_secs(17);

/// It does not end if it still evicts after this time.
const PATIENCE: Duration = Duration::from_secs(90);

/// The most plans that strew may need for a cluster.
const PLANS_MAX: usize = 3;

/// What one of both did with a cluster.
struct Outcome {
    /// How many pods went, those that went for one another included.
    evictions: usize,
    /// The pods that must still change their domain, over all hard constraints.
    moves: u64,
    pending: usize,
    ends: bool,
    took: Duration,
}

/// Plays all clusters, and prints a table, each row as soon as it is known.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let program = binary(stage.top(), Build::Descheduler)?;
    let _scheduler = stage.lab.start_kube_scheduler(None)?;
    stage.apply_all(nodes())?;
    let mut table = String::from(
        "| cluster | pods | moves before | evictions: strew | descheduler | moves after: strew | descheduler | Pending after: strew | descheduler | ends: strew | descheduler |\n",
    );
    print!("{table}");
    for seed in 0..N_CLUSTERS {
        let begun = uneven(stage, seed)?;
        let theirs = descheduled(stage, &program)?;
        let begun_again = uneven(stage, seed)?;
        let ours = rebalanced(stage)?;
        let row = format!(
            "| {seed} | {} | {}, {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            begun.n_pods,
            begun_again.moves,
            begun.moves,
            ours.evictions,
            theirs.evictions,
            ours.moves,
            theirs.moves,
            ours.pending,
            theirs.pending,
            ends(&ours),
            ends(&theirs),
        );
        println!("{row}");
        table.push_str(&row);
        table.push('\n');
        ensure!(ours.ends, "cluster {seed}: strew does not end\n{table}");
        ensure!(
            ours.pending == 0,
            "cluster {seed}: {} Pending\n{table}",
            ours.pending
        );
        ensure!(
            ours.evictions as u64 <= begun_again.moves,
            "cluster {seed}: more evictions than moves\n{table}"
        );
    }
    Ok(())
}

fn ends(outcome: &Outcome) -> String {
    match outcome.ends {
        true => format!("{} s", outcome.took.as_secs()),
        false => format!("not in {} s", PATIENCE.as_secs()),
    }
}

/// Two nodes in each of three zones, each zone with a node of each of two racks.
fn nodes() -> Vec<Value> {
    let each = ZONES
        .iter()
        .flat_map(|zone| [1, 2].map(|rack| (zone, rack)));
    each.map(|(zone, rack)| {
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": format!("n-{zone}{rack}"), "labels": {ZONE: zone, RACK: format!("r{rack}")}},
            "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "50"}},
        })
    })
    .collect()
}

/// A cluster of a seed, and which nodes are cordoned while its pods are placed.
struct Plan {
    objects: Vec<Value>,
    cordoned: Vec<String>,
    n_pods: usize,
}

/// Workloads with one to three hard constraints, of which some count the pods of another workload; in some clusters
/// much of the room of zone c is taken.
fn cluster(seed: u64) -> Plan {
    let mut dice = Prng::new(seed ^ 0xe4e1);
    let mut plan = Plan {
        objects: Vec::new(),
        cordoned: vec!["n-c1".to_owned(), "n-c2".to_owned()],
        n_pods: 0,
    };
    // With a node less in zone b, its racks and hosts could not be even, and it has room for few pods.
    let is_short = dice.chance(1, 3);
    if is_short {
        plan.cordoned.push("n-b2".to_owned());
    }
    let is_full = dice.chance(1, 3);
    let is_shared = !is_short && dice.chance(1, 3);
    let n_workloads = dice.between(2, if is_short { 2 } else { 4 });
    for number in 0..n_workloads {
        let name = format!("web-{number}");
        let labels = json!({"app": name, "tier": "web"});
        let mut constraints = vec![constraint(ZONE, &json!({"app": name}), 1)];
        if !is_short && dice.chance(1, 3) {
            constraints.push(constraint(RACK, &json!({"app": name}), 1));
        }
        if is_shared {
            // Four workloads may each have one pod more in the same zone, on one node of it: with less, pods
            // would be Pending from the start.
            let max_skew = dice.between(3, 4);
            constraints.push(constraint(
                "kubernetes.io/hostname",
                &json!({"tier": "web"}),
                max_skew,
            ));
        }
        let replicas = dice.between(3, 6) as usize;
        plan.n_pods += replicas;
        let template = json!({
            "metadata": {"labels": labels},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "900m"}}}],
                "topologySpreadConstraints": constraints,
            },
        });
        plan.objects.push(deployment(&name, replicas, &template));
        if dice.chance(1, 2) {
            plan.objects.push(json!({
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name},
                "spec": {"maxUnavailable": dice.between(1, 2), "selector": {"matchLabels": {"app": name}}},
            }));
        }
    }
    if is_full {
        plan.n_pods += 2;
        let template = json!({
            "metadata": {"labels": {"app": "filler"}},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "nodeSelector": {ZONE: "c"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "6"}}}],
            },
        });
        plan.objects.push(deployment("filler", 2, &template));
    }
    plan
}

fn constraint(key: &str, labels: &Value, max_skew: u64) -> Value {
    json!({
        "maxSkew": max_skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": labels},
    })
}

fn deployment(name: &str, replicas: usize, template: &Value) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    })
}

/// A cluster before anything is evicted.
struct Begun {
    n_pods: usize,
    moves: u64,
}

/// Makes the cluster of a seed: some nodes are cordoned until its pods run.
fn uneven(stage: &Stage, seed: u64) -> anyhow::Result<Begun> {
    let all = "deployments,poddisruptionbudgets";
    stage.run(&["delete", all, "--all", "--cascade=foreground"])?;
    stage.until_placed(0, 0)?;
    let plan = cluster(seed);
    let nodes: Vec<&str> = plan.cordoned.iter().map(String::as_str).collect();
    stage.run(&[&["cordon"][..], &nodes[..]].concat())?;
    stage.apply_all(plan.objects)?;
    stage.until_placed(plan.n_pods, 0)?;
    stage.run(&[&["uncordon"][..], &nodes[..]].concat())?;
    until("all is ready", SOON, PAUSE, || {
        let budgets = stage.list("poddisruptionbudgets")?;
        let is_whole = |b: &Value| b["status"]["disruptionsAllowed"] == b["spec"]["maxUnavailable"];
        let deployments = stage.list("deployments")?;
        let is_ready = |d: &Value| d["status"]["readyReplicas"] == d["spec"]["replicas"];
        let is_so = budgets.iter().all(is_whole) && deployments.iter().all(is_ready);
        Ok(is_so.then_some(()))
    })?;
    Ok(Begun {
        n_pods: plan.n_pods,
        moves: moves(stage)?,
    })
}

/// The pods that must change their domain, as strew counts them.
fn moves(stage: &Stage) -> anyhow::Result<u64> {
    let (_, text) = run(stage, &["-o", "json", "--max-evictions=0"])?;
    let plan: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    plan["summary"]["movesBefore"]
        .as_u64()
        .with_context(|| format!("a plan has a sum: {text}"))
}

/// `strew rebalance` on the case's namespace: the exit code, and what it printed.
fn run(stage: &Stage, args: &[&str]) -> anyhow::Result<(Option<i32>, String)> {
    let output = Command::new(&stage.strew)
        .args(["rebalance", &format!("--namespace={}", stage.namespace)])
        .args(args)
        .env("KUBECONFIG", stage.lab.folder().join("kubeconfig"))
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        matches!(output.status.code(), Some(0 | 1)),
        "{args:?}: {said}"
    );
    Ok((output.status.code(), String::from_utf8(output.stdout)?))
}

/// Follows which pods come and go.
struct Followed {
    ever: BTreeSet<String>,
    present: usize,
    last_change: Instant,
}

impl Followed {
    fn new() -> Self {
        Self {
            ever: BTreeSet::new(),
            present: 0,
            last_change: now(),
        }
    }

    fn look(&mut self, stage: &Stage) -> anyhow::Result<()> {
        let before = self.gone();
        let pods = stage.pods()?;
        let there = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let uid = |pod: &Value| pod["metadata"]["uid"].as_str().map(str::to_owned);
        let there: Vec<String> = there.filter_map(uid).collect();
        self.present = there.len();
        self.ever.extend(there);
        if self.gone() != before {
            self.last_change = now();
        }
        Ok(())
    }

    /// How many pods went: without evictions none goes here.
    fn gone(&self) -> usize {
        self.ever.len() - self.present
    }
}

/// Runs the descheduler until it evicts nothing more.
fn descheduled(stage: &mut Stage, program: &Path) -> anyhow::Result<Outcome> {
    let policy = json!({
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{
            "name": "spread",
            "pluginConfig": [
                {"name": "DefaultEvictor", "args": {}},
                {"name": "RemovePodsViolatingTopologySpreadConstraint", "args": {
                    "constraints": ["DoNotSchedule"],
                    "namespaces": {"include": [stage.namespace]},
                }},
            ],
            "plugins": {"balance": {"enabled": ["RemovePodsViolatingTopologySpreadConstraint"]}},
        }],
    });
    let file = stage.lab.folder().join("descheduler.json");
    fs::write(&file, policy.to_string())?;
    let mut followed = Followed::new();
    followed.look(stage)?;
    let [port] = free_ports()?;
    let args = [
        "--kubeconfig=kubeconfig".to_owned(),
        format!("--policy-config-file={}", file.display()),
        format!("--descheduling-interval={}s", INTERVAL.as_secs()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--cert-dir=descheduler".to_owned(),
        "--v=2".to_owned(),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut process = stage.lab.start_strew(program, &args)?;
    until("a round of the descheduler", SOON, PAUSE, || {
        process.expect_running()?;
        let output = process.output();
        Ok(output
            .contains("Number of evictions/requests")
            .then_some(()))
    })
    .with_context(|| process.output())?;
    let begin = now();
    let mut ends = false;
    until("quiet, or the end of patience", 2 * PATIENCE, PAUSE, || {
        followed.look(stage)?;
        ends = followed.last_change.elapsed() > QUIET;
        Ok((ends || begin.elapsed() > PATIENCE).then_some(()))
    })?;
    let took = followed.last_change.saturating_duration_since(begin);
    process.kill();
    outcome(stage, followed, ends, took)
}

/// Plans and carries out until a plan has no eviction.
fn rebalanced(stage: &Stage) -> anyhow::Result<Outcome> {
    let mut followed = Followed::new();
    followed.look(stage)?;
    let file = stage.lab.folder().join("plan.yaml").display().to_string();
    let begin = now();
    let mut ends = false;
    for _ in 0..PLANS_MAX {
        run(stage, &["-o", "yaml", "--out", &file])?;
        let plan: Value = serde_saphyr::from_str(&fs::read_to_string(&file)?)?;
        if plan["summary"]["evictions"] == 0 {
            ends = true;
            break;
        }
        carried_out(stage, &file, &mut followed)?;
    }
    let took = begin.elapsed();
    outcome(stage, followed, ends, took)
}

fn carried_out(stage: &Stage, plan: &str, followed: &mut Followed) -> anyhow::Result<()> {
    let mut process = Command::new(&stage.strew)
        .args(["rebalance", "--apply", plan, "--yes"])
        .env("KUBECONFIG", stage.lab.folder().join("kubeconfig"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    until("the plan is carried out", PATIENCE, PAUSE, || {
        followed.look(stage)?;
        Ok(process.try_wait()?.map(drop))
    })
}

/// What is left when no pod changes any more.
fn outcome(
    stage: &Stage,
    mut followed: Followed,
    ends: bool,
    took: Duration,
) -> anyhow::Result<Outcome> {
    let settled = until("pods are at rest", SOON, PAUSE, || {
        followed.look(stage)?;
        let pods = stage.pods()?;
        let is_told =
            |pod: &Value| node_of(pod).is_some() || crate::e2e::stage::refusal(pod).is_some();
        Ok(pods.iter().all(is_told).then_some(pods))
    });
    let pods = settled?;
    Ok(Outcome {
        evictions: followed.gone(),
        moves: moves(stage)?,
        pending: pods.iter().filter(|pod| node_of(pod).is_none()).count(),
        ends,
        took,
    })
}
