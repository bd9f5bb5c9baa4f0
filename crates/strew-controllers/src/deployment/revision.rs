//! Revision numbers, and the annotations that a new ReplicaSet copies from its Deployment.
//!
//! Source: spec/controllers §2.2.

use strew_apiserver::object::{Meta, ReplicaSet};

/// The number of the rollout.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// Earlier revision numbers of a ReplicaSet.
pub const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The Deployment's `spec.replicas` when it last set the size of a ReplicaSet.
pub const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
/// The largest number of pods that the Deployment allowed then.
pub const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Requests a rollback, in an old API version.
pub const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";
/// The manifest that `kubectl apply` stored.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Annotations that are not copied.
pub const NOT_COPIED: [&str; 6] = [
    LAST_APPLIED,
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    ROLLBACK_TO,
];

/// The longest list of earlier numbers, in characters.
const HISTORY_MAX: usize = 2000;

/// A ReplicaSet's revision; 0 if it has no valid one.
pub fn revision(set: &ReplicaSet) -> i64 {
    let text = set.meta.annotation(REVISION);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Copies the Deployment's annotations to a new ReplicaSet, and sets the revision if it is newer than its own. Returns
/// false if nothing changed.
pub fn annotate(deployment: &Meta, set: &mut Meta, newest: i64) -> bool {
    let before = set.annotations.clone();
    for (key, value) in deployment.annotations.iter() {
        if !NOT_COPIED.contains(&key.as_str()) {
            set.annotate(key, value);
        }
    }
    let text = set.annotation(REVISION).unwrap_or_default().to_owned();
    let own = match text.as_str() {
        "" => Some(0),
        text => text.parse::<i64>().ok(),
    };
    if own.is_some_and(|own| own < newest) {
        set.annotate(REVISION, newest.to_string());
        if !text.is_empty() {
            let history = set.annotation(REVISION_HISTORY).unwrap_or_default();
            if let Some(history) = longer_history(history, &text) {
                set.annotate(REVISION_HISTORY, history);
            }
        }
    }
    before != set.annotations
}

/// The history with one more number; the oldest numbers are dropped. `None` if the number alone is too long.
fn longer_history(history: &str, number: &str) -> Option<String> {
    if history.is_empty() {
        return Some(number.to_owned());
    }
    let mut length = history.len() + 1 + number.len();
    let mut kept = history.split(',').peekable();
    while length > HISTORY_MAX {
        length -= kept.next()?.len() + 1;
    }
    let kept: Vec<&str> = kept.chain([number]).collect();
    Some(kept.join(","))
}

#[cfg(test)]
mod tests {
    use strew_apiserver::object::Name;

    use super::*;

    fn meta(annotations: &[(&str, &str)]) -> Meta {
        let mut meta = Meta::new(Name::new("default", "web"));
        for (key, value) in annotations {
            meta.annotate(key, *value);
        }
        meta
    }

    #[test]
    fn a_set_that_becomes_new_again_is_renumbered_and_remembers() {
        // (own number, own history, newest, expected)
        for (own, history, newest, expected) in [
            ("", "", 1, ("1", "")),
            ("1", "", 3, ("3", "1")),
            ("3", "1", 5, ("5", "1,3")),
            ("5", "1", 5, ("5", "1")),
            ("x", "", 5, ("x", "")),
        ] {
            let mut set = meta(&[]);
            for (key, value) in [(REVISION, own), (REVISION_HISTORY, history)] {
                if !value.is_empty() {
                    set.annotate(key, value);
                }
            }
            let is_changed = annotate(&meta(&[]), &mut set, newest);
            let read = |key| set.annotation(key).unwrap_or_default();
            assert_eq!((read(REVISION), read(REVISION_HISTORY)), expected);
            assert_eq!(is_changed, own != expected.0);
        }
    }

    #[test]
    fn other_annotations_are_copied_but_for_the_controllers_own() {
        let deployment = meta(&[
            ("team", "a"),
            (LAST_APPLIED, "{}"),
            (REVISION, "9"),
            (MAX_REPLICAS, "9"),
        ]);
        let mut set = meta(&[("team", "b"), ("kept", "c")]);
        assert!(annotate(&deployment, &mut set, 2));
        let all: Vec<_> = set
            .annotations
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        assert_eq!(
            all,
            ["deployment.kubernetes.io/revision=2", "kept=c", "team=a"]
        );
        assert!(!annotate(&deployment, &mut set, 2));
    }

    #[test]
    fn a_long_history_loses_its_oldest() {
        let long = vec!["1234"; 400].join(",");
        assert_eq!(long.len(), 1999);
        let longer = longer_history(&long, "9999").unwrap();
        assert_eq!((longer.len(), longer.ends_with(",9999")), (1999, true));
    }
}
