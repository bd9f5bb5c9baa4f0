//! CustomResourceDefinitions: the texts of `deploy/crds/`, which `cargo xtask gen` makes from the types.

#[cfg(feature = "schemas")]
pub(crate) mod made;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;

use serde_json::Value;
use strew_manifest::read::value_of_yaml;

/// The label of strew's own definitions; definitions without it belong to other projects and stay unchanged.
const OWN_LABEL: (&str, &str) = ("app.kubernetes.io/part-of", "strew");

/// True if the labels say that `strew install` made the object.
pub fn is_own(labels: Option<&BTreeMap<String, String>>) -> bool {
    let (key, value) = OWN_LABEL;
    labels
        .and_then(|labels| labels.get(key))
        .is_some_and(|found| found == value)
}

/// The definition that a file of `deploy/crds/` has.
///
/// # Panics
/// The text is no YAML: it is part of strew.
pub(crate) fn of_text(text: &str) -> Value {
    value_of_yaml(text).expect("`cargo xtask gen` writes YAML")
}

/// The text of a file in `deploy/crds/`.
macro_rules! crd {
    ($name:literal) => {
        include_str!(concat!("../../../../../deploy/crds/", $name, ".yaml"))
    };
}
pub(crate) use crd;
