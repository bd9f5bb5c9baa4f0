//! A case: a cluster at rest, what happened to one of its zones, and what became of its workloads on a real control
//! plane.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use strew_scenario::audit::values::Event;

/// A case that was observed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Case {
    /// `s1-c7-loss`: seed, cluster and event.
    pub(super) name: String,
    /// What happened.
    pub(super) event: Event,
    /// The zone that it happened to.
    pub(super) zone: String,
    /// What became of each workload, by `kind/name`.
    pub(super) observed: BTreeMap<String, Observed>,
    /// The objects before the event, as `strew snapshot` reads them.
    pub(super) objects: Vec<Value>,
}

/// What became of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Observed {
    /// The verdict of [`Numbers::verdict`].
    pub(super) verdict: String,
    /// True if a drain left pods of it on the nodes.
    pub(super) is_blocked: bool,
    #[serde(flatten)]
    pub(super) numbers: Numbers,
}

/// The ready pods of a workload outside the zone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Numbers {
    /// The pods that it asks for.
    pub(super) wanted: u64,
    /// All ready pods before the event.
    pub(super) before: u64,
    /// Those that were not in the zone.
    pub(super) at_once: u64,
    /// The fewest from the event until rest.
    pub(super) fewest: u64,
    /// Those at rest.
    pub(super) ready: u64,
    /// Healthy pods at rest of the budgets that select it, and what each asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) budgets: Vec<[u64; 2]>,
}

impl Numbers {
    /// The verdict, written from the table in docs/audit.md, and apart from the code that strew judges with.
    pub(super) fn verdict(&self) -> &'static str {
        let is_short = { self.budgets.iter() }.any(|[healthy, asks]| healthy < asks);
        let is_short = is_short && self.ready < self.before;
        match self {
            Self { before: 0, .. } => "UNKNOWN",
            Self { ready: 0, .. } => "LOST",
            _ if is_short => "LOST",
            Self { fewest: 0, .. } => "OUTAGE",
            _ if self.ready < self.before.min(self.wanted) => "DEGRADED",
            _ => "SURVIVES",
        }
    }
}

impl Observed {
    pub(super) fn new(numbers: Numbers, is_blocked: bool) -> Self {
        Self {
            verdict: numbers.verdict().to_owned(),
            is_blocked,
            numbers,
        }
    }

    /// What must be equal: the verdict, and whether its drain never ends.
    pub(super) fn judged(&self) -> String {
        judged(&self.verdict, self.is_blocked)
    }
}

/// `DEGRADED, its drain never ends`
pub(super) fn judged(verdict: &str, is_blocked: bool) -> String {
    match is_blocked {
        true => format!("{verdict}, its drain never ends"),
        false => verdict.to_owned(),
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            wanted,
            before,
            at_once,
            fewest,
            ready,
            budgets,
        } = self;
        write!(
            f,
            "asks for {wanted}, {before} before, {at_once} at once, fewest {fewest}, {ready} at rest"
        )?;
        { budgets.iter() }.try_for_each(|[healthy, asks]| write!(f, ", budget {healthy} of {asks}"))
    }
}

impl Case {
    /// The objects as a list that strew reads.
    pub(super) fn dump(&self) -> Value {
        json!({"apiVersion": "v1", "kind": "List", "items": self.objects})
    }

    /// Reads a file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    /// Writes `NAME.json` into the folder, with one object on each line.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(folder)?;
        let lines: Vec<String> = self.objects.iter().map(Value::to_string).collect();
        let mut head = self.clone();
        head.objects.clear();
        let head = serde_json::to_string(&head)?;
        let head = head.strip_suffix("[]}").context("the objects come last")?;
        let text = format!("{head}[\n{}\n]}}\n", lines.join(",\n"));
        let path = folder.join(format!("{}.json", self.name));
        fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

/// The objects of a cluster in a dump of the whole control plane, without what no rule reads.
pub(super) fn objects_of(dump: &Value, cluster: &str) -> Vec<Value> {
    let items = dump["items"].as_array().into_iter().flatten();
    let its = items.filter(|object| {
        let metadata = &object["metadata"];
        match object["kind"].as_str() {
            Some("Node") => metadata["labels"][super::cluster::CLUSTER_LABEL] == cluster,
            Some("Namespace") => metadata["name"] == cluster,
            _ => metadata["namespace"] == cluster,
        }
    });
    its.cloned().map(trimmed).collect()
}

fn trimmed(mut object: Value) -> Value {
    let without = |object: &mut Value, fields: &[&str]| {
        for field in fields {
            object.as_object_mut().map(|map| map.remove(*field));
        }
    };
    without(&mut object["metadata"], &["managedFields"]);
    if object["metadata"]["annotations"].is_object() {
        let applied = "kubectl.kubernetes.io/last-applied-configuration";
        without(&mut object["metadata"]["annotations"], &[applied]);
    }
    match object["kind"].as_str() {
        Some("Node") => {
            without(&mut object["status"], &["nodeInfo"]);
            if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
                conditions.retain(|condition| condition["type"] == "Ready");
            }
        }
        // The account's token.
        Some("Pod") => {
            without(&mut object["status"], &["containerStatuses"]);
            without(&mut object["spec"], &["volumes"]);
            for container in object["spec"]["containers"]
                .as_array_mut()
                .into_iter()
                .flatten()
            {
                without(container, &["volumeMounts"]);
            }
        }
        _ => {}
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(before: u64, fewest: u64, ready: u64) -> Numbers {
        Numbers {
            wanted: 4,
            before,
            fewest,
            ready,
            ..Numbers::default()
        }
    }

    #[test]
    fn verdicts_are_those_of_the_table() {
        for (numbers, verdict) in [
            (numbers(0, 0, 4), "UNKNOWN"),
            (numbers(4, 0, 0), "LOST"),
            (numbers(4, 0, 3), "OUTAGE"),
            (numbers(4, 2, 3), "DEGRADED"),
            (numbers(3, 2, 3), "SURVIVES"),
            (numbers(4, 2, 4), "SURVIVES"),
        ] {
            assert_eq!(numbers.verdict(), verdict, "{numbers}");
        }
        let short = Numbers {
            budgets: vec![[3, 3], [2, 3]],
            ..numbers(4, 2, 2)
        };
        assert_eq!(short.verdict(), "LOST");
    }

    #[test]
    fn a_case_that_is_written_is_read_again() {
        let case = Case {
            name: "s1-c7-loss".to_owned(),
            event: Event::Loss,
            zone: "c7-a".to_owned(),
            observed: BTreeMap::from([(
                "deployment/d0".to_owned(),
                Observed::new(numbers(4, 2, 3), true),
            )]),
            objects: vec![json!({"kind": "Pod"}), json!({"kind": "Node"})],
        };
        let folder = std::env::temp_dir().join(format!("strew-truth-{}", std::process::id()));
        case.write(&folder).unwrap();
        let again = Case::read(&folder.join("s1-c7-loss.json")).unwrap();
        assert_eq!(again.observed, case.observed);
        assert_eq!(again.objects, case.objects);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn objects_are_those_of_one_cluster() {
        let label = super::super::cluster::CLUSTER_LABEL;
        let dump = json!({"items": [
            {"kind": "Node", "metadata": {"name": "n1", "labels": {label: "c1"}}},
            {"kind": "Node", "metadata": {"name": "n2", "labels": {label: "c2"}}},
            {"kind": "Pod", "metadata": {"name": "p1", "namespace": "c1", "managedFields": []}},
            {"kind": "Namespace", "metadata": {"name": "c1"}},
            {"kind": "Pod", "metadata": {"name": "p2", "namespace": "c2"}},
        ]});
        let its = objects_of(&dump, "c1");
        let names = its.iter().map(|object| object["metadata"]["name"].as_str());
        assert_eq!(names.flatten().collect::<Vec<_>>(), ["n1", "p1", "c1"]);
        assert_eq!(its[1]["metadata"].get("managedFields"), None);
    }
}
