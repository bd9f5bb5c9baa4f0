//! Requests, limits, capacities.
//!
//! Source: `ValidateContainerResourceRequirements`, `validatePodResourceConsistency`, `ValidateResourceQuantityValue` of
//! `pkg/apis/core/validation`, v1.36.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::{invalid_each, text};
use crate::defaults::containers_request;
use crate::field::{FieldError, FieldPath};
use crate::quantity::Quantity;

type Resources = BTreeMap<String, WireQuantity>;

/// Resources that containers may request, beside `hugepages-*`.
const STANDARD_FOR_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Names without a prefix that are valid in other places (quotas).
const STANDARD: [&str; 15] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "requests.storage",
    "storage",
    "services",
    "secrets",
    "configmaps",
];

/// Checks the names and amounts of requests and limits, and each request against its limit.
pub fn requirements(
    resources: &ResourceRequirements,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let limits_path = path.child("limits");
    let requests_path = path.child("requests");
    let limits = each(resources.limits.as_ref(), &limits_path, errors);
    for (name, request) in named(resources.requests.as_ref()) {
        let at = requests_path.key(name);
        container_resource_name(name, &at, errors);
        let Some(request) = amount(name, request, &at, errors) else {
            continue;
        };
        let limit = limits.get(name);
        let printed = request.round_up_to_milli().to_string();
        let broken = |rule: &str, limit: &Quantity| {
            let limit = limit.round_up_to_milli();
            let detail = format!("must be {rule} {name} limit of {limit}");
            FieldError::invalid(requests_path.clone(), &printed, detail)
        };
        match limit {
            Some(limit) if *limit != request && !may_overcommit(name) => {
                errors.push(broken("equal to", limit));
            }
            Some(limit) if request > *limit => {
                errors.push(broken("less than or equal to", limit));
            }
            None if !may_overcommit(name) && !has(resources.limits.as_ref(), name) => {
                errors.push(FieldError::required(
                    limits_path.clone(),
                    "Limit must be set for non overcommitable resources",
                ));
            }
            _ => {}
        }
    }
}

/// Refuses huge pages of a container that asks for neither cpu nor memory; `path` is that of the requirements.
pub(super) fn huge_pages_alone(
    resources: &ResourceRequirements,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let all = named(resources.limits.as_ref()).chain(named(resources.requests.as_ref()));
    let names: Vec<&str> = all.map(|(name, _)| name).collect();
    let has_pages = names.iter().any(|name| name.starts_with("hugepages-"));
    let has_others = names.iter().any(|name| ["cpu", "memory"].contains(name));
    if has_pages && !has_others {
        let detail = "HugePages require cpu or memory";
        errors.push(FieldError::forbidden(path.clone(), detail));
    }
}

/// Refuses amounts of a whole pod that its containers exceed; `path` is that of the pod's spec.
pub(super) fn of_pod(spec: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(resources) = &spec.resources else {
        return;
    };
    let at = path.child("resources");
    requirements(resources, &at, errors);
    for (name, request) in named(resources.requests.as_ref()) {
        let (Ok(request), Some(sum)) =
            (Quantity::try_from(request), containers_request(spec, name))
        else {
            continue;
        };
        if sum > request {
            let (request, sum) = (request.round_up_to_milli(), sum.round_up_to_milli());
            errors.push(FieldError::invalid(
                at.child("requests").key(name),
                &request.to_string(),
                format!("must be greater than or equal to aggregate container requests of {sum}"),
            ));
        }
    }
    for (i, container) in spec.containers.iter().enumerate() {
        let limits = container.resources.as_ref().and_then(|r| r.limits.as_ref());
        for (name, limit) in named(limits) {
            let of_pod = resources.limits.as_ref().and_then(|all| all.get(name));
            let (Ok(limit), Some(Ok(of_pod))) =
                (Quantity::try_from(limit), of_pod.map(Quantity::try_from))
            else {
                continue;
            };
            if limit > of_pod {
                let at = path.child("containers").index(i).child("resources.limits");
                let (limit, of_pod) = (limit.round_up_to_milli(), of_pod.round_up_to_milli());
                errors.push(FieldError::invalid(
                    at.key(name),
                    &limit.to_string(),
                    format!("must be less than or equal to pod limits of {of_pod}"),
                ));
            }
        }
    }
}

/// Checks the storage that a claim asks for, which is more than none. Source: `ValidatePersistentVolumeClaimSpec`.
pub fn storage_of_claim(
    wire: Option<&WireQuantity>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(wire) = wire else {
        errors.push(FieldError::required(path.clone(), ""));
        return;
    };
    match Quantity::try_from(wire) {
        Ok(quantity) if quantity.signum() <= 0 => {
            let printed = quantity.round_up_to_milli().to_string();
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(path.clone(), &printed, detail));
        }
        _ => drop(amount("storage", wire, path, errors)),
    }
}

/// Checks the capacity of a node, or a pod's overhead.
pub fn amounts(resources: Option<&Resources>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (name, quantity) in named(resources) {
        amount(name, quantity, &path.key(name), errors);
    }
}

/// Checks the amount of a quota's resource.
pub fn amount_of_quota(
    name: &str,
    wire: &WireQuantity,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let counted = COUNTED_BY_QUOTAS.contains(&name) || name.starts_with("count/");
    let n_before = errors.len();
    let quantity = amount(name, wire, path, errors);
    if let Some(quantity) = quantity
        && counted
        && errors.len() == n_before
        && !quantity.round_up_to_milli().is_whole()
    {
        let printed = quantity.round_up_to_milli().to_string();
        errors.push(FieldError::invalid(
            path.clone(),
            &printed,
            "must be an integer",
        ));
    }
}

/// Resources that quotas count in whole numbers. Source: `integerResources`.
const COUNTED_BY_QUOTAS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Checks the name and the amount of a resource that a LimitRange bounds.
pub fn name_and_amount(
    name: &str,
    wire: &WireQuantity,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    invalid_each(text::qualified_name(name), name, path, errors);
    if !name.contains('/') && !name.starts_with("hugepages-") && !STANDARD.contains(&name) {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path.clone(), name, detail));
    }
    if let Err(error) = Quantity::try_from(wire) {
        let detail = error.to_string();
        errors.push(FieldError::invalid(path.clone(), &wire.0, detail));
    }
}

fn each<'a>(
    limits: Option<&'a Resources>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> BTreeMap<&'a str, Quantity> {
    let mut good = BTreeMap::new();
    for (name, quantity) in named(limits) {
        let at = path.key(name);
        container_resource_name(name, &at, errors);
        good.extend(amount(name, quantity, &at, errors).map(|amount| (name, amount)));
    }
    good
}

fn named(resources: Option<&Resources>) -> impl Iterator<Item = (&str, &WireQuantity)> {
    let all = resources.into_iter().flatten();
    all.map(|(name, quantity)| (name.as_str(), quantity))
}

fn has(resources: Option<&Resources>, name: &str) -> bool {
    resources.is_some_and(|resources| resources.contains_key(name))
}

/// The amount; reports one that is no quantity, or too large for the scheduler's units.
fn amount(
    name: &str,
    wire: &WireQuantity,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> Option<Quantity> {
    let checked = Quantity::try_from(wire).and_then(|quantity| {
        // Only cpu is counted in thousandths.
        if name == "cpu" {
            quantity.checked_milli_value()?;
        }
        Ok(quantity)
    });
    let quantity = match checked {
        Ok(quantity) => quantity,
        Err(error) => {
            errors.push(FieldError::invalid(
                path.clone(),
                &wire.0,
                error.to_string(),
            ));
            return None;
        }
    };
    let printed = quantity.round_up_to_milli().to_string();
    if quantity.signum() < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path.clone(), &printed, detail));
    }
    let is_counted = name == "pods" || is_extended(name);
    if is_counted && !quantity.round_up_to_milli().is_whole() {
        errors.push(FieldError::invalid(
            path.clone(),
            &printed,
            "must be an integer",
        ));
    }
    Some(quantity)
}

/// A standard name, or a qualified one.
fn container_resource_name(name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    invalid_each(text::qualified_name(name), name, path, errors);
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(path.clone(), name, detail));
    if !name.contains('/') {
        let huge = name.starts_with("hugepages-");
        if !huge && !STANDARD.contains(&name) {
            refuse("must be a standard resource type or fully qualified");
        }
        if !huge && !STANDARD_FOR_CONTAINERS.contains(&name) {
            refuse("must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        refuse("doesn't follow extended resource name standard");
    }
}

/// True if the name is one of Kubernetes' own resources. Source: `IsNativeResource`.
pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// True if the name is that of an extended resource. Source: `IsExtendedResourceName`.
pub fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && text::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Source: `IsOvercommitAllowed`.
fn may_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}
