//! Each pod has one owner: no two WorkloadSpreads name the same workload, or a workload and one that it owns.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::{Context, is_same_kind_and_group, is_same_target};
use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};
use strew_manifest::kruise::spec::TargetReference;
use strew_manifest::kruise::v1beta1::{WorkloadSpread, WorkloadSpreadSpec};
use strew_manifest::read::KubeObject;
use strew_manifest::validation::json;

pub(super) fn validate(
    ws: &WorkloadSpread,
    spec: &WorkloadSpreadSpec,
    cx: &Context<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let others = match cx.others {
        None => return,
        Some(Err(why)) => {
            let path = FieldPath::root();
            errors.push(FieldError::new(path, FieldErrorKind::Internal, why));
            return;
        }
        Some(Ok(others)) => others,
    };
    let Some(target) = &spec.target_reference else {
        return;
    };
    let owner = cx.target.and_then(owner_of);
    for other in others {
        if other.metadata.name == ws.metadata.name {
            continue;
        }
        let theirs = other.spec.as_ref();
        let Some(theirs) = theirs.and_then(|s| s.target_reference.as_ref()) else {
            continue;
        };
        let (kind, workload) = (&theirs.kind, &theirs.name);
        let name = match cx.is_quiet {
            false => format!(
                "WorkloadSpread {:?}",
                other.metadata.name.as_deref().unwrap_or_default()
            ),
            true => "another WorkloadSpread of the namespace".to_owned(),
        };
        let detail = if is_same_target(theirs, target) {
            format!("{name} has the same target")
        } else if owner
            .as_ref()
            .is_some_and(|owner| is_same_target(owner, theirs))
        {
            format!("{name} has the pods of this target: it names its owner, {kind} {workload:?}")
        } else if named(cx, ws, theirs)
            .and_then(owner_of)
            .is_some_and(|owner| is_same_target(&owner, target))
        {
            format!(
                "{name} has pods of this target: it names {kind} {workload:?}, which this one owns"
            )
        } else {
            continue;
        };
        let path = path.child("targetRef");
        let error = FieldError::invalid_raw(path, json(target), detail);
        errors.push(error.with_help(
            "one workload has one WorkloadSpread: merge their subsets, filters are not considered",
        ));
        return;
    }
}

/// The workload that another WorkloadSpread of the namespace names.
fn named<'a>(
    cx: &Context<'a>,
    ws: &WorkloadSpread,
    theirs: &TargetReference,
) -> Option<&'a KubeObject> {
    let namespace = ws.metadata.namespace.as_deref().filter(|n| !n.is_empty());
    let namespace = namespace.unwrap_or("default");
    let mut all = cx.workloads.iter().copied();
    all.find(|object| {
        let own = object.namespace().filter(|n| !n.is_empty());
        object.name() == theirs.name
            && is_same_kind_and_group(theirs, object)
            && own.unwrap_or("default") == namespace
    })
}

/// The controller of a workload.
pub fn owner_of(object: &KubeObject) -> Option<TargetReference> {
    let owners = object.metadata()?.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.controller == Some(true));
    let OwnerReference {
        api_version,
        kind,
        name,
        ..
    } = owners.next()?;
    Some(TargetReference {
        api_version: api_version.clone(),
        kind: kind.clone(),
        name: name.clone(),
    })
}

/// True if a workload of this name may own the other one: controllers begin the names of their objects with their own
/// name.
pub fn may_own(owner: &TargetReference, owned: &TargetReference) -> bool {
    owner.kind != owned.kind && owned.name.starts_with(&owner.name)
}
