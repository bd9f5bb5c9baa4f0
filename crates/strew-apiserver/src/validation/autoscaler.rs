//! HorizontalPodAutoscalers.
//!
//! Source: `pkg/apis/autoscaling/validation`, v1.36, with gate HPAScaleToZero off.

use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HPAScalingRules, HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec, MetricSpec, MetricTarget,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::Validate;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::quantity::Quantity;
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::{invalid_each, one_of, text};

const REPLICAS_MIN: i32 = 1;
/// Source: `MaxStabilizationWindowSeconds`, `MaxPeriodSeconds`.
const WINDOW_SECONDS_MAX: i32 = 3600;
const PERIOD_SECONDS_MAX: i32 = 1800;

impl Validate for HorizontalPodAutoscaler {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        autoscaler(&self.spec, &FieldPath::root().child("spec"), &mut errors);
        errors
    }
}

fn autoscaler(spec: &HorizontalPodAutoscalerSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let min = spec.min_replicas;
    if let Some(min) = min.filter(|&min| min < REPLICAS_MIN) {
        let detail = format!("must be greater than or equal to {REPLICAS_MIN}");
        errors.push(FieldError::invalid_raw(
            path.child("minReplicas"),
            min,
            detail,
        ));
    }
    let max = spec.max_replicas;
    let mut refuse_max = |detail: &str| {
        errors.push(FieldError::invalid_raw(
            path.child("maxReplicas"),
            max,
            detail,
        ));
    };
    if max < 1 {
        refuse_max("must be greater than 0");
    }
    if min.is_some_and(|min| max < min) {
        refuse_max("must be greater than or equal to `minReplicas`");
    }
    reference(
        &spec.scale_target_ref,
        &path.child("scaleTargetRef"),
        errors,
    );
    for (i, given) in spec.metrics.iter().flatten().enumerate() {
        metric(given, &path.child("metrics").index(i), errors);
    }
    if let Some(behavior) = &spec.behavior {
        let path = path.child("behavior");
        scaling_rules(behavior.scale_up.as_ref(), &path.child("scaleUp"), errors);
        let down = behavior.scale_down.as_ref();
        scaling_rules(down, &path.child("scaleDown"), errors);
    }
}

fn reference(to: &CrossVersionObjectReference, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (name, value) in [("kind", &to.kind), ("name", &to.name)] {
        let at = path.child(name);
        if value.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else {
            invalid_each(text::path_segment(value), value, &at, errors);
        }
    }
}

const SOURCES: [&str; 5] = [
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];

/// The source must match the type, and be the only one.
fn metric(given: &MetricSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let at = path.child("type");
    if given.type_.is_empty() {
        let detail = "must specify a metric source type";
        errors.push(FieldError::required(at.clone(), detail));
    }
    one_of(&given.type_, &SOURCES, &at, errors);
    let expected = match given.type_.as_str() {
        "ContainerResource" => "containerResource",
        "External" => "external",
        "Object" => "object",
        "Pods" => "pods",
        "Resource" => "resource",
        _ => "",
    };
    let present = source(given, path, errors);
    if !present.contains(&expected) && !expected.is_empty() {
        let detail = "must populate information for the given metric source";
        errors.push(FieldError::required(path.child(expected), detail));
    }
    if present.len() != 1 {
        for name in present.into_iter().filter(|name| *name != expected) {
            let detail = "must populate the given metric source only";
            errors.push(FieldError::forbidden(path.child(name), detail));
        }
    }
}

/// Checks the first source, and returns the names of all.
fn source(given: &MetricSpec, path: &FieldPath, errors: &mut Vec<FieldError>) -> Vec<&'static str> {
    let mut present = Vec::new();
    let mut is_first = |name: &'static str| {
        present.push(name);
        present.len() == 1
    };
    if let Some(source) = &given.object
        && is_first("object")
    {
        let path = path.child("object");
        reference(
            &source.described_object,
            &path.child("describedObject"),
            errors,
        );
        metric_name(&source.metric.name, &path, errors);
        target(&source.target, &path, errors);
        if source.target.value.is_none() && source.target.average_value.is_none() {
            errors.push(FieldError::required(
                path.child("target.averageValue"),
                "must set either a target value or a target averageValue",
            ));
        }
    }
    if let Some(source) = &given.external
        && is_first("external")
    {
        let path = path.child("external");
        metric_name(&source.metric.name, &path, errors);
        target(&source.target, &path, errors);
        match (&source.target.value, &source.target.average_value) {
            (None, None) => errors.push(FieldError::required(
                path.child("target.averageValue"),
                "must set either a target value for metric or a per-pod target",
            )),
            (Some(_), Some(_)) => errors.push(FieldError::forbidden(
                path.child("target.value"),
                "may not set both a target value for metric and a per-pod target",
            )),
            _ => {}
        }
    }
    if let Some(source) = &given.pods
        && is_first("pods")
    {
        let path = path.child("pods");
        metric_name(&source.metric.name, &path, errors);
        target(&source.target, &path, errors);
        if source.target.average_value.as_ref().and_then(sign) != Some(1) {
            errors.push(FieldError::required(
                path.child("target.averageValue"),
                "must specify a positive target averageValue",
            ));
        }
    }
    if let Some(source) = &given.resource
        && is_first("resource")
    {
        let path = path.child("resource");
        resource(&source.name, &source.target, &path, errors);
    }
    if let Some(source) = &given.container_resource
        && is_first("containerResource")
    {
        let path = path.child("containerResource");
        resource(&source.name, &source.target, &path, errors);
        if source.container.is_empty() {
            let detail = "must specify a container";
            errors.push(FieldError::required(path.child("container"), detail));
        }
    }
    present
}

fn metric_name(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let at = path.child("metric.name");
    if name.is_empty() {
        errors.push(FieldError::required(at, "must specify a metric name"));
    } else {
        invalid_each(text::path_segment(name), name, &at, errors);
    }
}

fn resource(name: &str, of: &MetricTarget, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if name.is_empty() {
        let detail = "must specify a resource name";
        errors.push(FieldError::required(path.child("name"), detail));
    }
    target(of, path, errors);
    match (of.average_utilization, &of.average_value) {
        (None, None) => errors.push(FieldError::required(
            path.child("target.averageUtilization"),
            "must set either a target raw value or a target utilization",
        )),
        (Some(_), Some(_)) => errors.push(FieldError::forbidden(
            path.child("target.averageValue"),
            "may not set both a target raw value and a target utilization",
        )),
        _ => {}
    }
}

fn target(target: &MetricTarget, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let path = path.child("target");
    let at = path.child("type");
    if target.type_.is_empty() {
        let detail = "must specify a metric target type";
        errors.push(FieldError::required(at.clone(), detail));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&target.type_.as_str()) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(at, &target.type_, detail));
    }
    let amounts = [
        ("value", &target.value),
        ("averageValue", &target.average_value),
    ];
    for (name, amount) in amounts {
        if let Some(amount) = amount
            && sign(amount) != Some(1)
        {
            let at = path.child(name);
            errors.push(FieldError::invalid(at, &amount.0, "must be positive"));
        }
    }
    if let Some(percent) = target.average_utilization.filter(|&percent| percent < 1) {
        errors.push(FieldError::invalid_raw(
            path.child("averageUtilization"),
            percent,
            "must be greater than 0",
        ));
    }
}

fn scaling_rules(rules: Option<&HPAScalingRules>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(rules) = rules else { return };
    if let Some(window) = rules.stabilization_window_seconds {
        let at = path.child("stabilizationWindowSeconds");
        if window < 0 {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid_raw(at.clone(), window, detail));
        }
        at_most(window, WINDOW_SECONDS_MAX, at, errors);
    }
    if let Some(policy) = &rules.select_policy {
        let known = ["Disabled", "Max", "Min"];
        one_of(policy, &known, &path.child("selectPolicy"), errors);
    }
    let policies = rules.policies.as_deref().unwrap_or_default();
    let at = path.child("policies");
    if policies.is_empty() {
        let detail = "must specify at least one Policy";
        errors.push(FieldError::required(at.clone(), detail));
    }
    for (i, policy) in policies.iter().enumerate() {
        let path = at.index(i);
        let known = ["Percent", "Pods"];
        one_of(&policy.type_, &known, &path.child("type"), errors);
        let numbers = [
            ("value", policy.value),
            ("periodSeconds", policy.period_seconds),
        ];
        for (name, number) in numbers {
            if number <= 0 {
                let detail = "must be greater than zero";
                errors.push(FieldError::invalid_raw(path.child(name), number, detail));
            }
        }
        let at = path.child("periodSeconds");
        at_most(policy.period_seconds, PERIOD_SECONDS_MAX, at, errors);
    }
    if let Some(tolerance) = &rules.tolerance
        && sign(tolerance).is_none_or(|sign| sign < 0)
    {
        errors.push(FieldError::invalid(
            path.child("tolerance"),
            &tolerance.0,
            "must be greater than or equal to 0",
        ));
    }
}

fn at_most(value: i32, max: i32, path: FieldPath, errors: &mut Vec<FieldError>) {
    if value > max {
        let detail = format!("must be less than or equal to {max}");
        errors.push(FieldError::invalid_raw(path, value, detail));
    }
}

/// The sign of an amount; `None` if it is no quantity.
fn sign(amount: &WireQuantity) -> Option<i32> {
    Quantity::try_from(amount).ok().map(Quantity::signum)
}
