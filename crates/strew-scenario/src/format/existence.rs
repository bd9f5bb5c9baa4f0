//! Whether what a scenario names will be there.

use strew_api::field::FieldPath;
use strew_api::read::{Diagnostic, KubeObject};

use super::diagnostics;
use super::scenario::Scenario;
use super::target::{DEFAULT_NAMESPACE, NODE, ObjectTarget};

/// An object by what makes it the only one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: String,
    /// Its namespace; none for kinds that have none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// Of an object, in the scenario's stream or in one of its steps.
    pub fn of(object: &KubeObject) -> Self {
        Self {
            kind: object.kind().to_owned(),
            namespace: object.namespace().map(str::to_owned),
            name: object.name().to_owned(),
        }
    }

    /// Whether the target names this object. Of kinds that strew does not model it is not known whether they have
    /// namespaces: nothing said is the default one.
    pub fn is(&self, target: &ObjectTarget) -> bool {
        let is_here = target.namespace.as_deref().is_none_or(|namespace| {
            self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE) == namespace
        });
        self.kind == target.type_name.kind && self.name == target.name && is_here
    }
}

/// What a scenario names or makes, in the order of time.
#[derive(Debug, Clone)]
pub(super) enum Mention {
    /// A step makes it.
    Made(ObjectKey),
    /// A verb or expectation names it.
    Named(ObjectTarget, FieldPath),
}

/// Kinds that others make, or that are there without being written: nothing is said of them.
const NOT_IN_FILES: [&str; 5] = [
    "Pod",
    "Namespace",
    "PriorityClass",
    "Lease",
    "PlacementDecision",
];

/// The sets of clusters that every hub has.
const HUB_SETS: [&str; 2] = ["default", "global"];

/// Every target that neither `objects`, nor a node group, nor an earlier step makes, with its place in the document.
///
/// Pods are not judged, nor are the ReplicaSets and Jobs that others make: their names are not known beforehand. Nodes
/// are judged only where the files or the scenario have any: without, the command line makes them.
pub fn check_targets(scenario: &Scenario, objects: &[ObjectKey]) -> Vec<(FieldPath, Diagnostic)> {
    let mut known: Vec<ObjectKey> = objects.to_vec();
    let made = scenario.timeline_mentions.iter();
    let all_made = made.filter_map(|mention| match mention {
        Mention::Made(key) => Some(key.clone()),
        Mention::Named(..) => None,
    });
    let has_nodes = !scenario.node_groups.is_empty()
        || objects.iter().any(|key| key.kind == NODE)
        || all_made.clone().any(|key| key.kind == NODE);
    let mut missing = Vec::new();
    for mention in &scenario.timeline_mentions {
        match mention {
            Mention::Made(key) => known.push(key.clone()),
            Mention::Named(target, path) => {
                judge(scenario, target, path, &known, has_nodes, &mut missing);
            }
        }
    }
    for mention in &scenario.always_mentions {
        if let Mention::Named(target, path) = mention {
            judge(scenario, target, path, &known, has_nodes, &mut missing);
        }
    }
    missing
}

fn judge(
    scenario: &Scenario,
    target: &ObjectTarget,
    path: &FieldPath,
    known: &[ObjectKey],
    has_nodes: bool,
    missing: &mut Vec<(FieldPath, Diagnostic)>,
) {
    let kind = target.type_name.kind;
    let is_hub_set = kind == "ManagedClusterSet" && HUB_SETS.contains(&&*target.name);
    let is_passed_over = NOT_IN_FILES.contains(&kind) || is_hub_set || (kind == NODE && !has_nodes);
    let is_there = || {
        let of_group = || {
            scenario
                .node_groups
                .iter()
                .any(|g| g.may_have(&target.name))
        };
        known.iter().any(|key| key.is(target))
            || (kind == NODE && of_group())
            || is_made_by_another(target, known)
    };
    if is_passed_over || is_there() {
        return;
    }
    let same_kind = known.iter().filter(|key| key.kind == kind);
    missing.push((path.clone(), diagnostics::not_there(target, same_kind)));
}

/// `web-7d4b9c` of Deployment `web`, `nightly-28123` of CronJob `nightly`.
fn is_made_by_another(target: &ObjectTarget, known: &[ObjectKey]) -> bool {
    let maker = match target.type_name.kind {
        "ReplicaSet" => "Deployment",
        "Job" => "CronJob",
        _ => return false,
    };
    known.iter().any(|key| {
        let rest = target.name.strip_prefix(&key.name);
        key.kind == maker && rest.is_some_and(|rest| rest.starts_with('-'))
    })
}
