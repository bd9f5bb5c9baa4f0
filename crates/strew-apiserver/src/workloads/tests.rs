use super::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// The objects of a test by kind, from a list as in a manifest.
#[derive(Default)]
struct Objects {
    deployments: Vec<Deployment>,
    replica_sets: Vec<ReplicaSet>,
    controllers: Vec<ReplicationController>,
    stateful_sets: Vec<StatefulSet>,
    daemon_sets: Vec<DaemonSet>,
    jobs: Vec<Job>,
    cron_jobs: Vec<CronJob>,
    pods: Vec<Pod>,
    nodes: Vec<Node>,
}

fn typed<T: DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

impl Objects {
    fn new(list: &Value) -> Self {
        let mut objects = Self::default();
        for object in list.as_array().unwrap() {
            match object["kind"].as_str().unwrap() {
                "Deployment" => objects.deployments.push(typed(object)),
                "ReplicaSet" => objects.replica_sets.push(typed(object)),
                "ReplicationController" => objects.controllers.push(typed(object)),
                "StatefulSet" => objects.stateful_sets.push(typed(object)),
                "DaemonSet" => objects.daemon_sets.push(typed(object)),
                "Job" => objects.jobs.push(typed(object)),
                "CronJob" => objects.cron_jobs.push(typed(object)),
                "Pod" => objects.pods.push(typed(object)),
                "Node" => objects.nodes.push(typed(object)),
                kind => panic!("{kind}"),
            }
        }
        objects
    }

    fn expand(&self) -> Result<Expansion, ExpandError> {
        let mut workloads: Vec<Workload<'_>> = Vec::new();
        workloads.extend(self.deployments.iter().map(Workload::Deployment));
        workloads.extend(self.replica_sets.iter().map(Workload::ReplicaSet));
        workloads.extend(self.controllers.iter().map(Workload::ReplicationController));
        workloads.extend(self.stateful_sets.iter().map(Workload::StatefulSet));
        workloads.extend(self.daemon_sets.iter().map(Workload::DaemonSet));
        workloads.extend(self.jobs.iter().map(Workload::Job));
        workloads.extend(self.cron_jobs.iter().map(Workload::CronJob));
        expand(&workloads, &self.pods, &self.nodes, &mut NameSource::new(1))
    }
}

/// One line a new pod: its name with `*` for what is generated, its owner, its workload.
#[track_caller]
fn check(objects: Value, expected: &[&str]) -> Expansion {
    let expansion = Objects::new(&objects).expand().unwrap();
    let lines: Vec<String> = expansion
        .pods
        .iter()
        .map(|made| {
            let metadata = &made.pod.metadata;
            let name = match &metadata.generate_name {
                Some(base) => format!("{base}*"),
                None => name_of(metadata).to_string(),
            };
            let owner = &metadata.owner_references.as_ref().unwrap()[0];
            format!("{name} of {} for {}", owner.kind, made.workload)
        })
        .collect();
    assert_eq!(lines, expected);
    expansion
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn workload(kind: &str, spec: Value) -> Value {
    let mut full = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template()});
    full.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    json!({"kind": kind, "metadata": {"name": "web"}, "spec": full})
}

fn owned(kind: &str, name: &str, owner: (&str, &str)) -> Value {
    json!({"kind": kind, "metadata": {
        "name": name,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": owner.0, "name": owner.1, "uid": "", "controller": true}],
    }})
}

#[test]
fn a_deployment_makes_a_replica_set_that_makes_pods() {
    let line = format!("web-{}-* of ReplicaSet for Deployment default/web", hash());
    let expansion = check(
        json!([workload("Deployment", json!({"replicas": 2}))]),
        &[&line, &line],
    );
    let set = &expansion.replica_sets[0];
    let spec = set.spec.as_ref().unwrap();
    assert_eq!(
        spec.selector.match_labels.as_ref().unwrap()["pod-template-hash"],
        hash()
    );
    assert_eq!(
        set.metadata.labels.as_ref().unwrap()["pod-template-hash"],
        hash()
    );
    let pods: Vec<&ObjectMeta> = expansion
        .pods
        .iter()
        .map(|made| &made.pod.metadata)
        .collect();
    assert_ne!(pods[0].name, pods[1].name);
    assert_eq!(
        pods[0].labels.as_ref().unwrap()["pod-template-hash"],
        hash()
    );
    assert_eq!(
        Some(&pods[0].owner_references.as_ref().unwrap()[0].uid),
        set.metadata.uid.as_ref()
    );
}

fn hash() -> String {
    template_hash(&typed(&template()))
}

#[test]
fn a_dump_with_its_pods_gets_none_and_a_raised_one_the_difference() {
    let mut set = workload("ReplicaSet", json!({"replicas": 2}));
    set["metadata"] = owned("ReplicaSet", "web-5d", ("Deployment", "web"))["metadata"].clone();
    let pod = |name: &str| owned("Pod", name, ("ReplicaSet", "web-5d"));
    let dump = |replicas: i32| {
        let deployment = workload("Deployment", json!({"replicas": replicas}));
        json!([deployment, set, pod("web-5d-a"), pod("web-5d-b")])
    };
    assert!(check(dump(2), &[]).replica_sets.is_empty());
    check(
        dump(3),
        &["web-5d-* of ReplicaSet for Deployment default/web"],
    );
    check(dump(1), &[]);
}

#[test]
fn a_rollout_is_named_and_left_out() {
    let set = |name: &str, created: &str, replicas: i32| {
        let mut set = workload("ReplicaSet", json!({"replicas": replicas}));
        set["metadata"] = owned("ReplicaSet", name, ("Deployment", "web"))["metadata"].clone();
        set["metadata"]["creationTimestamp"] = json!(created);
        set["spec"]["template"]["spec"]["containers"][0]["image"] = json!(name);
        set
    };
    let old = set("web-old", "2024-01-01T00:00:00Z", 1);
    let new = set("web-new", "2024-01-02T00:00:00Z", 1);
    let expansion = check(
        json!([workload("Deployment", json!({"replicas": 3})), new, old]),
        &[
            "web-new-* of ReplicaSet for Deployment default/web",
            "web-new-* of ReplicaSet for Deployment default/web",
            "web-old-* of ReplicaSet for Deployment default/web",
        ],
    );
    assert_eq!(
        expansion.notes[0].text,
        "has a template that none of its ReplicaSets has: a rollout, which is left out here"
    );
}

#[test]
fn pods_of_an_absent_replica_set_count_by_their_hash() {
    let mut pod = owned("Pod", "web-5d-a", ("ReplicaSet", "web-5d"));
    pod["metadata"]["labels"] = json!({"app": "web", "pod-template-hash": "5d"});
    let dump = |replicas: i32| json!([workload("Deployment", json!({"replicas": replicas})), pod]);
    check(dump(1), &[]);
    check(
        dump(2),
        &["web-5d-* of ReplicaSet for Deployment default/web"],
    );
}

#[test]
fn finished_pods_and_those_of_a_former_owner_are_replaced() {
    let mut failed = owned("Pod", "web-a", ("ReplicaSet", "web"));
    failed["status"] = json!({"phase": "Failed"});
    let mut former = owned("Pod", "web-b", ("ReplicaSet", "web"));
    former["metadata"]["ownerReferences"][0]["uid"] = json!("old");
    let mut set = workload("ReplicaSet", json!({"replicas": 1}));
    set["metadata"]["uid"] = json!("new");
    check(
        json!([set, failed, former]),
        &["web-* of ReplicaSet for ReplicaSet default/web"],
    );
}

#[test]
fn stateful_sets_fill_their_ordinals() {
    let claims = json!([{"metadata": {"name": "data"}}]);
    let spec = json!({"replicas": 3, "ordinals": {"start": 5}, "serviceName": "s", "volumeClaimTemplates": claims});
    let expansion = check(
        json!([
            workload("StatefulSet", spec),
            owned("Pod", "web-6", ("StatefulSet", "web"))
        ]),
        &[
            "web-5 of StatefulSet for StatefulSet default/web",
            "web-7 of StatefulSet for StatefulSet default/web",
        ],
    );
    let pod = &expansion.pods[1].pod;
    let labels = pod.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "7");
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "web-7");
    assert_eq!(
        labels["controller-revision-hash"],
        format!("web-{}", hash())
    );
    let volume = &pod.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0];
    let claim = volume.persistent_volume_claim.as_ref().unwrap();
    assert_eq!(claim.claim_name, "data-web-7");
}

#[test]
fn daemon_sets_serve_eligible_nodes_once() {
    let node = |name: &str, taint: Value| json!({"kind": "Node", "metadata": {"name": name, "labels": {"os": "linux"}}, "spec": {"taints": taint}});
    let mut set = workload("DaemonSet", json!({}));
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({"os": "linux"});
    let mut served = owned("Pod", "web-a", ("DaemonSet", "web"));
    served["spec"] = json!({"nodeName": "served", "containers": []});
    let expansion = check(
        json!([
            set, served,
            node("served", json!([])),
            node("free", json!([])),
            node("cordoned", json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}])),
            node("dedicated", json!([{"key": "gpu", "effect": "NoSchedule"}])),
            {"kind": "Node", "metadata": {"name": "windows", "labels": {"os": "windows"}}},
        ]),
        &["web-* of DaemonSet for DaemonSet default/web"; 2],
    );
    let nodes: Vec<Value> = expansion
        .pods
        .iter()
        .map(|made| {
            let spec = serde_json::to_value(&made.pod.spec).unwrap();
            let terms =
                &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
            terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0].clone()
        })
        .collect();
    assert_eq!(nodes, ["free", "cordoned"]);
    assert_eq!(
        expansion.pods[0]
            .pod
            .spec
            .as_ref()
            .unwrap()
            .tolerations
            .as_ref()
            .unwrap()
            .len(),
        6
    );
}

#[test]
fn jobs_run_what_is_left() {
    let job = |spec: Value| json!([workload("Job", spec)]);
    let line = "web-* of Job for Job default/web";
    check(job(json!({"completions": 5, "parallelism": 2})), &[line; 2]);
    check(job(json!({"completions": 1, "parallelism": 2})), &[line]);
    check(job(json!({"parallelism": 3})), &[line; 3]);
    check(job(json!({"suspend": true})), &[]);
    let mut done = owned("Pod", "web-1-a", ("Job", "web"));
    done["metadata"]["annotations"] = json!({"batch.kubernetes.io/job-completion-index": "1"});
    done["status"] = json!({"phase": "Succeeded"});
    let indexed = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    let expansion = check(
        json!([workload("Job", indexed), done]),
        &[
            "web-0-* of Job for Job default/web",
            "web-2-* of Job for Job default/web",
        ],
    );
    let pod = &expansion.pods[1].pod;
    assert_eq!(pod.metadata.labels.as_ref().unwrap()["job-name"], "web");
    assert_eq!(
        pod.spec.as_ref().unwrap().hostname.as_deref(),
        Some("web-2")
    );
}

#[test]
fn some_workloads_make_nothing() {
    let paused = check(
        json!([workload("Deployment", json!({"paused": true}))]),
        &[],
    );
    assert_eq!(paused.notes.len(), 1);
    let mut deleted = workload("ReplicaSet", json!({}));
    deleted["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
    check(json!([deleted]), &[]);
    check(json!([{"kind": "CronJob", "metadata": {"name": "c"}}]), &[]);
    check(
        json!([{"kind": "ReplicationController", "metadata": {"name": "rc"}, "spec": {"replicas": 1, "template": template()}}]),
        &["rc-* of ReplicationController for ReplicationController default/rc"],
    );
}

#[test]
fn cycles_and_giants_are_errors() {
    let error = |objects: Value| Objects::new(&objects).expand().unwrap_err().to_string();
    assert_eq!(
        error(json!([
            owned("Deployment", "a", ("ReplicaSet", "b")),
            owned("ReplicaSet", "b", ("Deployment", "a")),
        ])),
        "owner references form a cycle: Deployment default/a -> ReplicaSet default/b -> Deployment default/a"
    );
    assert_eq!(
        error(json!([owned("Job", "a", ("Job", "a"))])),
        "owner references form a cycle: Job default/a -> Job default/a"
    );
    assert_eq!(
        error(json!([workload(
            "ReplicaSet",
            json!({"replicas": 2147483647})
        )])),
        "ReplicaSet default/web asks for 2147483647 pods, which makes more than 1000000 in all"
    );
}
