//! Defaults of pods and pod templates, for the fields that decisions or validation read.
//!
//! Source: `pkg/apis/core/v1/defaults.go`, v1.36. Left out because strew does not read them: probes, DNS policy,
//! security contexts, image pull policy, termination messages, service links, volume modes. Resource lists are not
//! rounded to thousandths; every reader rounds up ([`crate::quantity::Quantity::milli_value`]).
//!
//! An object without a namespace is in `default`, as with kubectl.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as WireQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::quantity::Quantity;

type Resources = BTreeMap<String, WireQuantity>;

/// Sets the defaults of a pod. Source: `SetDefaults_Pod`.
pub fn default_pod(pod: &mut Pod) {
    set_namespace(&mut pod.metadata);
    // A missing spec is an empty one to the API server.
    let spec = pod.spec.get_or_insert_default();
    // Templates keep what they have: limits become requests and container ports host ports
    // only in the pods made from them (SetDefaults_Pod).
    for container in containers_mut(spec) {
        if let Some(resources) = &mut container.resources {
            requests_from_limits(resources);
        }
    }
    default_pod_level_requests(spec);
    if spec.host_network == Some(true) {
        for container in containers_mut(spec) {
            for port in container.ports.iter_mut().flatten() {
                if port.host_port.unwrap_or(0) == 0 {
                    port.host_port = Some(port.container_port);
                }
            }
        }
    }
    default_pod_spec(spec);
}

/// Sets the namespace `default` if none is given.
pub fn set_namespace(metadata: &mut ObjectMeta) {
    set_if_empty(&mut metadata.namespace, "default");
}

/// Sets a field if it is empty. Returns whether it was.
pub fn set_if_empty(field: &mut Option<String>, value: &str) -> bool {
    let empty = field.as_deref().unwrap_or_default().is_empty();
    if empty {
        *field = Some(value.to_string());
    }
    empty
}

/// Sets the defaults of a pod template. A missing spec is an empty one to the API server, with defaults.
pub fn default_template(template: &mut PodTemplateSpec) {
    default_pod_spec(template.spec.get_or_insert_default());
}

/// Source: `SetDefaults_PodSpec`.
fn default_pod_spec(spec: &mut PodSpec) {
    set_if_empty(&mut spec.restart_policy, "Always");
    set_if_empty(&mut spec.scheduler_name, "default-scheduler");
    spec.termination_grace_period_seconds.get_or_insert(30);
    for container in containers_mut(spec) {
        for port in container.ports.iter_mut().flatten() {
            set_if_empty(&mut port.protocol, "TCP");
        }
    }
}

fn containers_mut(spec: &mut PodSpec) -> impl Iterator<Item = &mut Container> {
    let init = spec.init_containers.iter_mut().flatten();
    spec.containers.iter_mut().chain(init)
}

fn requests_from_limits(resources: &mut ResourceRequirements) {
    let Some(limits) = resources
        .limits
        .as_ref()
        .filter(|limits| !limits.is_empty())
    else {
        return;
    };
    let requests = resources.requests.get_or_insert_default();
    for (name, limit) in limits {
        // Invalid quantities have been reported already.
        if Quantity::try_from(limit).is_ok() {
            requests
                .entry(name.clone())
                .or_insert_with(|| limit.clone());
        }
    }
}

/// With pod-level limits, a missing pod-level request is the sum of the containers' requests, else the limit. Source:
/// `defaultPodRequests` (gate PodLevelResources, on).
fn default_pod_level_requests(spec: &mut PodSpec) {
    let total: Resources = ["cpu", "memory"]
        .iter()
        .filter_map(|&name| Some((name.to_string(), containers_request(spec, name)?.into())))
        .collect();
    let Some(resources) = &mut spec.resources else {
        return;
    };
    let Some(limits) = resources
        .limits
        .as_ref()
        .filter(|limits| !limits.is_empty())
    else {
        return;
    };
    let requests = resources.requests.get_or_insert_default();
    let at_pod_level =
        |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    for (name, amount) in total.iter().chain(limits) {
        if at_pod_level(name) {
            requests
                .entry(name.clone())
                .or_insert_with(|| amount.clone());
        }
    }
}

/// The sum of the containers' requests (spec/scheduler.md §3.8, "Pod request"); `None` if no container requests the
/// resource. Validation reports invalid amounts and overflows.
pub(crate) fn containers_request(spec: &PodSpec, resource: &str) -> Option<Quantity> {
    let request = |container: &Container| -> Option<Quantity> {
        let requests = container.resources.as_ref()?.requests.as_ref()?;
        Quantity::try_from(requests.get(resource)?).ok()
    };
    let add = |a: Option<Quantity>, b: Option<Quantity>| match (a, b) {
        (Some(a), Some(b)) => a.checked_add(b).ok(),
        (a, b) => a.or(b),
    };
    let running = spec.containers.iter().map(request).fold(None, add);
    let mut sidecars = None;
    let mut init_peak = None;
    for container in spec.init_containers.iter().flatten() {
        let with_sidecars = add(request(container), sidecars);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = with_sidecars;
        }
        init_peak = init_peak.max(with_sidecars);
    }
    add(running, sidecars).max(init_peak)
}
