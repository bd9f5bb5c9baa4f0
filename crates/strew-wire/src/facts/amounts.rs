//! Converts resource lists to amounts, and sums up a pod's requests.
//!
//! Source: `k8s.io/component-helpers/resource`, v1.36; spec/scheduler §3.8.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use strew_model::{Interner, Resources};

use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::quantity::Quantity;

/// The CPU that a container without a request counts with in scores.
const DEFAULT_CPU_MILLI: i64 = 100;
const DEFAULT_MEMORY: i64 = 200 << 20;

type List = BTreeMap<String, WireQuantity>;

/// A resource list as amounts: CPU in thousandths, all else in whole units, both rounded up.
///
/// Names that the scheduler does not know (no `/`, no `hugepages-`, no `attachable-volumes-`) are left out, as upstream
/// does; so is `pods`, which is read by itself.
///
/// # Errors
/// Each quantity that does not parse, is negative, or is beyond 63 bits.
pub fn resources(
    list: Option<&List>,
    path: &FieldPath,
    names: &mut Interner,
) -> Result<Resources, Vec<FieldError>> {
    let mut amounts = Resources::default();
    let mut errors = Vec::new();
    for (name, wire) in list.into_iter().flatten() {
        let read = quantity(wire, &path.key(name), name == "cpu");
        match (read, name.as_str()) {
            (Err(error), _) => errors.push(error),
            (Ok(value), "cpu") => amounts.cpu_milli = value,
            (Ok(value), "memory") => amounts.memory = value,
            (Ok(value), "ephemeral-storage") => amounts.ephemeral_storage = value,
            (Ok(value), name) if is_scalar(name) => amounts.set_scalar(names.intern(name), value),
            (Ok(_), _) => {}
        }
    }
    if errors.is_empty() {
        Ok(amounts)
    } else {
        Err(errors)
    }
}

/// A quantity in thousandths or whole units, rounded up.
pub(super) fn quantity(
    wire: &WireQuantity,
    path: &FieldPath,
    milli: bool,
) -> Result<i64, FieldError> {
    let refuse = |why: String| FieldError::invalid(path.clone(), &wire.0, why);
    let parsed = Quantity::parse(&wire.0).map_err(|e| refuse(e.to_string()))?;
    if parsed.signum() < 0 {
        return Err(refuse("must be greater than or equal to 0".to_owned()));
    }
    let value = if milli {
        parsed.checked_milli_value()
    } else {
        parsed.checked_value()
    };
    value.map_err(|e| refuse(e.to_string()))
}

fn is_scalar(name: &str) -> bool {
    name.contains('/') || name.starts_with("hugepages-") || name.starts_with("attachable-volumes-")
}

/// The requests of a pod, in the forms that decisions need.
pub(super) struct PodAmounts {
    pub(super) requests: Resources,
    pub(super) scored: (i64, i64),
    pub(super) used: Resources,
    pub(super) used_scored: (i64, i64),
}

/// How a sum over a pod is made.
#[derive(Clone, Copy)]
struct Rule {
    /// A container without a request counts with the defaults.
    with_defaults: bool,
    /// `spec.resources` replaces the sum for the resources that it names.
    pod_level: bool,
    /// During a resize, a pod on a node counts with what it has been allocated.
    with_status: bool,
}

/// Sums up the requests of a pod.
///
/// # Errors
/// Each quantity that cannot be used.
pub(super) fn pod_amounts(
    spec: &core::PodSpec,
    status: Option<&core::PodStatus>,
    names: &mut Interner,
) -> Result<PodAmounts, Vec<FieldError>> {
    let rule = Rule {
        with_defaults: false,
        pod_level: true,
        with_status: false,
    };
    let mut sum = |rule| sum(spec, status, rule, names);
    let requests = sum(rule)?;
    // The embedded scorer of v1.36.3 ignores pod-level resources (spec/scheduler §3.8, quirk).
    let scored = sum(Rule {
        with_defaults: true,
        pod_level: false,
        ..rule
    })?;
    let used = sum(Rule {
        with_status: true,
        ..rule
    })?;
    let used_scored = sum(Rule {
        with_defaults: true,
        with_status: true,
        ..rule
    })?;
    Ok(PodAmounts {
        requests,
        scored: (scored.cpu_milli, scored.memory),
        used,
        used_scored: (used_scored.cpu_milli, used_scored.memory),
    })
}

fn sum(
    spec: &core::PodSpec,
    status: Option<&core::PodStatus>,
    rule: Rule,
    names: &mut Interner,
) -> Result<Resources, Vec<FieldError>> {
    let root = FieldPath::root().child("spec");
    let mut errors = Vec::new();
    let pod_level = spec
        .resources
        .as_ref()
        .and_then(|r| r.requests.as_ref())
        .filter(|_| rule.pod_level);
    let named_by_pod = |name: &str| pod_level.is_some_and(|list| list.contains_key(name));

    let mut of_container = |container: &core::Container, path: FieldPath| {
        let requests = container
            .resources
            .as_ref()
            .and_then(|r| r.requests.as_ref());
        let mut amounts = resources(requests, &path.child("resources.requests"), names)
            .unwrap_or_else(|more| {
                errors.extend(more);
                Resources::default()
            });
        let names_it =
            |name: &str| requests.is_some_and(|list| list.contains_key(name)) || named_by_pod(name);
        if rule.with_defaults && !names_it("cpu") {
            amounts.cpu_milli = DEFAULT_CPU_MILLI;
        }
        if rule.with_defaults && !names_it("memory") {
            amounts.memory = DEFAULT_MEMORY;
        }
        if let Some(status) = status.filter(|_| rule.with_status) {
            raise_to_status(status, container, &mut amounts, names);
        }
        amounts
    };

    let mut running = Resources::default();
    for (i, container) in spec.containers.iter().enumerate() {
        running.add(
            &of_container(container, root.child("containers").index(i)),
            1,
        );
    }
    let mut sidecars = Resources::default();
    let mut starting = Resources::default();
    for (i, container) in spec.init_containers.iter().flatten().enumerate() {
        let own = of_container(container, root.child("initContainers").index(i));
        if is_sidecar(container) {
            sidecars.add(&own, 1);
            starting.raise_to(&sidecars);
        } else {
            let mut candidate = own;
            candidate.add(&sidecars, 1);
            starting.raise_to(&candidate);
        }
    }
    running.add(&sidecars, 1);
    running.raise_to(&starting);

    let mut replace = |list: Option<&List>, field: &'static str| {
        resources(list, &root.child(field), names).unwrap_or_else(|more| {
            errors.extend(more);
            Resources::default()
        })
    };
    if let Some(list) = pod_level {
        let level = replace(Some(list), "resources.requests");
        for name in list.keys() {
            match name.as_str() {
                "cpu" => running.cpu_milli = level.cpu_milli,
                "memory" => running.memory = level.memory,
                _ => {}
            }
        }
        level
            .scalars()
            .iter()
            .for_each(|&(name, amount)| running.set_scalar(name, amount));
    }
    running.add(&replace(spec.overhead.as_ref(), "overhead"), 1);
    if errors.is_empty() {
        Ok(running)
    } else {
        Err(errors)
    }
}

/// A restartable init container.
pub(super) fn is_sidecar(container: &core::Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// In-place resize: the largest of requested, allocated and actual resources; if the resize is infeasible, only of the
/// latter two. Invalid quantities are left to the check of the spec.
fn raise_to_status(
    status: &core::PodStatus,
    container: &core::Container,
    amounts: &mut Resources,
    names: &mut Interner,
) {
    let statuses = [&status.container_statuses, &status.init_container_statuses];
    let mut statuses = statuses.into_iter().flatten().flatten();
    let Some(of_container) = statuses.find(|s| s.name == container.name) else {
        return;
    };
    let Some(in_force) = of_container
        .resources
        .as_ref()
        .and_then(|r| r.requests.as_ref())
    else {
        return;
    };
    let infeasible = status
        .conditions
        .iter()
        .flatten()
        .any(|c| c.type_ == "PodResizePending" && c.reason.as_deref() == Some("Infeasible"));
    let path = FieldPath::root().child("status.containerStatuses");
    let mut read = |list| resources(list, &path, names).unwrap_or_default();
    let mut given = read(Some(in_force));
    given.raise_to(&read(of_container.allocated_resources.as_ref()));
    if infeasible {
        *amounts = given;
    } else {
        amounts.raise_to(&given);
    }
}
