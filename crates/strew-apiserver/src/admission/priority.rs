//! Priority: resolves the name of a PriorityClass to its value.
//!
//! Source: `plugin/pkg/admission/priority`, v1.36.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::scheduling::v1::PriorityClass;

use strew_manifest::field::{FieldError, FieldPath};

const PREEMPT_LOWER_PRIORITY: &str = "PreemptLowerPriority";

/// The classes that every API server creates. Source: `k8s.io/kubernetes/pkg/apis/scheduling/v1/helpers.go`.
const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// The PriorityClasses of a cluster by name, with the two built-in ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriorityClasses {
    by_name: BTreeMap<String, Class>,
    default: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Class {
    value: i32,
    preemption_policy: String,
}

impl PriorityClasses {
    /// The built-in classes and the given ones.
    pub fn new<'a>(classes: impl IntoIterator<Item = &'a PriorityClass>) -> Self {
        let system = SYSTEM_CLASSES.map(|(name, value)| (name.to_string(), class(value, None)));
        let mut by_name = BTreeMap::from(system);
        let mut default: Option<(i32, String)> = None;
        for given in classes {
            let name = given.metadata.name.clone().unwrap_or_default();
            let value = given.value.unwrap_or_default();
            by_name.insert(
                name.clone(),
                class(value, given.preemption_policy.as_deref()),
            );
            // Several global defaults can only come from a race; the lowest value counts.
            if given.global_default == Some(true)
                && default.as_ref().is_none_or(|(lowest, _)| value < *lowest)
            {
                default = Some((value, name));
            }
        }
        Self {
            by_name,
            default: default.map(|(_, name)| name),
        }
    }

    /// The value of a class.
    pub fn value(&self, name: &str) -> Option<i32> {
        self.by_name.get(name).map(|class| class.value)
    }
}

fn class(value: i32, preemption_policy: Option<&str>) -> Class {
    Class {
        value,
        preemption_policy: preemption_policy
            .unwrap_or(PREEMPT_LOWER_PRIORITY)
            .to_string(),
    }
}

/// Admits a class that is created: there is one global default.
///
/// # Errors
/// The plug-in refuses a second global default.
pub fn admit_class(class: &PriorityClass, classes: &PriorityClasses) -> Result<(), FieldError> {
    let default = classes.default.as_ref();
    let is_default = class.global_default == Some(true);
    match default.filter(|name| is_default && class.metadata.name.as_ref() != Some(name)) {
        None => Ok(()),
        Some(name) => Err(FieldError::forbidden(
            FieldPath::root().child("globalDefault"),
            format!(
                "PriorityClass {name} is already marked as default. Only one default can exist"
            ),
        )),
    }
}

/// Sets `priority`, `preemptionPolicy` and, from the global default, `priorityClassName`.
///
/// # Errors
/// The plug-in refuses an unknown class, or numbers that contradict the class.
pub fn admit(spec: &mut PodSpec, classes: &PriorityClasses) -> Result<(), FieldError> {
    let path = FieldPath::root().child("spec");
    let name = spec
        .priority_class_name
        .clone()
        .filter(|name| !name.is_empty());
    let name = name.or_else(|| classes.default.clone());
    let found = match &name {
        None => class(0, None),
        Some(name) => classes.by_name.get(name).cloned().ok_or_else(|| {
            FieldError::forbidden(
                path.child("priorityClassName"),
                format!("no PriorityClass with name {name} was found"),
            )
        })?,
    };
    if let Some(given) = spec.priority.filter(|&given| given != found.value) {
        return Err(FieldError::forbidden(
            path.child("priority"),
            format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
                found.value
            ),
        ));
    }
    let policy = spec.preemption_policy.as_ref();
    if let Some(given) = policy.filter(|given| **given != found.preemption_policy) {
        return Err(FieldError::forbidden(
            path.child("preemptionPolicy"),
            format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
                found.preemption_policy
            ),
        ));
    }
    spec.priority_class_name = name;
    spec.priority = Some(found.value);
    spec.preemption_policy = Some(found.preemption_policy);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(spec: serde_json::Value, expected: &str) {
        let classes: Vec<PriorityClass> = serde_json::from_value(json!([
            {"metadata": {"name": "high"}, "value": 100, "preemptionPolicy": "Never"},
            {"metadata": {"name": "normal"}, "value": 7, "globalDefault": true},
            {"metadata": {"name": "lower"}, "value": 5, "globalDefault": true},
        ]))
        .unwrap();
        let mut spec: PodSpec = serde_json::from_value(spec).unwrap();
        let actual = match admit(&mut spec, &PriorityClasses::new(&classes)) {
            Err(error) => error.to_string(),
            Ok(()) => format!(
                "{} {} {}",
                spec.priority_class_name.unwrap_or_default(),
                spec.priority.unwrap(),
                spec.preemption_policy.unwrap()
            ),
        };
        assert_eq!(actual, expected);
    }

    #[test]
    fn comes_from_the_class() {
        check(json!({"priorityClassName": "high"}), "high 100 Never");
        check(
            json!({"priorityClassName": "high", "priority": 100}),
            "high 100 Never",
        );
        check(
            json!({"priorityClassName": "system-node-critical"}),
            "system-node-critical 2000001000 PreemptLowerPriority",
        );
        check(json!({}), "lower 5 PreemptLowerPriority");
        check(
            json!({"priorityClassName": ""}),
            "lower 5 PreemptLowerPriority",
        );
    }

    #[test]
    fn refuses_what_contradicts_the_class() {
        check(
            json!({"priorityClassName": "vip"}),
            "spec.priorityClassName: Forbidden: no PriorityClass with name vip was found",
        );
        check(
            json!({"priorityClassName": "high", "priority": 3}),
            "spec.priority: Forbidden: the integer value of priority (3) must not be provided in pod spec; priority admission controller computed 100 from the given PriorityClass name",
        );
        check(
            json!({"preemptionPolicy": "Never"}),
            "spec.preemptionPolicy: Forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name",
        );
    }

    #[test]
    fn one_class_is_the_global_default() {
        let class = |name: &str, is_default: bool| -> PriorityClass {
            let class = json!({"metadata": {"name": name}, "globalDefault": is_default});
            serde_json::from_value(class).unwrap()
        };
        let classes = [class("first", true)];
        let classes = PriorityClasses::new(&classes);
        let says = |class| admit_class(&class, &classes).map_err(|error| error.to_string());
        assert_eq!(says(class("first", true)), Ok(()));
        assert_eq!(says(class("second", false)), Ok(()));
        assert_eq!(
            says(class("second", true)).unwrap_err(),
            "globalDefault: Forbidden: PriorityClass first is already marked as default. Only one default can exist",
        );
    }

    #[test]
    fn without_classes_is_zero() {
        let mut spec = PodSpec::default();
        admit(&mut spec, &PriorityClasses::new([])).unwrap();
        assert_eq!(spec.priority, Some(0));
        assert_eq!(spec.priority_class_name, None);
    }
}
