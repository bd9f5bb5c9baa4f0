//! Checks that the objects, labels and containers that a scenario names exist.

use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::kinds::KINDS;
use strew_manifest::read::{KubeObject, Located};

use super::diagnostics;
use super::known::{Bearer, Known};
use super::problems::Problems;
use super::scenario::Scenario;
use super::target::{CLUSTER, DEFAULT_NAMESPACE, NODE, ObjectTarget};

/// The identity of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKey {
    /// Its kind.
    pub kind: String,
    /// Its namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// The key of an object in the scenario's stream, or in one of its steps.
    pub fn of(object: &KubeObject) -> Self {
        Self {
            kind: object.kind().to_owned(),
            namespace: object.namespace().map(str::to_owned),
            name: object.name().to_owned(),
        }
    }

    /// True if the target names this object. Whether kinds that strew does not model are namespaced is not known, so a
    /// missing namespace counts as the default one.
    pub fn is(&self, target: &ObjectTarget) -> bool {
        let is_here = target.namespace.as_deref().is_none_or(|namespace| {
            self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE) == namespace
        });
        self.kind == target.type_name.kind && self.name == target.name && is_here
    }
}

/// What a scenario names or creates, in the order of time.
#[derive(Debug, Clone)]
pub(super) enum Mention {
    /// A step creates the object.
    Made(ObjectKey, Value),
    /// A step patches an object of this kind.
    Patched(&'static str, Value),
    /// A step sets a label.
    Labelled(Bearer, String, String),
    /// A verb or expectation names it.
    Named(ObjectTarget, FieldPath),
    /// A verb or expectation selects by a label, with one of these values; any value if the list is empty.
    Label {
        of: Bearer,
        key: String,
        values: Vec<String>,
        path: FieldPath,
    },
    /// A verb names a container of an object.
    Container(ObjectTarget, String, FieldPath),
    /// An expectation is about objects of a kind, in an API version if it names one.
    Kind {
        api_version: String,
        kind: String,
        path: FieldPath,
    },
}

impl Mention {
    /// True if the mention requires something to exist, and creates nothing.
    pub(super) fn is_name(&self) -> bool {
        match self {
            Self::Named(..) | Self::Label { .. } | Self::Container(..) | Self::Kind { .. } => true,
            Self::Made(..) | Self::Patched(..) | Self::Labelled(..) => false,
        }
    }

    /// True if the mention comes from this field or one below it.
    pub(super) fn is_below(&self, field: &FieldPath) -> bool {
        match self {
            Self::Named(_, path)
            | Self::Label { path, .. }
            | Self::Container(_, _, path)
            | Self::Kind { path, .. } => path.steps().starts_with(field.steps()),
            Self::Made(..) | Self::Patched(..) | Self::Labelled(..) => false,
        }
    }

    /// True for labels of pods, which are checked after all steps are known: a later step may create the pods.
    fn is_late(&self) -> bool {
        matches!(
            self,
            Self::Label {
                of: Bearer::Pod | Bearer::NodeOrPod,
                ..
            }
        )
    }
}

/// Kinds that controllers create, or that exist without being written. Their names are not checked.
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

/// The ManagedClusterSets that every hub has.
const HUB_SETS: [&str; 2] = ["default", "global"];

/// Reports every object, label (of nodes, pods, clusters) and container that the scenario names and that does not exist
/// by then: neither in `objects`, nor from a node group, nor from an earlier step.
///
/// Pods are not checked, and neither are ReplicaSets and Jobs that a Deployment or CronJob creates: their names are not
/// known in advance. Nodes are checked only if the files or the scenario define any; otherwise the command line does.
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
    judge.has_nodes |= judge.known.objects().iter().any(|key| key.kind == NODE);
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
            Mention::Kind {
                api_version,
                kind,
                path,
            } => self.kind(api_version, kind, path),
        }
    }

    /// An object of a kind or an API version that is nowhere is never there: a claim about it is decided before the run.
    fn kind(&mut self, api_version: &str, kind: &str, path: &FieldPath) {
        let rows = || KINDS.iter().filter(|row| row.kind == kind);
        let is_it = |version: &str| api_version.is_empty() || version == api_version;
        let others = &self.known.kinds;
        let mut versions = rows().map(|row| row.api_version);
        let is_other = |(version, name): &(String, String)| name == kind && is_it(version);
        if versions.any(is_it) || others.iter().any(is_other) {
            return;
        }
        let versions: Vec<&str> = rows().map(|row| row.api_version).collect();
        if !versions.is_empty() {
            let error = diagnostics::no_version(kind, api_version, &versions);
            return self.problems.add(&path.child("apiVersion"), error);
        }
        let known = others.iter().map(|(_, name)| name.as_str());
        let error = diagnostics::no_kind(kind, KINDS.iter().map(|row| row.kind).chain(known));
        self.problems.add(&path.child("kind"), error);
    }

    fn object(&mut self, target: &ObjectTarget, path: &FieldPath) {
        let kind = target.type_name.kind;
        let is_hub_set = kind == "ManagedClusterSet" && HUB_SETS.contains(&&*target.name);
        let is_passed_over =
            NOT_IN_FILES.contains(&kind) || is_hub_set || (kind == NODE && !self.has_nodes);
        if is_passed_over || self.is_there(target) {
            return;
        }
        let same_kind = self.known.objects().iter().filter(|key| key.kind == kind);
        let error = diagnostics::not_there(target, same_kind);
        self.problems.add_target(path, error);
    }

    fn is_there(&self, target: &ObjectTarget) -> bool {
        let mut groups = self.scenario.node_groups.iter();
        self.known.has(target)
            || (target.type_name.kind == NODE && groups.any(|g| g.may_have(&target.name)))
            || is_made_by_another(target, self.known.objects())
    }

    fn label(&mut self, of: Bearer, key: &str, values: &[String], path: &FieldPath) {
        let is_judged = match of {
            Bearer::Node => self.has_nodes,
            Bearer::Pod => true,
            Bearer::NodeOrPod => {
                if self.known.has_label(self.scenario, Bearer::Node, key, &[]) {
                    return self.label(Bearer::Node, key, values, path);
                }
                // Without nodes in the files the label may be one of theirs.
                self.has_nodes
            }
            Bearer::Cluster => self.known.objects().iter().any(|key| key.kind == CLUSTER),
        };
        if is_judged && !self.known.has_label(self.scenario, of, key, values) {
            let mut there = self.known.labels(of).clone();
            if of == Bearer::NodeOrPod {
                there.extend(self.known.labels(Bearer::Node).clone());
            }
            let error = diagnostics::label_not_there(of.noun(), key, values, &there);
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
