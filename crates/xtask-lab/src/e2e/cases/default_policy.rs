//! `strew defaults`: the API server adds default constraints, and kube-scheduler obeys them.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use xtask_lab::lab::until;

use crate::e2e::stage::{PAUSE, SOON, Stage, name_of, refusal};

const ZONE: &str = "topology.kubernetes.io/zone";
const APPLIED: &str = "defaults.strew.dev/applied";
const OPT_OUT: &str = "defaults.strew.dev/apply";
const KINDS: &str = "mutatingadmissionpolicies,mutatingadmissionpolicybindings";
const OURS: &str = "--selector=app.kubernetes.io/name=strew-defaults";

/// The policies are applied, obeyed, deleted, and applied again.
pub(super) fn play(stage: &mut Stage) -> anyhow::Result<()> {
    let printed = policies(stage, "config", &[])?;
    stage.apply("default-policy.yaml")?;
    let apply = ["apply", "--server-side", "--filename=-"];
    stage.kubectl().run_with(&apply, &printed)?;
    stage.is_registered = true;
    until_constrained(stage, true)?;

    let each = each_way(stage);
    each.context("what each pod gets")?;
    obeyed(stage).context("kube-scheduler")?;

    stage.kubectl().run(&["delete", KINDS, OURS])?;
    until_constrained(stage, false)?;
    let scale = |to: &str| stage.run(&["scale", "deployment/web", &format!("--replicas={to}")]);
    scale("0")?;
    stage.until_pods("the pods of web are gone", |pods| {
        pods.iter().all(|pod| !of_app(pod, "web")).then_some(())
    })?;
    scale("4")?;
    let pods = stage.until_pods("four pods without constraints", |pods| {
        let of: Vec<Value> = pods
            .iter()
            .filter(|pod| of_app(pod, "web"))
            .cloned()
            .collect();
        (of.len() == 4).then_some(of)
    })?;
    ensure!(
        pods.iter().all(|pod| constraints(pod).is_none()),
        "constraints after the policies were deleted"
    );

    // Informers of parameters must work for a second policy of the name, too.
    let printed = policies(stage, "config", &["--failure-policy=Fail"])?;
    stage.kubectl().run_with(&apply, &printed)?;
    until_constrained(stage, true)?;
    let bare = created(stage, &pod("again", json!({"app": "bare"}), None))?;
    ensure!(constraints(&bare).is_some(), "no Service was asked: {bare}");

    let printed = policies(stage, "profiles", &["--failure-policy=Fail"])?;
    stage.kubectl().run_with(&apply, &printed)?;
    each_profile(stage)
}

/// Each scheduler has constraints of its own; a third one has none.
fn each_profile(stage: &Stage) -> anyhow::Result<()> {
    let of = |scheduler: &str, controller| {
        let labels = json!({"app": "bare", "track": "stable"});
        let mut pod = pod("of-profile", labels, controller);
        pod["spec"]["schedulerName"] = scheduler.into();
        created(stage, &pod)
    };
    let set = Some(("apps/v1", "ReplicaSet"));
    // Each of the two policies is compiled within a second.
    let rack = until("the second profile", SOON, PAUSE, || {
        let (of_set, bare) = (of("by-rack", set)?, of("by-rack", None)?);
        Ok(constraints(&bare).and_then(|_| constraints(&of_set).cloned()))
    })?;
    let track = json!([{"key": "track", "operator": "In", "values": ["stable"]}]);
    ensure!(
        rack.len() == 1
            && rack[0]["topologyKey"] == "example.com/rack"
            && rack[0]["matchLabelKeys"] == json!(["track"])
            && rack[0]["labelSelector"]["matchExpressions"] == track
            && rack[0]["labelSelector"]["matchLabels"] == json!({"app": "bare"}),
        "{rack:?}"
    );
    let bare = of("default-scheduler", None)?;
    let zone = constraints(&bare).context("a bare pod behind a Service")?;
    ensure!(
        zone.len() == 1 && zone[0]["topologyKey"] == ZONE && zone[0]["minDomains"] == 2,
        "{zone:?}"
    );
    let other = of("another", set)?;
    ensure!(constraints(&other).is_none(), "of no profile: {other}");
    Ok(())
}

/// What `strew defaults` prints for a file of the case.
fn policies(stage: &Stage, file: &str, flags: &[&str]) -> anyhow::Result<Value> {
    let file = stage.file(&format!("default-policy.{file}.yaml"));
    let file = file.display().to_string();
    let mut args = vec!["defaults", &file, "--output=json"];
    args.extend(flags);
    Ok(serde_json::from_str(&stage.strew(&args)?)?)
}

fn of_app(pod: &Value, app: &str) -> bool {
    pod["metadata"]["labels"]["app"] == app
}

/// The constraints of a pod, if it has any.
fn constraints(pod: &Value) -> Option<&Vec<Value>> {
    let constraints = pod["spec"]["topologySpreadConstraints"].as_array();
    constraints.filter(|constraints| !constraints.is_empty())
}

/// A pod, with a controller of this version and kind.
fn pod(name: &str, labels: Value, controller: Option<(&str, &str)>) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    if let Some((version, kind)) = controller {
        pod["metadata"]["ownerReferences"] = json!([{
            "apiVersion": version, "kind": kind, "name": "owner", "uid": "owner", "controller": true,
        }]);
    }
    pod
}

/// The pod as the API server would store it.
fn created(stage: &Stage, pod: &Value) -> anyhow::Result<Value> {
    let namespace = format!("--namespace={}", stage.namespace);
    let create = [
        "create",
        "--dry-run=server",
        "--output=json",
        "--filename=-",
        &namespace,
    ];
    Ok(serde_json::from_str(
        &stage.kubectl().run_with(&create, pod)?,
    )?)
}

/// Waits until both policies are in effect, or none is: the API server compiles them within a second.
fn until_constrained(stage: &Stage, wanted: bool) -> anyhow::Result<()> {
    let of_set = pod(
        "probe",
        json!({"app": "probe"}),
        Some(("apps/v1", "ReplicaSet")),
    );
    let selected = pod("probe", json!({"app": "bare"}), None);
    until("the policies are not in effect", SOON, PAUSE, || {
        let mut are = Vec::new();
        for pod in [&of_set, &selected] {
            are.push(constraints(&created(stage, pod)?).is_some());
        }
        Ok(are.iter().all(|is| *is == wanted).then_some(()))
    })
}

/// Pods of every kind of owner, as they are stored.
fn each_way(stage: &Stage) -> anyhow::Result<()> {
    let hashed = json!({"app": "web", "pod-template-hash": "1", "helm.sh/chart": "web-2"});
    let merged = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["1"]}],
    });
    let ordinal = json!({
        "app": "db",
        "controller-revision-hash": "db-1",
        "statefulset.kubernetes.io/pod-name": "db-0",
    });
    let only = |app: &str| json!({"matchLabels": {"app": app}});
    let both = json!({"matchLabels": {"app": "bare", "role": "cache"}});
    let two = json!({"app": "bare", "role": "cache", "id": "1"});
    let set = Some(("apps/v1", "ReplicaSet"));
    let cloned = json!({
        "app": "bare",
        "role": "cache",
        "pod-template-hash": "1",
        "apps.kruise.io/cloneset-instance-id": "x",
    });
    let clone_set = Some(("apps.kruise.io/v1alpha1", "CloneSet"));
    let cases = [
        (pod("of-set", hashed, set), Some(merged)),
        (
            pod("db-0", ordinal, Some(("apps/v1", "StatefulSet"))),
            Some(only("db")),
        ),
        (
            pod(
                "old",
                json!({"app": "old"}),
                Some(("v1", "ReplicationController")),
            ),
            Some(only("old")),
        ),
        (
            pod("bare", json!({"app": "bare"}), None),
            Some(only("bare")),
        ),
        (pod("cache", two, None), Some(both.clone())),
        (pod("clone", cloned, clone_set), Some(both)),
        (
            pod("job", json!({"app": "train"}), Some(("batch/v1", "Job"))),
            None,
        ),
        (
            pod(
                "agent",
                json!({"app": "agent"}),
                Some(("apps/v1", "DaemonSet")),
            ),
            None,
        ),
    ];
    for (pod, selector) in cases {
        let stored = created(stage, &pod)?;
        let found = constraints(&stored).map(|all| all[0]["labelSelector"].clone());
        ensure!(
            found == selector,
            "{}: {found:?}, not {selector:?}",
            name_of(&pod)
        );
    }
    let stored = created(stage, &pod("of-set", json!({"app": "web"}), set))?;
    let second = &stored["spec"]["topologySpreadConstraints"][1];
    let expected = json!({
        "maxSkew": 2,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": "web"}},
    });
    ensure!(*second == expected, "{second}, not {expected}");
    untouched(stage)
}

/// Pods that opt out, or have constraints of their own.
fn untouched(stage: &Stage) -> anyhow::Result<()> {
    let set = Some(("apps/v1", "ReplicaSet"));
    let mut annotated = pod("annotated", json!({"app": "web"}), set);
    annotated["metadata"]["annotations"] = json!({OPT_OUT: "false"});
    let labelled = pod("labelled", json!({"app": "web", OPT_OUT: "false"}), set);
    for pod in [annotated, labelled] {
        let stored = created(stage, &pod)?;
        ensure!(
            constraints(&stored).is_none(),
            "{} opted out: {stored}",
            name_of(&pod)
        );
    }
    let mut own = pod("own", json!({"app": "web"}), set);
    own["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 5,
        "topologyKey": "example.com/rack",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    let stored = created(stage, &own)?;
    ensure!(
        stored["spec"]["topologySpreadConstraints"] == own["spec"]["topologySpreadConstraints"],
        "its own constraint was changed: {stored}"
    );
    let label = |value: &str| {
        let pair = format!("{OPT_OUT}{value}");
        let args = ["label", "namespace", &stage.namespace, &pair, "--overwrite"];
        stage.kubectl().run(&args)
    };
    label("=false")?;
    until_constrained(stage, false).context("a namespace opts out")?;
    label("-")?;
    until_constrained(stage, true)
}

/// Two pods in zone a, one in zone b, and one that may go nowhere; the pods of an opted-out Deployment go anywhere.
fn obeyed(stage: &mut Stage) -> anyhow::Result<()> {
    let deployment = |name: &str, annotations: Value| {
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": 4,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}, "annotations": annotations},
                    "spec": {"containers": [{
                        "name": "web",
                        "image": "web",
                        "resources": {"requests": {"cpu": "600m"}},
                    }]},
                },
            },
        })
    };
    let _kube = stage.lab.start_kube_scheduler(None)?;
    stage.apply_all(vec![deployment("web", json!({}))])?;
    let pods = stage.until_placed(3, 1)?;
    let zones = stage.spread(&pods, ZONE)?;
    let expected: BTreeMap<String, usize> = [("a".to_owned(), 2), ("b".to_owned(), 1)].into();
    ensure!(zones == expected, "{zones:?}, not {expected:?}");
    for pod in &pods {
        let by = &pod["metadata"]["annotations"][APPLIED];
        ensure!(*by == "strew-defaults", "{} by {by}", name_of(pod));
        let hash = &pod["metadata"]["labels"]["pod-template-hash"];
        let selector = &pod["spec"]["topologySpreadConstraints"][0]["labelSelector"];
        let revision = json!([{"key": "pod-template-hash", "operator": "In", "values": [hash]}]);
        ensure!(
            selector["matchExpressions"] == revision,
            "{} does not count its revision: {selector}",
            name_of(pod)
        );
    }
    let said = pods.iter().find_map(refusal).unwrap_or_default();
    ensure!(
        said.contains("2 node(s) didn't match pod topology spread constraints"),
        "{said:?}"
    );
    // The pod of web that waits stays; these have no constraint.
    stage.apply_all(vec![deployment("free", json!({OPT_OUT: "false"}))])?;
    let pods = stage.until_placed(7, 1)?;
    let free: Vec<Value> = pods.into_iter().filter(|pod| of_app(pod, "free")).collect();
    ensure!(
        free.iter().all(|pod| constraints(pod).is_none()),
        "opted out"
    );
    let zones = stage.spread(&free, ZONE)?;
    ensure!(zones.get("a") == Some(&4), "{zones:?}");
    let namespace = format!("--namespace={}", stage.namespace);
    let report = policies(stage, "config", &["--live", &namespace])?;
    let sums = &report["summary"];
    ensure!(
        sums["workloads"] == 2 && sums["applied"] == 1 && sums["untouched"] == 1,
        "the report of the live cluster: {report}"
    );
    Ok(())
}
