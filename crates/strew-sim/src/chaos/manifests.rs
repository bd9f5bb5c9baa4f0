//! The objects of a story's world.

use serde_json::{Value, json};

use super::story::{
    Anti, Budgeting, NodePlan, Spread, SpreadPlan, SubsetPlan, Worker, Workload, World,
};

/// The zone that a number stands for.
pub(super) fn zone(number: u8) -> String {
    format!("zone-{}", char::from(b'a' + number % 26))
}

/// Everything that is there at second 0.
pub(super) fn of(world: &World) -> Vec<Value> {
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
    let spreads = world.spreads.iter().map(|plan| spreading(plan, world));
    let all = classes.chain(nodes).chain(present).chain(budgets);
    all.chain(spreads).collect()
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
        Worker::DaemonSet => {
            remove(&mut spec, "replicas");
        }
        Worker::Job => {
            remove(&mut spec, "replicas");
            remove(&mut spec, "selector");
            spec["completions"] = plan.replicas.max(1).into();
            spec["parallelism"] = 2.into();
            spec["backoffLimit"] = 1000.into();
        }
    }
    json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": plan.name, "namespace": "default"},
        "spec": spec,
    })
}

/// The name of a subset.
pub(super) fn subset(number: usize) -> String {
    format!("subset-{number}")
}

/// A WorkloadSpread: its subsets are zones, and each labels its pods.
fn spreading(plan: &SpreadPlan, world: &World) -> Value {
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
    json!({
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "WorkloadSpread",
        "metadata": {"name": plan.of, "namespace": "default"},
        "spec": spec,
    })
}

/// Kind and version of what makes a workload's pods.
pub(super) fn kind(worker: Worker) -> (&'static str, &'static str) {
    match worker {
        Worker::Deployment(_) => ("Deployment", "apps/v1"),
        Worker::ReplicaSet => ("ReplicaSet", "apps/v1"),
        Worker::StatefulSet(_) => ("StatefulSet", "apps/v1"),
        Worker::DaemonSet => ("DaemonSet", "apps/v1"),
        Worker::Job => ("Job", "batch/v1"),
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
    if plan.worker == Worker::Job {
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
    Some(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": of.name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": of.name}}, field: value},
    }))
}
