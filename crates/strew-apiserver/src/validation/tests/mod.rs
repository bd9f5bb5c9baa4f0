//! One `check` helper a shape of input, and the tests by kind of object.

mod cluster;
mod container;
mod job;
mod pod;
mod seeds;
mod service;
mod spread;
mod workload;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota,
    Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::StorageClass;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use crate::admission::{AdmissionContext, PriorityClasses, RuntimeClasses, SetDefaults};
use crate::admission::{admit, admit_pod};
use strew_wire::config::AdmissionOptions;

/// Creates the object and compares errors, else warnings; `…` at the end of an expected line
/// stands for the rest.
#[track_caller]
fn check<T: SetDefaults + Validate + DeserializeOwned>(object: Value, expected: &[&str]) {
    let object: T = serde_json::from_value(object).unwrap();
    let lines = match admit(object) {
        Ok(admitted) => admitted.warnings,
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    };
    compare(&lines, expected);
}

#[track_caller]
fn compare(lines: &[String], expected: &[&str]) {
    let same = lines.len() == expected.len()
        && lines
            .iter()
            .zip(expected)
            .all(|(line, expected)| match expected.strip_suffix('…') {
                Some(start) => line.starts_with(start),
                None => line == expected,
            });
    assert!(same, "\nactual:   {lines:#?}\nexpected: {expected:#?}");
}

/// Checks a pod with one good container and these further fields of its spec.
#[track_caller]
fn check_spec(fields: Value, expected: &[&str]) {
    check_spec_with(&AdmissionOptions::KUBERNETES_1_36, fields, expected);
}

#[track_caller]
fn check_spec_with(options: &AdmissionOptions, fields: Value, expected: &[&str]) {
    let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
    spec.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let pod = json!({"metadata": {"name": "p", "labels": {"foo": "x", "app": "y"}}, "spec": spec});
    let pod: Pod = serde_json::from_value(pod).unwrap();
    let context = AdmissionContext {
        priority_classes: &PriorityClasses::new([]),
        runtime_classes: &RuntimeClasses::default(),
        options,
    };
    let lines = match admit_pod(pod, &context) {
        Ok(admitted) => admitted.warnings,
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    };
    compare(&lines, expected);
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn workload(spec: Value) -> Value {
    let mut full = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template()});
    full.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    json!({"metadata": {"name": "web"}, "spec": full})
}

const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
