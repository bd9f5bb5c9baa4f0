//! What a Job does when its pods fail or succeed: limits per index, failure and success policies.
//!
//! Source: `validateJobSpec`, `validatePodFailurePolicy`, `validateSuccessPolicy` of `pkg/apis/batch/validation`, v1.36.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern,
    PodFailurePolicyRule, SuccessPolicy,
};
use serde_json::json as value;
use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};
use strew_manifest::validation::{invalid_each, json, nonnegative, one_of, text};

const INDEXED: &str = "Indexed";
const MAX_FAILED_INDEXES: i32 = 100_000;
const N_RULES_MAX: usize = 20;
const N_CONDITIONS_MAX: usize = 20;
const N_EXIT_CODES_MAX: usize = 255;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const NEEDS_INDEXES: &str = "requires indexed completion mode";

/// Checks the limits per index.
pub(super) fn limits_per_index(spec: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let of_index = path.child("backoffLimitPerIndex");
    nonnegative(spec.backoff_limit_per_index.unwrap_or(0), &of_index, errors);
    if let Some(max) = spec.max_failed_indexes {
        nonnegative(max, &path.child("maxFailedIndexes"), errors);
        if spec.backoff_limit_per_index.is_none() {
            let detail = "when maxFailedIndexes is specified";
            errors.push(FieldError::required(of_index, detail));
        }
    }
}

/// Checks the limits per index of an indexed Job against its completions.
pub(super) fn limits_of_indexed(spec: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let at = path.child("maxFailedIndexes");
    let Some(max) = spec.max_failed_indexes else {
        return;
    };
    let mut refuse = |detail: String| errors.push(FieldError::invalid_raw(at.clone(), max, detail));
    if spec
        .completions
        .is_some_and(|completions| max > completions)
    {
        refuse("must be less than or equal to completions".to_owned());
    }
    if max > MAX_FAILED_INDEXES {
        refuse(format!(
            "must be less than or equal to {MAX_FAILED_INDEXES}"
        ));
    }
}

/// Checks what needs indexes, and the policies about pods that fail, succeed or are replaced.
pub(super) fn policies(spec: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mode = spec.completion_mode.as_deref().unwrap_or("NonIndexed");
    if mode == "NonIndexed" {
        let limits = [
            ("backoffLimitPerIndex", spec.backoff_limit_per_index),
            ("maxFailedIndexes", spec.max_failed_indexes),
        ];
        for (name, limit) in limits {
            if let Some(limit) = limit {
                let at = path.child(name);
                errors.push(FieldError::invalid_raw(at, limit, NEEDS_INDEXES));
            }
        }
    }
    if spec.pod_failure_policy.is_some() {
        failure_policy(spec, &path.child("podFailurePolicy.rules"), errors);
    }
    if let Some(policy) = &spec.success_policy {
        let at = path.child("successPolicy");
        match mode == INDEXED {
            true => success_policy(policy, spec.completions, &at.child("rules"), errors),
            false => {
                let printed = printed(policy);
                errors.push(FieldError::invalid_raw(at, printed, NEEDS_INDEXES));
            }
        }
    }
    replacement_policy(spec, &path.child("podReplacementPolicy"), errors);
}

/// As upstream prints its own type.
fn printed(policy: &SuccessPolicy) -> String {
    let rules = policy.rules.iter();
    let rules = rules.map(|rule| value!({"SucceededIndexes": rule.succeeded_indexes, "SucceededCount": rule.succeeded_count}));
    value!({"Rules": rules.collect::<Vec<_>>()}).to_string()
}

fn replacement_policy(spec: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(policy) = &spec.pod_replacement_policy {
        // A failure policy looks at pods that have ended.
        let known: &[&str] = match spec.pod_failure_policy {
            Some(_) => &["Failed"],
            None => &["Failed", "TerminatingOrFailed"],
        };
        one_of(policy, known, path, errors);
    }
}

fn failure_policy(spec: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let rules = spec.pod_failure_policy.iter().flat_map(|p| &p.rules);
    let n_rules = rules.clone().count();
    at_most(n_rules, N_RULES_MAX, path, errors);
    let pod = spec.template.spec.as_ref();
    let containers = pod.into_iter().flat_map(|spec| {
        let init = spec.init_containers.iter().flatten();
        spec.containers.iter().chain(init)
    });
    let containers: BTreeSet<&str> = containers.map(|c| c.name.as_str()).collect();
    let is_per_index = spec.backoff_limit_per_index.is_some();
    for (i, rule) in rules.enumerate() {
        failure_rule(rule, is_per_index, &containers, &path.index(i), errors);
    }
}

fn failure_rule(
    rule: &PodFailurePolicyRule,
    is_per_index: bool,
    containers: &BTreeSet<&str>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let at = path.child("action");
    match rule.action.as_str() {
        "" => errors.push(FieldError::required(at, valid_values(&ACTIONS))),
        "FailIndex" if !is_per_index => errors.push(FieldError::invalid(
            at,
            "FailIndex",
            "requires the backoffLimitPerIndex to be set",
        )),
        action => one_of(action, &ACTIONS, &at, errors),
    }
    let conditions = rule.on_pod_conditions.as_deref().unwrap_or_default();
    if let Some(codes) = &rule.on_exit_codes {
        exit_codes(codes, containers, &path.child("onExitCodes"), errors);
    }
    pod_conditions(conditions, &path.child("onPodConditions"), errors);
    let detail = match (rule.on_exit_codes.is_some(), !conditions.is_empty()) {
        (true, true) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (false, false) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    // Upstream leaves the value out.
    errors.push(FieldError::invalid_raw(path.clone(), detail, ""));
}

fn exit_codes(
    codes: &PodFailurePolicyOnExitCodesRequirement,
    containers: &BTreeSet<&str>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let known = ["In", "NotIn"];
    let at = path.child("operator");
    match codes.operator.as_str() {
        "" => errors.push(FieldError::required(at, valid_values(&known))),
        operator => one_of(operator, &known, &at, errors),
    }
    let container = codes.container_name.as_deref();
    if let Some(name) = container.filter(|name| !containers.contains(name)) {
        errors.push(FieldError::invalid(
            path.child("containerName"),
            name,
            "must be one of the container or initContainer names in the pod template",
        ));
    }
    let at = path.child("values");
    let values = &codes.values;
    let invalid = |detail| FieldError::invalid_raw(at.clone(), json(values), detail);
    if values.is_empty() {
        errors.push(invalid("at least one value is required"));
    }
    at_most(values.len(), N_EXIT_CODES_MAX, &at, errors);
    let mut seen = BTreeSet::new();
    for (i, code) in values.iter().enumerate() {
        let at = at.index(i);
        if *code == 0 && codes.operator == "In" {
            let detail = "must not be 0 for the In operator";
            errors.push(FieldError::invalid_raw(at.clone(), code, detail));
        }
        if !seen.insert(code) {
            let value = code.to_string();
            let kind = FieldErrorKind::Duplicate { value };
            errors.push(FieldError::new(at, kind, ""));
        }
    }
    if !values.is_sorted() {
        errors.push(invalid("must be ordered"));
    }
}

fn pod_conditions(
    patterns: &[PodFailurePolicyOnPodConditionsPattern],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    at_most(patterns.len(), N_CONDITIONS_MAX, path, errors);
    for (i, pattern) in patterns.iter().enumerate() {
        let path = path.index(i);
        let kind = pattern.type_.as_str();
        let at = path.child("type");
        invalid_each(text::qualified_name(kind), kind, &at, errors);
        // True is the default.
        if let Some(status) = pattern.status.as_deref().filter(|s| !s.is_empty()) {
            let known = ["False", "True", "Unknown"];
            one_of(status, &known, &path.child("status"), errors);
        }
    }
}

fn success_policy(
    policy: &SuccessPolicy,
    completions: Option<i32>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if policy.rules.is_empty() {
        errors.push(FieldError::required(
            path.clone(),
            "at least one rules must be specified when the successPolicy is specified",
        ));
    }
    at_most(policy.rules.len(), N_RULES_MAX, path, errors);
    for (i, rule) in policy.rules.iter().enumerate() {
        let path = path.index(i);
        if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
            errors.push(FieldError::required(
                path.clone(),
                "at least one of succeededCount or succeededIndexes must be specified",
            ));
        }
        let at = path.child("succeededCount");
        let count = rule.succeeded_count.unwrap_or(0);
        nonnegative(count, &at, errors);
        if let Some(completions) = completions.filter(|completions| count > *completions) {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            errors.push(FieldError::invalid_raw(at, count, detail));
        }
    }
}

fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn at_most(count: usize, max: usize, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if count > max {
        let detail = format!("must have at most {max} items");
        let kind = FieldErrorKind::TooMany { count };
        errors.push(FieldError::new(path.clone(), kind, detail));
    }
}
