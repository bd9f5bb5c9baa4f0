//! The API server's warnings about pods and templates that it accepts.
//!
//! Source: `GetWarningsForPod`, `GetWarningsForPodTemplate` of `pkg/api/pod`, v1.36.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use super::spread;
use crate::field::FieldPath;
use crate::quantity::Quantity;

/// The warnings about the spec of a pod at `path`.
pub fn of_spec(spec: &PodSpec, path: &FieldPath) -> Vec<String> {
    let constraints = spec.topology_spread_constraints.as_deref();
    let at = path.child("topologySpreadConstraints");
    let mut warnings = spread::warnings(constraints.unwrap_or_default(), &at);
    fractions(
        spec.overhead.as_ref(),
        "memory",
        &path.child("overhead"),
        &mut warnings,
    );
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let lists = [("initContainers", init), ("containers", &spec.containers)];
    for (list, containers) in lists {
        for (i, container) in containers.iter().enumerate() {
            of_container(container, &path.child(list).index(i), &mut warnings);
        }
    }
    if spec.termination_grace_period_seconds.is_some_and(|s| s < 0) {
        let at = path.child("terminationGracePeriodSeconds");
        warnings.push(format!(
            "{at}: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    warnings
}

fn of_container(container: &Container, path: &FieldPath, warnings: &mut Vec<String>) {
    let Some(resources) = &container.resources else {
        return;
    };
    let lists = [
        ("limits", resources.limits.as_ref()),
        ("requests", resources.requests.as_ref()),
    ];
    for resource in ["memory", "ephemeral-storage"] {
        for (list, amounts) in lists {
            let path = path.child("resources").child(list);
            fractions(amounts, resource, &path, warnings);
        }
    }
}

fn fractions(
    amounts: Option<&BTreeMap<String, WireQuantity>>,
    resource: &str,
    path: &FieldPath,
    warnings: &mut Vec<String>,
) {
    let given = amounts.and_then(|amounts| amounts.get(resource));
    let Some(Ok(quantity)) = given.map(Quantity::try_from) else {
        return;
    };
    let milli = quantity.round_up_to_milli();
    if !milli.is_whole() {
        let at = path.key(resource);
        let printed = milli.to_string();
        warnings.push(format!(
            "{at}: fractional byte value {printed:?} is invalid, must be an integer"
        ));
    }
}
