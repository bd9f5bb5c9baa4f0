//! How many pods a budget expects, and how many healthy ones it requires.
//!
//! Source: spec/controllers §8.1.

use std::sync::Arc;

use k8s_openapi::api::policy::v1::PodDisruptionBudgetSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Kind, Name, Owner};

use super::members::Members;

/// The numbers that a budget asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// `expectedPods`
    pub(super) expected: i32,
    /// `desiredHealthy`
    pub(super) healthy: i32,
}

/// The numbers that a budget asks for, of `n_pods` pods. `scale` is called only if the controllers' sizes matter.
///
/// # Errors
/// The error of `scale`, or an invalid percentage.
pub(super) fn wanted(
    spec: &PodDisruptionBudgetSpec,
    n_pods: usize,
    scale: impl FnOnce() -> Result<i32, String>,
) -> Result<Wanted, String> {
    if let Some(max_unavailable) = &spec.max_unavailable {
        let expected = scale()?;
        let healthy = expected
            .saturating_sub(rounded_up(max_unavailable, expected)?)
            .max(0);
        return Ok(Wanted { expected, healthy });
    }
    match &spec.min_available {
        None => Ok(Wanted {
            expected: 0,
            healthy: 0,
        }),
        Some(IntOrString::Int(healthy)) => Ok(Wanted {
            expected: i32::try_from(n_pods).unwrap_or(i32::MAX),
            healthy: *healthy,
        }),
        Some(share) => {
            let expected = scale()?;
            let healthy = rounded_up(share, expected)?;
            Ok(Wanted { expected, healthy })
        }
    }
}

/// A number, or a percentage of `all`, rounded up.
fn rounded_up(share: &IntOrString, all: i32) -> Result<i32, String> {
    let text = match share {
        IntOrString::Int(number) => return Ok(*number),
        IntOrString::String(text) => text,
    };
    let bad =
        || "invalid value for IntOrString: invalid type: string is not a percentage".to_owned();
    let percent: i64 = text
        .strip_suffix('%')
        .and_then(|n| n.parse().ok())
        .ok_or_else(bad)?;
    let product = percent.saturating_mul(i64::from(all));
    let rounded = product.div_euclid(100) + i64::from(product.rem_euclid(100) > 0);
    Ok(i32::try_from(rounded).unwrap_or(i32::MAX))
}

/// The sum of the sizes of the distinct controllers of a budget's pods.
///
/// # Errors
/// A controller does not exist, or has no size.
pub(super) fn scale(
    members: &Members,
    namespace: &Arc<str>,
    cache: &Tables,
) -> Result<i32, String> {
    let mut sizes = std::collections::BTreeMap::new();
    for (uid, (owner, _)) in &members.controllers {
        let size = size_of(owner, namespace, cache)?.ok_or_else(|| {
            let pod = members.pod_of(uid, cache);
            format!(
                "found no controllers for pod {:?}",
                pod.map_or("", |pod| &pod.name)
            )
        })?;
        sizes.insert(size.0, size.1);
    }
    Ok(sizes
        .values()
        .fold(0, |sum: i32, size| sum.saturating_add(*size)))
}

/// Uid and size of a pod's controller; for a ReplicaSet of a Deployment, those of the Deployment. `None` if it does not
/// exist.
fn size_of(
    owner: &Owner,
    namespace: &Arc<str>,
    cache: &Tables,
) -> Result<Option<(Arc<str>, i32)>, String> {
    let kind = Kind::of_group(&owner.api_version, &owner.kind);
    if !kind.row().is_some_and(|row| row.scales) {
        return Err(format!(
            "{} does not implement the scale subresource",
            resource(&kind, &owner.api_version)
        ));
    }
    let name = Name::new(Arc::clone(namespace), Arc::clone(&owner.name));
    let found = cache.find(&Key { kind, name });
    let Some(object) = found.filter(|object| object.meta().uid == owner.uid) else {
        return Ok(None);
    };
    let above = object
        .meta()
        .controller()
        .filter(|above| &*above.kind == "Deployment");
    match (object.kind(), above) {
        (Kind::ReplicaSet, Some(deployment)) => size_of(deployment, namespace, cache),
        _ => Ok(object.replicas().map(|n| (Arc::clone(&owner.uid), n))),
    }
}

/// The resource name of a kind with its group: `jobs.batch`.
fn resource(kind: &Kind, api_version: &str) -> String {
    let plural = format!("{}s", kind.name().to_lowercase());
    match api_version.split_once('/') {
        Some((group, _)) => format!("{plural}.{group}"),
        None => plural,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_is_wanted() {
        let scale = 7;
        for (spec, expected) in [
            (json!({"minAvailable": 2}), Ok((5, 2))),
            (json!({"minAvailable": "50%"}), Ok((7, 4))),
            (json!({"minAvailable": "100%"}), Ok((7, 7))),
            (json!({"minAvailable": "0%"}), Ok((7, 0))),
            (json!({"maxUnavailable": 1}), Ok((7, 6))),
            (json!({"maxUnavailable": 9}), Ok((7, 0))),
            (json!({"maxUnavailable": "25%"}), Ok((7, 5))),
            (json!({"maxUnavailable": "100%"}), Ok((7, 0))),
            (json!({}), Ok((0, 0))),
            (json!({"minAvailable": "half"}), Err(())),
        ] {
            let parsed: PodDisruptionBudgetSpec = serde_json::from_value(spec.clone()).unwrap();
            let wanted = wanted(&parsed, 5, || Ok(scale)).map(|w| (w.expected, w.healthy));
            assert_eq!(wanted.map_err(drop), expected, "{spec}");
        }
    }

    /// The worked examples of spec/controllers §8.1.
    #[test]
    fn rounding_up_is_kind_to_the_evictor_and_to_the_budget() {
        let check = |spec: Value, scale: i32| {
            let spec: PodDisruptionBudgetSpec = serde_json::from_value(spec).unwrap();
            wanted(&spec, 0, || Ok(scale)).unwrap().healthy
        };
        assert_eq!(check(json!({"maxUnavailable": "25%"}), 2), 1);
        assert_eq!(check(json!({"minAvailable": "50%"}), 3), 2);
    }
}
