//! The objects, labels and containers that exist when a step begins, as far as files and earlier steps show.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use strew_manifest::read::{KubeObject, Located};

use super::existence::{Mention, ObjectKey};
use super::scenario::Scenario;
use super::target::{CLUSTER, NODE, ObjectTarget};

/// The kinds whose labels a scenario selects by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bearer {
    /// Nodes.
    Node,
    /// Pods, with the labels of the templates that they are made from.
    Pod,
    /// ManagedClusters; their claims are read like labels.
    Cluster,
    /// Nodes, or pods if no node has the key.
    NodeOrPod,
}

impl Bearer {
    /// `node`, `pod`, `cluster`
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Pod => "pod",
            Self::Cluster => "cluster",
            Self::NodeOrPod => "node or pod",
        }
    }
}

/// Label keys with their values.
pub(super) type Labels = BTreeMap<String, BTreeSet<String>>;

/// Objects, labels and containers.
#[derive(Default)]
pub(super) struct Known {
    /// Every object.
    objects: Vec<ObjectKey>,
    /// Where the objects of a name are among them: a story names each workload of a dump several times.
    by_name: HashMap<String, Vec<usize>>,
    /// API version and kind of the objects whose kind strew does not model.
    pub(super) kinds: BTreeSet<(String, String)>,
    node_labels: Labels,
    pod_labels: Labels,
    cluster_labels: Labels,
    /// The containers of each object that makes pods.
    containers: Vec<(ObjectKey, Vec<String>)>,
    /// True if the scenario mentions pods or containers. Otherwise templates are skipped: a dump may have many.
    looks_at_templates: bool,
}

pub(super) const HOSTNAME: &str = "kubernetes.io/hostname";

/// Labels that controllers set on pods: no file has their values.
const SET_BY_CONTROLLERS: [&str; 9] = [
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/controller-uid",
    "job-name",
];

impl Known {
    /// What exists at second 0.
    pub(super) fn at_start(scenario: &Scenario, objects: &[&Located]) -> Self {
        let mentions = || {
            scenario
                .timeline_mentions
                .iter()
                .chain(&scenario.always_mentions)
        };
        let looks_at_templates = mentions().any(|mention| match mention {
            Mention::Container(..) => true,
            Mention::Label { of, .. } => matches!(of, Bearer::Pod | Bearer::NodeOrPod),
            _ => false,
        });
        let mut known = Self {
            looks_at_templates,
            ..Self::default()
        };
        for group in &scenario.node_groups {
            let labels = group.template.metadata.labels.iter().flatten();
            for (key, value) in labels {
                insert(&mut known.node_labels, key, value);
            }
        }
        for located in objects {
            let object = &located.object;
            let key = ObjectKey::of(object);
            if let KubeObject::Other(other) = object {
                let kind = (other.api_version.clone(), other.kind.clone());
                known.kinds.insert(kind);
            }
            match object {
                KubeObject::Node(node) => {
                    for (label, value) in node.metadata.labels.iter().flatten() {
                        insert(&mut known.node_labels, label, value);
                    }
                    known.push(key);
                }
                KubeObject::ManagedCluster(_) => known.add(key, &object.to_json()),
                _ if looks_at_templates => known.add(key, &object.to_json()),
                _ => known.push(key),
            }
        }
        known
    }

    fn push(&mut self, key: ObjectKey) {
        let same = self.by_name.entry(key.name.clone()).or_default();
        same.push(self.objects.len());
        self.objects.push(key);
    }

    /// Every object.
    pub(super) fn objects(&self) -> &[ObjectKey] {
        &self.objects
    }

    /// True if the target names one of them.
    pub(super) fn has(&self, target: &ObjectTarget) -> bool {
        let same = self.by_name.get(&target.name).into_iter().flatten();
        let mut same = same.filter_map(|place| self.objects.get(*place));
        same.any(|key| key.is(target))
    }

    /// An object that a step makes.
    pub(super) fn add(&mut self, key: ObjectKey, value: &Value) {
        self.learn(&key.kind, value);
        if let Some(version) = value["apiVersion"].as_str() {
            self.kinds.insert((version.to_owned(), key.kind.clone()));
        }
        let containers = containers(value);
        if self.looks_at_templates && !containers.is_empty() {
            self.containers.push((key.clone(), containers));
        }
        self.push(key);
    }

    /// Adds the labels that an object of this kind, or a patch of one, gives to nodes or pods.
    pub(super) fn learn(&mut self, kind: &str, value: &Value) {
        let Value::Array(operations) = value else {
            return self.learn_object(kind, value);
        };
        for operation in operations {
            // An operation of a JSON patch acts as a merge patch of the value at its path.
            let path = operation["path"].as_str().unwrap_or_default();
            let steps = path.split('/').skip(1).collect::<Vec<_>>();
            let whole = steps
                .into_iter()
                .rev()
                .fold(operation["value"].clone(), |value, step| {
                    let step = step.replace("~1", "/").replace("~0", "~");
                    Value::Object(std::iter::once((step, value)).collect())
                });
            self.learn_object(kind, &whole);
        }
    }

    fn learn_object(&mut self, kind: &str, value: &Value) {
        let own = &value["metadata"]["labels"];
        match kind {
            NODE => labels(own, &mut self.node_labels),
            "Pod" => labels(own, &mut self.pod_labels),
            CLUSTER => {
                labels(own, &mut self.cluster_labels);
                let claims = value["status"]["clusterClaims"].as_array();
                for claim in claims.into_iter().flatten() {
                    if let (Some(name), Some(value)) =
                        (claim["name"].as_str(), claim["value"].as_str())
                    {
                        insert(&mut self.cluster_labels, name, value);
                    }
                }
            }
            _ if self.looks_at_templates => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    if name != "metadata" {
                        labels_below(part, &mut self.pod_labels);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds a label that the verb `label` sets.
    pub(super) fn label(&mut self, of: Bearer, key: &str, value: &str) {
        let labels = match of {
            Bearer::Node => &mut self.node_labels,
            Bearer::Pod | Bearer::NodeOrPod => &mut self.pod_labels,
            Bearer::Cluster => &mut self.cluster_labels,
        };
        insert(labels, key, value);
    }

    /// All labels of nodes, pods or clusters.
    pub(super) fn labels(&self, of: Bearer) -> &Labels {
        match of {
            Bearer::Node => &self.node_labels,
            Bearer::Pod | Bearer::NodeOrPod => &self.pod_labels,
            Bearer::Cluster => &self.cluster_labels,
        }
    }

    /// True if the label may exist: with one of these values, or with any if the list is empty.
    pub(super) fn has_label(
        &self,
        scenario: &Scenario,
        of: Bearer,
        key: &str,
        values: &[String],
    ) -> bool {
        let is_set_elsewhere = match of {
            Bearer::Node => key == HOSTNAME && self.has_hostname(scenario, values),
            Bearer::Pod | Bearer::NodeOrPod => SET_BY_CONTROLLERS.contains(&key),
            Bearer::Cluster => false,
        };
        let known = self.labels(of).get(key);
        let has = |known: &BTreeSet<String>| {
            values.is_empty() || values.iter().any(|value| known.contains(value))
        };
        is_set_elsewhere || known.is_some_and(has)
    }

    /// Kubelets set the hostname label of their nodes.
    fn has_hostname(&self, scenario: &Scenario, values: &[String]) -> bool {
        let is_node = |value: &String| {
            let mut groups = scenario.node_groups.iter();
            let mut objects = self.objects.iter();
            groups.any(|group| group.may_have(value))
                || objects.any(|key| key.kind == NODE && key.name == *value)
        };
        values.is_empty() || values.iter().any(is_node)
    }

    /// The containers of an object in all its versions; `None` if the object is not known.
    pub(super) fn containers_of(&self, is_meant: impl Fn(&ObjectKey) -> bool) -> Option<Vec<&str>> {
        let all = self.containers.iter().filter(|(key, _)| is_meant(key));
        let all: Vec<_> = all.collect();
        let names = all
            .iter()
            .flat_map(|(_, names)| names.iter().map(String::as_str));
        (!all.is_empty()).then(|| names.collect())
    }
}

fn insert(labels: &mut Labels, key: &str, value: &str) {
    labels
        .entry(key.to_owned())
        .or_default()
        .insert(value.to_owned());
}

fn labels(value: &Value, into: &mut Labels) {
    for (key, value) in value.as_object().into_iter().flatten() {
        if let Some(value) = value.as_str() {
            insert(into, key, value);
        }
    }
}

/// Collects the labels of all pod templates in a value, and those that the patches of a WorkloadSpread's subsets set.
fn labels_below(value: &Value, into: &mut Labels) {
    match value {
        Value::Object(fields) => {
            for (name, part) in fields {
                match name.as_str() {
                    "labels" => labels(part, into),
                    // The labels of claims and of Jobs are not labels of pods.
                    "volumeClaimTemplates" => {}
                    "jobTemplate" => labels_below(&part["spec"], into),
                    _ => labels_below(part, into),
                }
            }
        }
        Value::Array(parts) => parts.iter().for_each(|part| labels_below(part, into)),
        _ => {}
    }
}

/// The containers of a pod, or of a pod template.
fn containers(value: &Value) -> Vec<String> {
    let template = match value["kind"].as_str() {
        Some("CronJob") => "/spec/jobTemplate/spec/template/spec",
        Some("Pod") => "/spec",
        _ => "/spec/template/spec",
    };
    let template = value.pointer(template).unwrap_or(&Value::Null);
    let lists = ["containers", "initContainers"].into_iter();
    let containers = lists.flat_map(|list| template[list].as_array().into_iter().flatten());
    let names = containers.filter_map(|container| container["name"].as_str());
    names.map(str::to_owned).collect()
}
