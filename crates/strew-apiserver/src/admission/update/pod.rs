//! Updates of pods: almost all fields are immutable.
//!
//! Source: `ValidatePodUpdate` of `pkg/apis/core/validation`, v1.36. Upstream appends a diff of Go structures to its
//! last message; it is left out here.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, NodeAffinity, NodeSelectorTerm, Pod, PodSpec, Toleration,
};

use super::Update;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::json;

const UPDATABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const ONLY_ADDITIONS: &str = "only additions are allowed (no deletions or mutations)";

impl Update for Pod {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let new = self.spec.clone().unwrap_or_default();
        let old = old.spec.clone().unwrap_or_default();
        spec(&new, &old, &FieldPath::root().child("spec"), errors);
    }

    fn is_new_generation(&self, old: &Self) -> bool {
        self.spec != old.spec
    }
}

fn spec(new: &PodSpec, old: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut comparable = new.clone();
    let init = (
        comparable
            .init_containers
            .as_deref_mut()
            .unwrap_or_default(),
        old.init_containers.as_deref().unwrap_or_default(),
    );
    let lists = [
        (
            "containers",
            (&mut comparable.containers[..], &old.containers[..]),
        ),
        ("initContainers", init),
    ];
    for (name, (new, old)) in lists {
        if !images(new, old) {
            errors.push(FieldError::forbidden(
                path.child(name),
                "pod updates may not add or remove containers",
            ));
            return;
        }
    }
    if !active_deadline(new, old, path, errors) {
        return;
    }
    comparable.active_deadline_seconds = old.active_deadline_seconds;
    added_tolerations(new, old, path, errors);
    comparable.tolerations.clone_from(&old.tolerations);
    removed_gates(new, old, path, errors);
    comparable
        .scheduling_gates
        .clone_from(&old.scheduling_gates);
    let grace = |spec: &PodSpec| spec.termination_grace_period_seconds;
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(new) == Some(1) {
        comparable.termination_grace_period_seconds = grace(old);
    }
    if old
        .scheduling_gates
        .as_ref()
        .is_some_and(|gates| !gates.is_empty())
    {
        gated(&mut comparable, old, path, errors);
    }
    if comparable != *old {
        errors.push(FieldError::forbidden(path.clone(), UPDATABLE));
    }
}

/// Copies the old images; returns false if the lists differ in length.
fn images(new: &mut [Container], old: &[Container]) -> bool {
    for (new, old) in new.iter_mut().zip(old) {
        new.image.clone_from(&old.image);
    }
    new.len() == old.len()
}

/// It may be set and lowered; returns whether validation continues.
fn active_deadline(
    new: &PodSpec,
    old: &PodSpec,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) -> bool {
    let at = path.child("activeDeadlineSeconds");
    match (new.active_deadline_seconds, old.active_deadline_seconds) {
        (Some(new), Some(old)) if new > old => {
            let detail = "must be less than or equal to previous value";
            errors.push(FieldError::invalid_raw(at, new, detail));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid_raw(at, "null", detail));
            true
        }
        _ => true,
    }
}

/// Tolerations may be added, and the time limits of old ones changed.
fn added_tolerations(new: &PodSpec, old: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let is_same = |new: &Toleration, old: &Toleration| {
        let timed = Toleration {
            toleration_seconds: new.toleration_seconds,
            ..old.clone()
        };
        timed == *new
    };
    let kept = |old: &Toleration| {
        new.tolerations
            .iter()
            .flatten()
            .any(|new| is_same(new, old))
    };
    if !old.tolerations.iter().flatten().all(kept) {
        errors.push(FieldError::forbidden(
            path.child("tolerations"),
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
}

fn removed_gates(new: &PodSpec, old: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, gate) in new.scheduling_gates.iter().flatten().enumerate() {
        if !old.scheduling_gates.iter().flatten().any(|old| old == gate) {
            let name = &gate.name;
            errors.push(FieldError::forbidden(
                path.child("schedulingGates").index(i),
                format!("only deletion is allowed, but found new scheduling gate '{name}'"),
            ));
        }
    }
}

/// While a pod has scheduling gates, its node constraints may be narrowed; copies the old values.
fn gated(new: &mut PodSpec, old: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if new.node_selector != old.node_selector {
        let empty = BTreeMap::new();
        let given = new.node_selector.as_ref().unwrap_or(&empty);
        let stored = old.node_selector.as_ref().unwrap_or(&empty);
        if !stored
            .iter()
            .all(|(key, value)| given.get(key) == Some(value))
        {
            errors.push(FieldError::invalid_raw(
                path.child("nodeSelector"),
                json(&new.node_selector),
                ONLY_ADDITIONS,
            ));
        }
        new.node_selector.clone_from(&old.node_selector);
    }
    let of = |spec: &PodSpec| spec.affinity.as_ref().and_then(|a| a.node_affinity.clone());
    let (given, stored) = (of(new), of(old));
    if given != stored {
        let at = path.child("affinity.nodeAffinity");
        node_affinity(given.as_ref(), stored.as_ref(), &at, errors);
        match (&mut new.affinity, &old.affinity) {
            (Some(affinity), Some(_)) => affinity.node_affinity = stored,
            (Some(affinity), None) => {
                affinity.node_affinity = None;
                if *affinity == Default::default() {
                    new.affinity = None;
                }
            }
            (None, Some(_)) => {
                new.affinity.get_or_insert_default().node_affinity = stored;
            }
            (None, None) => {}
        }
    }
}

/// Required terms may be added if there were none; existing ones may become stricter. Source:
/// `validateNodeAffinityMutation`.
fn node_affinity(
    new: Option<&NodeAffinity>,
    old: Option<&NodeAffinity>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    fn terms(affinity: Option<&NodeAffinity>) -> &[NodeSelectorTerm] {
        let required = affinity.and_then(|a| {
            a.required_during_scheduling_ignored_during_execution
                .as_ref()
        });
        required.map_or(&[], |required| &required.node_selector_terms)
    }
    let (new, old) = (terms(new), terms(old));
    if old.is_empty() {
        return;
    }
    let at = path.child("requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    if new.len() != old.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid_raw(at, json(&new), detail));
        return;
    }
    for (i, (new, old)) in new.iter().zip(old).enumerate() {
        if !has_only_additions(new, old) {
            let at = at.index(i);
            errors.push(FieldError::invalid_raw(at, json(new), ONLY_ADDITIONS));
        }
    }
}

/// An empty term matches nothing, so filling it would loosen it.
fn has_only_additions(new: &NodeSelectorTerm, old: &NodeSelectorTerm) -> bool {
    let lists = |term: &NodeSelectorTerm| {
        [
            term.match_expressions.clone().unwrap_or_default(),
            term.match_fields.clone().unwrap_or_default(),
        ]
    };
    let (new, old) = (lists(new), lists(old));
    if old.iter().all(Vec::is_empty) {
        return new.iter().all(Vec::is_empty);
    }
    new.iter().zip(&old).all(|(new, old)| new.starts_with(old))
}
