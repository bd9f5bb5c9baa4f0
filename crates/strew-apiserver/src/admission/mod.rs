//! Admission of a created or [updated](update) object: defaults, admission plug-ins, then validation.
//!
//! Everything except [update] is for *created* objects. Objects of a dump have passed admission before.
//!
//! Order for pods (`k8s.io/apiserver/pkg/endpoints/handlers/create.go`, `pkg/registry/rest/create.go`,
//! `k8s.io/kubernetes/pkg/registry/core/pod`, v1.36): [defaults] and the plug-ins [priority], [tolerations]
//! and [runtime_class] ([`mutate_pod`]), mutating webhooks (the plug-ins again if one changed the pod), the generated name, then
//! `PrepareForCreate` ([disabled_fields], [match_label_keys]) and [validation] ([`prepare_pod`]).
//! So the keys are merged once, with the labels that the webhooks have left.

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
pub mod runtime_class;
pub mod tolerations;
pub mod update;

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;

use strew_manifest::field::FieldError;
use strew_wire::config::AdmissionOptions;

use crate::validation::{self, Validate};
pub use binding::bind_labels;
pub use defaults::SetDefaults;
pub use object::{admit_object, admit_object_update, errors_of_stored, read_back};
pub use priority::PriorityClasses;
pub use refusal::Refusal;
pub use runtime_class::RuntimeClasses;

/// The further inputs of admission.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionContext<'a> {
    /// The PriorityClasses of the cluster.
    pub priority_classes: &'a PriorityClasses,
    /// The RuntimeClasses of the cluster.
    pub runtime_classes: &'a RuntimeClasses,
    /// The API server's options.
    pub options: &'a AdmissionOptions,
}

/// An object as the API server would store it.
#[derive(Debug, Clone, PartialEq)]
pub struct Admitted<T> {
    /// The object, defaulted and changed.
    pub object: T,
    /// The API server's `Warning` headers.
    pub warnings: Vec<String>,
}

/// Admits a pod that no webhook changes: [`mutate_pod`], then [`prepare_pod`].
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use strew_wire::config::AdmissionOptions;
/// use strew_apiserver::admission::{AdmissionContext, PriorityClasses, RuntimeClasses, admit_pod};
/// let pod: Pod = serde_json::from_value(serde_json::json!({
///     "metadata": {"name": "web"},
///     "spec": {"containers": [{"name": "web"}], "priorityClassName": "system-node-critical"},
/// }))
/// .unwrap();
/// let context = AdmissionContext {
///     priority_classes: &PriorityClasses::new([]),
///     runtime_classes: &RuntimeClasses::default(),
///     options: &AdmissionOptions::KUBERNETES_1_36,
/// };
/// let errors = admit_pod(pod, &context).unwrap_err();
/// assert_eq!(errors[0].to_string(), "spec.containers[0].image: Required value");
/// ```
///
/// # Errors
/// All errors, in the API server's order. A plug-in's refusal comes first, as `Forbidden` at its field. The API server
/// would stop there; strew continues, so that all errors are reported at once.
pub fn admit_pod(
    mut pod: Pod,
    context: &AdmissionContext<'_>,
) -> Result<Admitted<Pod>, Vec<FieldError>> {
    let mut errors: Vec<FieldError> = mutate_pod(&mut pod, context).err().into_iter().collect();
    prepare(&mut pod, context.options);
    errors.extend(validation::pod::validate_created(&pod, context.options));
    finish(pod, errors)
}

/// Sets a new pod's defaults and lets the plug-ins change it. Can be repeated after a webhook has changed the pod.
///
/// # Errors
/// The refusal of a plug-in.
pub fn mutate_pod(pod: &mut Pod, context: &AdmissionContext<'_>) -> Result<(), FieldError> {
    pod.set_defaults();
    let Some(spec) = &mut pod.spec else {
        return Ok(());
    };
    let of_priority = priority::admit(spec, context.priority_classes);
    tolerations::add_defaults(spec, context.options);
    of_priority.and(runtime_class::admit(spec, context.runtime_classes))
}

/// The registry's part for a new pod after all mutating admission, once: drops fields of gates that are off, merges
/// matchLabelKeys into selectors, and validates.
///
/// # Errors
/// All errors, in the API server's order.
pub fn prepare_pod(
    mut pod: Pod,
    options: &AdmissionOptions,
) -> Result<Admitted<Pod>, Vec<FieldError>> {
    prepare(&mut pod, options);
    let errors = validation::pod::validate_created(&pod, options);
    finish(pod, errors)
}

/// `PrepareForCreate`.
fn prepare(pod: &mut Pod, options: &AdmissionOptions) {
    if pod.metadata.uid.as_ref().is_none_or(String::is_empty)
        && let Some(spec) = &mut pod.spec
    {
        disabled_fields::drop_disabled(spec, None, options);
    }
    match_label_keys::merge(pod, options.merges_spread_match_label_keys());
}

/// Admits an object of another kind: defaults, validation.
///
/// # Errors
/// All errors, in the API server's order.
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
    // The API server removes repeated errors (`ErrorList.ToAggregate`).
    let mut said = BTreeSet::new();
    let is_new = |error: &FieldError| said.insert(error.to_string());
    Err(errors.into_iter().filter(is_new).collect())
}
