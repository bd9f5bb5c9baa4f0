//! Claims and classes of storage.
//!
//! Source: `ValidatePersistentVolumeClaim` of `pkg/apis/core/validation`, `ValidateStorageClass` of
//! `pkg/apis/storage/validation`, v1.36. Data sources, limits, parameters and topologies are not checked.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::api::storage::v1::StorageClass;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::{invalid_each, one_of, resources, selector, text};

use super::Validate;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", SINGLE_POD];
const SINGLE_POD: &str = "ReadWriteOncePod";

impl Validate for PersistentVolumeClaim {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, text::dns_subdomain);
        let path = FieldPath::root().child("spec");
        let empty = PersistentVolumeClaimSpec::default();
        validate_claim(self.spec.as_ref().unwrap_or(&empty), &path, &mut errors);
        errors
    }
}

/// Checks the spec of a claim at `path`.
pub fn validate_claim(
    spec: &PersistentVolumeClaimSpec,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    let at = path.child("accessModes");
    if modes.is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(at.clone(), detail));
    }
    let selected = path.child("selector");
    selector::validate(spec.selector.as_ref(), &selected, errors);
    for mode in modes {
        one_of(mode, &ACCESS_MODES, &at, errors);
    }
    let is_single = |mode: &String| mode == SINGLE_POD;
    if modes.iter().any(is_single) && !modes.iter().all(is_single) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(at, detail));
    }
    let requests = spec.resources.as_ref().and_then(|r| r.requests.as_ref());
    let storage = requests.and_then(|requests| requests.get("storage"));
    let at = path.child("resources").key("storage");
    resources::storage_of_claim(storage, &at, errors);
    let class = spec.storage_class_name.as_deref().unwrap_or_default();
    if !class.is_empty() {
        let at = path.child("storageClassName");
        invalid_each(text::dns_subdomain(class), class, &at, errors);
    }
    if let Some(mode) = &spec.volume_mode {
        let known = ["Block", "Filesystem"];
        one_of(mode, &known, &path.child("volumeMode"), errors);
    }
}

impl Validate for StorageClass {
    fn validate(&self) -> Vec<FieldError> {
        let mut errors = metadata::validate(&self.metadata, Scope::Cluster, text::dns_subdomain);
        let root = FieldPath::root();
        let at = root.child("provisioner");
        match self.provisioner.as_str() {
            "" => errors.push(FieldError::required(at, "")),
            name => {
                let sentences = text::qualified_name(&name.to_lowercase());
                invalid_each(sentences, name, &at, &mut errors);
            }
        }
        let words = [
            ("reclaimPolicy", &self.reclaim_policy, ["Delete", "Retain"]),
            (
                "volumeBindingMode",
                &self.volume_binding_mode,
                ["Immediate", "WaitForFirstConsumer"],
            ),
        ];
        for (field, word, known) in words {
            if let Some(word) = word {
                one_of(word, &known, &root.child(field), &mut errors);
            }
        }
        errors
    }
}
