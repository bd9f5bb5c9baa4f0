//! Objects to inputs of the machine that keeps ReplicaSets spread, and its effects to requests.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::ReplicaSet as WireSet;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;
use strew_cluster::scale_down::{DELETION_COST, Progress, Stage};
use strew_cluster::{NodeFact, PodFact, PodSpec};
pub use strew_keep::LABEL;
use strew_keep::facts::{Cost, Pod, ReplicaSet};
use strew_keep::{Effect, EffectId, Input, OWN_COST, Outcome, Wish};
use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;
use strew_model::{Interner, Resources};
use strew_workloadspread::MARKER_ANNOTATION;

use crate::facts::{self, controller, labelled, named, namespaced};
use crate::request::{Answer, Precondition, Request, Resource, Verb, version_of};

/// The input for the current state of an object; `None` if decisions do not read its kind.
///
/// # Errors
/// Everything in the object that cannot be converted.
pub fn input(object: &KubeObject, names: &mut Interner) -> Result<Option<Input>, Vec<FieldError>> {
    Ok(Some(match object {
        KubeObject::Node(wire) => Input::NodeSet(Box::new(bare_node(facts::node(wire, names)?))),
        KubeObject::Pod(wire) => match facts::pod(wire, names)? {
            Some(fact) => Input::PodSet(Box::new(pod(wire, fact))),
            None => Input::PodGone(uid(&wire.metadata)),
        },
        KubeObject::ReplicaSet(wire) => Input::SetSet(Box::new(set(wire, object, names))),
        KubeObject::Deployment(wire) => {
            Input::DeploymentSet(namespaced(&wire.metadata, names), wish(&wire.metadata))
        }
        KubeObject::Namespace(wire) => {
            let (name, _) = labelled(&wire.metadata, names);
            Input::NamespaceSet(name, wish(&wire.metadata))
        }
        _ => return Ok(None),
    }))
}

/// The input for a deleted object, of which the name and the uid are known; `None` if decisions do not read its kind.
pub fn gone(object: &KubeObject, names: &mut Interner) -> Option<Input> {
    Some(match object {
        KubeObject::Node(wire) => Input::NodeGone(named(&wire.metadata, names)),
        KubeObject::Pod(wire) => Input::PodGone(uid(&wire.metadata)),
        KubeObject::ReplicaSet(wire) => Input::SetGone(namespaced(&wire.metadata, names)),
        KubeObject::Deployment(wire) => {
            Input::DeploymentSet(namespaced(&wire.metadata, names), None)
        }
        KubeObject::Namespace(wire) => Input::NamespaceSet(named(&wire.metadata, names), None),
        _ => return None,
    })
}

/// What the label of an object asks for.
pub fn wish(metadata: &ObjectMeta) -> Option<Wish> {
    let labels = metadata.labels.as_ref()?;
    Wish::of(labels.get(LABEL).map(String::as_str))
}

fn uid(metadata: &ObjectMeta) -> Arc<str> {
    metadata.uid.as_deref().unwrap_or_default().into()
}

fn set(wire: &WireSet, object: &KubeObject, names: &mut Interner) -> ReplicaSet {
    let owners = wire.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    let deployment = owners.find(|owner| owner.kind == "Deployment");
    ReplicaSet {
        key: namespaced(&wire.metadata, names),
        deployment: deployment.map(|owner| names.intern(&owner.name)),
        wish: wish(&wire.metadata),
        selector: controller(object, names).and_then(|(.., selector)| selector),
    }
}

fn pod(wire: &core::Pod, fact: PodFact) -> Pod {
    let annotations = wire.metadata.annotations.as_ref();
    let annotation = |key: &str| annotations?.get(key).map(String::as_str);
    let status = wire.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let stage = Stage {
        is_assigned: fact.node.is_some(),
        progress: match status.and_then(|status| status.phase.as_deref()) {
            Some("Running") => Progress::Running,
            Some("Unknown") => Progress::Unknown,
            _ => Progress::Pending,
        },
        is_ready: conditions.any(|c| c.type_ == "Ready" && c.status == "True"),
    };
    Pod {
        fact: bare_pod(fact),
        stage,
        cost: Cost::of(annotation(DELETION_COST), annotation(OWN_COST)),
        is_of_spread: annotation(MARKER_ANNOTATION).is_some(),
        version: version_of(wire.metadata.resource_version.as_deref()),
    }
}

/// The pod without what no constraint reads, so that more pods are alike and no amount is added up.
fn bare_pod(fact: PodFact) -> PodFact {
    let PodSpec {
        scheduler_name,
        node_affinity,
        tolerations,
        spread,
        ..
    } = fact.spec;
    let spec = PodSpec {
        scheduler_name,
        node_affinity,
        tolerations,
        spread,
        ..PodSpec::default()
    };
    PodFact { spec, ..fact }
}

fn bare_node(fact: NodeFact) -> NodeFact {
    NodeFact {
        allocatable: Resources::default(),
        pods_max: 0,
        images: Box::default(),
        ..fact
    }
}

/// The request of an effect with the id for its outcome; `None` for one that needs no request.
pub fn request(effect: &Effect, names: &Interner) -> Option<(EffectId, Request)> {
    let Effect::SetCost {
        id,
        pod,
        version,
        cost,
    } = effect
    else {
        return None;
    };
    let version = version.to_string();
    let cost = cost.map(|cost| cost.to_string());
    let body = json!({
        "metadata": {
            "uid": &*pod.uid,
            "resourceVersion": version,
            "annotations": {DELETION_COST: &cost, OWN_COST: &cost},
        },
    });
    let request = Request {
        verb: Verb::Patch,
        resource: Resource::PODS,
        namespace: names.text(pod.namespace).to_owned(),
        name: pod.name.to_string(),
        subresource: "",
        body,
        precondition: Precondition {
            uid: Some(pod.uid.to_string()),
            resource_version: Some(version),
        },
    };
    Some((*id, request))
}

/// The outcome of an answer.
pub fn outcome(answer: &Answer) -> Outcome {
    match (answer.code(), answer.version()) {
        (_, Some(version)) => Outcome::Written(version),
        (Some(404), _) => Outcome::Gone,
        (Some(409 | 422), _) if answer.is_of_another_uid() => Outcome::Gone,
        (Some(409), _) => Outcome::Conflict,
        _ => Outcome::Failed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value};

    use super::*;

    fn read(manifest: Value) -> Input {
        let object = KubeObject::of_json(manifest).unwrap();
        input(&object, &mut Interner::new()).unwrap().unwrap()
    }

    fn pod_with(annotations: Value) -> Pod {
        let manifest = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "1", "annotations": annotations},
            "spec": {"nodeName": "a", "containers": [{
                "name": "c", "image": "a", "resources": {"requests": {"cpu": "1"}},
            }]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        match read(manifest) {
            Input::PodSet(pod) => *pod,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_cost_is_own_only_if_the_annotation_beside_it_is_equal() {
        let both = |cost: &str, own: &str| json!({DELETION_COST: cost, OWN_COST: own});
        for (annotations, expected) in [
            (Value::Null, Cost::Absent),
            (json!({OWN_COST: "-1000"}), Cost::Absent),
            (json!({DELETION_COST: "-1000"}), Cost::Foreign),
            (both("-1000", "-1000"), Cost::Own(-1000)),
            (both("-999", "-1000"), Cost::Foreign),
            (both("x", "x"), Cost::Foreign),
        ] {
            assert_eq!(
                pod_with(annotations.clone()).cost,
                expected,
                "{annotations}"
            );
        }
        let marked = pod_with(json!({MARKER_ANNOTATION: "{}"}));
        assert!(marked.is_of_spread && marked.stage.is_ready && marked.stage.is_assigned);
        assert_eq!(marked.fact.spec.requests, Resources::default());
    }

    #[test]
    fn labels_and_owners_are_read() {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": "web-1", "namespace": "shop", "labels": {LABEL: "false"},
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "2",
                    "controller": true,
                }],
            },
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
        });
        let Input::SetSet(set) = read(set) else {
            panic!("a ReplicaSet");
        };
        assert_eq!(set.wish, Some(Wish::Leave));
        assert!(set.deployment.is_some() && set.selector.is_some());
        let namespace = |value: &str| {
            read(json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": "shop", "labels": {LABEL: value}},
            }))
        };
        for (value, expected) in [("true", Some(Wish::Keep)), ("yes", None)] {
            assert!(matches!(namespace(value), Input::NamespaceSet(_, wish) if wish == expected));
        }
    }

    #[test]
    fn both_annotations_are_written_and_removed_together() {
        let mut names = Interner::new();
        let effect = |cost| Effect::SetCost {
            id: EffectId(7),
            pod: strew_keep::PodName {
                uid: "1".into(),
                namespace: names.intern("shop"),
                name: "web-1".into(),
            },
            version: 9,
            cost,
        };
        let [set, unset] = [Some(-1000), None].map(effect);
        let annotations = |effect: &Effect| {
            let (_, request) = request(effect, &names).unwrap();
            assert_eq!(
                request.path(),
                "/api/v1/namespaces/shop/pods/web-1?fieldValidation=Strict"
            );
            assert_eq!(request.body["metadata"]["resourceVersion"], "9");
            request.body["metadata"]["annotations"].clone()
        };
        assert_eq!(
            annotations(&set),
            json!({DELETION_COST: "-1000", OWN_COST: "-1000"})
        );
        let removed: Value = from_value(json!({DELETION_COST: null, OWN_COST: null})).unwrap();
        assert_eq!(annotations(&unset), removed);
    }
}
