//! Updates of claims.
//!
//! Source: `ValidatePersistentVolumeClaimUpdate` of `pkg/apis/core/validation`, v1.36. Not checked: whether the class lets
//! a claim grow (`PersistentVolumeClaimResize`), the former annotation of the class, attributes of volumes.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::quantity::Quantity;

use super::{Update, immutable};

impl Update for PersistentVolumeClaim {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let path = FieldPath::root().child("spec");
        let given = self.spec.clone().unwrap_or_default();
        let stored = old.spec.clone().unwrap_or_default();
        let status = old.status.clone().unwrap_or_default();
        let is_bound = status.phase.as_deref() == Some("Bound");
        let has = status.capacity.and_then(|all| size(all.get("storage")));
        let sizes = [&given, &stored].map(|spec| size(asked(spec)));
        let mut new = given.clone();
        set_as_stored(&mut new, &stored, is_bound || sizes[0] == sizes[1]);
        if is_bound {
            new.volume_attributes_class_name
                .clone_from(&stored.volume_attributes_class_name);
        }
        if new != stored {
            let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
            errors.push(FieldError::forbidden(path.clone(), detail));
        }
        // To less than it had, so that a growth that failed can be taken back.
        if sizes[0] < sizes[1] && sizes[0] <= has {
            let at = path.child("resources.requests.storage");
            let detail = "field can not be less than status.capacity";
            errors.push(FieldError::forbidden(at, detail));
        }
        let at = FieldPath::root().child("volumeMode");
        immutable(&mode(&given), &mode(&stored), &at, errors);
    }

    fn is_new_generation(&self, _: &Self) -> bool {
        false
    }
}

/// Gives what may change the stored values; the size too if `may_resize`.
fn set_as_stored(
    new: &mut PersistentVolumeClaimSpec,
    stored: &PersistentVolumeClaimSpec,
    may_resize: bool,
) {
    // Each is set once.
    if stored.volume_name.as_deref().unwrap_or_default().is_empty() {
        new.volume_name.clone_from(&stored.volume_name);
    }
    if stored.storage_class_name.is_none() {
        new.storage_class_name = None;
    }
    // The API server fills in these.
    if mode(new) == mode(stored) {
        new.volume_mode.clone_from(&stored.volume_mode);
    }
    if new.data_source.is_none() {
        new.data_source.clone_from(&stored.data_source);
    }
    if new.data_source_ref.is_none() {
        new.data_source_ref.clone_from(&stored.data_source_ref);
    }
    let requests = new.resources.as_mut().and_then(|all| all.requests.as_mut());
    if may_resize && let (Some(requests), Some(size)) = (requests, asked(stored)) {
        requests.insert("storage".to_owned(), size.clone());
    }
}

fn mode(spec: &PersistentVolumeClaimSpec) -> &str {
    spec.volume_mode.as_deref().unwrap_or("Filesystem")
}

/// The storage that a claim asks for.
fn asked(spec: &PersistentVolumeClaimSpec) -> Option<&WireQuantity> {
    let requests = spec.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage")
}

/// `None` if there is none, which is less than any, or it is no quantity.
fn size(storage: Option<&WireQuantity>) -> Option<Quantity> {
    Quantity::try_from(storage?).ok()
}
