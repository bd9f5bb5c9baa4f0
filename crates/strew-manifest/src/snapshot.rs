//! Removes from a cluster's objects what decisions do not need, above all secrets.
//!
//! Pods and templates keep a fixed list of fields that decide where pods go or how workloads act, so that fields which
//! Kubernetes adds later do not leak. Removed parts are replaced by a number (`STREW_SNAPSHOT`), because two templates
//! that differ only in them are two revisions.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The fields of a pod's spec that stay.
const SPEC: &[&str] = &[
    "activeDeadlineSeconds",
    "affinity",
    "containers",
    "hostNetwork",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
];

/// The fields of a container that stay.
const CONTAINER: &[&str] = &["image", "name", "ports", "resources", "restartPolicy"];

/// Volumes that decide where a pod goes. Of an emptyDir stays that it is one, since it is lost with its pod; others become
/// projected volumes of nothing.
const VOLUME: &[&str] = &[
    "awsElasticBlockStore",
    "azureDisk",
    "cinder",
    "csi",
    "ephemeral",
    "gcePersistentDisk",
    "image",
    "iscsi",
    "persistentVolumeClaim",
    "rbd",
];

/// The fields of a pod's status that stay.
const POD_STATUS: &[&str] = &[
    "conditions",
    "containerStatuses",
    "initContainerStatuses",
    "nominatedNodeName",
    "observedGeneration",
    "phase",
    "qosClass",
    "resize",
    "startTime",
];

/// The fields of a container's status that stay; required ones are kept empty.
const CONTAINER_STATUS: &[&str] = &[
    "allocatedResources",
    "name",
    "ready",
    "resources",
    "restartCount",
];

/// The fields of a node's status that stay.
const NODE_STATUS: &[&str] = &[
    "allocatable",
    "capacity",
    "conditions",
    "declaredFeatures",
    "images",
];

/// Prefixes of annotations that stay.
const ANNOTATIONS: &[&str] = &[
    "apps.kruise.io/",
    "batch.kubernetes.io/",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "cluster.open-cluster-management.io/",
    "controller.kubernetes.io/",
    "defaults.strew.dev/",
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "descheduler.alpha.kubernetes.io/",
    "karpenter.sh/do-not-disrupt",
    "pv.kubernetes.io/",
    "statefulset.kubernetes.io/",
    "strew.dev/",
    "volume.kubernetes.io/",
    "workloadspread.kruise.io/",
];

/// The name of the variable that distinguishes templates.
pub const DIGEST: &str = "STREW_SNAPSHOT";

/// Removes fields from objects. Use one for all objects of a cluster: equal removed parts get equal numbers.
#[derive(Debug, Default)]
pub struct Scrubber {
    /// The removed parts, by their text.
    taken: BTreeMap<String, usize>,
}

impl Scrubber {
    /// Scrubs an object, which must have its `kind`.
    pub fn scrub(&mut self, object: &mut Value) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        match (kind.as_str(), object.get_mut("status")) {
            ("Pod", Some(Value::Object(status))) => pod_status(status),
            ("Node", Some(Value::Object(status))) => keep(status, NODE_STATUS),
            _ => {}
        }
        match (kind.as_str(), object.get_mut("spec")) {
            ("Service", Some(Value::Object(spec))) => keep(spec, &["selector"]),
            ("PersistentVolume", Some(Value::Object(spec))) => {
                if let Some(Value::Object(driver)) = spec.get_mut("csi") {
                    keep(driver, &["driver", "volumeHandle"]);
                }
            }
            _ => {}
        }
        if kind == "ControllerRevision" {
            let template = object.pointer_mut("/data/spec/template").map(Value::take);
            object["data"] = json!({"spec": {"template": template}});
        }
        if kind == "StorageClass"
            && let Some(fields) = object.as_object_mut()
        {
            fields.shift_remove("parameters");
        }
        self.visit(object);
    }

    fn visit(&mut self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.visit(item)),
            Value::Object(map) => {
                let metadata = map.get_mut("metadata").and_then(Value::as_object_mut);
                let annotations = metadata.map(self::metadata).unwrap_or_default();
                if map.get("containers").is_some_and(Value::is_array) {
                    self.pod_spec(map, Map::new());
                    return;
                }
                // `kubectl rollout restart` makes a revision that differs in an annotation alone.
                if !map.contains_key("kind")
                    && let Some(Value::Object(spec)) = map.get_mut("spec")
                    && spec.get("containers").is_some_and(Value::is_array)
                {
                    self.pod_spec(spec, annotations);
                    return;
                }
                map.values_mut().for_each(|value| self.visit(value));
            }
            _ => {}
        }
    }

    /// `annotations` are those that were removed from the template.
    fn pod_spec(&mut self, spec: &mut Map<String, Value>, annotations: Map<String, Value>) {
        let mut taken = vec![annotations, take(spec, SPEC)];
        for list in ["initContainers", "containers"] {
            for container in objects(spec, list) {
                taken.push(take(container, CONTAINER));
            }
        }
        for volume in objects(spec, "volumes") {
            taken.push(self::volume(volume));
        }
        if taken.iter().all(Map::is_empty) {
            return;
        }
        // A ControllerRevision has its template's fields in another order than the set.
        let mut taken = json!(taken);
        taken.sort_all_objects();
        let text = taken.to_string();
        let next = self.taken.len() + 1;
        let number = *self.taken.entry(text).or_insert(next);
        if let Some(first) = objects(spec, "containers").next() {
            let digest = json!([{"name": DIGEST, "value": number.to_string()}]);
            first.insert("env".to_owned(), digest);
        }
    }
}

/// Returns the removed annotations.
fn metadata(metadata: &mut Map<String, Value>) -> Map<String, Value> {
    metadata.shift_remove("managedFields");
    metadata.shift_remove("selfLink");
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else {
        return Map::new();
    };
    let decides = |key: &str| ANNOTATIONS.iter().any(|start| key.starts_with(start));
    let (kept, removed) = std::mem::take(annotations)
        .into_iter()
        .partition(|(key, _)| decides(key));
    *annotations = kept;
    if annotations.is_empty() {
        metadata.shift_remove("annotations");
    }
    removed
}

fn pod_status(status: &mut Map<String, Value>) {
    keep(status, POD_STATUS);
    for list in ["containerStatuses", "initContainerStatuses"] {
        for container in objects(status, list) {
            keep(container, CONTAINER_STATUS);
            for empty in ["image", "imageID"] {
                container.insert(empty.to_owned(), "".into());
            }
        }
    }
}

/// Reduces a volume to what decides; returns the removed part.
fn volume(volume: &mut Map<String, Value>) -> Map<String, Value> {
    let mut kept: Vec<&str> = VOLUME.to_vec();
    kept.push("name");
    let taken = take(volume, &kept);
    if volume.len() == 1 {
        let source = match taken.contains_key("emptyDir") {
            true => "emptyDir",
            false => "projected",
        };
        volume.insert(source.to_owned(), json!({}));
    }
    for source in volume.values_mut() {
        if let Value::Object(source) = source {
            source.shift_remove("secretRef");
            source.shift_remove("nodePublishSecretRef");
            source.shift_remove("volumeAttributes");
        }
    }
    taken
}

fn keep(map: &mut Map<String, Value>, names: &[&str]) {
    map.retain(|key, _| names.contains(&key.as_str()));
}

/// Keeps only these fields, and returns the others.
fn take(map: &mut Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let (kept, taken) = std::mem::take(map)
        .into_iter()
        .partition(|(key, _)| names.contains(&key.as_str()));
    *map = kept;
    taken
}

fn objects<'a>(
    map: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let items = map.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrubbed(mut object: Value) -> Value {
        Scrubber::default().scrub(&mut object);
        object
    }

    #[test]
    fn a_pod_keeps_what_decides_and_no_secret() {
        let pod = scrubbed(json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web-1", "uid": "1", "labels": {"app": "web"},
                "annotations": {
                    "controller.kubernetes.io/pod-deletion-cost": "5",
                    "defaults.strew.dev/apply": "false",
                    "karpenter.sh/do-not-disrupt": "true",
                    "vault/token": "s3cret",
                },
                "managedFields": [{"manager": "s3cret"}],
            },
            "spec": {
                "schedulerName": "strew",
                "serviceAccountName": "s3cret",
                "imagePullSecrets": [{"name": "s3cret"}],
                "containers": [{
                    "name": "c", "image": "web:1", "args": ["--password=s3cret"],
                    "env": [{"name": "TOKEN", "value": "s3cret"}],
                    "resources": {"requests": {"cpu": "1"}},
                }],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-1"}},
                    {"name": "keys", "secret": {"secretName": "s3cret"}},
                    {"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}},
                ],
            },
            "status": {
                "phase": "Running", "podIP": "10.0.0.1",
                "containerStatuses": [{
                    "name": "c", "ready": true, "restartCount": 1, "image": "web:1", "imageID": "x",
                    "state": {"waiting": {"message": "s3cret"}},
                }],
            },
        }));
        let wanted = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "web-1", "uid": "1", "labels": {"app": "web"},
                "annotations": {
                    "controller.kubernetes.io/pod-deletion-cost": "5",
                    "defaults.strew.dev/apply": "false",
                    "karpenter.sh/do-not-disrupt": "true",
                },
            },
            "spec": {
                "schedulerName": "strew",
                "containers": [{
                    "name": "c", "image": "web:1", "resources": {"requests": {"cpu": "1"}},
                    "env": [{"name": "STREW_SNAPSHOT", "value": "1"}],
                }],
                "volumes": [
                    {"name": "data", "persistentVolumeClaim": {"claimName": "data-1"}},
                    {"name": "keys", "projected": {}},
                    {"name": "cache", "emptyDir": {}},
                ],
            },
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {"name": "c", "ready": true, "restartCount": 1, "image": "", "imageID": ""},
                ],
            },
        });
        assert_eq!(pod, wanted);
    }

    #[test]
    fn templates_that_differ_in_what_was_taken_away_still_differ() {
        let template = |token: &str| {
            json!({"kind": "ReplicaSet", "spec": {"template": {"spec": {"containers": [
                {"name": "c", "env": [{"name": "TOKEN", "value": token}]},
            ]}}}})
        };
        let mut scrubber = Scrubber::default();
        let mut number = |token: &str| {
            let mut set = template(token);
            scrubber.scrub(&mut set);
            set["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"].clone()
        };
        assert_eq!(["a", "b", "a"].map(&mut number), ["1", "2", "1"]);
    }

    #[test]
    fn templates_that_differ_in_an_annotation_still_differ() {
        let mut scrubber = Scrubber::default();
        let mut scrub = |restarted: Value| {
            let metadata = json!({"labels": {"app": "web"}, "annotations": restarted});
            let template = json!({"metadata": metadata, "spec": {"containers": [{"name": "c"}]}});
            let mut set = json!({"kind": "Deployment", "spec": {"template": template}});
            scrubber.scrub(&mut set);
            set["spec"]["template"].clone()
        };
        let restarted = |at: &str| json!({"kubectl.kubernetes.io/restartedAt": at});
        let [none, first, again, second] =
            [json!({}), restarted("1"), restarted("1"), restarted("2")].map(&mut scrub);
        assert_eq!(first, again);
        assert_ne!(none, first);
        assert_ne!(first, second);
        assert!(!first.to_string().contains("restartedAt"), "{first}");
    }

    #[test]
    fn a_revision_keeps_its_template_as_the_set_does_and_nothing_else() {
        let mut scrubber = Scrubber::default();
        let mut set = json!({"kind": "StatefulSet", "spec": {"template": {"spec": {"containers": [
            {"name": "c", "image": "db:1", "env": [{"name": "TOKEN", "value": "s3cret"}], "args": ["x"]},
        ]}}}});
        let mut revision = json!({
            "kind": "ControllerRevision",
            "revision": 3,
            "data": {"spec": {
                "template": {"$patch": "replace", "spec": {"containers": [
                    {"args": ["x"], "env": [{"value": "s3cret", "name": "TOKEN"}], "image": "db:1", "name": "c"},
                ]}},
                "token": "s3cret",
            }},
        });
        scrubber.scrub(&mut set);
        scrubber.scrub(&mut revision);
        let mut template = set["spec"]["template"].clone();
        template["$patch"] = "replace".into();
        assert_eq!(
            revision,
            json!({
                "kind": "ControllerRevision",
                "revision": 3,
                "data": {"spec": {"template": template}},
            })
        );
        // What some other controller keeps in its revisions is not a template.
        let other = scrubbed(json!({"kind": "ControllerRevision", "data": {"key": "s3cret"}}));
        assert!(!other.to_string().contains("s3cret"), "{other}");
    }

    #[test]
    fn a_plain_template_stays_as_it_is() {
        let plain = json!({"kind": "Deployment", "spec": {"replicas": 3, "template": {"spec": {
            "containers": [{"name": "c", "image": "web:1"}], "nodeSelector": {"disk": "ssd"},
        }}}});
        assert_eq!(scrubbed(plain.clone()), plain);
    }

    #[test]
    fn nodes_and_services_keep_what_decides() {
        let node = scrubbed(
            json!({"kind": "Node", "spec": {"unschedulable": true}, "status": {
                "allocatable": {"cpu": "8"}, "addresses": [{"address": "10.0.0.1"}],
            }}),
        );
        let wanted = json!({"kind": "Node", "spec": {"unschedulable": true}, "status": {
            "allocatable": {"cpu": "8"},
        }});
        assert_eq!(node, wanted);
        let service = scrubbed(json!({"kind": "Service", "spec": {
            "selector": {"app": "web"}, "externalName": "db.example.com",
        }}));
        assert_eq!(
            service,
            json!({"kind": "Service", "spec": {"selector": {"app": "web"}}})
        );
        let volume = scrubbed(json!({"kind": "PersistentVolume", "spec": {
            "csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"key": "s3cret"}},
        }}));
        let driver = json!({"driver": "d", "volumeHandle": "h"});
        assert_eq!(volume["spec"]["csi"], driver);
        let class = scrubbed(
            json!({"kind": "StorageClass", "provisioner": "d", "parameters": {
                "secret": "s3cret",
            }}),
        );
        assert_eq!(class, json!({"kind": "StorageClass", "provisioner": "d"}));
    }
}
