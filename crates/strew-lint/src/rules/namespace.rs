//! Namespaces that objects name.

use std::collections::BTreeSet;

use strew_manifest::field::FieldPath;
use strew_manifest::read::{KubeObject, misspelt as slip_of};

use crate::Found;
use crate::files::Files;

/// Objects in a namespace that is not in the files, and is a slip of the hand away from one that is.
pub(crate) fn misspelt(files: &Files<'_>) -> Vec<Found> {
    let known = files
        .objects
        .iter()
        .filter(|o| matches!(o, KubeObject::Namespace(_)));
    let known: BTreeSet<&str> = known.map(|object| object.name()).collect();
    let mut said = BTreeSet::new();
    let mut found = Vec::new();
    for (object, wire) in files.objects.iter().enumerate() {
        let Some(namespace) = wire.namespace() else {
            continue;
        };
        let is_given = namespace == "default" || namespace.starts_with("kube-");
        // Other objects of the namespace are meant so, too: it is said once.
        if is_given || known.contains(namespace) || said.contains(namespace) {
            continue;
        }
        if let Some(meant) = slip_of(namespace, known.iter().copied()) {
            said.insert(namespace);
            let n = files
                .objects
                .iter()
                .filter(|o| o.namespace() == Some(namespace))
                .count();
            let objects = match n {
                1 => "1 object is".to_owned(),
                n => format!("{n} objects are"),
            };
            let message = format!(
                "{objects} in namespace {namespace}, of which the files have no Namespace, and they have {meant}"
            );
            let path = FieldPath::root().child("metadata.namespace");
            found
                .push(Found::warning(object, path, message).help(format!("did you mean {meant}?")));
        }
    }
    found
}
