use serde_json::{Value, json};
use strew_apiserver::object::Kind;
use strew_manifest::read::KubeObject;

use super::*;

const TEMPLATE: &str = r#"{
    "metadata": {"labels": {"app": "db"}},
    "spec": {
        "containers": [{"name": "db", "image": "db:1", "resources": {"requests": {"cpu": "1"}}}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
             "matchLabelKeys": ["controller-revision-hash"], "labelSelector": {"matchLabels": {"app": "db"}}}
        ]
    }
}"#;

fn template() -> Value {
    serde_json::from_str(TEMPLATE).unwrap()
}

fn object(value: Value) -> Object {
    Object::of_wire(KubeObject::of_json(value).unwrap())
}

fn set(kind: &str, template: &Value) -> Object {
    object(json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": "db", "namespace": "default", "uid": "s"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}, "serviceName": "db", "template": template},
        "status": {"updateRevision": "db-b", "currentNumberScheduled": 1, "desiredNumberScheduled": 1,
            "numberMisscheduled": 0, "numberReady": 1, "replicas": 1},
    }))
}

/// A pod as a cluster makes it of a template.
fn pod(kind: &str, label: &str, template: &Value) -> Object {
    let mut spec = template["spec"].clone();
    spec["nodeName"] = "n".into();
    spec["hostname"] = "db-0".into();
    spec["tolerations"] = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]);
    spec["volumes"] = json!([{"name": "kube-api-access", "emptyDir": {}}]);
    spec["containers"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "proxy", "image": "proxy:1"}));
    if let Some(constraints) = spec["topologySpreadConstraints"].as_array_mut() {
        for constraint in constraints {
            constraint["labelSelector"]["matchExpressions"] = json!([
                {"key": "controller-revision-hash", "operator": "In", "values": [label]},
            ]);
        }
    }
    if kind == "DaemonSet" {
        spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}],
        }}});
    }
    object(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("db-{label}"), "namespace": "default",
            "labels": {"app": "db", "controller-revision-hash": label},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "db", "uid": "s", "controller": true}],
        },
        "spec": spec,
    }))
}

/// The names of the revisions that are added, and the sets that only have old pods.
fn completed(mut objects: Vec<Object>) -> (Vec<String>, Vec<String>) {
    let old = complete(&mut objects).with_old_pods;
    let added = objects
        .iter()
        .filter(|o| o.kind() == Kind::ControllerRevision);
    (added.map(|o| o.meta().name.name.to_string()).collect(), old)
}

/// Of a Deployment with this template, and pods of the ReplicaSets `db-HASH` with theirs: the ReplicaSets that are
/// added, each as name, revision, replicas and image.
fn added_sets(uid: &str, template: &Value, pods: &[(&str, &Value)]) -> Vec<String> {
    added_sets_at("7", uid, template, pods)
}

/// The same of a Deployment with this revision.
fn added_sets_at(
    revision: &str,
    uid: &str,
    template: &Value,
    pods: &[(&str, &Value)],
) -> Vec<String> {
    let mut all = vec![object(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "db", "namespace": "default", "uid": uid,
            "annotations": {"deployment.kubernetes.io/revision": revision}},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": template},
    }))];
    for (number, (hash, template)) in pods.iter().enumerate() {
        let mut pod = pod("ReplicaSet", hash, template).to_json();
        pod["metadata"]["name"] = format!("db-{hash}-{number}").into();
        pod["metadata"]["labels"]["pod-template-hash"] = (*hash).into();
        pod["metadata"]["ownerReferences"][0]["name"] = format!("db-{hash}").into();
        pod["metadata"]["ownerReferences"][0]["uid"] = format!("uid-{hash}").into();
        all.push(object(pod));
    }
    let named = complete(&mut all).replica_sets;
    let sets: Vec<Value> = all
        .iter()
        .filter(|o| o.kind() == Kind::ReplicaSet)
        .map(Object::to_json)
        .collect();
    assert_eq!(named.len(), sets.len());
    let told = sets.iter().map(|set| {
        let text = |path: &str| set.pointer(path).unwrap().to_string().replace('"', "");
        let revision = "/metadata/annotations/deployment.kubernetes.io~1revision";
        let image = "/spec/template/spec/containers/0/image";
        let paths = [
            "/metadata/name",
            "/metadata/uid",
            revision,
            "/spec/replicas",
            image,
        ];
        paths.map(text).join(" ")
    });
    told.collect()
}

#[test]
fn replica_sets_are_made_from_their_pods() {
    let t = template();
    let mut old = t.clone();
    old["spec"]["containers"][0]["image"] = "db:0".into();
    let pods = [("z", &old), ("b", &t), ("b", &t)];
    assert_eq!(
        added_sets("d", &t, &pods),
        ["db-z uid-z 6 1 db:0", "db-b uid-b 7 2 db:1"]
    );
    // The template was edited: a rollout begins.
    let mut edited = t.clone();
    edited["spec"]["containers"][0]["image"] = "db:2".into();
    assert_eq!(
        added_sets("d", &edited, &pods[1..]),
        ["db-b uid-b 6 2 db:1"]
    );
    // Whatever its number is; before, a debug build panicked.
    let least = i64::MIN.to_string();
    assert_eq!(
        added_sets_at(&least, "d", &t, &pods[..1]),
        ["db-z uid-z 1 1 db:0"]
    );
    // A Deployment that is only now applied has no pods.
    assert!(added_sets("", &t, &pods).is_empty());
}

#[test]
fn a_subset_of_a_workloadspread_changes_no_template() {
    let t = template();
    let mut pod = pod("StatefulSet", "db-b", &t).to_json();
    pod["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "Exists"}]}],
    }}});
    let all = |pod: &Value| vec![set("StatefulSet", &t), object(pod.clone())];
    assert_eq!(completed(all(&pod)).1, ["statefulset/db"]);
    pod["metadata"]["annotations"] = json!({"apps.kruise.io/matched-workloadspread": "{}"});
    assert_eq!(completed(all(&pod)), (vec!["db-b".to_owned()], vec![]));
}

#[test]
fn the_revision_of_the_pods_is_added_under_its_name() {
    let t = template();
    let mut other = t.clone();
    other["spec"]["containers"][0]["image"] = "db:0".into();
    let of_sets = [
        set("StatefulSet", &t),
        pod("StatefulSet", "db-a", &other),
        pod("StatefulSet", "db-b", &t),
    ];
    assert_eq!(completed(of_sets.into()), (vec!["db-b".into()], vec![]));
    let daemons = [set("DaemonSet", &t), pod("DaemonSet", "c", &t)];
    assert_eq!(completed(daemons.into()), (vec!["db-c".into()], vec![]));
}

#[test]
fn the_status_says_which_of_two_equal_ones_it_is() {
    let t = template();
    let all = [
        set("StatefulSet", &t),
        pod("StatefulSet", "db-a", &t),
        pod("StatefulSet", "db-b", &t),
    ];
    assert_eq!(completed(all.into()), (vec!["db-b".into()], vec![]));
}

#[test]
fn revisions_of_the_files_stay_alone() {
    let t = template();
    let revision = object(json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1,
        "metadata": {"name": "db-x", "namespace": "default",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "s", "controller": true}]},
        "data": {"spec": {"template": t}},
    }));
    let all = [
        set("StatefulSet", &t),
        pod("StatefulSet", "db-a", &t),
        revision,
    ];
    assert_eq!(completed(all.into()), (vec!["db-x".into()], vec![]));
}

#[test]
fn an_edit_of_the_template_is_a_rollout() {
    let t = template();
    let edits: [(&str, Value); 6] = [
        ("/spec/containers/0/image", "db:2".into()),
        ("/spec/containers/0/resources/requests/cpu", "2".into()),
        ("/spec/topologySpreadConstraints", json!([])),
        ("/spec/topologySpreadConstraints", Value::Null),
        ("/spec/topologySpreadConstraints/0/maxSkew", 2.into()),
        ("/metadata/labels/app", "other".into()),
    ];
    for (path, value) in edits {
        let mut edited = t.clone();
        *edited.pointer_mut(path).unwrap() = value;
        let all = [set("StatefulSet", &edited), pod("StatefulSet", "db-b", &t)];
        let expected = (vec![], vec!["statefulset/db".to_owned()]);
        assert_eq!(completed(all.into()), expected, "{path}");
    }
}

#[test]
fn a_set_without_pods_gets_none() {
    assert_eq!(
        completed(vec![set("StatefulSet", &template())]),
        (vec![], vec![])
    );
}
