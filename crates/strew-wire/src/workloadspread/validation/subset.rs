//! Rules for subsets: names, nodes, patches, limits.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json as value};

use super::{Context, patch};
use crate::workloadspread::facts::spread::percent;
use strew_manifest::defaults::default_pod;
use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};
use strew_manifest::json::Json;
use strew_manifest::kruise::v1beta1::{WorkloadSpreadSpec, WorkloadSpreadSubset};
use strew_manifest::patch::{Schema, strategic};
use strew_manifest::read::KubeObject;
use strew_manifest::validation::spread::SharedKeys;
use strew_manifest::validation::{affinity, json, pod, taint};

/// The most subsets of a WorkloadSpread. Each creation of a pod writes the status of all of them.
const SUBSETS_MAX: usize = 128;

pub(super) fn validate(
    spec: &WorkloadSpreadSpec,
    cx: &Context<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("subsets");
    if spec.subsets.is_empty() {
        errors.push(FieldError::required(path, "at least one subset is needed"));
        return;
    }
    let count = spec.subsets.len();
    if count > SUBSETS_MAX {
        let kind = FieldErrorKind::TooMany { count };
        let detail = format!("must have at most {SUBSETS_MAX} items");
        errors.push(FieldError::new(path, kind, detail));
        return;
    }
    let mut names = BTreeSet::new();
    let template = cx.target.and_then(template_of);
    for (i, subset) in spec.subsets.iter().enumerate() {
        let path = path.index(i);
        name(subset, &mut names, &path, errors);
        nodes(subset, &path, errors);
        let Some(patch) = &subset.patch else {
            continue;
        };
        let path = path.child("patch");
        patch::identity(patch, &path, errors);
        patch::guarded(patch, cx.allowed, &path, errors);
        let labels = template.as_ref().map(|t| &t["metadata"]["labels"]);
        let labels = labels.and_then(|labels| serde_json::from_value(labels.clone()).ok());
        let selector = cx.target.and_then(KubeObject::pod_selector);
        patch::selecting(patch, selector, &labels.unwrap_or_default(), &path, errors);
        if let Some(template) = &template {
            patched(patch, template, &path, errors);
        }
    }
    limits(spec, &path, errors);
}

fn name<'a>(
    subset: &'a WorkloadSpreadSubset,
    names: &mut BTreeSet<&'a str>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("name");
    if subset.name.is_empty() {
        errors.push(FieldError::invalid(path, "", "must not be empty"));
    } else if !names.insert(&subset.name) {
        let detail = "an earlier subset has this name";
        errors.push(FieldError::invalid(path, &subset.name, detail));
    }
}

fn nodes(subset: &WorkloadSpreadSubset, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(term) = &subset.required_node_selector {
        affinity::node_selector_term(term, &path.child("requiredNodeSelector"), errors);
    }
    for (i, preferred) in subset.preferred_node_selector.iter().flatten().enumerate() {
        let path = path.child("preferredNodeSelector").index(i);
        affinity::preferred_term(preferred, &path, errors);
    }
    let tolerations = subset.tolerations.as_deref().unwrap_or_default();
    taint::tolerations(tolerations, &path.child("tolerations"), errors);
}

// === patches ===

/// A pod of a built-in target, with a volume for each claim template of a CloneSet or StatefulSet. `None` for custom
/// kinds and for Kruise's own StatefulSet, whose patches are not checked.
pub fn template_of(target: &KubeObject) -> Option<Value> {
    let none: Option<&Vec<PersistentVolumeClaim>> = None;
    let (template, claims) = match target {
        KubeObject::Deployment(o) => (Some(&o.spec.as_ref()?.template), none),
        KubeObject::ReplicaSet(o) => (o.spec.as_ref()?.template.as_ref(), none),
        KubeObject::Job(o) => (Some(&o.spec.as_ref()?.template), none),
        KubeObject::StatefulSet(o) => {
            let spec = o.spec.as_ref()?;
            (Some(&spec.template), spec.volume_claim_templates.as_ref())
        }
        KubeObject::CloneSet(o) => {
            let spec = o.spec.as_ref()?;
            (Some(&spec.template), spec.volume_claim_templates.as_ref())
        }
        _ => return None,
    };
    let empty = PodTemplateSpec::default();
    let mut pod = template.unwrap_or(&empty).to_json();
    for claim in claims.into_iter().flatten() {
        let name = claim.metadata.name.as_deref().unwrap_or_default();
        let volume = value!({"name": name, "persistentVolumeClaim": {"claimName": name}});
        match pod
            .pointer_mut("/spec/volumes")
            .and_then(Value::as_array_mut)
        {
            Some(volumes) => volumes.push(volume),
            None => pod["spec"]["volumes"] = value!([volume]),
        }
    }
    Some(pod)
}

/// The template merged with a patch must be a valid pod. Errors of the template alone do not count.
///
/// The API server sets defaults before it calls the webhook, so requests that follow from the template's limits are in
/// the pod that is patched.
fn patched(patch: &Value, template: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let template = &defaulted(template).unwrap_or_else(|| template.clone());
    let invalid = |detail: String| FieldError::invalid_raw(path.clone(), patch, detail);
    let merged = match strategic::patch(Schema::Pod, template, patch) {
        Ok(merged) => merged,
        Err(error) => {
            errors.push(invalid(error.to_string()));
            return;
        }
    };
    let of_pod = |pod: Value| -> Result<Vec<FieldError>, serde_json::Error> {
        let mut pod = Pod::of_json(pod)?;
        pod.metadata.name = Some("pod".to_owned());
        default_pod(&mut pod);
        let mut errors = Vec::new();
        let spec = pod.spec.unwrap_or_default();
        pod::validate_spec(&spec, SharedKeys::Merged, path, &mut errors);
        Ok(errors)
    };
    let own = of_pod(template.clone()).unwrap_or_default();
    match of_pod(merged) {
        Ok(found) => errors.extend(found.into_iter().filter(|error| !own.contains(error))),
        Err(error) => errors.push(invalid(format!("the patched pod is no pod: {error}"))),
    }
}

/// A pod of the template as the API server passes it to webhooks; `None` if the template is no pod.
fn defaulted(template: &Value) -> Option<Value> {
    let mut pod = Pod::of_json(template.clone()).ok()?;
    default_pod(&mut pod);
    Some(pod.to_json())
}

// === limits ===

/// Checks limits in order; the first error ends the check, as upstream.
fn limits(spec: &WorkloadSpreadSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let kind = spec.target_reference.as_ref().map(|t| t.kind.as_str());
    let mut first: Option<&IntOrString> = None;
    let mut sum: u64 = 0;
    for (i, subset) in spec.subsets.iter().enumerate() {
        let Some(limit) = &subset.max_replicas else {
            continue;
        };
        let is_text = |limit: &IntOrString| matches!(limit, IntOrString::String(_));
        let first = *first.get_or_insert(limit);
        let fault = match limit {
            limit if is_text(limit) != is_text(first) => {
                "numbers and percentages must not be mixed".to_owned()
            }
            IntOrString::String(_) if kind == Some("StatefulSet") => {
                "must be a number where the target is a StatefulSet".to_owned()
            }
            IntOrString::Int(count) if *count < 0 => "must not be negative".to_owned(),
            IntOrString::Int(_) => continue,
            IntOrString::String(text) => match percent(text) {
                None => "must be a number, or a whole percentage such as \"30%\"".to_owned(),
                Some(percent) => {
                    sum += u64::from(percent);
                    if sum <= 100 {
                        continue;
                    }
                    format!("the percentages add up to {sum}, more than 100")
                }
            },
        };
        let path = path.index(i).child("maxReplicas");
        errors.push(FieldError::invalid_raw(path, json(limit), fault));
        return;
    }
    let last = spec.subsets.last().and_then(|s| s.max_replicas.as_ref());
    let is_share = matches!(first, Some(IntOrString::String(_)));
    if is_share && sum < 100 && last.is_some() {
        let path = path.index(0).child("maxReplicas");
        let detail = format!(
            "the percentages add up to {sum}: where the last subset has a limit, they must make 100"
        );
        let error = FieldError::invalid_raw(path, json(&first), detail);
        errors.push(error.with_help("leave out maxReplicas of the last subset: it takes the rest"));
    }
}
