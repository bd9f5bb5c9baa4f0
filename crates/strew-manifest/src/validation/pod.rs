//! Specs of pods, and pod templates.
//!
//! Source: `ValidatePodSpec`, `ValidatePodTemplateSpec` of
//! `pkg/apis/core/validation`, v1.36.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSchedulingGate, PodSpec, PodTemplateSpec};

use super::spread::SharedKeys;
use super::{
    affinity, container, invalid_each, metadata, nonnegative, one_of, resources, spread, taint,
    text,
};
use crate::field::{FieldError, FieldPath};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Checks a template at `path`. Upstream leaves `.metadata` out of the labels' path.
pub fn validate_template(
    template: &PodTemplateSpec,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let given = template.metadata.as_ref();
    let annotations = given.and_then(|meta| meta.annotations.as_ref());
    let labels = given.and_then(|meta| meta.labels.as_ref());
    metadata::labels(labels, &path.child("labels"), errors);
    metadata::annotations(annotations, &path.child("annotations"), errors);
    deletion_cost(annotations, &path.child("annotations"), errors);
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    validate_spec(spec, SharedKeys::Merged, &path.child("spec"), errors);
    if spec
        .ephemeral_containers
        .as_ref()
        .is_some_and(|all| !all.is_empty())
    {
        errors.push(FieldError::forbidden(
            path.child("spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        ));
    }
}

/// The API server's warnings about a template at `path`.
pub fn template_warnings(template: &PodTemplateSpec, path: &FieldPath) -> Vec<String> {
    let constraints = template
        .spec
        .as_ref()
        .and_then(|spec| spec.topology_spread_constraints.as_ref());
    let path = path.child("spec.topologySpreadConstraints");
    spread::warnings(constraints.map_or(&[], Vec::as_slice), &path)
}

/// Checks the spec of a pod at `path`.
pub fn validate_spec(
    spec: &PodSpec,
    shared: SharedKeys,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if let Some(seconds) = spec.termination_grace_period_seconds {
        nonnegative(
            seconds,
            &path.child("terminationGracePeriodSeconds"),
            errors,
        );
    }
    let init_containers = spec.init_containers.as_deref().unwrap_or_default();
    container::validate(&spec.containers, init_containers, path, errors);
    if let Some(requirements) = &spec.resources {
        resources::requirements(requirements, &path.child("resources"), errors);
    }
    match spec.restart_policy.as_deref().unwrap_or_default() {
        "" => errors.push(FieldError::required(path.child("restartPolicy"), "")),
        policy => {
            let known = ["Always", "OnFailure", "Never"];
            one_of(policy, &known, &path.child("restartPolicy"), errors);
        }
    }
    metadata::labels(
        spec.node_selector.as_ref(),
        &path.child("nodeSelector"),
        errors,
    );
    if let Some(given) = &spec.affinity {
        affinity::validate(given, &path.child("affinity"), errors);
    }
    let gates = spec.scheduling_gates.as_deref().unwrap_or_default();
    scheduling_gates(gates, &path.child("schedulingGates"), errors);
    let constraints = spec
        .topology_spread_constraints
        .as_deref()
        .unwrap_or_default();
    spread::validate(
        constraints,
        shared,
        &path.child("topologySpreadConstraints"),
        errors,
    );
    named_fields(spec, path, errors);
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    taint::tolerations(tolerations, &path.child("tolerations"), errors);
    let class = spec.priority_class_name.as_deref().unwrap_or_default();
    if !class.is_empty() {
        invalid_each(
            text::dns_subdomain(class),
            class,
            &path.child("priorityClassName"),
            errors,
        );
    }
    if let Some(policy) = &spec.preemption_policy {
        let known = ["PreemptLowerPriority", "Never"];
        one_of(policy, &known, &path.child("preemptionPolicy"), errors);
    }
    resources::amounts(spec.overhead.as_ref(), &path.child("overhead"), errors);
}

fn named_fields(spec: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let node = spec.node_name.as_deref().unwrap_or_default();
    if !node.is_empty() {
        invalid_each(
            text::dns_subdomain(node),
            node,
            &path.child("nodeName"),
            errors,
        );
    }
    let deadline = spec.active_deadline_seconds;
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        errors.push(FieldError::invalid_raw(
            path.child("activeDeadlineSeconds"),
            seconds,
            "must be between 1 and 2147483647, inclusive",
        ));
    }
    let fields = [("hostname", &spec.hostname), ("subdomain", &spec.subdomain)];
    for (name, value) in fields {
        let value = value.as_deref().unwrap_or_default();
        if !value.is_empty() {
            invalid_each(text::dns_label(value), value, &path.child(name), errors);
        }
    }
}

fn scheduling_gates(gates: &[PodSchedulingGate], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (i, gate) in gates.iter().enumerate() {
        metadata::label_name(&gate.name, &path.index(i), errors);
        if !names.insert(&gate.name) {
            errors.push(FieldError::duplicate(path.index(i), &gate.name));
        }
    }
}

/// Refuses a deletion cost that is no int32, or has a plus sign or leading zeros.
///
/// Source: `GetDeletionCostFromPodAnnotations`.
pub fn deletion_cost(
    annotations: Option<&BTreeMap<String, String>>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(cost) = annotations.and_then(|all| all.get(DELETION_COST)) else {
        return;
    };
    let parsed: Option<i32> = cost.parse().ok();
    let is_plain = parsed.is_some_and(|number| number.to_string() == *cost);
    if !is_plain {
        let path = path.key(DELETION_COST);
        errors.push(FieldError::invalid(path, cost, "must be a 32bit integer"));
    }
}
