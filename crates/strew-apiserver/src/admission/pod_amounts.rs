//! Sums of the requests and limits of a pod's containers, as LimitRanger and ResourceQuota compute them.
//!
//! Source: `PodRequests`, `PodLimits` of `k8s.io/component-helpers/resource`, v1.36. Invalid amounts are left out, and
//! overflows are capped: validation refuses both.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;

use strew_manifest::quantity::Quantity;

/// Amounts by the name of the resource.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// Requests or limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Requests,
    Limits,
}

impl Half {
    pub(super) fn of(self, requirements: Option<&ResourceRequirements>) -> Amounts {
        let list = requirements.and_then(|given| match self {
            Self::Requests => given.requests.as_ref(),
            Self::Limits => given.limits.as_ref(),
        });
        read(list)
    }
}

/// A resource list as amounts.
pub(super) fn read(list: Option<&BTreeMap<String, WireQuantity>>) -> Amounts {
    let read = |(name, wire): (&String, &WireQuantity)| {
        Some((name.clone(), Quantity::try_from(wire).ok()?))
    };
    list.into_iter().flatten().filter_map(read).collect()
}

/// Amounts as a resource list.
pub(super) fn write(amounts: &Amounts) -> BTreeMap<String, WireQuantity> {
    let write = |(name, amount): (&String, &Quantity)| (name.clone(), (*amount).into());
    amounts.iter().map(write).collect()
}

/// Adds each amount to the one of the same name.
pub(super) fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = match total.get(name) {
            // Zero has no format of its own.
            Some(have) if have.signum() != 0 => have
                .checked_add(*amount)
                .unwrap_or(Quantity::from_units(i64::MAX)),
            _ => *amount,
        };
        total.insert(name.clone(), sum);
    }
}

fn raise_to(total: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        if total.get(name).is_none_or(|have| have < amount) {
            total.insert(name.clone(), *amount);
        }
    }
}

/// The sum over a pod without its overhead: containers and sidecars together, or more while the init containers run.
/// Amounts in `spec.resources` replace it.
pub(super) fn of_containers(spec: &PodSpec, half: Half) -> Amounts {
    let mut running = Amounts::new();
    for container in &spec.containers {
        add(&mut running, &half.of(container.resources.as_ref()));
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in spec.init_containers.iter().flatten() {
        let mut own = half.of(container.resources.as_ref());
        if is_sidecar(container) {
            add(&mut sidecars, &own);
            own = sidecars.clone();
        } else {
            add(&mut own, &sidecars);
        }
        raise_to(&mut starting, &own);
    }
    add(&mut running, &sidecars);
    raise_to(&mut running, &starting);
    let at_pod_level =
        |name: &String| matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-");
    let of_pod = half.of(spec.resources.as_ref());
    running.extend(of_pod.into_iter().filter(|(name, _)| at_pod_level(name)));
    running
}

/// The sum over a pod with its overhead, which is added only to existing limits.
pub(super) fn of_pod(spec: &PodSpec, half: Half) -> Amounts {
    let mut total = of_containers(spec, half);
    let mut overhead = read(spec.overhead.as_ref());
    if half == Half::Limits {
        overhead.retain(|name, _| total.contains_key(name));
    }
    add(&mut total, &overhead);
    total
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
