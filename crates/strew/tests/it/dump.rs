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

/// The lists of resources of a cluster in a text.
fn dumped(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c.is_whitespace() || c == '`');
    words
        .filter(|word| word.starts_with("nodes,pods"))
        .collect()
}

/// The resources of the dump that the help of simulate names.
fn dumped_resources() -> String {
    let help = strew("simulate --help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let [found] = dumped(&help)[..] else {
        panic!("one dump in {help}");
    };
    found.to_owned()
}

#[test]
fn all_pages_have_one_dump_command() {
    let resources = dumped_resources();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<std::path::PathBuf> = std::fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.push(root.join("README.md"));
    let mut n_found = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for found in dumped(&text) {
            n_found += 1;
            assert_eq!(found, resources, "{}", page.display());
        }
    }
    assert!(n_found >= 5, "{n_found} pages");
    let run = strew("explain pod/web -").stdin("{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: i}]}}").assert();
    assert_eq!(dumped(&stderr(&run)), [resources.as_str()]);
}

/// A dump as that command writes it: one object of each resource, as a cluster has them.
#[test]
fn every_resource_of_the_dump_command_is_read() {
    let object = |api: &str, kind: &str, name: &str, rest: Value| {
        let mut object = json!({
            "apiVersion": api, "kind": kind, "metadata": {"name": name, "uid": format!("{kind}-{name}"), "namespace": "default"},
        });
        let cluster_wide = [
            "Node",
            "Namespace",
            "PriorityClass",
            "RuntimeClass",
            "PersistentVolume",
            "StorageClass",
            "CSINode",
        ];
        if cluster_wide.contains(&kind) {
            object["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("namespace");
        }
        for (key, value) in rest.as_object().unwrap() {
            object[key] = value.clone();
        }
        object
    };
    let set = |app: &str| json!({"spec": {"replicas": 0, "selector": {"matchLabels": {"app": app}}, "template": template(app)}});
    let mut stateful = set("db");
    stateful["spec"]["serviceName"] = "db".into();
    let daemon = json!({"spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent")}});
    let mut job = template("job");
    job["spec"]["restartPolicy"] = "Never".into();
    let job =
        json!({"suspend": true, "selector": {"matchLabels": {"app": "job"}}, "template": job});
    let mut web = pod("ReplicaSet", "web", "web-0", "", "n0");
    web["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("ownerReferences");
    let all = [
        (
            "nodes",
            object(
                "v1",
                "Node",
                "n0",
                json!({"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}}),
            ),
        ),
        ("pods", web),
        ("deploy", object("apps/v1", "Deployment", "web", set("web"))),
        ("rs", object("apps/v1", "ReplicaSet", "bare", set("bare"))),
        ("sts", object("apps/v1", "StatefulSet", "db", stateful)),
        ("ds", object("apps/v1", "DaemonSet", "agent", daemon)),
        (
            "rc",
            object(
                "v1",
                "ReplicationController",
                "old",
                json!({"spec": {"replicas": 0, "selector": {"app": "old"}, "template": template("old")}}),
            ),
        ),
        (
            "jobs",
            object("batch/v1", "Job", "once", json!({"spec": job})),
        ),
        (
            "cronjobs",
            object(
                "batch/v1",
                "CronJob",
                "nightly",
                json!({"spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": job["template"]}}}}),
            ),
        ),
        (
            "controllerrevisions",
            object(
                "apps/v1",
                "ControllerRevision",
                "db-1",
                json!({"revision": 1}),
            ),
        ),
        (
            "hpa",
            object(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                "web",
                json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
            ),
        ),
        (
            "pdb",
            object(
                "policy/v1",
                "PodDisruptionBudget",
                "web",
                json!({"spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}}}),
            ),
        ),
        (
            "svc",
            object(
                "v1",
                "Service",
                "web",
                json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
            ),
        ),
        (
            "namespaces",
            object("v1", "Namespace", "default", json!({})),
        ),
        (
            "quota",
            object(
                "v1",
                "ResourceQuota",
                "q",
                json!({"spec": {"hard": {"pods": "50"}}}),
            ),
        ),
        (
            "limits",
            object(
                "v1",
                "LimitRange",
                "l",
                json!({"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
            ),
        ),
        (
            "priorityclasses",
            object(
                "scheduling.k8s.io/v1",
                "PriorityClass",
                "high",
                json!({"value": 100}),
            ),
        ),
        (
            "runtimeclasses",
            object(
                "node.k8s.io/v1",
                "RuntimeClass",
                "kata",
                json!({"handler": "kata"}),
            ),
        ),
        (
            "pvc",
            object(
                "v1",
                "PersistentVolumeClaim",
                "data",
                json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "volumeName": "pv", "resources": {"requests": {"storage": "1Gi"}}}, "status": {"phase": "Bound"}}),
            ),
        ),
        (
            "pv",
            object(
                "v1",
                "PersistentVolume",
                "pv",
                json!({"spec": {"storageClassName": "fast", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "claimRef": {"namespace": "default", "name": "data"}, "nfs": {"server": "s", "path": "/"}}, "status": {"phase": "Bound"}}),
            ),
        ),
        (
            "sc",
            object(
                "storage.k8s.io/v1",
                "StorageClass",
                "fast",
                json!({"provisioner": "x"}),
            ),
        ),
        (
            "csinodes",
            object(
                "storage.k8s.io/v1",
                "CSINode",
                "n0",
                json!({"spec": {"drivers": []}}),
            ),
        ),
        (
            "events",
            object(
                "v1",
                "Event",
                "web-0.1",
                json!({"involvedObject": {"kind": "Pod", "name": "web-0", "namespace": "default"}, "reason": "Scheduled", "message": "assigned"}),
            ),
        ),
    ];
    let named: Vec<&str> = all.iter().map(|(resource, _)| *resource).collect();
    assert_eq!(named.join(","), dumped_resources());
    let items: Vec<&Value> = all.iter().map(|(_, object)| object).collect();
    let dump = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items});
    let run = strew("simulate - --until deploy")
        .stdin(dump.to_string())
        .assert();
    let words = stderr(&run);
    assert_eq!(words, "");
    run.code(0);
}
