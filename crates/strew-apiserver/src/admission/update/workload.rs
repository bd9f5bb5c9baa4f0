//! Updates of workloads.
//!
//! Source: `pkg/registry/{apps,batch}/*/strategy.go`, `pkg/apis/{apps,batch}/validation`, v1.36.

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Affinity, PodTemplateSpec};

use super::{Update, immutable};
use strew_manifest::field::{FieldError, FieldPath};

fn selector_path() -> FieldPath {
    FieldPath::root().child("spec.selector")
}

impl Update for Deployment {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let of = |object: &Self| object.spec.as_ref().map(|spec| spec.selector.clone());
        immutable(&of(self), &of(old), &selector_path(), errors);
    }

    /// Annotations count too, because a rollback was requested by one.
    fn is_new_generation(&self, old: &Self) -> bool {
        self.spec != old.spec || self.metadata.annotations != old.metadata.annotations
    }
}

impl Update for ReplicaSet {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let of = |object: &Self| object.spec.as_ref().map(|spec| spec.selector.clone());
        immutable(&of(self), &of(old), &selector_path(), errors);
    }

    fn is_new_generation(&self, old: &Self) -> bool {
        self.spec != old.spec
    }
}

impl Update for DaemonSet {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let of = |object: &Self| object.spec.as_ref().map(|spec| spec.selector.clone());
        immutable(&of(self), &of(old), &selector_path(), errors);
    }

    fn is_new_generation(&self, old: &Self) -> bool {
        self.spec != old.spec
    }
}

impl Update for StatefulSet {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let mut new = self.spec.clone().unwrap_or_default();
        let stored = old.spec.clone().unwrap_or_default();
        new.replicas = stored.replicas;
        new.ordinals.clone_from(&stored.ordinals);
        new.template.clone_from(&stored.template);
        new.update_strategy.clone_from(&stored.update_strategy);
        new.min_ready_seconds = stored.min_ready_seconds;
        new.revision_history_limit = stored.revision_history_limit;
        new.persistent_volume_claim_retention_policy
            .clone_from(&stored.persistent_volume_claim_retention_policy);
        if new != stored {
            errors.push(FieldError::forbidden(
                FieldPath::root().child("spec"),
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            ));
        }
    }

    fn is_new_generation(&self, old: &Self) -> bool {
        self.spec != old.spec
    }
}

impl Update for Job {
    fn keep(&mut self, old: &Self) {
        self.status.clone_from(&old.status);
        // The API server set these when the Job was created: applying the file again must not remove them.
        if let (Some(spec), Some(stored)) = (&mut self.spec, &old.spec)
            && spec.manual_selector != Some(true)
            && spec.selector.is_none()
        {
            spec.selector.clone_from(&stored.selector);
        }
    }

    fn forbidden(&self, old: &Self, errors: &mut Vec<FieldError>) {
        let new = self.spec.clone().unwrap_or_default();
        let stored = old.spec.clone().unwrap_or_default();
        let path = FieldPath::root().child("spec");
        completions(&new, &stored, &path, errors);
        let at = selector_path();
        immutable(&new.selector, &stored.selector, &at, errors);
        let has_started = old.status.as_ref().is_some_and(|s| s.start_time.is_some());
        let comparable = match stored.suspend == Some(true) && !has_started {
            true => with_directives_of(&stored.template, &new.template),
            false => stored.template.clone(),
        };
        immutable(&new.template, &comparable, &path.child("template"), errors);
        let at = path.child("completionMode");
        immutable(&new.completion_mode, &stored.completion_mode, &at, errors);
        let at = path.child("podFailurePolicy");
        immutable(
            &new.pod_failure_policy,
            &stored.pod_failure_policy,
            &at,
            errors,
        );
        let at = path.child("backoffLimitPerIndex");
        immutable(
            &new.backoff_limit_per_index,
            &stored.backoff_limit_per_index,
            &at,
            errors,
        );
        immutable(
            &new.managed_by,
            &stored.managed_by,
            &path.child("managedBy"),
            errors,
        );
        immutable(
            &new.success_policy,
            &stored.success_policy,
            &path.child("successPolicy"),
            errors,
        );
    }

    fn is_new_generation(&self, old: &Self) -> bool {
        self.spec != old.spec
    }
}

/// For an indexed Job they may change together with the parallelism. Source: `validateCompletions`.
fn completions(new: &JobSpec, old: &JobSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let at = path.child("completions");
    let is_indexed = new.completion_mode.as_deref() == Some("Indexed");
    if !is_indexed || new.completions.is_none() || old.completions.is_none() {
        immutable(&new.completions, &old.completions, &at, errors);
        return;
    }
    let in_tandem = |spec: &JobSpec| spec.completions == spec.parallelism;
    if new.completions != old.completions && !(in_tandem(new) && in_tandem(old)) {
        errors.push(FieldError::invalid_raw(
            at,
            new.completions.unwrap_or_default(),
            "can only be modified in tandem with spec.parallelism",
        ));
    }
}

/// The old template with the fields that a suspended Job may change before it begins: where its pods may go. Source:
/// `validatePodTemplateUpdate`.
fn with_directives_of(old: &PodTemplateSpec, new: &PodTemplateSpec) -> PodTemplateSpec {
    let mut old = old.clone();
    let given = new.metadata.clone().unwrap_or_default();
    if new.metadata.is_some() || old.metadata.is_some() {
        let metadata = old.metadata.get_or_insert_default();
        metadata.annotations = given.annotations;
        metadata.labels = given.labels;
        if new.metadata.is_none() && old.metadata == Some(Default::default()) {
            old.metadata = None;
        }
    }
    let (Some(spec), Some(given)) = (&mut old.spec, &new.spec) else {
        return old;
    };
    let node_affinity = given
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.clone());
    if given.affinity.is_some() || spec.affinity.is_some() {
        let affinity = spec.affinity.get_or_insert_default();
        affinity.node_affinity = node_affinity;
        if given.affinity.is_none() && *affinity == Affinity::default() {
            spec.affinity = None;
        }
    }
    spec.node_selector.clone_from(&given.node_selector);
    spec.tolerations.clone_from(&given.tolerations);
    spec.scheduling_gates.clone_from(&given.scheduling_gates);
    old
}
