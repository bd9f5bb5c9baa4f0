//! RuntimeClass: what the class of a pod's runtime adds to the pod: node selector, tolerations, overhead.
//!
//! Source: `plugin/pkg/admission/runtimeclass/admission.go`, `pkg/util/tolerations`, v1.36.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSpec, Toleration};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::read::nearest;

use super::pod_amounts::read;

/// The RuntimeClasses of a cluster by name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuntimeClasses(BTreeMap<String, RuntimeClass>);

impl RuntimeClasses {
    /// The given classes.
    pub fn new<'a>(classes: impl IntoIterator<Item = &'a RuntimeClass>) -> Self {
        let named = classes.into_iter().map(|class| {
            let name = class.metadata.name.clone().unwrap_or_default();
            (name, class.clone())
        });
        Self(named.collect())
    }
}

/// Adds what the pod's class has.
///
/// # Errors
/// The plug-in refuses an unknown class, a node selector that contradicts the class's, and another overhead.
pub fn admit(spec: &mut PodSpec, classes: &RuntimeClasses) -> Result<(), FieldError> {
    let path = FieldPath::root().child("spec");
    let class = match &spec.runtime_class_name {
        None => None,
        Some(name) => Some(classes.0.get(name).ok_or_else(|| {
            let path = path.child("runtimeClassName");
            let text = format!("pod rejected: RuntimeClass {name:?} not found");
            let error = FieldError::forbidden(path, text);
            match nearest(name, classes.0.keys().map(String::as_str)) {
                Some(meant) => error.with_help(format!("did you mean {meant:?}?")),
                None => error.with_help("add the RuntimeClass to the files"),
            }
        })?),
    };
    let overhead = class.and_then(|class| class.overhead.as_ref());
    set_overhead(
        spec,
        overhead.map(|overhead| overhead.pod_fixed.as_ref()),
        &path,
    )?;
    let Some(scheduling) = class.and_then(|class| class.scheduling.as_ref()) else {
        return Ok(());
    };
    for (key, value) in scheduling.node_selector.iter().flatten() {
        let selector = spec.node_selector.get_or_insert_default();
        if let Some(given) = selector.get(key).filter(|given| *given != value) {
            let text = format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
            );
            return Err(FieldError::forbidden(path.child("nodeSelector"), text));
        }
        selector.insert(key.clone(), value.clone());
    }
    let added = scheduling.tolerations.as_deref().unwrap_or_default();
    if !added.is_empty() {
        let given = spec.tolerations.take().unwrap_or_default();
        spec.tolerations = Some(merged(&given, added));
    }
    Ok(())
}

/// Sets the overhead of a class; `None` if it has none.
fn set_overhead(
    spec: &mut PodSpec,
    of_class: Option<Option<&BTreeMap<String, WireQuantity>>>,
    path: &FieldPath,
) -> Result<(), FieldError> {
    let given = spec.overhead.as_ref();
    let refused = |text: &str| Err(FieldError::forbidden(path.child("overhead"), text));
    let Some(fixed) = of_class else {
        return match given {
            Some(_) => refused(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            ),
            None => Ok(()),
        };
    };
    if given.is_some_and(|given| !given.is_empty()) && read(given) != read(fixed) {
        return refused(
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        );
    }
    spec.overhead = fixed.cloned();
    Ok(())
}

/// Both lists, without tolerations that another one includes. Source: `MergeTolerations`.
fn merged(first: &[Toleration], second: &[Toleration]) -> Vec<Toleration> {
    let all: Vec<&Toleration> = first.iter().chain(second).collect();
    let mut merged: Vec<&Toleration> = Vec::new();
    for (i, toleration) in all.iter().enumerate() {
        let mut earlier = merged.iter();
        let mut later = all[i + 1..].iter().filter(|other| *other != toleration);
        let is_redundant = earlier.any(|other| includes(other, toleration))
            || later.any(|other| includes(other, toleration));
        if !is_redundant {
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().collect()
}

/// True if `wide` tolerates all that `narrow` does. Source: `isSuperset`.
fn includes(wide: &Toleration, narrow: &Toleration) -> bool {
    fn text(field: &Option<String>) -> &str {
        field.as_deref().unwrap_or_default()
    }
    let operator = text(&wide.operator);
    if wide == narrow {
        return true;
    }
    let is_any_key = text(&wide.key).is_empty() && operator == "Exists";
    if text(&wide.key) != text(&narrow.key) && !is_any_key {
        return false;
    }
    let effect = text(&wide.effect);
    if effect != text(&narrow.effect) && !effect.is_empty() {
        return false;
    }
    if effect == "NoExecute"
        && let Some(seconds) = wide.toleration_seconds
        && narrow
            .toleration_seconds
            .is_none_or(|other| other > seconds)
    {
        return false;
    }
    match operator {
        "" | "Equal" => {
            text(&narrow.operator) == "Equal" && text(&narrow.value) == text(&wide.value)
        }
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The admitted spec, or the refusal.
    fn admitted(spec: Value) -> Result<Value, String> {
        let classes: Vec<RuntimeClass> = serde_json::from_value(json!([
            {"metadata": {"name": "kata"}, "handler": "kata",
                "overhead": {"podFixed": {"cpu": "500m"}},
                "scheduling": {
                    "nodeSelector": {"runtime": "kata"},
                    "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
                }},
            {"metadata": {"name": "runc"}, "handler": "runc"},
        ]))
        .unwrap();
        let mut spec: PodSpec = serde_json::from_value(spec).unwrap();
        match admit(&mut spec, &RuntimeClasses::new(&classes)) {
            Ok(()) => Ok(serde_json::to_value(spec).unwrap()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn the_class_adds_to_the_pod() {
        let of_class = json!({"key": "kata", "operator": "Exists", "effect": "NoSchedule"});
        let given = json!({"containers": [], "runtimeClassName": "kata", "nodeSelector": {"disk": "ssd"},
        "tolerations": [
            {"key": "kata", "operator": "Equal", "value": "a", "effect": "NoSchedule"},
            {"key": "gpu", "operator": "Exists"},
        ]});
        let spec = admitted(given).unwrap();
        assert_eq!(spec["overhead"], json!({"cpu": "500m"}));
        assert_eq!(
            spec["nodeSelector"],
            json!({"disk": "ssd", "runtime": "kata"})
        );
        let expected = json!([{"key": "gpu", "operator": "Exists"}, of_class]);
        assert_eq!(spec["tolerations"], expected);
        // Once more, as after a webhook.
        assert_eq!(admitted(spec.clone()), Ok(spec));
        let plain = json!({"containers": [], "runtimeClassName": "runc"});
        assert_eq!(admitted(plain.clone()), Ok(plain));
    }

    #[test]
    fn what_contradicts_the_class_is_refused() {
        let cases = [
            (
                json!({"containers": [], "runtimeClassName": "gvisor"}),
                "spec.runtimeClassName: Forbidden: pod rejected: RuntimeClass \"gvisor\" not found",
            ),
            (
                json!({"containers": [], "runtimeClassName": "kata", "overhead": {"cpu": "1"}}),
                "spec.overhead: Forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            ),
            (
                json!({"containers": [], "runtimeClassName": "runc", "overhead": {"cpu": "1"}}),
                "spec.overhead: Forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                 Overhead",
            ),
            (
                json!({"containers": [], "runtimeClassName": "kata", "nodeSelector": {"runtime": "runc"}}),
                "spec.nodeSelector: Forbidden: conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; \
                 pod.spec.nodeSelector[runtime] = runc",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(admitted(spec), Err(expected.to_owned()));
        }
        // The same amount in other words.
        let same =
            json!({"containers": [], "runtimeClassName": "kata", "overhead": {"cpu": "0.5"}});
        assert!(admitted(same).is_ok());
    }

    #[test]
    fn tolerations_that_others_include_go() {
        let of = |value: Value| -> Vec<Toleration> { serde_json::from_value(value).unwrap() };
        let all = of(json!([{"operator": "Exists"}]));
        let one = of(
            json!([{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]),
        );
        let long = of(
            json!([{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}]),
        );
        assert_eq!(merged(&one, &all), all);
        assert_eq!(merged(&all, &one), all);
        assert_eq!(merged(&one, &one), one);
        assert_eq!(merged(&one, &long), long);
        let equal =
            of(json!([{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}]));
        assert_eq!(merged(&equal, &one), [equal, one].concat());
    }
}
