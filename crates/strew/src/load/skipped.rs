//! Kinds that are passed over, counted and told.

use strew_api::read::KubeObject;

use super::Loader;

/// Kinds that strew is made for, and does not read yet; and what happens instead.
const NOT_READ_YET: [(&str, &str); 1] = [(
    "Scenario",
    "its objects are there, and the built-in story is played",
)];

/// Kinds that are read and do less than in a cluster, and what they do not.
const WITHOUT_EFFECT: [(&str, &str); 2] = [
    ("RuntimeClass", "changes no pod"),
    (
        "StatefulSet of Kruise",
        "makes no pods here: they come by steps, or from the files",
    ),
];

impl Loader<'_> {
    pub(super) fn count_without_effect(&mut self, object: &KubeObject) {
        let kind = match object {
            KubeObject::AdvancedStatefulSet(_) => "StatefulSet of Kruise",
            // Its kind alone would be taken for Kubernetes' own.
            KubeObject::StatefulSet(_) => return,
            object => object.kind(),
        };
        if WITHOUT_EFFECT.iter().any(|(known, _)| *known == kind) {
            *self.skipped.entry(kind.to_owned()).or_default() += 1;
        }
    }

    pub(super) fn say_skipped(&mut self) {
        let mut skipped = std::mem::take(&mut self.skipped);
        for (kind, instead) in NOT_READ_YET {
            if skipped.remove(kind).is_some() {
                let note = format!("{kind} is not read yet: {instead}");
                self.loaded.notes.push(note);
            }
        }
        for (kind, what) in WITHOUT_EFFECT {
            if let Some(count) = skipped.remove(kind) {
                let note = format!("{kind} ({count} in the files) {what}");
                self.loaded.notes.push(note);
            }
        }
        let count: usize = skipped.values().sum();
        if count > 0 {
            let each: Vec<String> = skipped
                .iter()
                .map(|(kind, n)| format!("{n} {kind}"))
                .collect();
            let objects = if count == 1 { "object" } else { "objects" };
            self.loaded.notes.push(format!(
                "skipped {count} {objects} of kinds that strew does not model: {}",
                each.join(", ")
            ));
        }
    }
}
