//! Plays objects of an unknown kind as objects of a known one: `--as Rollout.argoproj.io=Deployment`.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::check::check;
use super::kind::{Kind, group_of};
use crate::field::PathSegment;

/// A kind, and the kind that its objects are played as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedAs {
    kind: String,
    group: String,
    target: Kind,
}

/// The kinds that others can be played as.
const TARGETS: [Kind; 5] = [
    Kind::Deployment,
    Kind::StatefulSet,
    Kind::CloneSet,
    Kind::ReplicaSet,
    Kind::DaemonSet,
];

/// The fields that make a workload.
const KEPT: [&str; 3] = ["replicas", "selector", "template"];

/// The label that tells the pods of two revisions apart, as Argo's Rollout calls it, and as a Deployment does.
const ROLLOUT_HASH: (&str, &str) = ("rollouts-pod-template-hash", "pod-template-hash");
const ROLLOUT: (&str, &str) = ("argoproj.io", "Rollout");

impl FromStr for PlayedAs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write KIND.GROUP=KIND, for example Rollout.argoproj.io=Deployment";
        let (from, to) = text.split_once('=').ok_or(form)?;
        let (kind, group) = from.split_once('.').ok_or(form)?;
        if kind.is_empty() || group.is_empty() {
            return Err(form.to_owned());
        }
        let mut targets = TARGETS.into_iter();
        let target = targets.find(|target| target.name().eq_ignore_ascii_case(to));
        let target = target.ok_or_else(|| {
            let names = TARGETS.map(Kind::name).join(", ");
            format!("{to:?} is none of {names}")
        })?;
        Ok(Self {
            kind: kind.to_owned(),
            group: group.to_owned(),
            target,
        })
    }
}

impl fmt::Display for PlayedAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            group,
            target,
        } = self;
        write!(f, "{kind}.{group}={}", target.name())
    }
}

/// An object as one of a known kind.
pub(super) struct Played {
    pub(super) fields: Map<String, Value>,
    /// The fields of its spec that the known kind lacks or means otherwise: `spec.strategy`.
    pub(super) left_out: Vec<String>,
}

impl PlayedAs {
    /// The kind that objects of a kind of this name are best played as: that of the same name, else a Deployment.
    pub(super) fn target_like(kind: &str) -> &'static str {
        let mut targets = TARGETS.into_iter().map(Kind::name);
        targets
            .find(|target| *target == kind)
            .unwrap_or("Deployment")
    }

    /// The kind that objects are played as: `Deployment`.
    pub fn target(&self) -> &'static str {
        self.target.name()
    }

    /// True if it is about this kind.
    pub(super) fn is_of(&self, api_version: &str, kind: &str) -> bool {
        self.kind == kind && self.group == group_of(api_version)
    }

    /// The object as one of the known kind; `None` if it has no pod template.
    pub(super) fn play(&self, mut fields: Map<String, Value>) -> Option<Played> {
        fields.get("spec")?.get("template")?.as_object()?;
        // A status tells of other conditions and counts.
        fields.retain(|name, _| matches!(name.as_str(), "metadata" | "spec"));
        let mut typed = Map::new();
        typed.insert("apiVersion".to_owned(), self.target.api_version().into());
        typed.insert("kind".to_owned(), self.target.name().into());
        typed.extend(fields);
        let mut left_out: Vec<String> = Vec::new();
        for fault in check(self.target.schema(), &mut Value::Object(typed.clone())) {
            // Down to the first list: an item that is left out would be another list.
            let names = fault.path.steps().iter().map_while(|step| match step {
                PathSegment::Name(name) => Some(name.as_ref()),
                PathSegment::Index(_) | PathSegment::Key(_) => None,
            });
            let names: Vec<&str> = names.collect();
            if let ["spec", name, ..] = names.as_slice()
                && !KEPT.contains(name)
                && remove(&mut typed, &names)
            {
                left_out.push(names.join("."));
            }
        }
        Some(Played {
            left_out,
            fields: typed,
        })
    }
}

/// Removes a field by the names of those around it; false if it is not there any more.
fn remove(fields: &mut Map<String, Value>, path: &[&str]) -> bool {
    match path {
        [] => false,
        [last] => fields.shift_remove(*last).is_some(),
        [first, rest @ ..] => { fields.get_mut(*first) }
            .and_then(Value::as_object_mut)
            .is_some_and(|inner| remove(inner, rest)),
    }
}

/// The kind with its group that a WorkloadSpread names as its target and that is played as another one; `None` if its
/// annotation lets it be of any kind.
pub(super) fn unknown_target(value: &Value, all: &[PlayedAs]) -> Option<String> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let is_spread = text("/kind") == Some("WorkloadSpread");
    let is_any = text("/metadata/annotations/strew.dev~1any-kind") == Some("true");
    if !is_spread || is_any {
        return None;
    }
    let kind = text("/spec/targetRef/kind")?;
    let played = text("/spec/targetRef/apiVersion")
        .and_then(|version| all.iter().find(|played| played.is_of(version, kind)))?;
    Some(format!("{} of {:?}", played.kind, played.group))
}

/// Names in the object what is played as another kind by that kind: owners, targets of autoscalers, labels.
pub(super) fn rename(value: &mut Value, all: &[PlayedAs]) {
    let is_rollout = |played: &PlayedAs| ROLLOUT == (played.group.as_str(), played.kind.as_str());
    let renames_hash = all.iter().any(is_rollout);
    rename_in(value, all, renames_hash, true);
}

fn rename_in(value: &mut Value, all: &[PlayedAs], renames_hash: bool, is_top: bool) {
    match value {
        Value::Object(fields) => {
            if !is_top {
                rename_reference(fields, all);
            }
            if renames_hash && let Some(hash) = fields.shift_remove(ROLLOUT_HASH.0) {
                fields.insert(ROLLOUT_HASH.1.to_owned(), hash);
            }
            for value in fields.values_mut() {
                rename_in(value, all, renames_hash, false);
            }
        }
        Value::Array(items) => {
            for item in items {
                rename_in(item, all, renames_hash, false);
            }
        }
        Value::String(text) if renames_hash && text == ROLLOUT_HASH.0 => {
            ROLLOUT_HASH.1.clone_into(text);
        }
        _ => {}
    }
}

fn rename_reference(fields: &mut Map<String, Value>, all: &[PlayedAs]) {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if let Some(played) = all.iter().find(|played| played.is_of(api_version, kind)) {
        fields.insert("apiVersion".to_owned(), played.target.api_version().into());
        fields.insert("kind".to_owned(), played.target.name().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_option_names_two_kinds() {
        let played: PlayedAs = "Rollout.argoproj.io=deployment".parse().unwrap();
        assert_eq!(played.to_string(), "Rollout.argoproj.io=Deployment");
        for wrong in [
            "Rollout",
            "Rollout=Deployment",
            "Rollout.argoproj.io",
            ".argoproj.io=Deployment",
            "Rollout.=Deployment",
            "Rollout.argoproj.io=Job",
        ] {
            assert!(wrong.parse::<PlayedAs>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_target_is_unknown_to_the_webhook_however_it_is_played() {
        let all = ["Rollout.argoproj.io=Deployment".parse().unwrap()];
        let target = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "a"});
        let mut value = json!({"kind": "WorkloadSpread", "spec": {"targetRef": target}});
        let unknown = unknown_target(&value, &all);
        assert_eq!(unknown.as_deref(), Some("Rollout of \"argoproj.io\""));
        value["metadata"] = json!({"annotations": {"strew.dev/any-kind": "true"}});
        assert_eq!(unknown_target(&value, &all), None);
    }

    #[test]
    fn owners_and_labels_are_named_as_they_are_played() {
        let all = ["Rollout.argoproj.io=Deployment".parse().unwrap()];
        let mut value = json!({
            "metadata": {
                "labels": {"rollouts-pod-template-hash": "abc"},
                "ownerReferences": [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "a"}],
            },
            "spec": {"matchLabelKeys": ["rollouts-pod-template-hash"]},
        });
        rename(&mut value, &all);
        assert_eq!(
            value,
            json!({
                "metadata": {
                    "labels": {"pod-template-hash": "abc"},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}],
                },
                "spec": {"matchLabelKeys": ["pod-template-hash"]},
            })
        );
    }
}
