//! Containers, init containers and their ports.
//!
//! Source: `validateContainers`, `validateInitContainers`, `validateContainerPorts`, `validateHostNetwork` of
//! `pkg/apis/core/validation`, v1.36.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerPort, PodSpec};

use super::volume::{self, Names};
use super::{env, invalid_each, one_of, probe, resources, text};
use crate::field::{FieldError, FieldPath};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];

/// Checks containers and init containers, which may mount these volumes; `path` is that of the pod's spec.
pub(super) fn validate(
    spec: &PodSpec,
    volumes: &Names<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let mut names = BTreeSet::new();
    let at = path.child("containers");
    if spec.containers.is_empty() {
        errors.push(FieldError::required(at.clone(), ""));
    }
    for (i, container) in spec.containers.iter().enumerate() {
        let path = at.index(i);
        validate_one(container, spec, volumes, &path, errors);
        unique_name(container, &mut names, &path, errors);
        probe::validate(container, &path, errors);
    }
    host_port_conflicts(&spec.containers, &at, errors);
    let at = path.child("initContainers");
    for (i, container) in spec.init_containers.iter().flatten().enumerate() {
        let path = at.index(i);
        validate_one(container, spec, volumes, &path, errors);
        unique_name(container, &mut names, &path, errors);
        if let Some(policy) = &container.restart_policy {
            let path = path.child("restartPolicy");
            one_of(policy, &RESTART_POLICIES, &path, errors);
        }
        match container.restart_policy.as_deref() {
            Some("Always") => probe::validate(container, &path, errors),
            _ => probe::refuse(container, &path, errors),
        }
    }
}

fn validate_one(
    container: &Container,
    pod: &PodSpec,
    volumes: &Names<'_>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let name = container.name.as_str();
    let at = path.child("name");
    match name {
        "" => errors.push(FieldError::required(at, "")),
        name => invalid_each(text::dns_label(name), name, &at, errors),
    }
    if container.image.as_deref().unwrap_or_default().is_empty() {
        errors.push(FieldError::required(path.child("image"), ""));
    }
    let policy = container.termination_message_policy.as_deref();
    given_one_of(
        policy,
        &MESSAGE_POLICIES,
        &path.child("terminationMessagePolicy"),
        errors,
    );
    ports(
        container.ports.as_deref().unwrap_or_default(),
        &path.child("ports"),
        errors,
    );
    let variables = container.env.as_deref().unwrap_or_default();
    env::validate(variables, &path.child("env"), errors);
    let sources = container.env_from.as_deref().unwrap_or_default();
    env::validate_from(sources, &path.child("envFrom"), errors);
    volume::mounts(container, volumes, path, errors);
    let policy = container.image_pull_policy.as_deref();
    given_one_of(
        policy,
        &PULL_POLICIES,
        &path.child("imagePullPolicy"),
        errors,
    );
    if let Some(requirements) = &container.resources {
        let path = path.child("resources");
        resources::requirements(requirements, &path, errors);
        // With amounts of the whole pod, cpu or memory may be there.
        if pod.resources.is_none() {
            resources::huge_pages_alone(requirements, &path, errors);
        }
    }
}

/// Refuses an unsupported value of a field that has a default.
pub(super) fn given_one_of(
    value: Option<&str>,
    supported: &[&str],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        one_of(value, supported, path, errors);
    }
}

/// Names are unique among containers and init containers.
fn unique_name<'a>(
    container: &'a Container,
    names: &mut BTreeSet<&'a str>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let name = container.name.as_str();
    if !name.is_empty() && !names.insert(name) {
        errors.push(FieldError::duplicate(path.child("name"), name));
    }
}

/// On the network of its node, a container has its ports there. Templates may leave the host's port out.
pub(super) fn host_network(spec: &PodSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if spec.host_network != Some(true) {
        return;
    }
    let lists = [
        ("containers", spec.containers.as_slice()),
        (
            "initContainers",
            spec.init_containers.as_deref().unwrap_or_default(),
        ),
    ];
    for (list, containers) in lists {
        for (i, container) in containers.iter().enumerate() {
            for (j, port) in container.ports.iter().flatten().enumerate() {
                let host_port = port.host_port.filter(|number| *number != 0);
                let Some(number) = host_port.filter(|n| *n != port.container_port) else {
                    continue;
                };
                let path = path.child(list).index(i).child("ports").index(j);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                let at = path.child("hostPort");
                errors.push(FieldError::invalid_raw(at, number, detail));
            }
        }
    }
}

fn ports(ports: &[ContainerPort], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut names = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let path = path.index(i);
        let name = port.name.as_deref().unwrap_or_default();
        if !name.is_empty() {
            let at = path.child("name");
            let sentences = text::port_name(name);
            if sentences.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(at.clone(), name));
            }
            invalid_each(sentences, name, &at, errors);
        }
        match port.container_port {
            0 => errors.push(FieldError::required(path.child("containerPort"), "")),
            number => port_number(number, path.child("containerPort"), errors),
        }
        if let Some(number) = port.host_port.filter(|&number| number != 0) {
            port_number(number, path.child("hostPort"), errors);
        }
        match port.protocol.as_deref().unwrap_or_default() {
            "" => errors.push(FieldError::required(path.child("protocol"), "")),
            protocol => one_of(protocol, &PROTOCOLS, &path.child("protocol"), errors),
        }
    }
}

/// Refuses a number that no port has.
pub fn port_number(number: i32, path: FieldPath, errors: &mut Vec<FieldError>) {
    if !(1..=65535).contains(&number) {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid_raw(path, number, detail));
    }
}

/// Source: `checkHostPortConflicts`.
fn host_port_conflicts(containers: &[Container], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut taken = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        for (j, port) in container.ports.iter().flatten().enumerate() {
            let Some(number) = port.host_port.filter(|&number| number != 0) else {
                continue;
            };
            let protocol = port.protocol.as_deref().unwrap_or_default();
            let ip = port.host_ip.as_deref().unwrap_or_default();
            let text = format!("{protocol}/{ip}/{number}");
            if !taken.insert(text.clone()) {
                let path = path.index(i).child("ports").index(j).child("hostPort");
                errors.push(FieldError::duplicate(path, &text));
            }
        }
    }
}
