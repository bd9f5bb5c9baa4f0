//! The rules of the validating webhook: all errors at once, with paths of v1beta1.
//!
//! Paths and kinds of errors are Kruise's; the messages are strew's. Beyond Kruise it refuses a limit such as `"50"`
//! without `%` (Kruise accepts it, and its controller then fails), and strew's own annotations if they cannot be read.
//!
//! Source: spec/workloadspread §2.6.

mod conflict;
pub(super) mod patch;
mod strategy;
mod subset;
#[cfg(test)]
mod tests;

use super::annotations::{
    self, ANY_KIND, LIMIT_SCOPE, MIN_REPLICAS, MOVE_BACK, TARGET_SELECTOR, WHEN_NO_ROOM,
    WINDOW_SECONDS,
};
use super::facts::group_of;
use super::facts::spread::max_replicas;
use super::facts::white_list::WhiteList;
pub use conflict::{may_own, owner_of};

use super::spec::TargetReference;
use super::v1beta1::{WorkloadSpread, WorkloadSpreadSpec};
pub use patch::GUARDED;
use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};
use strew_manifest::read::KubeObject;
use strew_manifest::validation::json;
use strew_workloadspread::{LimitScope, MaxReplicas, WhenNoRoom};
pub use subset::template_of;

/// The further inputs of validation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// The white list of custom kinds, or the error of reading it; `None` for files: every kind is accepted.
    pub white_list: Option<Result<&'a WhiteList, &'a str>>,
    /// The target, if it exists.
    pub target: Option<&'a KubeObject>,
    /// The other WorkloadSpreads of the namespace, or the error of listing them.
    pub others: Option<Result<&'a [&'a WorkloadSpread], &'a str>>,
    /// The targets of the others, to find workloads that own each other.
    pub workloads: &'a [&'a KubeObject],
    /// The object before an update.
    pub before: Option<&'a WorkloadSpread>,
    /// Names of [`GUARDED`] that patches may change.
    pub allowed: &'a [String],
    /// True if messages leave out the names of other objects.
    pub is_quiet: bool,
}

/// All errors of a WorkloadSpread.
pub fn validate(ws: &WorkloadSpread, cx: &Context<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let empty = WorkloadSpreadSpec::default();
    let spec = ws.spec.as_ref().unwrap_or(&empty);
    let path = FieldPath::root().child("spec");
    let any_kind = annotations::is_true(&ws.metadata, ANY_KIND);
    target(
        spec.target_reference.as_ref(),
        any_kind,
        cx,
        &path,
        &mut errors,
    );
    subset::validate(spec, cx, &path, &mut errors);
    strategy::validate(ws, spec, &path, &mut errors);
    filter(spec, &path, &mut errors);
    conflict::validate(ws, spec, cx, &path, &mut errors);
    own_annotations(ws, spec, &mut errors);
    if let Some(before) = cx.before {
        update(ws, before, &mut errors);
    }
    errors
}

/// True if two references name the same workload, in any API version.
pub fn is_same_target(a: &TargetReference, b: &TargetReference) -> bool {
    let parts = |r: &TargetReference| {
        [
            group_of(&r.api_version).to_owned(),
            r.kind.clone(),
            r.name.clone(),
        ]
    };
    parts(a) == parts(b)
}

/// True if an object is of the kind that a reference names, in any API version.
pub fn is_same_kind_and_group(target: &TargetReference, object: &KubeObject) -> bool {
    object.kind() == target.kind && group_of(object.api_version()) == group_of(&target.api_version)
}

/// The groups of built-in kinds.
const GROUPS: [(&str, &[&str]); 5] = [
    ("CloneSet", &["apps.kruise.io"]),
    ("Deployment", &["apps"]),
    ("ReplicaSet", &["apps"]),
    ("Job", &["batch"]),
    ("StatefulSet", &["apps", "apps.kruise.io"]),
];

/// `any_kind`: the kind need not be listed.
fn target(
    target: Option<&TargetReference>,
    any_kind: bool,
    cx: &Context<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("targetRef");
    let Some(target) = target else {
        let error = FieldError::required(path, "the workload whose pods are spread must be named");
        errors.push(error.with_help(
            "for example: targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}",
        ));
        return;
    };
    let invalid = |detail: String| FieldError::invalid_raw(path.clone(), json(target), detail);
    let fields = [
        ("apiVersion", &target.api_version),
        ("kind", &target.kind),
        ("name", &target.name),
    ];
    let missing = fields.iter().filter(|(_, value)| value.is_empty());
    let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        errors.push(invalid(format!("empty {}", missing.join(", "))));
        return;
    }
    if target.api_version.matches('/').count() > 1 {
        errors.push(invalid("apiVersion must be GROUP/VERSION".to_owned()));
        return;
    }
    let group = group_of(&target.api_version);
    if let Some((kind, groups)) = GROUPS.iter().find(|(kind, _)| *kind == target.kind) {
        if !groups.contains(&group) {
            let groups = groups.join(" or ");
            errors.push(invalid(format!("{kind} must be of the group {groups}")));
        }
        return;
    }
    match cx.white_list.filter(|_| !any_kind) {
        None => {}
        Some(Err(why)) => errors.push(FieldError::new(path, FieldErrorKind::Internal, why)),
        Some(Ok(list)) if list.allows(group, &target.kind) => {}
        Some(Ok(_)) => {
            let kind = &target.kind;
            let detail = format!(
                "kind {kind} of {group:?} is not in the white list; the annotation {ANY_KIND}: \"true\" allows any kind that has a scale"
            );
            errors.push(invalid(detail));
        }
    }
}

fn filter(spec: &WorkloadSpreadSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(selector) = spec
        .target_filter
        .as_ref()
        .and_then(|f| f.selector.as_ref())
    else {
        return;
    };
    let mut found = Vec::new();
    let root = FieldPath::root().child("selector");
    strew_manifest::validation::selector::validate(Some(selector), &root, &mut found);
    // Reported together, with each reason.
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    if !found.is_empty() {
        let path = path.child("targetFilter");
        let value = json(&spec.target_filter);
        errors.push(FieldError::invalid_raw(path, value, found.join("; ")));
    }
}

fn own_annotations(ws: &WorkloadSpread, spec: &WorkloadSpreadSpec, errors: &mut Vec<FieldError>) {
    let path = FieldPath::root().child("metadata.annotations");
    let text = |key: &str| {
        let all = ws.metadata.annotations.as_ref();
        all.and_then(|all| all.get(key))
            .cloned()
            .unwrap_or_default()
    };
    if let Err(bad) = annotations::closed_for(&ws.metadata) {
        let at = path.key(WINDOW_SECONDS);
        errors.push(FieldError::invalid(
            at,
            &text(WINDOW_SECONDS),
            bad.to_string(),
        ));
    }
    let words = [
        (LIMIT_SCOPE, annotations::limit_scope(&ws.metadata).err()),
        (WHEN_NO_ROOM, annotations::when_no_room(&ws.metadata).err()),
        (MOVE_BACK, annotations::move_back(&ws.metadata).err()),
        (
            TARGET_SELECTOR,
            annotations::target_selector(&ws.metadata).err(),
        ),
    ];
    for (key, bad) in words {
        if let Some(bad) = bad {
            errors.push(FieldError::invalid(
                path.key(key),
                &text(key),
                bad.to_string(),
            ));
        }
    }
    let target = spec
        .target_reference
        .as_ref()
        .map(|target| target.kind.as_str());
    let limits = annotations::limit_scope(&ws.metadata);
    let together = [
        (
            !matches!(target, Some("Deployment" | "ReplicaSet" | "CloneSet")),
            "only a Deployment, ReplicaSet or CloneSet is spread together with others",
        ),
        (
            spec.target_filter.is_some(),
            "a targetFilter and a selector for further workloads do not go together",
        ),
        (
            limits == Ok(LimitScope::Revision),
            "limits of several workloads hold over all their pods, not by revision",
        ),
        (
            matches!(annotations::move_back(&ws.metadata), Ok(Some(_))),
            "pods of several workloads do not move back",
        ),
    ];
    let selects = matches!(annotations::target_selector(&ws.metadata), Ok(Some(_)));
    for (_, detail) in together
        .into_iter()
        .filter(|(is_wrong, _)| selects && *is_wrong)
    {
        let at = path.key(TARGET_SELECTOR);
        errors.push(FieldError::invalid(at, &text(TARGET_SELECTOR), detail));
    }
    let moves = matches!(annotations::move_back(&ws.metadata), Ok(Some(_)));
    if moves && !matches!(target, Some("Deployment" | "ReplicaSet" | "CloneSet")) {
        let detail = "moving back is for Deployments, ReplicaSets and CloneSets";
        errors.push(FieldError::invalid(
            path.key(MOVE_BACK),
            &text(MOVE_BACK),
            detail,
        ));
    }
    let strategy = spec.schedule_strategy.as_ref();
    let adaptive = strategy.and_then(|strategy| strategy.adaptive.as_ref());
    // With simulated scheduling, a replacement that fits on no node would go to the subset that the pod came from,
    // again and again.
    if moves && adaptive.is_some_and(|a| a.disable_simulation_schedule != Some(true)) {
        let detail = "moving back under Adaptive needs disableSimulationSchedule: true";
        errors.push(FieldError::invalid(
            path.key(MOVE_BACK),
            &text(MOVE_BACK),
            detail,
        ));
    }
    let is_gated = annotations::when_no_room(&ws.metadata) == Ok(WhenNoRoom::Pending);
    // A gated pod is deleted when there is room, and its workload must create another one. A Job would count it as
    // failed, and pods of a StatefulSet are replaced under the same name.
    if is_gated && !matches!(target, Some("Deployment" | "ReplicaSet" | "CloneSet")) {
        let detail = "Pending is for Deployments, ReplicaSets and CloneSets";
        errors.push(FieldError::invalid(
            path.key(WHEN_NO_ROOM),
            &text(WHEN_NO_ROOM),
            detail,
        ));
    }
    let at = path.key(MIN_REPLICAS);
    let minimums = match annotations::min_replicas(&ws.metadata) {
        Ok(minimums) => minimums,
        Err(bad) => {
            errors.push(FieldError::invalid(
                at,
                &text(MIN_REPLICAS),
                bad.to_string(),
            ));
            return;
        }
    };
    for (name, min) in minimums {
        let detail = match spec.subsets.iter().find(|s| s.name == name) {
            None => format!("there is no subset {name:?}"),
            Some(subset) => match subset.max_replicas.as_ref().map(max_replicas) {
                Some(MaxReplicas::Count(max)) if min > max => {
                    format!(
                        "the minimum {min} of subset {name:?} is more than its maxReplicas {max}"
                    )
                }
                _ => continue,
            },
        };
        errors.push(FieldError::invalid(at.clone(), &text(MIN_REPLICAS), detail));
    }
}

fn update(ws: &WorkloadSpread, before: &WorkloadSpread, errors: &mut Vec<FieldError>) {
    let (new, old) = (&ws.metadata, &before.metadata);
    let fields = [
        ("metadata.name", &new.name, &old.name),
        ("metadata.namespace", &new.namespace, &old.namespace),
        ("metadata.uid", &new.uid, &old.uid),
    ];
    for (name, new, old) in fields {
        if new != old {
            let value = new.as_deref().unwrap_or_default();
            let path = FieldPath::root().child(name);
            errors.push(FieldError::invalid(path, value, "field is immutable"));
        }
    }
    let target = |ws: &WorkloadSpread| ws.spec.as_ref().and_then(|s| s.target_reference.clone());
    if let (Some(new), Some(old)) = (target(ws), target(before))
        && !is_same_target(&new, &old)
    {
        let path = FieldPath::root().child("spec.targetRef");
        let detail = "group, kind and name of the target are immutable";
        errors.push(FieldError::invalid_raw(path, json(&new), detail));
    }
}
