//! Workloads without an end.
//!
//! Source: `pkg/apis/apps/validation`, and ReplicationController in `pkg/apis/core/validation`,
//! v1.36.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, Deployment, DeploymentStrategy, ReplicaSet, StatefulSet,
    StatefulSetSpec,
};
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Validate;
use crate::workloads::set_claim_volumes;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::pod::{template_warnings, validate_template};
use strew_manifest::validation::{invalid_each, json, nonnegative, one_of, selector, text};

impl Validate for Deployment {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let spec = self.spec.clone().unwrap_or_default();
        let path = spec_path();
        nonnegative_each(&[("replicas", spec.replicas)], &path, &mut errors);
        selector_required(&spec.selector, &path, &mut errors);
        selected_template(&spec.selector, &spec.template, &path, &mut errors);
        template_of("ReplicaSet", &spec.template, &path, &mut errors);
        if let Some(strategy) = &spec.strategy {
            deployment_strategy(strategy, &path.child("strategy"), &mut errors);
        }
        let numbers = [
            ("minReadySeconds", spec.min_ready_seconds),
            ("revisionHistoryLimit", spec.revision_history_limit),
            ("progressDeadlineSeconds", spec.progress_deadline_seconds),
        ];
        nonnegative_each(&numbers, &path, &mut errors);
        let min_ready = spec.min_ready_seconds.unwrap_or(0);
        if let Some(deadline) = spec.progress_deadline_seconds.filter(|&d| d <= min_ready) {
            errors.push(FieldError::invalid_raw(
                path.child("progressDeadlineSeconds"),
                deadline,
                "must be greater than minReadySeconds",
            ));
        }
        errors
    }

    fn warnings(&self) -> Vec<String> {
        warnings_of(self.spec.as_ref().map(|spec| &spec.template))
    }
}

impl Validate for ReplicaSet {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let spec = self.spec.clone().unwrap_or_default();
        let path = spec_path();
        let numbers = [
            ("replicas", spec.replicas),
            ("minReadySeconds", spec.min_ready_seconds),
        ];
        nonnegative_each(&numbers, &path, &mut errors);
        let template = spec.template.unwrap_or_default();
        selector_required(&spec.selector, &path, &mut errors);
        selected_template(&spec.selector, &template, &path, &mut errors);
        template_of("ReplicaSet", &template, &path, &mut errors);
        errors
    }

    fn warnings(&self) -> Vec<String> {
        warnings_of(self.spec.as_ref().and_then(|spec| spec.template.as_ref()))
    }
}

impl Validate for ReplicationController {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let spec = self.spec.clone().unwrap_or_default();
        let path = spec_path();
        nonnegative_each(
            &[("minReadySeconds", spec.min_ready_seconds)],
            &path,
            &mut errors,
        );
        let wanted = spec.selector.unwrap_or_default();
        if wanted.is_empty() {
            errors.push(FieldError::required(path.child("selector"), ""));
        }
        nonnegative_each(&[("replicas", spec.replicas)], &path, &mut errors);
        let Some(template) = &spec.template else {
            errors.push(FieldError::required(path.child("template"), ""));
            return errors;
        };
        let labels = labels_of(template);
        let has = |(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value);
        if !wanted.iter().all(has) {
            errors.push(mismatch(template, &path));
        }
        template_of("ReplicationController", template, &path, &mut errors);
        errors
    }

    fn warnings(&self) -> Vec<String> {
        warnings_of(self.spec.as_ref().and_then(|spec| spec.template.as_ref()))
    }
}

impl Validate for StatefulSet {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_label);
        let spec = self.spec.clone().unwrap_or_default();
        let path = spec_path();
        stateful_set_strategy(&spec, &path, &mut errors);
        claim_retention(&spec, &path, &mut errors);
        let numbers = [
            ("replicas", spec.replicas),
            ("minReadySeconds", spec.min_ready_seconds),
            (
                "ordinals.start",
                spec.ordinals.as_ref().and_then(|ordinals| ordinals.start),
            ),
        ];
        nonnegative_each(&numbers, &path, &mut errors);
        selector_required(&spec.selector, &path, &mut errors);
        selected_template(&spec.selector, &spec.template, &path, &mut errors);
        let mut template = spec.template.clone();
        let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
        set_claim_volumes(template.spec.get_or_insert_default(), claims, "pod");
        template_of("StatefulSet", &template, &path, &mut errors);
        errors
    }

    fn warnings(&self) -> Vec<String> {
        warnings_of(self.spec.as_ref().map(|spec| &spec.template))
    }
}

impl Validate for DaemonSet {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let spec = self.spec.clone().unwrap_or_default();
        let path = spec_path();
        selected_template(&spec.selector, &spec.template, &path, &mut errors);
        template_of("DaemonSet", &spec.template, &path, &mut errors);
        daemon_set_strategy(&spec, &path.child("updateStrategy"), &mut errors);
        let numbers = [
            ("minReadySeconds", spec.min_ready_seconds),
            ("revisionHistoryLimit", spec.revision_history_limit),
        ];
        nonnegative_each(&numbers, &path, &mut errors);
        errors
    }

    fn warnings(&self) -> Vec<String> {
        warnings_of(self.spec.as_ref().map(|spec| &spec.template))
    }
}

pub(super) fn spec_path() -> FieldPath {
    FieldPath::root().child("spec")
}

pub(super) fn warnings_of(template: Option<&PodTemplateSpec>) -> Vec<String> {
    let path = FieldPath::root().child("spec.template");
    template.map_or(Vec::new(), |template| template_warnings(template, &path))
}

pub(super) fn nonnegative_each(
    numbers: &[(&'static str, Option<i32>)],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    for &(name, number) in numbers {
        nonnegative(number.unwrap_or(0), &path.child(name), errors);
    }
}

fn labels_of(template: &PodTemplateSpec) -> Option<&BTreeMap<String, String>> {
    template
        .metadata
        .as_ref()
        .and_then(|metadata| metadata.labels.as_ref())
}

fn mismatch(template: &PodTemplateSpec, path: &FieldPath) -> FieldError {
    FieldError::invalid_raw(
        path.child("template.metadata.labels"),
        json(&labels_of(template)),
        "`selector` does not match template `labels`",
    )
}

/// A missing selector is an error, except for DaemonSets.
fn selector_required(wanted: &LabelSelector, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if selector::is_empty(wanted) {
        let help = "select the labels of the template";
        errors.push(FieldError::required(path.child("selector"), "").with_help(help));
    }
}

/// Validates the selector, and that it selects the pods of the template.
pub(super) fn selected_template(
    wanted: &LabelSelector,
    template: &PodTemplateSpec,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let n_before = errors.len();
    let at = path.child("selector");
    selector::validate(Some(wanted), &at, errors);
    if errors.len() > n_before {
        let detail = "invalid label selector";
        errors.push(FieldError::invalid_raw(at, json(wanted), detail));
        return;
    }
    // A missing selector matches nothing.
    let matched =
        !selector::is_empty(wanted) && selector::matches(wanted, labels_of(template)) == Some(true);
    if !matched {
        errors.push(mismatch(template, path));
    }
}

/// Validates the template, with the rules for workloads without an end.
fn template_of(
    kind: &str,
    template: &PodTemplateSpec,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("template");
    validate_template(template, &path, errors);
    let Some(spec) = &template.spec else { return };
    let policy = spec.restart_policy.as_deref().unwrap_or_default();
    one_of(
        policy,
        &["Always"],
        &path.child("spec.restartPolicy"),
        errors,
    );
    if spec.active_deadline_seconds.is_some() {
        errors.push(FieldError::forbidden(
            path.child("spec.activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        ));
    }
}

fn deployment_strategy(
    strategy: &DeploymentStrategy,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    match strategy.type_.as_deref().unwrap_or_default() {
        "Recreate" => {
            if strategy.rolling_update.is_some() {
                errors.push(FieldError::forbidden(
                    path.child("rollingUpdate"),
                    "may not be specified when strategy `type` is 'Recreate'",
                ));
            }
        }
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let Some(rolling) = &strategy.rolling_update else {
                return;
            };
            let zero = IntOrString::Int(0);
            let max_unavailable = rolling.max_unavailable.as_ref().unwrap_or(&zero);
            let max_surge = rolling.max_surge.as_ref().unwrap_or(&zero);
            int_or_percent(max_unavailable, &path.child("maxUnavailable"), errors);
            int_or_percent(max_surge, &path.child("maxSurge"), errors);
            if number(max_unavailable) == 0 && number(max_surge) == 0 {
                errors.push(FieldError::invalid_raw(
                    path.child("maxUnavailable"),
                    printed(max_unavailable),
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            at_most_100_percent(max_unavailable, &path.child("maxUnavailable"), errors);
        }
        other => one_of(other, &["Recreate", "RollingUpdate"], path, errors),
    }
}

fn stateful_set_strategy(spec: &StatefulSetSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let policy = spec.pod_management_policy.as_deref().unwrap_or_default();
    let at = path.child("podManagementPolicy");
    match policy {
        "OrderedReady" | "Parallel" => {}
        "" => errors.push(FieldError::required(at, "")),
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid(at, other, detail));
        }
    }
    let Some(strategy) = &spec.update_strategy else {
        return;
    };
    let at = path.child("updateStrategy");
    let rolling = strategy.rolling_update.as_ref();
    match (strategy.type_.as_deref().unwrap_or_default(), rolling) {
        ("", _) => errors.push(FieldError::required(at, "")),
        ("OnDelete", Some(rolling)) => errors.push(FieldError::invalid_raw(
            at.child("rollingUpdate"),
            json(rolling),
            "only allowed for updateStrategy 'RollingUpdate'",
        )),
        ("RollingUpdate", Some(rolling)) => {
            let partition = rolling.partition.unwrap_or(0);
            nonnegative(partition, &at.child("rollingUpdate.partition"), errors);
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => errors.push(FieldError::invalid_raw(
            at,
            json(strategy),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
}

/// Source: `ValidatePersistentVolumeClaimRetentionPolicy`. Both are `Retain` by default.
fn claim_retention(spec: &StatefulSetSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(policy) = &spec.persistent_volume_claim_retention_policy else {
        return;
    };
    let path = path.child("persistentVolumeClaimRetentionPolicy");
    let fields = [
        ("whenDeleted", &policy.when_deleted),
        ("whenScaled", &policy.when_scaled),
    ];
    for (field, given) in fields {
        if let Some(given) = given.as_deref().filter(|given| !given.is_empty()) {
            one_of(given, &["Retain", "Delete"], &path.child(field), errors);
        }
    }
}

fn daemon_set_strategy(spec: &DaemonSetSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(strategy) = &spec.update_strategy else {
        return;
    };
    match strategy.type_.as_deref().unwrap_or_default() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let path = path.child("rollingUpdate");
            let Some(rolling) = &strategy.rolling_update else {
                errors.push(FieldError::required(path, ""));
                return;
            };
            let zero = IntOrString::Int(0);
            let max_unavailable = rolling.max_unavailable.as_ref().unwrap_or(&zero);
            let max_surge = rolling.max_surge.as_ref().unwrap_or(&zero);
            for (name, value) in [("maxUnavailable", max_unavailable), ("maxSurge", max_surge)] {
                int_or_percent(value, &path.child(name), errors);
                at_most_100_percent(value, &path.child(name), errors);
            }
            match (number(max_unavailable), number(max_surge)) {
                (0, 0) => errors.push(FieldError::required(
                    path.child("maxUnavailable"),
                    "cannot be 0 when maxSurge is 0",
                )),
                (0, _) | (_, 0) => {}
                _ => errors.push(FieldError::invalid_raw(
                    path.child("maxSurge"),
                    printed(max_surge),
                    "may not be set when maxUnavailable is non-zero",
                )),
            }
        }
        other => one_of(
            other,
            &["RollingUpdate", "OnDelete"],
            &path.child("type"),
            errors,
        ),
    }
}

/// Source: `ValidatePositiveIntOrPercent`.
pub(super) fn int_or_percent(value: &IntOrString, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match value {
        IntOrString::Int(number) => nonnegative(*number, path, errors),
        IntOrString::String(given) => {
            invalid_each(text::percent(given), given, path, errors);
        }
    }
}

/// Source: `IsNotMoreThan100Percent`.
pub(super) fn at_most_100_percent(
    value: &IntOrString,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let is_percent = matches!(value, IntOrString::String(given) if text::percent(given).is_empty());
    if is_percent && number(value) > 100 {
        let detail = "must not be greater than 100%";
        errors.push(FieldError::invalid_raw(
            path.clone(),
            printed(value),
            detail,
        ));
    }
}

/// The number, or that of the percentage; one that is too large to parse counts as the largest.
fn number(value: &IntOrString) -> i64 {
    match value {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(text) if text::percent(text).is_empty() => {
            text.trim_end_matches('%').parse().unwrap_or(i64::MAX)
        }
        IntOrString::String(_) => 0,
    }
}

fn printed(value: &IntOrString) -> String {
    json(value)
}
