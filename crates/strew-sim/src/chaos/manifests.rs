//! The objects of a generated world.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use strew_manifest::json::Json;
use strew_wire::workloadspread::annotations::{LIMIT_SCOPE, TARGET_SELECTOR, WINDOW_SECONDS};
use strew_zones::ZONE_AWARE;

use super::story::{
    Anti, Budgeting, ClusterPlan, Group, NodePlan, Quota, Spread, SpreadPlan, SubsetPlan, Worker,
    Workload,
};
use crate::autoscaler::NodeGroup;

/// The name of the zone with this number.
pub(super) fn zone(number: u8) -> String {
    format!("zone-{}", char::from(b'a' + number % 26))
}

/// All objects at second 0.
pub(super) fn of(world: &ClusterPlan) -> Vec<Value> {
    let classes = (1..=2).map(|number| {
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": format!("p{number}")},
            "value": number * 100,
        })
    });
    let nodes = world.nodes.iter().map(node);
    let present = world.workloads.iter().filter(|w| !w.is_late).map(workload);
    let budgets = world.workloads.iter().filter_map(budget);
    let autoscalers = world.workloads.iter().filter_map(autoscaler);
    let quota = world.quota.iter().map(quota);
    let spreads = world.spreads.iter().map(|plan| spreading(plan, world));
    let plain = classes.chain(nodes).chain(quota);
    plain
        .chain(present)
        .chain(budgets)
        .chain(autoscalers)
        .chain(spreads)
        .collect()
}

/// A node.
pub(super) fn node(plan: &NodePlan) -> Value {
    let mut node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": plan.name, "labels": {"kubernetes.io/hostname": plan.name}},
        "spec": {},
        "status": {"allocatable": {
            "cpu": format!("{}m", plan.cpu), "memory": "8Gi", "pods": plan.pods.to_string(),
        }},
    });
    if let Some(number) = plan.zone {
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone(number).into();
    }
    if plan.is_tainted {
        node["spec"]["taints"] = json!([{"key": "dedicated", "effect": "NoSchedule"}]);
    }
    if plan.is_cordoned {
        node["spec"]["unschedulable"] = true.into();
    }
    node
}

/// A workload.
pub(super) fn workload(plan: &Workload) -> Value {
    let (kind, version) = kind(plan.worker);
    let selector = json!({"matchLabels": {"app": plan.name}});
    let template = json!({
        "metadata": {"labels": {"app": plan.name, "all": "yes"}},
        "spec": pod(plan),
    });
    let mut spec = json!({"selector": selector, "template": template, "replicas": plan.replicas});
    match plan.worker {
        Worker::Deployment(true) => spec["strategy"] = json!({"type": "Recreate"}),
        Worker::Deployment(false) | Worker::ReplicaSet | Worker::CloneSet => {}
        Worker::StatefulSet(in_parallel) => {
            spec["serviceName"] = plan.name.as_str().into();
            if in_parallel {
                spec["podManagementPolicy"] = "Parallel".into();
            }
        }
        Worker::ReplicationController => spec["selector"] = json!({"app": plan.name}),
        Worker::DaemonSet => {
            remove(&mut spec, "replicas");
        }
        Worker::Job => spec = job(plan, &template),
        Worker::CronJob(rule) => {
            spec = json!({
                "schedule": CRON,
                "concurrencyPolicy": rule.name(),
                "jobTemplate": {"spec": job(plan, &template)},
            });
        }
    }
    let mut workload = json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": plan.name, "namespace": "default"},
        "spec": spec,
    });
    if plan.keeps_spread {
        workload["metadata"]["labels"] = json!({strew_keep::LABEL: "true"});
    }
    workload
}

/// The name of a subset.
pub(super) fn subset(number: usize) -> String {
    format!("subset-{number}")
}

/// A WorkloadSpread: its subsets are zones, and each labels its pods.
fn spreading(plan: &SpreadPlan, world: &ClusterPlan) -> Value {
    let worker = world.workloads.iter().find(|w| w.name == plan.of);
    let (kind, version) = kind(worker.map_or(Worker::ReplicaSet, |w| w.worker));
    let subset = |(number, limit): (usize, &SubsetPlan)| {
        let zone = zone(u8::try_from(number).unwrap_or(0));
        let term =
            json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]});
        let mut subset = json!({
            "name": self::subset(number),
            "requiredNodeSelector": {"matchExpressions": [term]},
            "patch": {"metadata": {"labels": {"subset": self::subset(number)}}},
        });
        match limit {
            SubsetPlan::Count(n) => subset["maxReplicas"] = json!(n),
            SubsetPlan::Percent(n) => subset["maxReplicas"] = format!("{n}%").into(),
            SubsetPlan::Unlimited => {}
        }
        subset
    };
    let subsets: Vec<Value> = plan.subsets.iter().enumerate().map(subset).collect();
    let mut spec = json!({
        "targetRef": {"apiVersion": version, "kind": kind, "name": plan.of},
        "subsets": subsets,
    });
    if let Some((critical, simulates)) = plan.adaptive {
        let adaptive = json!({
            "rescheduleCriticalSeconds": critical,
            "disableSimulationSchedule": !simulates,
        });
        spec["scheduleStrategy"] = json!({"type": "Adaptive", "adaptive": adaptive});
    }
    let mut metadata = json!({"name": plan.of, "namespace": "default"});
    if plan.adaptive.is_some() && kind == "Job" {
        metadata["annotations"] = json!({WINDOW_SECONDS: JOB_WINDOW_SECONDS});
    }
    if plan.is_whole {
        metadata["annotations"][LIMIT_SCOPE] = "workload".into();
    }
    if plan.takes_others {
        metadata["annotations"][TARGET_SELECTOR] = OF_ALL.into();
    }
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": metadata,
        "spec": spec,
    })
}

/// A label of the pods of every workload.
pub(super) const OF_ALL: &str = "all=yes";

/// A Job waits up to ten minutes before it replaces a pod, which is longer than a subset stays closed by default. If
/// the nodes of a subset are lost for good, the Job would then replace pods until its `backoffLimit`
/// (docs/workloadspread.md).
const JOB_WINDOW_SECONDS: &str = "1200";

/// Every minute of the storm, and then not for a year.
const CRON: &str = "0-6 0 1 1 *";

fn job(plan: &Workload, template: &Value) -> Value {
    json!({
        "template": template,
        "completions": plan.replicas.max(1),
        "parallelism": 2,
        "backoffLimit": 1000,
        // A WorkloadSpread takes no pods of a Job that would count them as failed.
        "podFailurePolicy": {"rules": [{
            "action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
        }]},
    })
}

/// Kind and version of the object that makes a workload's pods.
pub(super) fn kind(worker: Worker) -> (&'static str, &'static str) {
    match worker {
        Worker::Deployment(_) => ("Deployment", "apps/v1"),
        Worker::ReplicaSet => ("ReplicaSet", "apps/v1"),
        Worker::StatefulSet(_) => ("StatefulSet", "apps/v1"),
        Worker::DaemonSet => ("DaemonSet", "apps/v1"),
        Worker::ReplicationController => ("ReplicationController", "v1"),
        Worker::Job => ("Job", "batch/v1"),
        Worker::CronJob(_) => ("CronJob", "batch/v1"),
        Worker::CloneSet => ("CloneSet", "apps.kruise.io/v1alpha1"),
    }
}

fn remove(value: &mut Value, key: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove(key);
    }
}

fn pod(plan: &Workload) -> Value {
    let mut container = json!({"name": "c", "image": "app:0"});
    if plan.cpu > 0 {
        container["resources"] = json!({"requests": {"cpu": format!("{}m", plan.cpu)}});
    }
    if plan.has_port {
        container["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
    }
    let mut spec = json!({"containers": [container], "terminationGracePeriodSeconds": 5});
    if matches!(plan.worker, Worker::Job | Worker::CronJob(_)) {
        spec["restartPolicy"] = "Never".into();
    }
    if plan.priority > 0 {
        spec["priorityClassName"] = format!("p{}", plan.priority).into();
    }
    if plan.tolerates {
        spec["tolerations"] = json!([{"key": "dedicated", "operator": "Exists"}]);
    }
    let spreads: Vec<Value> = plan.spread.iter().map(|s| spread(s, plan)).collect();
    if !spreads.is_empty() {
        spec["topologySpreadConstraints"] = spreads.into();
    }
    if let Some(Anti { by_zone, from }) = &plan.anti {
        spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!([{
            "labelSelector": {"matchLabels": {"app": from}},
            "topologyKey": key(*by_zone),
        }]);
    }
    spec
}

fn key(by_zone: bool) -> &'static str {
    match by_zone {
        true => "topology.kubernetes.io/zone",
        false => "kubernetes.io/hostname",
    }
}

fn spread(plan: &Spread, of: &Workload) -> Value {
    let labels = match plan.of_all {
        true => json!({"all": "yes"}),
        false => json!({"app": of.name}),
    };
    let mut constraint = json!({
        "maxSkew": plan.max_skew,
        "topologyKey": key(plan.by_zone),
        "whenUnsatisfiable": if plan.is_hard { "DoNotSchedule" } else { "ScheduleAnyway" },
        "labelSelector": {"matchLabels": labels},
    });
    if plan.min_domains > 0 && plan.is_hard {
        constraint["minDomains"] = plan.min_domains.into();
    }
    if plan.by_revision {
        constraint["matchLabelKeys"] = json!(["pod-template-hash"]);
    }
    if plan.honors_taints {
        constraint["nodeTaintsPolicy"] = "Honor".into();
    }
    constraint
}

fn budget(of: &Workload) -> Option<Value> {
    let (field, value) = match of.budget? {
        Budgeting::MaxUnavailable(number) => ("maxUnavailable", json!(number)),
        Budgeting::MinAvailable(number) => ("minAvailable", json!(number)),
        Budgeting::MinPercent(percent) => ("minAvailable", json!(format!("{percent}%"))),
    };
    let mut budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": of.name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": of.name}}, field: value},
    });
    if of.is_zone_aware {
        budget["metadata"]["annotations"] = json!({ZONE_AWARE: "topology.kubernetes.io/zone"});
    }
    Some(budget)
}

/// The node group for the autoscaler.
pub(super) fn group(of: &Group) -> Option<NodeGroup> {
    let template = node(&NodePlan {
        name: String::new(),
        zone: Some(of.zone),
        cpu: of.cpu,
        pods: 10,
        is_tainted: false,
        is_cordoned: false,
    });
    Some(NodeGroup {
        name: "g".into(),
        min: 0,
        max: of.max,
        boot: None,
        template: Node::of_json(template).ok()?,
    })
}

/// The target utilisation of autoscaled pods, in percent of the requested CPU.
pub(crate) const TARGET: u32 = 50;

fn autoscaler(of: &Workload) -> Option<Value> {
    let scaling = of.scaling?;
    let (kind, version) = kind(of.worker);
    let target = json!({"type": "Utilization", "averageUtilization": TARGET});
    Some(json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": of.name, "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": of.name},
            "minReplicas": scaling.min,
            "maxReplicas": scaling.max,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        },
    }))
}

fn quota(of: &Quota) -> Value {
    let mut hard = json!({"pods": of.pods.to_string()});
    if of.cpu > 0 {
        hard["requests.cpu"] = format!("{}m", of.cpu).into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"hard": hard},
    })
}
