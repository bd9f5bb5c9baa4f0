//! Whether what a scenario names will be there.

use serde_json::Value;
use strew_api::field::FieldPath;
use strew_api::read::{KubeObject, Located};

use super::diagnostics;
use super::known::{Bearer, Known};
use super::problems::Problems;
use super::scenario::Scenario;
use super::target::{CLUSTER, DEFAULT_NAMESPACE, NODE, ObjectTarget};

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
    Made(ObjectKey, Value),
    /// A step patches an object of this kind.
    Patched(&'static str, Value),
    /// A step sets a label.
    Labelled(Bearer, String, String),
    /// A verb or expectation names it.
    Named(ObjectTarget, FieldPath),
    /// A verb or expectation selects by a label: one of these values, or any if none is given.
    Label {
        of: Bearer,
        key: String,
        values: Vec<String>,
        path: FieldPath,
    },
    /// A verb names a container of an object.
    Container(ObjectTarget, String, FieldPath),
}

impl Mention {
    /// Whether it names what must be there, and makes nothing.
    pub(super) fn is_name(&self) -> bool {
        match self {
            Self::Named(..) | Self::Label { .. } | Self::Container(..) => true,
            Self::Made(..) | Self::Patched(..) | Self::Labelled(..) => false,
        }
    }

    /// Whether the field that names it is this one, or below it.
    pub(super) fn is_below(&self, field: &FieldPath) -> bool {
        match self {
            Self::Named(_, path) | Self::Label { path, .. } | Self::Container(_, _, path) => {
                path.steps().starts_with(field.steps())
            }
            Self::Made(..) | Self::Patched(..) | Self::Labelled(..) => false,
        }
    }

    /// Labels of pods are judged when all steps are known: pods that a verb is about may come later.
    fn is_late(&self) -> bool {
        matches!(
            self,
            Self::Label {
                of: Bearer::Pod,
                ..
            }
        )
    }
}

/// Kinds that controllers make, or that are there without being written: nothing is said of them.
const NOT_IN_FILES: [&str; 8] = [
    "Pod",
    "Namespace",
    "PriorityClass",
    "Lease",
    "PlacementDecision",
    "ControllerRevision",
    "PersistentVolume",
    "PersistentVolumeClaim",
];

/// The sets of clusters that every hub has.
const HUB_SETS: [&str; 2] = ["default", "global"];

/// Reports what is named and that neither `objects`, nor a node group, nor an earlier step makes, with its place in the
/// document: objects, labels of nodes, pods and clusters, containers.
///
/// Pods are not judged, nor are the ReplicaSets and Jobs that others make: their names are not known beforehand. Nodes
/// are judged only where the files or the scenario have any: without, the command line makes them.
pub(super) fn check_targets(scenario: &Scenario, objects: &[&Located], problems: &mut Problems) {
    let makes_nodes =
        |mention: &Mention| matches!(mention, Mention::Made(key, _) if key.kind == NODE);
    let mut judge = Judge {
        scenario,
        known: Known::at_start(scenario, objects),
        has_nodes: !scenario.node_groups.is_empty()
            || scenario.timeline_mentions.iter().any(makes_nodes),
        problems,
    };
    judge.has_nodes |= judge.known.objects.iter().any(|key| key.kind == NODE);
    let all = scenario.timeline_mentions.iter();
    let all = all.chain(&scenario.always_mentions);
    let (late, in_time): (Vec<&Mention>, Vec<&Mention>) = all.partition(|m| m.is_late());
    for mention in in_time.into_iter().chain(late) {
        judge.take(mention);
    }
}

struct Judge<'a> {
    scenario: &'a Scenario,
    known: Known,
    has_nodes: bool,
    problems: &'a mut Problems,
}

impl Judge<'_> {
    fn take(&mut self, mention: &Mention) {
        match mention {
            Mention::Made(key, value) => self.known.add(key.clone(), value),
            Mention::Patched(kind, value) => self.known.learn(kind, value),
            Mention::Labelled(of, key, value) => self.known.label(*of, key, value),
            Mention::Named(target, path) => self.object(target, path),
            Mention::Label {
                of,
                key,
                values,
                path,
            } => self.label(*of, key, values, path),
            Mention::Container(target, name, path) => self.container(target, name, path),
        }
    }

    fn object(&mut self, target: &ObjectTarget, path: &FieldPath) {
        let kind = target.type_name.kind;
        let is_hub_set = kind == "ManagedClusterSet" && HUB_SETS.contains(&&*target.name);
        let is_passed_over =
            NOT_IN_FILES.contains(&kind) || is_hub_set || (kind == NODE && !self.has_nodes);
        if is_passed_over || self.is_there(target) {
            return;
        }
        let same_kind = self.known.objects.iter().filter(|key| key.kind == kind);
        let error = diagnostics::not_there(target, same_kind);
        self.problems.add_target(path, error);
    }

    fn is_there(&self, target: &ObjectTarget) -> bool {
        let known = &self.known.objects;
        let mut groups = self.scenario.node_groups.iter();
        known.iter().any(|key| key.is(target))
            || (target.type_name.kind == NODE && groups.any(|g| g.may_have(&target.name)))
            || is_made_by_another(target, known)
    }

    fn label(&mut self, of: Bearer, key: &str, values: &[String], path: &FieldPath) {
        let is_judged = match of {
            Bearer::Node => self.has_nodes,
            Bearer::Pod => true,
            Bearer::Cluster => self.known.objects.iter().any(|key| key.kind == CLUSTER),
        };
        if is_judged && !self.known.has_label(self.scenario, of, key, values) {
            let error = diagnostics::label_not_there(of.noun(), key, values, self.known.labels(of));
            self.problems.add_target(path, error);
        }
    }

    fn container(&mut self, target: &ObjectTarget, name: &str, path: &FieldPath) {
        let containers = self.known.containers_of(|key| key.is(target));
        if let Some(containers) = containers.filter(|containers| !containers.contains(&name)) {
            let error = diagnostics::no_container(target, name, &containers);
            self.problems.add(path, error);
        }
    }
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
