//! Objects inside a scenario.

use serde_json::Value;
use strew_manifest::field::FieldPath;
use strew_manifest::read::{KubeObject, embedded};

use super::diagnostics;
use super::problems::Problems;
use super::value::At;

/// An object of `apply` or `create`.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The object, decoded.
    pub object: KubeObject,
    /// The object as written; `apply` sends these fields only.
    pub value: Value,
    /// Its place in the scenario.
    pub path: FieldPath,
}

pub(super) fn read(at: &At<'_>, problems: &mut Problems) -> Option<Manifest> {
    match embedded(at.value.clone()) {
        Ok(object) if object.name().is_empty() => {
            problems.add(&at.path, diagnostics::missing("metadata.name"));
            None
        }
        Ok(object) => Some(Manifest {
            object,
            value: at.value.clone(),
            path: at.path.clone(),
        }),
        Err(faults) => {
            problems.add_faults(&at.path, faults);
            None
        }
    }
}
