//! `kubectl rollout undo`: the resulting template and the messages; the annotation of a restart.
//!
//! Source: spec/controllers §2.6; kubectl v1.36.3, `pkg/polymorphichelpers` (rollback.go).

use std::sync::Arc;

use k8s_openapi::api::core::v1::PodTemplateSpec;

pub use crate::deployment::from_pods::{present_revision, replica_set_of_pods};
use crate::deployment::revision::{NOT_COPIED, revision};
pub use crate::deployment::template::POD_TEMPLATE_HASH;
use crate::deployment::template::{equals, without_hash};
pub use crate::sets::REVISION_LABEL;
pub use crate::sets::revisions::{revision_of_pods, template_of};
use strew_apiserver::object::{ControllerRevision, Deployment, Pairs, ReplicaSet};

/// The annotation of a template whose pods should be recreated.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// The result of an undo.
#[derive(Debug, Clone, PartialEq)]
pub enum Undo<T> {
    /// The change to write; kubectl prints `rolled back`.
    To(T),
    /// Nothing to write; the text says why.
    Skipped(String),
}

/// The change of a Deployment by an undo.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The template of the revision.
    pub template: PodTemplateSpec,
    /// All annotations of the Deployment afterwards.
    pub annotations: Pairs,
}

/// Why an undo or restart is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolloutError {
    /// The revision does not exist.
    #[error("unable to find specified revision {0} in history")]
    NoRevision(i64),
    /// The Deployment has had only one template.
    #[error("no rollout history found for deployment \"{0}\"")]
    NoHistory(Arc<str>),
    /// There has been only one revision.
    #[error("no last revision to roll back to")]
    NoLastRevision,
    /// A paused Deployment cannot be undone.
    #[error(
        "you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again"
    )]
    PausedUndo,
    /// A paused Deployment cannot be restarted.
    #[error("can't restart paused deployment (run rollout resume first)")]
    PausedRestart,
}

/// Restores a revision of a Deployment's ReplicaSets; `to` 0: the one before the newest.
///
/// # Errors
/// The revision does not exist, or the Deployment is paused.
pub fn undo_deployment(
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
    to: i64,
) -> Result<Undo<Target>, RolloutError> {
    let set = match to {
        0 => second_newest(sets)
            .ok_or_else(|| RolloutError::NoHistory(Arc::clone(&deployment.meta.name.name)))?,
        to => {
            let mut sets = sets.iter();
            let found = sets.find(|set| revision(set) == to);
            found.ok_or(RolloutError::NoRevision(to))?
        }
    };
    if deployment.spec.paused == Some(true) {
        return Err(RolloutError::PausedUndo);
    }
    let template = set.spec.template.clone().unwrap_or_default();
    if equals(&template, &deployment.spec.template) {
        return Ok(Undo::Skipped(skipped(revision(set))));
    }
    let stays = |key: &String| NOT_COPIED.contains(&key.as_str());
    let own = deployment
        .meta
        .annotations
        .iter()
        .filter(|(key, _)| stays(key));
    let of_set = set.meta.annotations.iter().filter(|(key, _)| !stays(key));
    let annotations = own.chain(of_set).map(|(k, v)| (k.clone(), v.clone()));
    Ok(Undo::To(Target {
        template: without_hash(template),
        annotations: annotations.collect(),
    }))
}

fn second_newest(sets: &[Arc<ReplicaSet>]) -> Option<&Arc<ReplicaSet>> {
    let mut sets: Vec<&Arc<ReplicaSet>> = sets.iter().collect();
    sets.sort_by_key(|set| std::cmp::Reverse(revision(set)));
    sets.get(1).copied()
}

/// Restores a revision of a StatefulSet or a DaemonSet; `to` 0: the one before the newest. `is_current` says whether a
/// revision has the object's present template.
///
/// # Errors
/// The revision does not exist.
pub fn undo_revision(
    revisions: &[Arc<ControllerRevision>],
    to: i64,
    is_current: impl FnOnce(&ControllerRevision) -> bool,
) -> Result<Undo<Arc<ControllerRevision>>, RolloutError> {
    let mut sorted: Vec<&Arc<ControllerRevision>> = revisions.iter().collect();
    sorted.sort_by_key(|revision| revision.spec.revision);
    let target = match to {
        0 if sorted.len() < 2 => return Err(RolloutError::NoLastRevision),
        0 => sorted[sorted.len() - 2],
        to => {
            let mut sorted = sorted.into_iter();
            let found = sorted.find(|revision| revision.spec.revision == to);
            found.ok_or(RolloutError::NoRevision(to))?
        }
    };
    if is_current(target) {
        return Ok(Undo::Skipped(skipped(target.spec.revision)));
    }
    Ok(Undo::To(Arc::clone(target)))
}

fn skipped(revision: i64) -> String {
    format!("skipped rollback (current template already matches revision {revision})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deployment::revision::REVISION;
    use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSetSpec};
    use serde_json::json;
    use strew_apiserver::object::{Meta, Name, Object, Resource};

    fn template(image: &str) -> PodTemplateSpec {
        let template = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": image}]}
        });
        serde_json::from_value(template).unwrap()
    }

    fn meta(annotations: &[(&str, &str)]) -> Meta {
        let mut meta = Meta::new(Name::new("default", "web"));
        for (key, value) in annotations {
            meta.annotate(key, *value);
        }
        meta
    }

    fn set(image: &str, number: &str) -> Arc<ReplicaSet> {
        let mut template = template(image);
        let labels = template.metadata.as_mut().unwrap().labels.as_mut().unwrap();
        labels.insert("pod-template-hash".to_owned(), "x".to_owned());
        Arc::new(Resource {
            meta: meta(&[(REVISION, number), ("cause", image)]),
            spec: Arc::new(ReplicaSetSpec {
                template: Some(template),
                ..ReplicaSetSpec::default()
            }),
            status: Default::default(),
        })
    }

    fn deployment(image: &str) -> Deployment {
        Resource {
            meta: meta(&[(REVISION, "3"), ("cause", image), ("lost", "x")]),
            spec: Arc::new(DeploymentSpec {
                template: template(image),
                ..DeploymentSpec::default()
            }),
            status: Default::default(),
        }
    }

    #[test]
    fn an_undo_takes_template_and_annotations_of_the_revision() {
        let sets = [set("v3", "3"), set("v1", "1"), set("v2", "2")];
        let web = deployment("v3");
        for (to, image) in [(0, "v2"), (1, "v1"), (2, "v2")] {
            let Ok(Undo::To(target)) = undo_deployment(&web, &sets, to) else {
                panic!("revision {to} was not found");
            };
            assert_eq!(target.template, template(image));
            let expected = [("cause", image), (REVISION, "3")];
            let expected = expected.map(|(k, v)| (k.to_owned(), v.to_owned()));
            assert_eq!(target.annotations, expected.into());
        }
    }

    #[test]
    fn an_undo_that_cannot_be_or_need_not_be_says_why() {
        let sets = [set("v3", "3"), set("v2", "2")];
        let web = deployment("v3");
        let mut paused = web.clone();
        Arc::make_mut(&mut paused.spec).paused = Some(true);
        let says =
            |web: &Deployment, sets: &[Arc<ReplicaSet>], to| match undo_deployment(web, sets, to) {
                Ok(Undo::Skipped(text)) => text,
                Ok(Undo::To(_)) => "rolled back".to_owned(),
                Err(error) => error.to_string(),
            };
        for (text, web, sets, to) in [
            (
                "skipped rollback (current template already matches revision 3)",
                &web,
                &sets[..],
                3,
            ),
            (
                "unable to find specified revision 9 in history",
                &web,
                &sets[..],
                9,
            ),
            (
                "no rollout history found for deployment \"web\"",
                &web,
                &sets[..1],
                0,
            ),
            (
                "you cannot rollback a paused deployment; resume it first with 'kubectl rollout resume' and try again",
                &paused,
                &sets[..],
                2,
            ),
            ("rolled back", &web, &sets[..], 0),
        ] {
            assert_eq!(says(web, sets, to), text);
        }
    }

    #[test]
    fn revisions_of_sets_and_daemons_are_found_by_number() {
        let made = |number: i64| match Object::revision(meta(&[]), json!({"n": number}), number) {
            Object::ControllerRevision(revision) => revision,
            _ => unreachable!("it is made as one"),
        };
        let all = [made(4), made(2), made(3)];
        let find = |all: &[Arc<ControllerRevision>], to| match undo_revision(all, to, |revision| {
            revision.spec.revision == 4
        }) {
            Ok(Undo::To(revision)) => revision.spec.revision.to_string(),
            Ok(Undo::Skipped(text)) => text,
            Err(error) => error.to_string(),
        };
        for (n, to, expected) in [
            (3, 0, "3"),
            (3, 2, "2"),
            (
                3,
                4,
                "skipped rollback (current template already matches revision 4)",
            ),
            (3, 1, "unable to find specified revision 1 in history"),
            (1, 0, "no last revision to roll back to"),
        ] {
            assert_eq!(find(&all[..n], to), expected);
        }
    }
}
