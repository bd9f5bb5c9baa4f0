//! Defaults of the fields that a decision or validation reads.
//!
//! Source: `pkg/apis/{core,apps,batch}/v1/defaults.go`, v1.36. Left out because nothing in strew
//! reads them: probes, DNS policy, security contexts, image pull policy, termination messages,
//! service links, volume modes, Services' addresses. Those of pods are in [`strew_manifest::defaults`].
//!
//! An object without a namespace is in `default`, as with kubectl.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    DaemonSet, Deployment, ReplicaSet, RollingUpdateDaemonSet, RollingUpdateDeployment,
    RollingUpdateStatefulSetStrategy, StatefulSet,
};
use k8s_openapi::api::batch::v1::{CronJob, Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolumeClaim, Pod, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use strew_manifest::defaults::{default_pod, default_template, set_if_empty, set_namespace};

/// Objects with defaults.
pub trait SetDefaults {
    /// Sets missing fields to their defaults.
    fn set_defaults(&mut self);
}

impl SetDefaults for Pod {
    fn set_defaults(&mut self) {
        default_pod(self);
    }
}

impl SetDefaults for Deployment {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let Some(spec) = &mut self.spec else { return };
        spec.replicas.get_or_insert(1);
        spec.revision_history_limit.get_or_insert(10);
        spec.progress_deadline_seconds.get_or_insert(600);
        let strategy = spec.strategy.get_or_insert_default();
        set_if_empty(&mut strategy.type_, "RollingUpdate");
        if strategy.type_.as_deref() == Some("RollingUpdate") {
            let quarter = || IntOrString::String("25%".to_string());
            let RollingUpdateDeployment {
                max_surge,
                max_unavailable,
            } = strategy.rolling_update.get_or_insert_default();
            max_unavailable.get_or_insert_with(quarter);
            max_surge.get_or_insert_with(quarter);
        }
        default_template(&mut spec.template);
    }
}

impl SetDefaults for ReplicaSet {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let Some(spec) = &mut self.spec else { return };
        spec.replicas.get_or_insert(1);
        spec.template.iter_mut().for_each(default_template);
    }
}

impl SetDefaults for ReplicationController {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let Some(spec) = &mut self.spec else { return };
        spec.replicas.get_or_insert(1);
        let Some(template) = &mut spec.template else {
            return;
        };
        let labels = template
            .metadata
            .as_ref()
            .and_then(|meta| meta.labels.clone());
        if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
            for target in [&mut spec.selector, &mut self.metadata.labels] {
                if target.as_ref().is_none_or(BTreeMap::is_empty) {
                    *target = Some(labels.clone());
                }
            }
        }
        default_template(template);
    }
}

impl SetDefaults for StatefulSet {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let Some(spec) = &mut self.spec else { return };
        spec.replicas.get_or_insert(1);
        spec.revision_history_limit.get_or_insert(10);
        set_if_empty(&mut spec.pod_management_policy, "OrderedReady");
        let strategy = spec.update_strategy.get_or_insert_default();
        // The block is created only if the type is missing. With a given type it stays missing, and the controller then
        // behaves differently (spec/controllers.md §3.1).
        if set_if_empty(&mut strategy.type_, "RollingUpdate") {
            let RollingUpdateStatefulSetStrategy { partition, .. } =
                strategy.rolling_update.get_or_insert_default();
            partition.get_or_insert(0);
        } else if let Some(rolling) = &mut strategy.rolling_update {
            rolling.partition.get_or_insert(0);
        }
        default_template(&mut spec.template);
    }
}

impl SetDefaults for DaemonSet {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let Some(spec) = &mut self.spec else { return };
        spec.revision_history_limit.get_or_insert(10);
        let strategy = spec.update_strategy.get_or_insert_default();
        set_if_empty(&mut strategy.type_, "RollingUpdate");
        if strategy.type_.as_deref() == Some("RollingUpdate") {
            let RollingUpdateDaemonSet {
                max_surge,
                max_unavailable,
            } = strategy.rolling_update.get_or_insert_default();
            max_unavailable.get_or_insert(IntOrString::Int(1));
            max_surge.get_or_insert(IntOrString::Int(0));
        }
        default_template(&mut spec.template);
    }
}

impl SetDefaults for Job {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let Some(spec) = &mut self.spec else { return };
        let labels = spec
            .template
            .metadata
            .as_ref()
            .and_then(|meta| meta.labels.clone());
        if self.metadata.labels.as_ref().is_none_or(BTreeMap::is_empty) {
            self.metadata.labels = labels.or(self.metadata.labels.take());
        }
        default_job(spec);
    }
}

impl SetDefaults for CronJob {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let spec = &mut self.spec;
        set_if_empty(&mut spec.concurrency_policy, "Allow");
        spec.suspend.get_or_insert(false);
        spec.successful_jobs_history_limit.get_or_insert(3);
        spec.failed_jobs_history_limit.get_or_insert(1);
        // A job template gets its pod template's defaults now, and its own when a Job is created.
        if let Some(job) = &mut spec.job_template.spec {
            default_template(&mut job.template);
        }
    }
}

impl SetDefaults for Service {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
    }
}

impl SetDefaults for PersistentVolumeClaim {
    /// No volume controller has seen a new claim. A claim of a file may come with its status.
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
        let status = self.status.get_or_insert_default();
        status.phase.get_or_insert_with(|| "Pending".to_owned());
    }
}

impl SetDefaults for StorageClass {
    fn set_defaults(&mut self) {
        set_if_empty(&mut self.reclaim_policy, "Delete");
        set_if_empty(&mut self.volume_binding_mode, "Immediate");
    }
}

impl SetDefaults for PodDisruptionBudget {
    fn set_defaults(&mut self) {
        set_namespace(&mut self.metadata);
    }
}

impl SetDefaults for Node {
    /// Allocatable defaults to the capacity. Source: `SetDefaults_NodeStatus`.
    fn set_defaults(&mut self) {
        if let Some(status) = &mut self.status
            && status.allocatable.is_none()
        {
            status.allocatable = status.capacity.clone();
        }
    }
}

impl SetDefaults for Namespace {
    /// Every namespace has its name as a label, which namespace selectors use. Source: `SetDefaults_Namespace`.
    fn set_defaults(&mut self) {
        if let Some(name) = self.metadata.name.clone().filter(|name| !name.is_empty()) {
            let labels = self.metadata.labels.get_or_insert_default();
            labels.insert("kubernetes.io/metadata.name".to_string(), name);
        }
    }
}

impl SetDefaults for PriorityClass {
    fn set_defaults(&mut self) {
        set_if_empty(&mut self.preemption_policy, "PreemptLowerPriority");
    }
}

fn default_job(spec: &mut JobSpec) {
    if spec.completions.is_none() && spec.parallelism.is_none() {
        spec.completions = Some(1);
    }
    spec.parallelism.get_or_insert(1);
    let per_index = spec.backoff_limit_per_index.is_some();
    spec.backoff_limit
        .get_or_insert(if per_index { i32::MAX } else { 6 });
    set_if_empty(&mut spec.completion_mode, "NonIndexed");
    spec.suspend.get_or_insert(false);
    spec.manual_selector.get_or_insert(false);
    let replacement = match spec.pod_failure_policy {
        Some(_) => "Failed",
        None => "TerminatingOrFailed",
    };
    set_if_empty(&mut spec.pod_replacement_policy, replacement);
    default_template(&mut spec.template);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    /// Checks that defaulting adds `expected` (a partial object) to `given`.
    #[track_caller]
    fn check<T: SetDefaults + DeserializeOwned + serde::Serialize>(given: Value, expected: Value) {
        let mut object: T = serde_json::from_value(given).unwrap();
        object.set_defaults();
        let actual = serde_json::to_value(&object).unwrap();
        assert_contains(&actual, &expected, "");
    }

    #[track_caller]
    fn assert_contains(actual: &Value, expected: &Value, path: &str) {
        match expected {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let path = format!("{path}.{name}");
                    assert_contains(&actual[name], field, &path);
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    assert_contains(&actual[i], item, &format!("{path}[{i}]"));
                }
            }
            _ => assert_eq!(actual, expected, "{path}"),
        }
    }

    #[test]
    fn pods() {
        check::<Pod>(
            json!({"spec": {"hostNetwork": true, "containers": [{
                "name": "c",
                "ports": [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}],
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
            }]}}),
            json!({"metadata": {"namespace": "default"}, "spec": {
                "schedulerName": "default-scheduler",
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "containers": [{
                    "ports": [{"hostPort": 80, "protocol": "TCP"}, {"hostPort": 81, "protocol": "UDP"}],
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                }],
            }}),
        );
    }

    #[test]
    fn pod_level_requests_come_from_containers_then_from_limits() {
        check::<Pod>(
            json!({"spec": {
                "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
                "initContainers": [
                    {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                    {"name": "i", "resources": {"requests": {"cpu": "2"}}},
                ],
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            }}),
            json!({"spec": {"resources": {"requests": {"cpu": "2100m", "memory": "1Gi"}}}}),
        );
    }

    #[test]
    fn templates_keep_their_limits_and_ports() {
        check::<Deployment>(
            json!({"spec": {"selector": {}, "template": {"spec": {"hostNetwork": true, "containers": [
                {"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "2"}}},
            ]}}}}),
            json!({"spec": {
                "replicas": 1,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "template": {"spec": {"schedulerName": "default-scheduler", "containers": [
                    {"ports": [{"hostPort": null}], "resources": {"requests": null}},
                ]}},
            }}),
        );
    }

    #[test]
    fn jobs() {
        let job = |spec: Value| json!({"spec": spec});
        check::<Job>(
            job(json!({"template": {}})),
            json!({"spec": {"parallelism": 1, "completions": 1, "backoffLimit": 6}}),
        );
        check::<Job>(
            job(json!({"parallelism": 3, "template": {}})),
            json!({"spec": {"parallelism": 3, "completions": null}}),
        );
        check::<Job>(
            job(json!({"completions": 3, "template": {}})),
            json!({"spec": {"parallelism": 1, "completions": 3}}),
        );
    }

    #[test]
    fn other_workloads() {
        check::<ReplicationController>(
            json!({"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}}),
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 1, "selector": {"a": "b"}}}),
        );
        check::<StatefulSet>(
            json!({"spec": {"selector": {}, "template": {}}}),
            json!({"spec": {"replicas": 1, "podManagementPolicy": "OrderedReady", "updateStrategy": {"rollingUpdate": {"partition": 0}}}}),
        );
        check::<StatefulSet>(
            json!({"spec": {"selector": {}, "template": {}, "updateStrategy": {"type": "RollingUpdate"}}}),
            json!({"spec": {"updateStrategy": {"rollingUpdate": null}}}),
        );
        check::<DaemonSet>(
            json!({"spec": {"selector": {}, "template": {}}}),
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}}),
        );
        check::<Node>(
            json!({"status": {"capacity": {"cpu": "4"}}}),
            json!({"status": {"allocatable": {"cpu": "4"}}}),
        );
    }
}
