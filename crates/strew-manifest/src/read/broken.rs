//! Objects with errors, read as far as possible, so that further errors in them can be reported in the same run.

use super::reading::Located;
use crate::field::{FieldError, FieldErrorKind, FieldPath, PathSegment};

/// An object with errors; its unreadable fields are empty. It may be checked further, but not used.
#[derive(Debug, Clone)]
pub struct Broken {
    /// The object and its place.
    pub located: Located,
    pub(super) faults: Faults,
}

/// The errors reported of an object so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    /// Fields whose values are unknown, or that an unknown field probably meant.
    unsure: Vec<FieldPath>,
    /// Unknown fields without a probable meaning.
    lost: Vec<FieldPath>,
}

impl Broken {
    /// True if an error of the API server may only follow from a reported one: a field that is missing because it was
    /// misspelt needs no second error.
    pub fn follows(&self, error: &FieldError) -> bool {
        // The rule that a selector matches the template's labels depends on both.
        let compares_selector = error.detail.contains("`selector` does not match template");
        let in_selector = |other: &&FieldPath| {
            let steps = other.steps();
            steps
                .iter()
                .any(|step| step == &PathSegment::Name("selector".into()))
        };
        let is_not_found = matches!(error.kind, FieldErrorKind::NotFound { .. });
        self.faults.is_unsure(&error.path)
            || (is_not_found && self.faults.may_lack_volumes())
            || (compares_selector && self.faults.unsure.iter().any(|p| in_selector(&p)))
            || (error.kind == FieldErrorKind::Required
                && self
                    .faults
                    .lost
                    .iter()
                    .any(|lost| is_kin(&error.path, lost)))
    }
}

impl Faults {
    /// True if the field, a field in it, or one of its ancestors is unknown.
    pub(super) fn is_unsure(&self, path: &FieldPath) -> bool {
        let mut unsure = self.unsure.iter();
        unsure.any(|other| overlap(path.steps(), other.steps()))
    }

    /// True if a volume may be missing only because it, or the field that has it, could not be read.
    fn may_lack_volumes(&self) -> bool {
        let is_of_volumes = |step: &PathSegment| matches!(step, PathSegment::Name(name) if name == "volumes" || name == "volumeClaimTemplates");
        let mut unsure = self.unsure.iter();
        !self.lost.is_empty() || unsure.any(|path| path.steps().iter().any(is_of_volumes))
    }

    /// Records a field whose value is unknown.
    pub(super) fn unsure(&mut self, path: FieldPath) {
        self.unsure.push(path);
    }

    /// Records a field that its object does not have, and the one that was probably meant.
    pub(super) fn unknown(&mut self, path: &FieldPath, meant: Option<&str>) {
        match (meant, path.steps().split_last()) {
            (Some(meant), Some((_, parent))) => {
                let meant = FieldPath::from(parent).child_owned(meant.to_owned());
                self.unsure.push(meant);
            }
            _ => self.lost.push(path.clone()),
        }
    }

    /// Too many errors: the empty path makes every field unknown.
    pub(super) fn too_many() -> Self {
        Self {
            unsure: vec![FieldPath::root()],
            lost: Vec::new(),
        }
    }
}

/// True if one path is a prefix of the other.
fn overlap(a: &[PathSegment], b: &[PathSegment]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// True if a missing field is beside the lost one, or has its name.
fn is_kin(missing: &FieldPath, lost: &FieldPath) -> bool {
    match (missing.steps().split_last(), lost.steps().split_last()) {
        (Some((name, parent)), Some((lost_name, lost_parent))) => {
            name == lost_name || parent == lost_parent
        }
        _ => false,
    }
}
