//! ResourceQuotas and LimitRanges.
//!
//! Source: `ValidateResourceQuota`, `ValidateLimitRange` of `pkg/apis/core/validation`, v1.36.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    LimitRange, LimitRangeItem, ResourceQuota, ResourceQuotaSpec, ScopedResourceSelectorRequirement,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::Validate;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::quantity::Quantity;
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::{invalid_each, json, resources, text};

type Resources = BTreeMap<String, WireQuantity>;

const SCOPES: [&str; 6] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
];
const CONFLICTING: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];
/// What quotas of scopes other than BestEffort may limit. Source: `podComputeQuotaResources`.
const OF_COMPUTING: [&str; 12] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "pods",
    "count/pods",
    "storage",
];
/// Names without a prefix that quotas accept. Source: `standardQuotaResources`.
const OF_QUOTAS: [&str; 19] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];

impl Validate for ResourceQuota {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let Some(spec) = &self.spec else {
            return errors;
        };
        let path = FieldPath::root().child("spec");
        for (name, amount) in spec.hard.iter().flatten() {
            let at = path.child("hard").key(name);
            invalid_each(text::qualified_name(name), name, &at, &mut errors);
            if !name.contains('/') && !is_standard(name) {
                let detail = "must be a standard resource for quota";
                errors.push(FieldError::invalid(at.clone(), name, detail));
            }
            resources::amount_of_quota(name, amount, &at, &mut errors);
        }
        scopes(spec, &path, &mut errors);
        let selected = spec.scope_selector.as_ref();
        let required = selected.and_then(|selector| selector.match_expressions.as_deref());
        for requirement in required.unwrap_or_default() {
            scope_requirement(spec, requirement, &path, &mut errors);
        }
        errors
    }
}

fn is_standard(name: &str) -> bool {
    OF_QUOTAS.contains(&name)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

fn scopes(spec: &ResourceQuotaSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let given = spec.scopes.as_deref().unwrap_or_default();
    let at = path.child("scopes");
    let mut refuse = |detail: &str| {
        errors.push(FieldError::invalid_raw(at.clone(), json(&given), detail));
    };
    for scope in given {
        if !SCOPES.contains(&scope.as_str()) {
            refuse("unsupported scope");
        }
        for name in spec.hard.iter().flatten().map(|(name, _)| name) {
            if !may_limit(scope, name) {
                refuse("unsupported scope applied to resource");
            }
        }
    }
    let has = |scope: &str| given.iter().any(|given| given == scope);
    for pair in CONFLICTING {
        if pair.iter().all(|scope| has(scope)) {
            refuse("conflicting scopes");
        }
    }
}

/// Source: `IsResourceQuotaScopeValidForResource`.
fn may_limit(scope: &str, name: &str) -> bool {
    if !is_standard(name) {
        return true;
    }
    match scope {
        "BestEffort" => name == "pods",
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => OF_COMPUTING.contains(&name),
        _ => true,
    }
}

fn scope_requirement(
    spec: &ResourceQuotaSpec,
    requirement: &ScopedResourceSelectorRequirement,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("scopeSelector.matchExpressions");
    let scope = requirement.scope_name.as_str();
    if !SCOPES.contains(&scope) {
        let at = path.child("scopeName");
        errors.push(FieldError::invalid(at, scope, "unsupported scope"));
    }
    for name in spec.hard.iter().flatten().map(|(name, _)| name) {
        if !may_limit(scope, name) {
            errors.push(FieldError::invalid_raw(
                path.clone(),
                json(&spec.scope_selector),
                "unsupported scope applied to resource",
            ));
        }
    }
    let operator = requirement.operator.as_str();
    let at = path.child("operator");
    if SCOPES.contains(&scope) && scope != "PriorityClass" && operator != "Exists" {
        errors.push(FieldError::invalid(
            at.clone(),
            operator,
            "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
        ));
    }
    let values = requirement.values.as_deref().unwrap_or_default();
    match operator {
        "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
            path.child("values"),
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        )),
        "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::invalid_raw(
            path.child("values"),
            json(&values),
            "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        )),
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.push(FieldError::invalid(
            at,
            other,
            "not a valid selector operator",
        )),
    }
}

impl Validate for LimitRange {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let path = FieldPath::root().child("spec.limits");
        let mut types = BTreeSet::new();
        let limits = self.spec.iter().flat_map(|spec| &spec.limits);
        for (i, limit) in limits.enumerate() {
            let path = path.index(i);
            let at = path.child("type");
            invalid_each(
                text::qualified_name(&limit.type_),
                &limit.type_,
                &at,
                &mut errors,
            );
            let known = ["Pod", "Container", "PersistentVolumeClaim"];
            if !limit.type_.contains('/') && !known.contains(&limit.type_.as_str()) {
                let detail = "must be a standard limit type or fully qualified";
                errors.push(FieldError::invalid(at.clone(), &limit.type_, detail));
            }
            if !types.insert(&limit.type_) {
                errors.push(FieldError::duplicate(at, &limit.type_));
            }
            limit_item(limit, &path, &mut errors);
        }
        errors
    }
}

fn limit_item(limit: &LimitRangeItem, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let lists = [
        ("max", &limit.max),
        ("min", &limit.min),
        ("default", &limit.default),
        ("defaultRequest", &limit.default_request),
        ("maxLimitRequestRatio", &limit.max_limit_request_ratio),
    ];
    for (field, list) in lists {
        let is_default = field.starts_with("default");
        let is_empty = list.as_ref().is_none_or(BTreeMap::is_empty);
        if is_default && limit.type_ == "Pod" && !is_empty {
            let detail = "may not be specified when `type` is 'Pod'";
            errors.push(FieldError::forbidden(path.child(field), detail));
            continue;
        }
        for (name, amount) in list.iter().flatten() {
            resources::name_and_amount(name, amount, &path.child(field).key(name), errors);
        }
    }
    let storage = |list: &Option<Resources>| {
        let list = list.as_ref();
        list.is_some_and(|list| list.contains_key("storage"))
    };
    if limit.type_ == "PersistentVolumeClaim" && !storage(&limit.min) && !storage(&limit.max) {
        errors.push(FieldError::required(
            path.child("limits"),
            "either minimum or maximum storage value is required, but neither was provided",
        ));
    }
    let names: BTreeSet<&String> = lists
        .into_iter()
        .flat_map(|(_, list)| list.iter().flatten().map(|(name, _)| name))
        .collect();
    for name in names {
        order(limit, name, path, errors);
    }
}

/// Compares the amounts of one resource; invalid ones have been refused already.
fn order(limit: &LimitRangeItem, name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let read = |list: &Option<Resources>| {
        let amount = list.as_ref()?.get(name)?;
        Quantity::try_from(amount).ok()
    };
    let (min, max) = (read(&limit.min), read(&limit.max));
    let (default, request) = (read(&limit.default), read(&limit.default_request));
    let ordered = [
        ("min", "min value", min, "max value", max),
        (
            "defaultRequest",
            "min value",
            min,
            "default request value",
            request,
        ),
        (
            "defaultRequest",
            "default request value",
            request,
            "max value",
            max,
        ),
        (
            "defaultRequest",
            "default request value",
            request,
            "default limit value",
            default,
        ),
        ("default", "min value", min, "default value", default),
        ("default", "default value", default, "max value", max),
    ];
    for (field, less_name, less, more_name, more) in ordered {
        if let (Some(less), Some(more)) = (less, more)
            && less > more
        {
            // The value in the error is that of the field; for a default below the minimum, the default's.
            let value = if field == "min" || less_name.starts_with("default") {
                less
            } else {
                more
            };
            errors.push(FieldError::invalid(
                path.child(field).key(name),
                &value.to_string(),
                format!("{less_name} {less} is greater than {more_name} {more}"),
            ));
        }
    }
    let ratio = read(&limit.max_limit_request_ratio);
    if let Some(ratio) = ratio.filter(|&ratio| ratio < Quantity::from_units(1)) {
        errors.push(FieldError::invalid(
            path.child("maxLimitRequestRatio").key(name),
            &ratio.to_string(),
            format!("ratio {ratio} is less than 1"),
        ));
    }
    if let (Some(ratio), Some(min), Some(max)) = (ratio, min, max) {
        // Thousandths saturate only where units are as precise.
        let widest = max.milli_value() as f64 / min.milli_value() as f64;
        if ratio.milli_value() as f64 / 1000.0 > widest {
            errors.push(FieldError::invalid(
                path.child("maxLimitRequestRatio").key(name),
                &ratio.to_string(),
                format!("ratio {ratio} is greater than max/min = {widest:.6}"),
            ));
        }
    }
}
