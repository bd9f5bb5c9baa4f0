//! Containers, init containers and their ports.
//!
//! Source: `validateContainers`, `validateInitContainers`, `validateContainerPorts` of
//! `pkg/apis/core/validation`, v1.36.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, ContainerPort};

use super::{invalid_each, one_of, resources, text};
use crate::field::{FieldError, FieldPath};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];

/// Checks containers and init containers; `path` is that of the pod's spec.
pub fn validate(
    containers: &[Container],
    init_containers: &[Container],
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let mut names = BTreeSet::new();
    let at = path.child("containers");
    if containers.is_empty() {
        errors.push(FieldError::required(at.clone(), ""));
    }
    for (i, container) in containers.iter().enumerate() {
        validate_one(container, &mut names, &at.index(i), errors);
    }
    host_port_conflicts(containers, &at, errors);
    let at = path.child("initContainers");
    for (i, container) in init_containers.iter().enumerate() {
        validate_one(container, &mut names, &at.index(i), errors);
        if let Some(policy) = &container.restart_policy {
            let path = at.index(i).child("restartPolicy");
            one_of(policy, &RESTART_POLICIES, &path, errors);
        }
    }
}

fn validate_one<'a>(
    container: &'a Container,
    names: &mut BTreeSet<&'a str>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let name = container.name.as_str();
    let at = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(at.clone(), ""));
    } else {
        invalid_each(text::dns_label(name), name, &at, errors);
    }
    if container.image.as_deref().unwrap_or_default().is_empty() {
        errors.push(FieldError::required(path.child("image"), ""));
    }
    ports(
        container.ports.as_deref().unwrap_or_default(),
        &path.child("ports"),
        errors,
    );
    if let Some(requirements) = &container.resources {
        resources::requirements(requirements, &path.child("resources"), errors);
    }
    if !name.is_empty() && !names.insert(name) {
        errors.push(FieldError::duplicate(at, name));
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

fn port_number(number: i32, path: FieldPath, errors: &mut Vec<FieldError>) {
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
