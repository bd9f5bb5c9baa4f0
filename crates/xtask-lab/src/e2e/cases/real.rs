//! strew's own Deployments on real nodes: containers run, the API server reaches the webhook by its Service, and zones
//! are cut off.
//!
//! One case of several rows, since the nodes take longer to start than most rows.

mod sweep;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::{PAUSE_IMAGE, RealLab, STREW_IMAGE, Scheduler, is_ready, now, until};

use super::super::stage::{PAUSE, Stage, name_of, node_of};

/// The image of the upgrade: the same program under another name.
const NEXT_IMAGE: &str = "localhost/strew:next";

/// The namespace of strew's parts.
const SYSTEM: &str = "--namespace=strew-system";

/// The longest time until containers run, are ready, or are gone.
const WITHIN: Duration = Duration::from_secs(120);

/// How long the acting replica may be away: its lease of 15 s, and the other replica's next look.
const ACTS_WITHIN: Duration = Duration::from_secs(20);

/// The longest time for a creation: a dead replica of the webhook costs its timeout of 3 s, and the creation takes the
/// rest.
const CREATED_WITHIN: Duration = Duration::from_secs(5);

/// A row's name, and its function.
type Row = (&'static str, fn(&Field<'_>) -> anyhow::Result<String>);

const ROWS: [Row; 13] = [
    ("install", install),
    ("restricted profile", restricted),
    ("spread", spread),
    ("subsets", subsets),
    ("restart of each part", restart),
    ("upgrade", upgrade),
    ("an image that is nowhere", bad_image),
    ("zone of the acting scheduler cut", zone_cut),
    ("zone of a webhook replica cut", webhook_cut),
    ("a node drained", drain),
    ("all nodes off and on", all_off),
    ("a sweep of seeds", sweep::play),
    ("uninstall", uninstall),
];

/// strew's Deployments.
const PARTS: [&str; 3] = ["strew-scheduler", "strew-webhook", "strew-controller"];

/// Pods are created at most this often.
const PACE: Duration = Duration::from_millis(200);

/// The node lifecycle controller's grace of 50 s before a silent node is not Ready, and some more.
const SILENT_WITHIN: Duration = Duration::from_secs(100);

struct Field<'a> {
    lab: &'a RealLab,
    /// The folder of the project.
    top: &'a Path,
    strew: &'a Path,
}

/// Plays the rows on three nodes in three zones.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let begin = now();
    let scheduler = Scheduler::Kube(None);
    let lab = RealLab::start(stage.top(), &stage.strew, 3, &scheduler)?;
    println!(
        "  three nodes are Ready after {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    let field = Field {
        lab: &lab,
        top: stage.top(),
        strew: &stage.strew,
    };
    for (name, row) in ROWS {
        let begin = now();
        let told =
            row(&field).with_context(|| format!("{name} (logs: {})", lab.folder().display()))?;
        println!("  {name}: {told} ({:.1} s)", begin.elapsed().as_secs_f64());
    }
    Ok(())
}

impl Field<'_> {
    /// What `strew` prints with these arguments, beside the API server.
    fn said(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut command = self.lab.command(self.strew);
        command.args(arguments).current_dir(self.top);
        let output = command
            .env("KUBECONFIG", self.lab.folder().join("kubeconfig"))
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "strew {arguments:?}: {said}");
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The objects that `strew` prints.
    fn printed(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let text = self.said(&[arguments, &["--output=json"]].concat())?;
        Ok(serde_json::from_str(&text)?)
    }

    fn apply(&self, object: &Value) -> anyhow::Result<()> {
        let applied = self
            .lab
            .kubectl()
            .run_with(&["apply", "--server-side", "-f", "-"], object);
        applied.map(drop)
    }

    fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.lab.kubectl().run(arguments)
    }

    fn list(&self, arguments: &[&str]) -> anyhow::Result<Vec<Value>> {
        let text = self.run(&[&["get", "--output=json"], arguments].concat())?;
        let mut list: Value = serde_json::from_str(&text)?;
        Ok(serde_json::from_value(list["items"].take())?)
    }

    /// Waits until `n_pods` pods of a selection are ready; returns their number in each zone, without the zone's
    /// prefix.
    fn ready(&self, selection: &[&str], n_pods: usize) -> anyhow::Result<BTreeMap<String, usize>> {
        let what = format!("{n_pods} ready pods of {selection:?}");
        let pods = until(&what, WITHIN, PAUSE, || {
            let pods = self.list(&[&["pods"], selection].concat())?;
            let is_whole = pods.len() == n_pods && pods.iter().all(is_ready);
            Ok(is_whole.then_some(pods))
        })?;
        let mut zones = BTreeMap::new();
        for node in pods.iter().filter_map(node_of) {
            *zones
                .entry(node.trim_start_matches("node-").to_owned())
                .or_default() += 1;
        }
        Ok(zones)
    }

    fn parts_are_ready(&self) -> anyhow::Result<BTreeMap<String, usize>> {
        self.ready(&[SYSTEM], 6)
    }

    /// The node of the replica that acts.
    fn node_of_leader(&self, lease: &str) -> anyhow::Result<(String, String)> {
        let holder = self.run(&[
            "get",
            "lease",
            lease,
            SYSTEM,
            "--output=jsonpath={.spec.holderIdentity}",
        ])?;
        let (pod, _) = holder
            .split_once('_')
            .context("the lease names no holder")?;
        let node = self.run(&[
            "get",
            "pod",
            pod,
            SYSTEM,
            "--output=jsonpath={.spec.nodeName}",
        ])?;
        Ok((pod.to_owned(), node))
    }

    /// Makes pods one after the other while `goes_on`, at most five a second; returns their number, and the time of the
    /// slowest.
    fn make_pods(
        &self,
        prefix: &str,
        mut goes_on: impl FnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<(usize, Duration)> {
        let (mut n_made, mut slowest) = (0, Duration::ZERO);
        while goes_on()? {
            let begin = now();
            let pod = pod(&format!("{prefix}-{n_made}"));
            self.lab.kubectl().run_with(&["create", "-f", "-"], &pod)?;
            slowest = slowest.max(begin.elapsed());
            n_made += 1;
            until("the next creation is due", PACE * 2, PACE / 10, || {
                Ok((begin.elapsed() >= PACE).then_some(()))
            })?;
        }
        Ok((n_made, slowest))
    }
}

fn install(field: &Field<'_>) -> anyhow::Result<String> {
    let image = format!("--image={STREW_IMAGE}");
    for part in ["scheduler", "workloadspread"] {
        field.apply(&field.printed(&["install", part, &image])?)?;
    }
    field.parts_are_ready()?;
    for part in PARTS {
        let selector = format!("--selector=app.kubernetes.io/name={part}");
        let zones = field.ready(&[SYSTEM, &selector], 2)?;
        ensure!(zones.len() == 2, "{part}: {zones:?}");
    }
    let hooks = || field.list(&["mutatingwebhookconfigurations"]);
    until("the webhook registers itself", WITHIN, PAUSE, || {
        let hooks = hooks()?;
        Ok(hooks
            .iter()
            .any(|h| h["webhooks"].as_array().is_some_and(|w| !w.is_empty()))
            .then_some(()))
    })?;
    Ok("six pods are ready, each part on two nodes, the webhook is registered".to_owned())
}

fn spread(field: &Field<'_>) -> anyhow::Result<String> {
    let mut deployment = deployment("hard", 9);
    deployment["spec"]["template"]["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "hard"}},
    }]);
    field.apply(&deployment)?;
    let zones = field.ready(&["--selector=app=hard"], 9)?;
    ensure!(zones.values().eq(&[3, 3, 3]), "{zones:?}");
    Ok(format!("nine pods under a hard constraint: {zones:?}"))
}

fn subsets(field: &Field<'_>) -> anyhow::Result<String> {
    field.apply(&json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": "split", "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "split"},
            "subsets": [subset("own", "In", Some(3)), subset("rest", "NotIn", None)],
        },
    }))?;
    field.apply(&deployment("split", 9))?;
    let zones = field.ready(&["--selector=app=split"], 9)?;
    ensure!(zones.get("a") == Some(&3), "{zones:?}");
    field.run(&["scale", "deployment/split", "--replicas=3"])?;
    let zones = field.ready(&["--selector=app=split"], 3)?;
    ensure!(
        zones.get("a") == Some(&3),
        "after the scale-down by deletion costs: {zones:?}"
    );
    Ok("nine pods: three in the own zone, six elsewhere; scaled to three: those of the own zone stay".to_owned())
}

/// The namespace takes pods of the restricted profile only; strew's own are such pods.
fn restricted(field: &Field<'_>) -> anyhow::Result<String> {
    let level = r"--output=jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}";
    let level = field.run(&["get", "namespace", "strew-system", level])?;
    ensure!(level == "restricted", "the namespace enforces {level:?}");
    let mut plain = pod("plain");
    plain["metadata"]["namespace"] = "strew-system".into();
    let kubectl = field.lab.kubectl();
    let Err(refused) = kubectl.run_with(&["create", "-f", "-"], &plain) else {
        bail!("a pod without a security context was created");
    };
    ensure!(
        format!("{refused:#}").contains("violates PodSecurity"),
        "{refused:#}"
    );
    Ok("another pod without a security context is refused there".to_owned())
}

/// Creates pods until every part is rolled out: how many, and how long the slowest took.
fn pods_during_rollout(field: &Field<'_>, prefix: &str) -> anyhow::Result<(usize, Duration)> {
    let begin = now();
    let goes_on = || {
        ensure!(begin.elapsed() < WITHIN, "not rolled out after {WITHIN:?}");
        for part in PARTS {
            let part = format!("deployment/{part}");
            let status = field.run(&["rollout", "status", &part, SYSTEM, "--watch=false"])?;
            if !status.contains("successfully rolled out") {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let (n_made, slowest) = field.make_pods(prefix, goes_on)?;
    ensure!(
        n_made > 0 && slowest < CREATED_WITHIN,
        "{n_made} pods, the slowest in {slowest:?}"
    );
    let made = format!("--selector=made={prefix}");
    field.ready(&[&made], n_made)?;
    field.run(&["delete", "pods", &made, "--wait=false"])?;
    Ok((n_made, slowest))
}

fn restart(field: &Field<'_>) -> anyhow::Result<String> {
    for part in PARTS {
        field.run(&["rollout", "restart", &format!("deployment/{part}"), SYSTEM])?;
    }
    let (n_made, slowest) = pods_during_rollout(field, "restart")?;
    Ok(format!(
        "{n_made} pods created meanwhile, none refused, the slowest in {:.1} s; all of them run",
        slowest.as_secs_f64()
    ))
}

/// A newer installation, with another image, is applied over the old one.
fn upgrade(field: &Field<'_>) -> anyhow::Result<String> {
    field.lab.tag_image(STREW_IMAGE, NEXT_IMAGE)?;
    let image = format!("--image={NEXT_IMAGE}");
    for part in ["scheduler", "workloadspread"] {
        field.apply(&field.printed(&["install", part, &image])?)?;
    }
    let (n_made, slowest) = pods_during_rollout(field, "upgrade")?;
    field.parts_are_ready()?;
    let pods = field.list(&["pods", SYSTEM])?;
    let images = pods
        .iter()
        .map(|pod| &pod["spec"]["containers"][0]["image"]);
    let old: Vec<&Value> = images.filter(|image| *image != NEXT_IMAGE).collect();
    ensure!(old.is_empty(), "pods of the old image: {old:?}");
    Ok(format!(
        "{n_made} pods created meanwhile, none refused, the slowest in {:.1} s; all of them run",
        slowest.as_secs_f64()
    ))
}

/// A rollout with a bad image: the old replicas go on, and nothing else is disturbed.
fn bad_image(field: &Field<'_>) -> anyhow::Result<String> {
    for (part, container) in [
        ("strew-webhook", "webhook"),
        ("strew-scheduler", "scheduler"),
    ] {
        field.run(&[
            "set",
            "image",
            &format!("deployment/{part}"),
            SYSTEM,
            &format!("{container}=localhost/nowhere:1"),
        ])?;
    }
    until("no pod fails to get its image", WITHIN, PAUSE, || {
        let pods = field.list(&["pods", SYSTEM])?;
        let waits = |pod: &Value| {
            let reason = &pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"];
            matches!(reason.as_str(), Some("ErrImagePull" | "ImagePullBackOff"))
        };
        Ok((pods.iter().filter(|pod| waits(pod)).count() >= 2).then_some(()))
    })?;
    let mut left = 5;
    let (n_made, slowest) = field.make_pods("image", || {
        left -= 1;
        Ok(left >= 0)
    })?;
    field.ready(&["--selector=made=image"], n_made)?;
    for part in ["strew-webhook", "strew-scheduler"] {
        field.run(&["rollout", "undo", &format!("deployment/{part}"), SYSTEM])?;
    }
    field.parts_are_ready()?;
    Ok(format!(
        "{n_made} pods were created and ran meanwhile, the slowest created in {:.1} s",
        slowest.as_secs_f64()
    ))
}

/// Cuts off the zone of the acting scheduler; a replica of the webhook may be in that zone, too.
fn zone_cut(field: &Field<'_>) -> anyhow::Result<String> {
    let (_, node) = field.node_of_leader("strew-scheduler")?;
    field.lab.set_link(&node, false)?;
    let begin = now();
    let mut left = 5;
    let (n_made, slowest) = field.make_pods("cut", || {
        left -= 1;
        Ok(left >= 0)
    })?;
    let bound = until("no other scheduler decides", ACTS_WITHIN, PAUSE, || {
        let pods = field.list(&["pods", "--selector=made=cut"])?;
        let bound = pods.iter().filter(|pod| node_of(pod).is_some()).count();
        Ok((bound == n_made).then(|| begin.elapsed()))
    });
    field.lab.set_link(&node, true)?;
    let bound = bound?;
    ensure!(slowest < CREATED_WITHIN, "a creation took {slowest:?}");
    field.parts_are_ready()?;
    Ok(format!(
        "decided again after {:.1} s, the slowest creation took {:.1} s",
        bound.as_secs_f64(),
        slowest.as_secs_f64()
    ))
}

/// A zone with a replica of the webhook is cut off, if possible another one than the acting scheduler's: a creation
/// waits for the dead replica at most its timeout, and is not refused.
fn webhook_cut(field: &Field<'_>) -> anyhow::Result<String> {
    let (_, acting) = field.node_of_leader("strew-scheduler")?;
    let pods = field.list(&[
        "pods",
        SYSTEM,
        "--selector=app.kubernetes.io/name=strew-webhook",
    ])?;
    let nodes = || pods.iter().filter_map(node_of);
    let node = nodes()
        .find(|node| *node != acting)
        .or_else(|| nodes().next());
    let node = node.context("no replica of the webhook has a node")?;
    field.lab.set_link(node, false)?;
    let mut left = 20;
    let made = field.make_pods("hook", || {
        left -= 1;
        Ok(left >= 0)
    });
    field.lab.set_link(node, true)?;
    let (n_made, slowest) = made?;
    ensure!(slowest < CREATED_WITHIN, "a creation took {slowest:?}");
    field.ready(&["--selector=made=hook"], n_made)?;
    field.parts_are_ready()?;
    Ok(format!(
        "{n_made} pods created meanwhile, none refused, the slowest in {:.1} s",
        slowest.as_secs_f64()
    ))
}

/// A node with parts of strew is drained: budgets are kept, and the parts run elsewhere.
fn drain(field: &Field<'_>) -> anyhow::Result<String> {
    let (_, node) = field.node_of_leader("strew-scheduler")?;
    // Only pods with a controller come back: the others are other rows'.
    field.run(&["delete", "pods", "--selector=made", "--wait=true"])?;
    let begin = now();
    field.run(&["drain", &node, "--ignore-daemonsets", "--timeout=120s"])?;
    let took = begin.elapsed();
    let zones = field.parts_are_ready()?;
    let zone = node.trim_start_matches("node-");
    ensure!(
        !zones.contains_key(zone),
        "{zones:?} after {node} was drained"
    );
    field.run(&["uncordon", &node])?;
    Ok(format!(
        "empty after {:.1} s, all parts run on the other nodes",
        took.as_secs_f64()
    ))
}

/// Every node is cut off until none is Ready, and joined again.
fn all_off(field: &Field<'_>) -> anyhow::Result<String> {
    let nodes = field.list(&["nodes"])?;
    let nodes: Vec<&str> = nodes.iter().map(name_of).collect();
    let n_ready = || {
        let nodes = field.list(&["nodes"])?;
        anyhow::Ok(nodes.iter().filter(|node| is_ready(node)).count())
    };
    for node in &nodes {
        field.lab.set_link(node, false)?;
    }
    let off = until("some node is Ready", SILENT_WITHIN, PAUSE, || {
        Ok((n_ready()? == 0).then_some(()))
    });
    for node in &nodes {
        field.lab.set_link(node, true)?;
    }
    off?;
    let begin = now();
    until("not every node is Ready", WITHIN, PAUSE, || {
        Ok((n_ready()? == nodes.len()).then_some(()))
    })?;
    field.parts_are_ready()?;
    // Whether a replica had been withdrawn meanwhile or not: pods are created and placed again.
    let pod = pod("back-0");
    until("no pod can be created", WITHIN, PAUSE, || {
        let kubectl = field.lab.kubectl();
        Ok(kubectl.run_with(&["create", "-f", "-"], &pod).ok())
    })?;
    field.ready(&["--selector=made=back"], 1)?;
    Ok(format!(
        "a new pod runs {:.1} s after the nodes are back",
        begin.elapsed().as_secs_f64()
    ))
}

fn uninstall(field: &Field<'_>) -> anyhow::Result<String> {
    field.run(&["delete", "deployment,pod", "--all", "--wait=false"])?;
    for part in ["workloadspread", "scheduler"] {
        let list = field.printed(&["uninstall", part])?;
        let deleted = ["delete", "--ignore-not-found", "--wait=true", "-f", "-"];
        field.lab.kubectl().run_with(&deleted, &list)?;
    }
    let kinds = "deployments,services,serviceaccounts,configmaps,secrets,roles,rolebindings,poddisruptionbudgets,\
                 networkpolicies,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,\
                 validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,leases";
    let ours = "--selector=app.kubernetes.io/part-of=strew";
    until("something of strew stays", WITHIN, PAUSE, || {
        let left = field.list(&[kinds, ours, "--all-namespaces"])?;
        Ok(left.is_empty().then_some(()))
    })?;
    let spreads = field.list(&["workloadspreads", "--all-namespaces"])?;
    ensure!(spreads.len() == 1, "{} WorkloadSpreads", spreads.len());
    let pods = field.list(&["pods", SYSTEM])?;
    let pods: Vec<&str> = pods.iter().map(name_of).collect();
    Ok(format!(
        "nothing stays but the definition and a WorkloadSpread (pods that end: {})",
        pods.len()
    ))
}

/// Pods that only wait, decided by strew.
fn pod_spec() -> Value {
    json!({
        "schedulerName": "strew",
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": PAUSE_IMAGE, "imagePullPolicy": "Never"}],
    })
}

fn pod(name: &str) -> Value {
    let made = name.split('-').next();
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"made": made}},
        "spec": pod_spec(),
    })
}

fn deployment(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec()},
        },
    })
}

/// Zone a, or all others.
fn subset(name: &str, operator: &str, limit: Option<u32>) -> Value {
    let mut subset = json!({
        "name": name,
        "requiredNodeSelector": {
            "matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": operator, "values": ["zone-a"]}],
        },
    });
    if let Some(limit) = limit {
        subset["maxReplicas"] = limit.into();
    }
    subset
}
