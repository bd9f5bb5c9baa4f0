//! Nodes, Namespaces, PriorityClasses, PodDisruptionBudgets.
//!
//! Source: `pkg/apis/{core,scheduling,policy}/validation`, v1.36.

use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;

use super::Validate;
use super::workload::{at_most_100_percent, int_or_percent};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::{json, one_of, resources, selector, taint, text};

/// The largest priority of a class that is not built in. Source: `pkg/apis/scheduling/types.go`,
/// `HighestUserDefinablePriority`.
const USER_PRIORITY_MAX: i32 = 1_000_000_000;
const SYSTEM_PREFIX: &str = "system-";
const SYSTEM_CLASSES: [(&str, i32); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

impl Validate for Node {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Cluster, text::dns_subdomain);
        let n_before = errors.len();
        // As upstream, although the path is wrong: the taints are in `spec`.
        let path = FieldPath::root().child("metadata.taints");
        let taints = self.spec.as_ref().and_then(|spec| spec.taints.as_deref());
        taint::taints(taints.unwrap_or_default(), &path, &mut errors);
        for error in &mut errors[n_before..] {
            error.help = Some("the API server says `metadata.taints` for `spec.taints`".into());
        }
        if let Some(status) = &self.status {
            let path = FieldPath::root().child("status");
            resources::amounts(
                status.capacity.as_ref(),
                &path.child("capacity"),
                &mut errors,
            );
            let allocatable = status.allocatable.as_ref();
            resources::amounts(allocatable, &path.child("allocatable"), &mut errors);
        }
        errors
    }
}

impl Validate for Namespace {
    fn validate(&self) -> Vec<FieldError> {
        metadata::validate(&self.metadata, Scope::Cluster, text::dns_label)
    }
}

impl Validate for PriorityClass {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Cluster, text::dns_subdomain);
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let value = self.value.unwrap_or_default();
        if name.starts_with(SYSTEM_PREFIX) {
            if let Some(why) = not_a_system_class(name, value, self.global_default == Some(true)) {
                errors.push(FieldError::forbidden(
                    FieldPath::root().child("metadata.name"),
                    format!(
                        "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {why}"
                    ),
                ));
            }
        } else if value > USER_PRIORITY_MAX {
            errors.push(FieldError::forbidden(
                FieldPath::root().child("value"),
                format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"),
            ));
        }
        if let Some(policy) = &self.preemption_policy {
            let known = ["PreemptLowerPriority", "Never"];
            let path = FieldPath::root().child("preemptionPolicy");
            one_of(policy, &known, &path, &mut errors);
        }
        errors
    }
}

/// Source: `IsKnownSystemPriorityClass`.
fn not_a_system_class(name: &str, value: i32, global_default: bool) -> Option<String> {
    let Some((_, known)) = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if value != *known {
        return Some(format!("value of {name} PriorityClass must be {known}"));
    }
    global_default.then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

impl Validate for PodDisruptionBudget {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let Some(spec) = &self.spec else {
            return errors;
        };
        let path = FieldPath::root().child("spec");
        if spec.min_available.is_some() && spec.max_unavailable.is_some() {
            errors.push(FieldError::invalid_raw(
                path.clone(),
                json(spec),
                "minAvailable and maxUnavailable cannot be both set",
            ));
        }
        let limits = [
            ("minAvailable", &spec.min_available),
            ("maxUnavailable", &spec.max_unavailable),
        ];
        for (name, limit) in limits {
            if let Some(limit) = limit {
                int_or_percent(limit, &path.child(name), &mut errors);
                at_most_100_percent(limit, &path.child(name), &mut errors);
            }
        }
        if let Some(policy) = &spec.unhealthy_pod_eviction_policy {
            let known = ["AlwaysAllow", "IfHealthyBudget"];
            one_of(
                policy,
                &known,
                &path.child("unhealthyPodEvictionPolicy"),
                &mut errors,
            );
        }
        selector::validate(spec.selector.as_ref(), &path.child("selector"), &mut errors);
        errors
    }
}
