//! Carries out a scenario's verbs by kubectl.

use anyhow::{Context, bail};
use serde_json::{Value, json};
use xtask_lab::lab::{KUBELET_LABEL, Kubectl, node};

use super::scenario::{entries, list};

/// Whether [`perform`] supports a verb: it does not support what only a simulation can do (gates, metrics, faults).
pub(crate) fn is_known(verb: &str) -> bool {
    VERBS.contains(&verb)
}

const VERBS: [&str; 19] = [
    "apply",
    "create",
    "delete",
    "patch",
    "scale",
    "set-image",
    "rollout-restart",
    "rollout-undo",
    "rollout-pause",
    "rollout-resume",
    "cordon",
    "uncordon",
    "drain",
    "ready",
    "taint",
    "label",
    "annotate",
    "lose",
    "restore",
];

/// Carries out a verb of a step.
///
/// # Errors
/// If the format lacks the verb or the argument is wrong, and with kubectl's message if it refused.
pub(crate) fn perform(kubectl: &Kubectl, verb: &str, argument: &Value) -> anyhow::Result<()> {
    match verb {
        "apply" | "create" => apply(kubectl, verb, list(argument)),
        "delete" => each(argument, |target| {
            let objects = objects(kubectl, target)?;
            let objects = objects.iter().map(String::as_str);
            run(
                kubectl,
                ["delete", "--wait=false"].into_iter().chain(objects),
            )
        }),
        "patch" => pairs(argument, |target, change| {
            let form = if change.is_array() { "json" } else { "merge" };
            let change = change.to_string();
            run(
                kubectl,
                ["patch", target, "--type", form, "--patch", &change],
            )
        }),
        "scale" => pairs(argument, |target, replicas| {
            run(
                kubectl,
                ["scale", target, &format!("--replicas={replicas}")],
            )
        }),
        "set-image" => pairs(argument, |target, image| {
            run(kubectl, ["set", "image", target, text(image)?])
        }),
        "rollout-restart" | "rollout-undo" | "rollout-pause" | "rollout-resume" => {
            let verb = verb.trim_start_matches("rollout-");
            each(argument, |target| run(kubectl, ["rollout", verb, target]))
        }
        "cordon" | "uncordon" => on_nodes(kubectl, argument, |node| run(kubectl, [verb, node])),
        "drain" => drain(kubectl, argument),
        "ready" => pairs(argument, |target, ready| set_ready(kubectl, target, ready)),
        "taint" => pairs(argument, |target, taints| {
            for node in nodes(kubectl, target)? {
                for taint in list(taints) {
                    run(
                        kubectl,
                        ["taint", "--overwrite", "nodes", &node, text(taint)?],
                    )?;
                }
            }
            Ok(())
        }),
        "label" | "annotate" => pairs(argument, |target, texts| {
            for object in objects(kubectl, target)? {
                for change in list(texts) {
                    run(kubectl, [verb, "--overwrite", &object, text(change)?])?;
                }
            }
            Ok(())
        }),
        // kwok renews no lease of a node that it does not manage.
        "lose" => on_nodes(kubectl, argument, |node| {
            run(
                kubectl,
                ["label", "node", node, &format!("{KUBELET_LABEL}-")],
            )
        }),
        "restore" => on_nodes(kubectl, argument, |node| {
            run(
                kubectl,
                ["label", "node", node, &format!("{KUBELET_LABEL}=runs")],
            )
        }),
        other => bail!("{other} is not known"),
    }
}

fn run<'a>(kubectl: &Kubectl, arguments: impl IntoIterator<Item = &'a str>) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.into_iter().collect();
    kubectl.run(&arguments).map(drop)
}

/// Makes or changes objects; a Node comes with its kubelet.
pub(crate) fn apply(kubectl: &Kubectl, verb: &str, objects: &[Value]) -> anyhow::Result<()> {
    let prepared = |object: &Value| match object["kind"] == "Node" {
        true => node(object.clone()),
        false => object.clone(),
    };
    let items: Vec<Value> = objects.iter().map(prepared).collect();
    let all = json!({"apiVersion": "v1", "kind": "List", "items": items});
    kubectl.run_with(&[verb, "--filename=-"], &all).map(drop)
}

/// kubectl's drain, which asks again every five seconds where a budget refuses, until its time is over.
fn drain(kubectl: &Kubectl, argument: &Value) -> anyhow::Result<()> {
    let (targets, timeout) = match &argument["nodes"] {
        Value::Null => (argument, "2m"),
        nodes => (nodes, argument["timeout"].as_str().unwrap_or("2m")),
    };
    let mut all = Vec::new();
    for target in list(targets) {
        all.extend(nodes(kubectl, text(target)?)?);
    }
    let timeout = format!("--timeout={timeout}");
    let flags = [
        "drain",
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        "--force",
        &timeout,
    ];
    run(
        kubectl,
        flags.into_iter().chain(all.iter().map(String::as_str)),
    )
}

/// Sets the conditions that a readiness gate's owner and the kubelet would set.
fn set_ready(kubectl: &Kubectl, target: &str, ready: &Value) -> anyhow::Result<()> {
    let status = match ready.as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => bail!("ready: {target} must be true or false"),
    };
    let found = match target.contains('=') {
        true => kubectl.run(&["get", "pods", "--selector", target, "--output=json"])?,
        false => kubectl.run(&["get", target, "--output=json"])?,
    };
    let found: Value = serde_json::from_str(&found)?;
    let pods = match &found["items"] {
        Value::Null => std::slice::from_ref(&found),
        items => list(items),
    };
    for pod in pods {
        let gates = pod["spec"]["readinessGates"]
            .as_array()
            .into_iter()
            .flatten();
        let types = gates.map(|gate| &gate["conditionType"]);
        let condition = |of: &Value| json!({"type": of, "status": status});
        let mut conditions: Vec<Value> = types.map(condition).collect();
        conditions.push(condition(&json!("Ready")));
        let patch = json!({"status": {"conditions": conditions}}).to_string();
        let name = text(&pod["metadata"]["name"])?;
        run(
            kubectl,
            [
                "patch",
                "pod",
                name,
                "--subresource=status",
                "--patch",
                &patch,
            ],
        )?;
    }
    Ok(())
}

/// The nodes of a target: a name, with or without `node/`, or all with a label.
fn nodes(kubectl: &Kubectl, target: &str) -> anyhow::Result<Vec<String>> {
    if !target.contains('=') {
        return Ok(vec![target.trim_start_matches("node/").to_owned()]);
    }
    let names = kubectl.run(&["get", "nodes", "--selector", target, "--output=name"])?;
    let names = names.lines().map(|name| name.trim_start_matches("node/"));
    Ok(names.map(str::to_owned).collect())
}

/// The objects of a target as TYPE/NAME: a target without a type is a node.
fn objects(kubectl: &Kubectl, target: &str) -> anyhow::Result<Vec<String>> {
    // A label's key may hold a slash as well: kubernetes.io/hostname=a.
    if target.contains('/') && !target.contains('=') {
        return Ok(vec![target.to_owned()]);
    }
    let names = nodes(kubectl, target)?;
    Ok(names.iter().map(|name| format!("node/{name}")).collect())
}

fn each(targets: &Value, mut act: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    list(targets)
        .iter()
        .try_for_each(|target| act(text(target)?))
}

fn on_nodes(
    kubectl: &Kubectl,
    targets: &Value,
    mut act: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    each(targets, |target| {
        nodes(kubectl, target)?
            .iter()
            .try_for_each(|node| act(node))
    })
}

fn pairs(
    argument: &Value,
    mut act: impl FnMut(&str, &Value) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    entries(argument)?
        .iter()
        .try_for_each(|(target, value)| act(target, value))
}

fn text(value: &Value) -> anyhow::Result<&str> {
    value
        .as_str()
        .with_context(|| format!("not a text: {value}"))
}
