//! Specs of pods, and pod templates.
//!
//! Source: `ValidatePodSpec`, `ValidatePodTemplateSpec` of
//! `pkg/apis/core/validation`, v1.36.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSchedulingGate, PodSpec, PodTemplateSpec};

use super::spread::SharedKeys;
use super::{
    affinity, container, invalid_each, json, metadata, one_of, resources, spread, taint, text,
    volume, warnings,
};
use crate::field::{FieldError, FieldPath};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const N_DNS_SERVERS_MAX: usize = 3;

/// Checks a template at `path`. Upstream leaves `.metadata` out of the labels' path.
pub fn validate_template(
    template: &PodTemplateSpec,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let given = template.metadata.as_ref();
    let annotations = given.and_then(|meta| meta.annotations.as_ref());
    let labels = given.and_then(|meta| meta.labels.as_ref());
    metadata::labels(labels, &path.child("labels"), errors);
    metadata::annotations(annotations, &path.child("annotations"), errors);
    deletion_cost(annotations, &path.child("annotations"), errors);
    let empty = PodSpec::default();
    let spec = template.spec.as_ref().unwrap_or(&empty);
    validate_spec(spec, SharedKeys::Merged, &path.child("spec"), errors);
    if spec
        .ephemeral_containers
        .as_ref()
        .is_some_and(|all| !all.is_empty())
    {
        errors.push(FieldError::forbidden(
            path.child("spec.ephemeralContainers"),
            "ephemeral containers not allowed in pod template",
        ));
    }
}

/// The API server's warnings about a template at `path`.
pub fn template_warnings(template: &PodTemplateSpec, path: &FieldPath) -> Vec<String> {
    let spec = template.spec.as_ref();
    spec.map_or(Vec::new(), |spec| {
        warnings::of_spec(spec, &path.child("spec"))
    })
}

/// Checks the spec of a pod at `path`.
pub fn validate_spec(
    spec: &PodSpec,
    shared: SharedKeys,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    let volumes = volume::validate(volumes, &path.child("volumes"), errors);
    container::validate(spec, &volumes, path, errors);
    resources::of_pod(spec, path, errors);
    container::host_network(spec, path, errors);
    match spec.restart_policy.as_deref().unwrap_or_default() {
        "" => errors.push(FieldError::required(path.child("restartPolicy"), "")),
        policy => {
            let known = ["Always", "OnFailure", "Never"];
            one_of(policy, &known, &path.child("restartPolicy"), errors);
        }
    }
    let policy = spec.dns_policy.as_deref();
    container::given_one_of(policy, &DNS_POLICIES, &path.child("dnsPolicy"), errors);
    metadata::labels(
        spec.node_selector.as_ref(),
        &path.child("nodeSelector"),
        errors,
    );
    if let Some(given) = &spec.affinity {
        affinity::validate(given, &path.child("affinity"), errors);
    }
    dns_config(spec, &path.child("dnsConfig"), errors);
    let gates = spec.scheduling_gates.as_deref().unwrap_or_default();
    scheduling_gates(gates, &path.child("schedulingGates"), errors);
    let constraints = spec
        .topology_spread_constraints
        .as_deref()
        .unwrap_or_default();
    spread::validate(
        constraints,
        shared,
        &path.child("topologySpreadConstraints"),
        errors,
    );
    named_fields(spec, path, errors);
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    taint::tolerations(tolerations, &path.child("tolerations"), errors);
    host_aliases(spec, &path.child("hostAliases"), errors);
    let class = spec.priority_class_name.as_deref().unwrap_or_default();
    if !class.is_empty() {
        invalid_each(
            text::dns_subdomain(class),
            class,
            &path.child("priorityClassName"),
            errors,
        );
    }
    if let Some(policy) = &spec.preemption_policy {
        let known = ["PreemptLowerPriority", "Never"];
        one_of(policy, &known, &path.child("preemptionPolicy"), errors);
    }
    resources::amounts(spec.overhead.as_ref(), &path.child("overhead"), errors);
}

/// A pod that takes nothing from the cluster's DNS names its servers. Source: `validatePodDNSConfig`.
fn dns_config(spec: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let config = spec.dns_config.as_ref();
    let servers = config.and_then(|config| config.nameservers.as_deref());
    let servers = servers.unwrap_or_default();
    let at = path.child("nameservers");
    match (spec.dns_policy.as_deref(), config) {
        (Some("None"), None) => errors.push(FieldError::required(
            path.clone(),
            "must provide `dnsConfig` when `dnsPolicy` is None",
        )),
        (Some("None"), Some(_)) if servers.is_empty() => errors.push(FieldError::required(
            at,
            "must provide at least one DNS nameserver when `dnsPolicy` is None",
        )),
        _ if servers.len() > N_DNS_SERVERS_MAX => {
            let detail = format!("must not have more than {N_DNS_SERVERS_MAX} nameservers");
            errors.push(FieldError::invalid_raw(at, json(&servers), detail));
        }
        _ => {
            for (i, server) in servers.iter().enumerate() {
                invalid_each(text::ip(server), server, &at.index(i), errors);
            }
        }
    }
}

/// Source: `ValidateHostAliases`.
fn host_aliases(spec: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, alias) in spec.host_aliases.iter().flatten().enumerate() {
        let path = path.index(i);
        invalid_each(text::ip(&alias.ip), &alias.ip, &path.child("ip"), errors);
        for (j, name) in alias.hostnames.iter().flatten().enumerate() {
            let at = path.child("hostnames").index(j);
            invalid_each(text::dns_subdomain(name), name, &at, errors);
        }
    }
}

fn named_fields(spec: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let account = spec.service_account_name.as_deref().unwrap_or_default();
    if !account.is_empty() {
        let at = path.child("serviceAccountName");
        invalid_each(text::dns_subdomain(account), account, &at, errors);
    }
    let node = spec.node_name.as_deref().unwrap_or_default();
    if !node.is_empty() {
        invalid_each(
            text::dns_subdomain(node),
            node,
            &path.child("nodeName"),
            errors,
        );
    }
    let deadline = spec.active_deadline_seconds;
    if let Some(seconds) = deadline.filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds)) {
        errors.push(FieldError::invalid_raw(
            path.child("activeDeadlineSeconds"),
            seconds,
            "must be between 1 and 2147483647, inclusive",
        ));
    }
    let fields = [("hostname", &spec.hostname), ("subdomain", &spec.subdomain)];
    for (name, value) in fields {
        let value = value.as_deref().unwrap_or_default();
        if !value.is_empty() {
            invalid_each(text::dns_label(value), value, &path.child(name), errors);
        }
    }
}

fn scheduling_gates(gates: &[PodSchedulingGate], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (i, gate) in gates.iter().enumerate() {
        metadata::label_name(&gate.name, &path.index(i), errors);
        if !names.insert(&gate.name) {
            errors.push(FieldError::duplicate(path.index(i), &gate.name));
        }
    }
}

/// Refuses a deletion cost that is no int32, or has a plus sign or leading zeros.
///
/// Source: `GetDeletionCostFromPodAnnotations`.
pub fn deletion_cost(
    annotations: Option<&BTreeMap<String, String>>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(cost) = annotations.and_then(|all| all.get(DELETION_COST)) else {
        return;
    };
    let parsed: Option<i32> = cost.parse().ok();
    let is_plain = parsed.is_some_and(|number| number.to_string() == *cost);
    if !is_plain {
        let path = path.key(DELETION_COST);
        errors.push(FieldError::invalid(path, cost, "must be a 32bit integer"));
    }
}
