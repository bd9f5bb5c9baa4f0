//! Admission of a created or [updated](update) object: defaults, admission plugins, then validation.
//!
//! Everything but [update] is for *created* objects. What stands in a dump has been through it already.
//!
//! Order for pods (`k8s.io/kubernetes/pkg/registry/core/pod`, v1.36): [defaults], the plug-ins
//! [priority] and [tolerations], then `PrepareForCreate` ([disabled_fields], [match_label_keys]), then
//! [validation].

mod autoscaler;
pub mod binding;
pub mod defaults;
pub mod disabled_fields;
pub mod limit_range;
pub mod match_label_keys;
pub mod node;
pub mod object;
mod pod_amounts;
pub mod priority;
pub mod quota;
mod refusal;
pub mod tolerations;
pub mod update;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use strew_api::config::AdmissionOptions;
use strew_api::field::FieldError;

use crate::validation::{self, Validate};
pub use binding::bind_labels;
pub use defaults::SetDefaults;
pub use object::{admit_object, admit_object_update, read_back};
pub use priority::PriorityClasses;
pub use refusal::Refusal;

/// What admission needs to know beside the object.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionContext<'a> {
    /// The PriorityClasses of the cluster.
    pub priority_classes: &'a PriorityClasses,
    /// How the API server is configured.
    pub options: &'a AdmissionOptions,
}

/// An object as the API server would store it.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted<T> {
    /// The object, defaulted and changed.
    pub object: T,
    /// What the API server would say in `Warning` headers.
    pub warnings: Vec<String>,
}

/// Creates a pod: defaults, plug-ins, validation.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use strew_api::config::AdmissionOptions;
/// use strew_apiserver::admission::{AdmissionContext, PriorityClasses, admit_pod};
/// let pod: Pod = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "web"},
///     "spec": {"containers": [{"name": "web"}], "priorityClassName": "system-node-critical"},
/// }))
/// .unwrap();
/// let context = AdmissionContext {
///     priority_classes: &PriorityClasses::new([]),
///     options: &AdmissionOptions::KUBERNETES_1_36,
/// };
/// let errors = admit_pod(pod, &context).unwrap_err();
/// assert_eq!(errors[0].to_string(), "spec.containers[0].image: Required value");
/// ```
///
/// # Errors
/// All that is wrong, in the API server's order. A plug-in's refusal comes first, as `Forbidden`
/// at the field it is about; where the API server would stop at it, strew goes on, so that every
/// error is seen at once.
pub fn admit_pod(
    mut pod: Pod,
    context: &AdmissionContext<'_>,
) -> Result<Admitted<Pod>, Vec<FieldError>> {
    pod.set_defaults();
    let mut errors = Vec::new();
    if let Some(spec) = &mut pod.spec {
        errors.extend(priority::admit(spec, context.priority_classes).err());
        tolerations::add_defaults(spec, context.options);
        if pod.metadata.uid.as_ref().is_none_or(String::is_empty) {
            disabled_fields::drop_disabled(spec, context.options);
        }
    }
    match_label_keys::merge(&mut pod, context.options.merges_spread_match_label_keys());
    errors.extend(validation::pod::validate_created(&pod, context.options));
    finish(pod, errors)
}

/// Creates any other object: defaults, validation.
///
/// # Errors
/// All that is wrong, in the API server's order.
pub fn admit<T: SetDefaults + Validate>(mut object: T) -> Result<Admitted<T>, Vec<FieldError>> {
    object.set_defaults();
    let errors = object.validate();
    finish(object, errors)
}

fn finish<T: Validate>(object: T, errors: Vec<FieldError>) -> Result<Admitted<T>, Vec<FieldError>> {
    if errors.is_empty() {
        let warnings = object.warnings();
        return Ok(Admitted { object, warnings });
    }
    // The API server says the same only once (`ErrorList.ToAggregate`).
    let mut said = BTreeSet::new();
    let is_new = |error: &FieldError| said.insert(error.to_string());
    Err(errors.into_iter().filter(is_new).collect())
}
