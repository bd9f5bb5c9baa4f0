//! A scenario file with the verbs that a real control plane supports.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value, json};
use xtask_lab::lab::{Timing, merge, node};

use super::verb;

/// The content of a file, in the order in which it is played.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The annotation `story`, or nothing.
    pub(crate) story: String,
    /// The file's text, which names what was played.
    pub(crate) text: String,
    pub(crate) nodes: Vec<Value>,
    pub(crate) objects: Vec<Value>,
    pub(crate) scheduler: Option<Value>,
    pub(crate) feature_gates: Vec<(String, bool)>,
    pub(crate) timing: Timing,
    pub(crate) steps: Vec<Step>,
}

/// A moment, counted from when all objects were made, and the verbs of that moment.
#[derive(Debug)]
pub(crate) struct Step {
    /// The moment as the file writes it, or the step's name or number.
    pub(crate) text: String,
    /// A step without a moment has that of the step before.
    pub(crate) at: Duration,
    /// Verb and argument.
    pub(crate) verbs: Vec<(String, Value)>,
}

/// Keys of a step that are not verbs.
const NOT_VERBS: [&str; 4] = ["at", "name", "rest", "expect"];

/// The scenario files of a folder, by name.
pub(crate) fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = folder.read_dir();
    let entries = entries.with_context(|| format!("reading {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| file.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    Ok(files)
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Scenario> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    parse(&name, text).with_context(|| path.display().to_string())
}

/// Parses a file's text.
pub(crate) fn parse(name: &str, text: String) -> anyhow::Result<Scenario> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    let mut scenario = Scenario {
        name: name.to_owned(),
        story: String::new(),
        text,
        nodes: Vec::new(),
        objects: Vec::new(),
        scheduler: None,
        feature_gates: Vec::new(),
        timing: Timing::new(),
        steps: Vec::new(),
    };
    for document in documents.into_iter().filter(|d| !d.is_null()) {
        match document["kind"].as_str().context("an object has no kind")? {
            "Scenario" => {
                let story = document["metadata"]["annotations"]["story"].as_str();
                scenario.story = story.unwrap_or_default().to_owned();
                read_spec(&mut scenario, &document["spec"])?;
            }
            "KubeSchedulerConfiguration" => scenario.scheduler = Some(document),
            "Node" => scenario.nodes.push(node(document)),
            _ => scenario.objects.push(document),
        }
    }
    scenario.objects.sort_by_key(order);
    scenario.steps.sort_by_key(|step| step.at);
    Ok(scenario)
}

/// The API server refuses a pod while its namespace or priority class is missing: those come first.
fn order(object: &Value) -> u8 {
    match object["kind"].as_str() {
        Some("Namespace") => 0,
        Some("PriorityClass") => 1,
        Some("PodDisruptionBudget" | "ResourceQuota") => 2,
        _ => 3,
    }
}

fn read_spec(scenario: &mut Scenario, spec: &Value) -> anyhow::Result<()> {
    for (key, value) in spec.as_object().context("a Scenario needs a spec")? {
        match key.as_str() {
            "nodeGroups" => {
                for group in list(value) {
                    scenario.nodes.extend(group_nodes(group)?);
                }
            }
            "timing" => scenario.timing = timing(value)?,
            "featureGates" => {
                for (gate, on) in entries(value)? {
                    let on = on.as_bool().context("a gate is true or false")?;
                    scenario.feature_gates.push((gate.clone(), on));
                }
            }
            "timeline" => {
                for one in list(value) {
                    let step = step(one, &scenario.steps)?;
                    scenario.steps.push(step);
                }
            }
            // Fields that only a simulation supports or needs.
            "kubernetes" | "seeds" | "until" | "variants" | "always" => {}
            other => bail!("spec.{other} cannot be played on a real control plane"),
        }
    }
    Ok(())
}

fn group_nodes(group: &Value) -> anyhow::Result<Vec<Value>> {
    let name = group["name"].as_str().context("a nodeGroup needs a name")?;
    let size = group["size"].as_u64().context("a nodeGroup needs a size")?;
    let nodes = (0..size).map(|i| {
        let mut node = json!({"apiVersion": "v1", "kind": "Node"});
        merge(&mut node, &group["template"]);
        node["metadata"]["name"] = json!(format!("{name}-{i}"));
        xtask_lab::lab::node(node)
    });
    Ok(nodes.collect())
}

fn timing(value: &Value) -> anyhow::Result<Timing> {
    let mut timing = Timing::new();
    for (name, bounds) in entries(value)? {
        let bound = |key: &str| {
            let text = bounds[key].as_str();
            duration(text.with_context(|| format!("timing.{name}.{key} is missing"))?)
        };
        timing.insert(name.clone(), (bound("min")?, bound("max")?));
    }
    Ok(timing)
}

/// `before` are the steps before it.
fn step(value: &Value, before: &[Step]) -> anyhow::Result<Step> {
    let at = value["at"].as_str();
    let text = at.or_else(|| value["name"].as_str());
    let text = text.map_or_else(|| format!("step {}", before.len() + 1), str::to_owned);
    let mut verbs = entries(value)?.clone();
    verbs.retain(|key, _| !NOT_VERBS.contains(&key.as_str()));
    for verb in verbs.keys() {
        ensure!(
            verb::is_known(verb),
            "{text}: {verb} cannot be done on a real control plane"
        );
    }
    let last = before.last().map_or(Duration::ZERO, |step| step.at);
    Ok(Step {
        at: at.map_or(Ok(last), duration)?,
        verbs: verbs.into_iter().collect(),
        text,
    })
}

/// `1m30s`, `500ms`: Go's form, without fractions.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit());
        let digits = digits.with_context(|| format!("{text:?} lacks a unit"))?;
        let number: u64 = rest[..digits]
            .parse()
            .with_context(|| format!("{text:?} is no duration"))?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit());
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        total += match unit {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(60 * number),
            "h" => Duration::from_secs(3600 * number),
            _ => bail!("{text:?} is no duration: h, m, s, ms"),
        };
    }
    Ok(total)
}

/// The elements of a list; anything else is a list of one.
pub(crate) fn list(value: &Value) -> &[Value] {
    match value {
        Value::Array(values) => values,
        one => std::slice::from_ref(one),
    }
}

/// The entries of a map, in the file's order.
pub(crate) fn entries(value: &Value) -> anyhow::Result<&Map<String, Value>> {
    value
        .as_object()
        .with_context(|| format!("not a map: {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
kind: Deployment
metadata: {name: web}
---
kind: PriorityClass
metadata: {name: high}
---
kind: Scenario
spec:
  timing: {podStart: {min: 500ms, max: 1m1s}}
  nodeGroups:
  - {name: a, size: 2, template: {metadata: {labels: {zone: a}}, status: {allocatable: {cpu: '4'}}}}
  timeline:
  - {at: 2s, scale: {deployment/web: 3}, cordon: a-0, expect: []}
  - {at: 1s, rest: {}}
  - {drain: a-0}
";

    #[test]
    fn a_file_becomes_nodes_objects_and_steps_in_order() {
        let scenario = parse("x", FILE.to_owned()).unwrap();
        let names = |objects: &[Value]| -> Vec<String> {
            let name = |o: &Value| o["metadata"]["name"].as_str().unwrap().to_owned();
            objects.iter().map(name).collect()
        };
        assert_eq!(names(&scenario.nodes), ["a-0", "a-1"]);
        assert_eq!(names(&scenario.objects), ["high", "web"]);
        let node = &scenario.nodes[1];
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "a-1");
        assert_eq!(node["metadata"]["labels"]["zone"], "a");
        assert_eq!(node["status"]["capacity"]["cpu"], "4");
        let steps: Vec<&str> = scenario.steps.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(steps, ["1s", "step 3", "2s"]);
        let verbs: Vec<&str> = scenario.steps[2].verbs.iter().map(|(v, _)| &**v).collect();
        assert_eq!(verbs, ["scale", "cordon"]);
        let start = scenario.timing["podStart"];
        assert_eq!(start, (Duration::from_millis(500), Duration::from_secs(61)));
    }

    #[test]
    fn durations_are_gos() {
        for (text, millis) in [("90s", 90_000), ("1h1m1s1ms", 3_661_001), ("0s", 0)] {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(millis));
        }
        for text in ["5", "s", "1x", "1.5s", "-1s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        for (spec, expected) in [
            ("autoscaler: {scanEvery: 10s}", "spec.autoscaler cannot be"),
            (
                "timeline: [{at: 1s, metric: {hpa/web: 80}}]",
                "1s: metric cannot be",
            ),
        ] {
            let text = format!("kind: Scenario\nspec: {{{spec}}}");
            let error = parse("x", text).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
