//! Validation of pods that are created.
//!
//! Source: `ValidatePodCreate` of `pkg/apis/core/validation`, v1.36.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::pod::{deletion_cost, validate_spec};
use strew_manifest::validation::spread::SharedKeys;
use strew_manifest::validation::{text, warnings};
use strew_wire::config::AdmissionOptions;

use super::Validate;

impl Validate for Pod {
    fn validate(&self) -> Vec<FieldError> {
        validate_created(self, &AdmissionOptions::KUBERNETES_1_36)
    }

    fn warnings(&self) -> Vec<String> {
        let path = FieldPath::root().child("spec");
        let spec = self.spec.as_ref();
        spec.map_or(Vec::new(), |spec| warnings::of_spec(spec, &path))
    }
}

/// Validates a pod after admission.
pub(crate) fn validate_created(pod: &Pod, options: &AdmissionOptions) -> Vec<FieldError> {
    let mut errors = metadata::validate(&pod.metadata, Scope::Namespaced, text::dns_subdomain);
    let path = FieldPath::root().child("metadata.annotations");
    deletion_cost(pod.metadata.annotations.as_ref(), &path, &mut errors);
    let path = FieldPath::root().child("spec");
    let empty = PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&empty);
    let shared = if options.merges_spread_match_label_keys() {
        SharedKeys::Merged
    } else {
        SharedKeys::Legacy
    };
    validate_spec(spec, shared, &path, &mut errors);
    let lists = [
        ("containers", Some(&spec.containers)),
        ("initContainers", spec.init_containers.as_ref()),
    ];
    for (name, containers) in lists {
        images(containers, &path.child(name), &mut errors);
    }
    if spec
        .ephemeral_containers
        .as_ref()
        .is_some_and(|all| !all.is_empty())
    {
        let path = path.child("ephemeralContainers");
        errors.push(FieldError::forbidden(path, "cannot be set on create"));
    }
    let gated = spec
        .scheduling_gates
        .as_ref()
        .is_some_and(|gates| !gates.is_empty());
    let bound = spec.node_name.as_ref().is_some_and(|name| !name.is_empty());
    if gated && bound {
        errors.push(FieldError::forbidden(
            path.child("nodeName"),
            "cannot be set until all schedulingGates have been cleared",
        ));
    }
    errors
}

/// A template may have them, and its pods are refused.
fn images(containers: Option<&Vec<Container>>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (index, container) in containers.into_iter().flatten().enumerate() {
        let image = container.image.as_deref().unwrap_or_default();
        if image.trim() != image {
            let path = path.index(index).child("image");
            let why = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(path, image, why));
        }
    }
}
