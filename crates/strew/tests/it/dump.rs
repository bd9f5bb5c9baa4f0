//! Workloads of a dumped cluster keep their pods, with and without ControllerRevisions and ReplicaSets in the files.

use serde_json::{Value, json};

use crate::{first_step, json as report_of, stderr, strew};

fn owner(kind: &str, name: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": true, "blockOwnerDeletion": true}])
}

fn template(app: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"cpu": "500m"}}}]},
    })
}

fn pod(kind: &str, set: &str, name: &str, revision: &str, node: &str) -> Value {
    let mut spec = template(set)["spec"].clone();
    spec["nodeName"] = node.into();
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": name,
            "labels": {"app": set, "controller-revision-hash": revision},
            "ownerReferences": owner(kind, set),
        },
        "spec": spec,
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"}]},
    })
}

/// Three nodes; a StatefulSet `db` of three pods, all on n0; a DaemonSet `agent`. As a cluster has them.
fn cluster() -> Vec<Value> {
    let mut all = vec![
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "default", "uid": "db", "generation": 1},
            "spec": {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template("db")},
            "status": {"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
                "currentRevision": "db-6b8c7d9f5", "updateRevision": "db-6b8c7d9f5"},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": "default", "uid": "agent", "generation": 1},
            "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent")},
            "status": {"observedGeneration": 1, "currentNumberScheduled": 3, "desiredNumberScheduled": 3, "numberMisscheduled": 0,
                "numberReady": 3, "updatedNumberScheduled": 3, "numberAvailable": 3},
        }),
    ];
    for n in 0..3 {
        let node = format!("n{n}");
        all.push(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node, "labels": {"kubernetes.io/hostname": node}},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }));
        let daemon = format!("agent-{n}");
        all.push(pod("DaemonSet", "agent", &daemon, "5d4f6", &node));
        let member = format!("db-{n}");
        all.push(pod("StatefulSet", "db", &member, "db-6b8c7d9f5", "n0"));
    }
    all
}

/// The step `deploy` on these objects, and the notes.
fn deployed(objects: &[Value]) -> (Value, String) {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let run = strew("simulate - --until deploy -o json").stdin(list.to_string());
    let run = run.assert().code(0);
    (first_step(&report_of(&run)).clone(), stderr(&run))
}

fn bound_before(step: &Value, of: &str) -> Value {
    let all = step["workloads"].as_array().unwrap();
    let found = all.iter().find(|workload| workload["of"] == of);
    found.unwrap()["boundBefore"].clone()
}

#[test]
fn pods_stay_where_no_revision_is_in_the_files() {
    let (step, notes) = deployed(&cluster());
    assert_eq!(bound_before(&step, "statefulset/db"), 3);
    assert_eq!(bound_before(&step, "daemonset/agent"), 3);
    assert!(!notes.contains("rollout"), "{notes}");
}

/// As a real controller writes it: with the template as a patch, and with a field without a value.
#[test]
fn pods_stay_with_the_revisions_of_the_files() {
    let mut all = cluster();
    // With the API server's defaults.
    let stored = json!({
        "metadata": {"labels": {"app": "db"}},
        "spec": {
            "containers": [{
                "name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent", "resources": {"requests": {"cpu": "500m"}},
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            }],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30,
        },
    });
    all[0]["spec"]["template"] = stored.clone();
    let mut kept = stored;
    kept["$patch"] = "replace".into();
    kept["metadata"]["creationTimestamp"] = Value::Null;
    all.push(json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {"name": "db-6b8c7d9f5", "namespace": "default", "uid": "r",
            "labels": {"app": "db", "controller.kubernetes.io/hash": "6b8c7d9f5"}, "ownerReferences": owner("StatefulSet", "db")},
        "revision": 1,
        "data": {"spec": {"template": kept}},
    }));
    let (step, notes) = deployed(&all);
    assert_eq!(bound_before(&step, "statefulset/db"), 3);
    assert!(
        !notes.contains("rollout") && !notes.contains("skipped"),
        "{notes}"
    );
}

#[test]
fn an_edited_template_is_rolled_out_and_that_is_told() {
    let mut all = cluster();
    all[0]["spec"]["template"]["spec"]["containers"][0]["image"] = "i:2".into();
    let (step, notes) = deployed(&all);
    assert_eq!(bound_before(&step, "statefulset/db"), 0);
    assert_eq!(bound_before(&step, "daemonset/agent"), 3);
    assert!(
        notes.contains(
            "no pod of statefulset/db has the template in the files: a rollout begins at second 0"
        ),
        "{notes}"
    );
}

/// Before, it had 8 pods: 4 without an owner, and 4 new ones.
#[test]
fn a_deployment_keeps_its_pods_where_its_replica_set_is_not_in_the_files() {
    let mut all = vec![json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "web"},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")},
    })];
    all.extend(
        cluster()
            .into_iter()
            .filter(|object| object["kind"] == "Node"),
    );
    for n in 0..4 {
        let mut pod = pod(
            "ReplicaSet",
            "web-5d4f6",
            &format!("web-5d4f6-{n}"),
            "",
            "n0",
        );
        pod["metadata"]["labels"] = json!({"app": "web", "pod-template-hash": "5d4f6"});
        pod["spec"] = template("web")["spec"].clone();
        pod["spec"]["nodeName"] = "n0".into();
        all.push(pod);
    }
    let (step, notes) = deployed(&all);
    assert_eq!(bound_before(&step, "deployment/web"), 4);
    assert_eq!(step["pods"]["pods"], 4);
    let told = "ReplicaSet default/web-5d4f6 is not in the files, and is made from its pods";
    assert!(notes.contains(told), "{notes}");
}
