//! What an API server with Kruise refuses of Kruise's objects: the metadata of all, as of every kind, and CloneSets, which
//! Kruise's webhook reviews. The rules of WorkloadSpreads are in [`strew_wire::workloadspread`].
//!
//! Source: `pkg/webhook/cloneset/validating` of openkruise/kruise at 07169cfa. Where it calls Kubernetes' own validation,
//! that of v1.36. The pods of a template are checked as pods.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::kruise::workloads::{CloneSet, CloneSetSpec};
use strew_manifest::read::KubeObject;
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::{one_of, selector, text};
use strew_wire::rolling::amount;

use super::workload::{int_or_percent, nonnegative_each, selected_template, spec_path};

/// All errors of an object of Kruise; nothing for other kinds.
pub(crate) fn errors(object: &KubeObject) -> Vec<FieldError> {
    match object {
        KubeObject::CloneSet(set) => {
            let mut errors = metadata_errors(&set.metadata);
            clone_set(set, &mut errors);
            errors
        }
        KubeObject::WorkloadSpread(spread) => metadata_errors(&spread.metadata),
        KubeObject::AdvancedStatefulSet(set) => metadata_errors(&set.metadata),
        _ => Vec::new(),
    }
}

fn metadata_errors(written: &ObjectMeta) -> Vec<FieldError> {
    let mut written = written.clone();
    let namespace = written.namespace.get_or_insert_default();
    if namespace.is_empty() {
        "default".clone_into(namespace);
    }
    metadata::validate(&written, Scope::Namespaced, text::dns_subdomain)
}

fn clone_set(set: &CloneSet, errors: &mut Vec<FieldError>) {
    let Some(spec) = &set.spec else { return };
    let path = spec_path();
    let numbers = [
        ("replicas", spec.replicas),
        ("minReadySeconds", spec.min_ready_seconds),
    ];
    nonnegative_each(&numbers, &path, errors);
    match &spec.selector {
        None => errors.push(
            FieldError::required(path.child("selector"), "")
                .with_help("select the labels of the template"),
        ),
        Some(wanted) if selector::is_empty(wanted) => errors.push(FieldError::invalid_raw(
            path.child("selector"),
            "{}",
            "empty selector is invalid for cloneset",
        )),
        Some(wanted) => selected_template(wanted, &spec.template, &path, errors),
    }
    if let Some(pod) = &spec.template.spec {
        let policy = pod.restart_policy.as_deref().unwrap_or("Always");
        let at = path.child("template.spec.restartPolicy");
        one_of(policy, &["Always"], &at, errors);
        if pod.active_deadline_seconds.is_some() {
            errors.push(FieldError::forbidden(
                path.child("template.spec.activeDeadlineSeconds"),
                "activeDeadlineSeconds in ReplicaSet is not Supported",
            ));
        }
    }
    update_strategy(spec, &path.child("updateStrategy"), errors);
    let scale = spec.scale_strategy.as_ref();
    let at = path.child("scaleStrategy");
    share(scale, "maxUnavailable", &at, errors);
}

/// The ways in which a CloneSet updates pods.
const UPDATE_TYPES: [&str; 3] = ["ReCreate", "InPlaceIfPossible", "InPlaceOnly"];

fn update_strategy(spec: &CloneSetSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let strategy = spec.update_strategy.as_ref();
    let way = strategy.and_then(|strategy| strategy.get("type")?.as_str());
    if let Some(way) = way.filter(|way| !way.is_empty() && !UPDATE_TYPES.contains(way)) {
        let detail = "must be 'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'";
        errors.push(FieldError::invalid(path.child("type"), way, detail));
    }
    for name in ["partition", "maxUnavailable", "maxSurge"] {
        share(strategy, name, path, errors);
    }
}

/// A number of pods, or a percentage of them.
fn share(
    fields: Option<&Value>,
    name: &'static str,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let given = fields.and_then(|fields| fields.get(name));
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return;
    };
    let path = path.child(name);
    match amount(given) {
        Some(value) => int_or_percent(&value, &path, errors),
        None => errors.push(FieldError::invalid_raw(
            path,
            given,
            "must be a number or a percentage",
        )),
    }
}
