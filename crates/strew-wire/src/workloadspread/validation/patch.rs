//! Fields that a subset's patch must not change.
//!
//! A user can have the right to create WorkloadSpreads without the right to create pods. A patch of host namespaces,
//! the service account or privileged contexts would give such a user any pod under any account. So validation refuses
//! these fields unless `--allow-patch` names them. Labels that the target selects pods by are always refused: the
//! target would not find such a pod and would create another one, endlessly. So are names and what the API server sets.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Map, Value};
use strew_model::Interner;

use crate::facts::{labels as of_pairs, selector as parse};
use strew_manifest::field::{FieldError, FieldPath};

/// Fields that a patch may change only if `--allow-patch` names them, in the order of the documentation.
pub const GUARDED: [&str; 15] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "hostUsers",
    "hostPort",
    "hostPath",
    "securityContext",
    "serviceAccountName",
    "automountServiceAccountToken",
    "nodeName",
    "schedulerName",
    "priority",
    "priorityClassName",
    "finalizers",
    "ownerReferences",
];

/// Labels with which a controller finds its pods.
pub(in crate::workloadspread) const OF_CONTROLLERS: [&str; 8] = [
    "pod-template-hash",
    "controller-revision-hash",
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
];

/// Fields of a pod's metadata that no patch may change, with the reason.
const OF_THE_POD: [(&str, &str); 11] = [
    ("name", NAMED),
    ("generateName", NAMED),
    (
        "namespace",
        "a pod is created in the namespace of its workload, and refused in another",
    ),
    ("uid", SET),
    ("resourceVersion", SET),
    ("generation", SET),
    ("creationTimestamp", SET),
    ("deletionTimestamp", SET),
    ("deletionGracePeriodSeconds", SET),
    ("selfLink", SET),
    ("managedFields", SET),
];

const NAMED: &str = "the workload names its pods, and a second pod of one name is refused";
const SET: &str = "the API server sets it";

/// The prefix of priority classes for the cluster's own pods.
const SYSTEM: &str = "system-";

/// The prefixes of annotations that the API server turns into fields of `securityContext`, or once did.
/// Source: `applyAppArmorVersionSkew` and `applySeccompVersionSkew` of Kubernetes' `pkg/registry/core/pod/strategy.go`.
pub(in crate::workloadspread) const SECURITY_ANNOTATIONS: [&str; 2] = [
    "container.apparmor.security.beta.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
];

/// Fields of the spec that are guarded under another name.
const BY_ANOTHER_NAME: [(&str, &str); 2] = [
    ("serviceAccount", "serviceAccountName"),
    ("preemptionPolicy", "priority"),
];

/// Fields that tell a pod from others: a pod with the patch would be refused, or would not be the workload's.
pub(super) fn identity(patch: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let path = path.child("metadata");
    for (key, value) in fields(&patch["metadata"]) {
        let mut rows = OF_THE_POD.iter().copied();
        if let Some((name, why)) = rows.find(|(name, _)| field_of(key) == Some(*name)) {
            let detail = format!("a patch must not touch {name}: {why}");
            let error = FieldError::invalid_raw(path.child(name), value, detail);
            errors.push(error.with_help("take it out of the patch; labels tell subsets apart"));
        }
    }
}

/// All guarded fields that a patch changes.
pub(super) fn guarded(
    patch: &Value,
    allowed: &[String],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let mut guard = Guard { allowed, errors };
    let metadata = path.child("metadata");
    guard.directive_of(&patch["metadata"], "finalizers", &metadata);
    for (key, value) in fields(&patch["metadata"]) {
        if let Some(name) = known(&["finalizers", "ownerReferences"], key) {
            guard.touch(name, value, metadata.child(name));
        }
    }
    guard.annotations(
        &patch["metadata"]["annotations"],
        &metadata.child("annotations"),
    );
    guard.directive_of(patch, "finalizers", path);
    guard.spec(&patch["spec"], &path.child("spec"));
}

/// The metadata of a patch that a stored pod gets when it is put into a subset: labels and annotations, without those
/// that no patch may have. A patch may be older than the rule that refuses it.
pub(in crate::workloadspread) fn of_stored_pod(patch: &Value) -> Map<String, Value> {
    let mut metadata = Map::new();
    for map in ["labels", "annotations"] {
        if let Some(entries) = patch["metadata"][map].as_object() {
            let mut entries = entries.clone();
            entries.retain(|key, _| {
                let mut prefixes = SECURITY_ANNOTATIONS.iter();
                !OF_CONTROLLERS.contains(&&**key) && !prefixes.any(|prefix| key.starts_with(prefix))
            });
            metadata.insert(map.to_owned(), Value::Object(entries));
        }
    }
    metadata
}

/// Labels in a patch by which the target finds its pods.
pub(super) fn selecting(
    patch: &Value,
    selector: Option<&LabelSelector>,
    template: &BTreeMap<String, String>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("metadata").child("labels");
    let mut labels = template.clone();
    for (key, value) in fields(&patch["metadata"]["labels"]) {
        if OF_CONTROLLERS.contains(&key) {
            let detail = "controllers find their pods by this label";
            errors.push(FieldError::invalid_raw(path.key(key), value, detail));
        }
        match value.as_str() {
            Some(value) => labels.insert(key.to_owned(), value.to_owned()),
            None => labels.remove(key),
        };
    }
    let Some(selector) = selector else {
        return;
    };
    let matches = |pairs: &BTreeMap<String, String>| {
        let mut names = Interner::new();
        let parsed = parse(Some(selector), &mut names);
        let pairs = of_pairs(Some(pairs), &mut names);
        parsed.is_ok_and(|selector| selector.matches(&pairs))
    };
    if matches(template) && !matches(&labels) {
        let detail = "the target's selector would not match the patched pods: it would make others without end";
        let error = FieldError::invalid_raw(path, &patch["metadata"]["labels"], detail);
        errors.push(error.with_help("use a label that the target's selector does not name"));
    }
}

struct Guard<'a> {
    allowed: &'a [String],
    errors: &'a mut Vec<FieldError>,
}

impl Guard<'_> {
    fn annotations(&mut self, annotations: &Value, path: &FieldPath) {
        self.directive_of(annotations, "securityContext", path);
        for (key, value) in fields(annotations) {
            if SECURITY_ANNOTATIONS
                .iter()
                .any(|prefix| key.starts_with(prefix))
            {
                self.touch("securityContext", value, path.key(key));
            }
        }
    }

    fn spec(&mut self, spec: &Value, path: &FieldPath) {
        self.directive_of(spec, "securityContext", path);
        for (key, value) in fields(spec) {
            if let Some(list) = known(
                &["containers", "initContainers", "ephemeralContainers"],
                key,
            ) {
                self.containers(value, &path.child(list));
            } else if field_of(key) == Some("volumes") {
                self.volumes(value, &path.child("volumes"));
            } else if let Some((field, name)) = BY_ANOTHER_NAME
                .iter()
                .find(|(field, _)| field_of(key) == Some(field))
            {
                self.touch(name, value, path.child(field));
            } else if let Some(name) = known(&GUARDED, key) {
                // A tenant may choose the class, except those of the cluster's own pods.
                let class = value.as_str().filter(|_| name == "priorityClassName");
                if class.is_none_or(|class| class.starts_with(SYSTEM)) {
                    self.touch(name, value, path.child(name));
                }
            }
        }
    }

    fn containers(&mut self, containers: &Value, path: &FieldPath) {
        for (index, container) in containers.as_array().into_iter().flatten().enumerate() {
            let at = path.index(index);
            self.directive_of(container, "securityContext", &at);
            for (key, value) in fields(container) {
                match field_of(key) {
                    Some("securityContext") => {
                        self.touch("securityContext", value, at.child("securityContext"));
                    }
                    Some("ports") => {
                        for (port, value) in value.as_array().into_iter().flatten().enumerate() {
                            if value.get("hostPort").is_some() {
                                let at = at.child("ports").index(port).child("hostPort");
                                self.touch("hostPort", &value["hostPort"], at);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn volumes(&mut self, volumes: &Value, path: &FieldPath) {
        for (index, volume) in volumes.as_array().into_iter().flatten().enumerate() {
            if volume.get("hostPath").is_some() {
                let at = path.index(index).child("hostPath");
                self.touch("hostPath", &volume["hostPath"], at);
            }
        }
    }

    /// `$patch: replace` removes what it does not name, which may be a guarded field.
    fn directive_of(&mut self, value: &Value, name: &str, path: &FieldPath) {
        if value
            .get("$patch")
            .is_some_and(|directive| directive == "replace")
        {
            self.touch(name, &value["$patch"], path.child("$patch"));
        }
        if let Some(kept) = value.get("$retainKeys") {
            self.touch(name, kept, path.child("$retainKeys"));
        }
    }

    fn touch(&mut self, name: &str, value: &Value, path: FieldPath) {
        if self.allowed.iter().any(|allowed| allowed == name) {
            return;
        }
        let detail = format!("a patch must not touch {name}");
        let error = FieldError::invalid_raw(path, value, detail);
        let help = format!(
            "put it into the workload's template; an administrator may allow it to all WorkloadSpreads with `strew webhook --allow-patch={name}`"
        );
        self.errors.push(error.with_help(help));
    }
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let fields = value.as_object().into_iter().flatten();
    fields.map(|(key, value)| (key.as_str(), value))
}

/// The field of a key in a strategic merge patch: the key itself, or that of a directive; `None` for `$patch`.
fn field_of(key: &str) -> Option<&str> {
    match key.strip_prefix('$') {
        None => Some(key),
        Some(directive) => directive.split_once('/').map(|(_, field)| field),
    }
}

/// The listed name of a key in a strategic merge patch.
fn known(names: &[&'static str], key: &str) -> Option<&'static str> {
    let field = field_of(key)?;
    names.iter().find(|name| **name == field).copied()
}
