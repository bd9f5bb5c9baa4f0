//! Services.
//!
//! Source: `ValidateService` of `pkg/apis/core/validation`, v1.36. Addresses, their families, traffic policies and load
//! balancers are not checked, and a Service without ports is accepted: anonymized dumps have none.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json as value;
use strew_manifest::field::{FieldError, FieldErrorKind, FieldPath};
use strew_manifest::validation::container::port_number;
use strew_manifest::validation::metadata::{self, Scope};
use strew_manifest::validation::probe::port as port_or_name;
use strew_manifest::validation::{invalid_each, one_of, text};

use super::Validate;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const KUBELET_PORT: i32 = 10250;

impl Validate for Service {
    fn validate(&self) -> Vec<FieldError> {
        let rule = text::dns_1035_label;
        let mut errors = metadata::validate(&self.metadata, Scope::Namespaced, rule);
        let spec = self.spec.clone().unwrap_or_default();
        let path = FieldPath::root().child("spec");
        let kind = or_default(spec.type_.as_deref(), "ClusterIP");
        let ports = spec.ports.as_deref().unwrap_or_default();
        let at = path.child("ports");
        of_type(kind, &spec, &path, &mut errors);
        let mut names = BTreeSet::new();
        for (i, port) in ports.iter().enumerate() {
            validate_port(port, ports.len() > 1, &mut names, &at.index(i), &mut errors);
        }
        let labels = spec.selector.as_ref();
        metadata::labels(labels, &path.child("selector"), &mut errors);
        let affinity = or_default(spec.session_affinity.as_deref(), "None");
        let known = ["ClientIP", "None"];
        one_of(
            affinity,
            &known,
            &path.child("sessionAffinity"),
            &mut errors,
        );
        one_of(kind, &TYPES, &path.child("type"), &mut errors);
        node_ports(kind, ports, &at, &mut errors);
        twice(ports, &at, &mut errors);
        errors
    }
}

fn or_default<'a>(given: Option<&'a str>, default: &'a str) -> &'a str {
    given.filter(|given| !given.is_empty()).unwrap_or(default)
}

fn protocol(port: &ServicePort) -> &str {
    or_default(port.protocol.as_deref(), "TCP")
}

fn is_headless(spec: &ServiceSpec) -> bool {
    let first = spec.cluster_ips.as_ref().and_then(|ips| ips.first());
    let ip = spec.cluster_ip.as_ref().filter(|ip| !ip.is_empty());
    ip.or(first).is_some_and(|ip| ip == "None")
}

fn of_type(kind: &str, spec: &ServiceSpec, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let ports = spec.ports.iter().flatten().enumerate();
    for (i, port) in ports.filter(|_| kind == "LoadBalancer") {
        if port.port == KUBELET_PORT {
            let detail = format!(
                "may not expose port {KUBELET_PORT} externally since it is used by kubelet"
            );
            let at = path.child("ports").index(i);
            errors.push(FieldError::invalid_raw(at, port.port, detail));
        }
    }
    if ["LoadBalancer", "NodePort"].contains(&kind) && is_headless(spec) {
        let detail = format!("may not be set to 'None' for {kind} services");
        let at = path.child("clusterIPs").index(0);
        errors.push(FieldError::invalid(at, "None", detail));
    }
    if kind == "ExternalName" {
        let given = spec.external_name.as_deref().unwrap_or_default();
        let name = given.strip_suffix('.').unwrap_or(given);
        let at = path.child("externalName");
        match name {
            "" => errors.push(FieldError::required(at, "")),
            name => invalid_each(text::dns_subdomain(name), name, &at, errors),
        }
    }
}

fn validate_port<'a>(
    port: &'a ServicePort,
    needs_name: bool,
    names: &mut BTreeSet<&'a str>,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let name = port.name.as_deref().unwrap_or_default();
    let at = path.child("name");
    if !name.is_empty() {
        invalid_each(text::dns_label(name), name, &at, errors);
        if !names.insert(name) {
            errors.push(FieldError::duplicate(at, name));
        }
    } else if needs_name {
        errors.push(FieldError::required(at, ""));
    }
    port_number(port.port, path.child("port"), errors);
    one_of(protocol(port), &PROTOCOLS, &path.child("protocol"), errors);
    // The default is the port.
    let target = port.target_port.as_ref();
    if let Some(target) = target.filter(|target| !is_unset(target)) {
        port_or_name(target, &path.child("targetPort"), errors);
    }
    if let Some(given) = &port.app_protocol {
        let at = path.child("appProtocol");
        invalid_each(text::qualified_name(given), given, &at, errors);
    }
}

fn is_unset(port: &IntOrString) -> bool {
    match port {
        IntOrString::Int(number) => *number == 0,
        IntOrString::String(name) => name.is_empty(),
    }
}

fn node_ports(kind: &str, ports: &[ServicePort], path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (i, port) in ports.iter().enumerate() {
        if kind == "ClusterIP" && port.node_port.is_some_and(|number| number != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            let at = path.index(i).child("nodePort");
            errors.push(FieldError::forbidden(at, detail));
        }
    }
}

/// A port is there once for each protocol.
fn twice(ports: &[ServicePort], path: &FieldPath, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (i, port) in ports.iter().enumerate() {
        let (protocol, number) = (protocol(port), port.port);
        if !seen.insert((protocol, number)) {
            // As upstream prints its own type.
            let value = value!({"Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number, "TargetPort": 0, "NodePort": 0});
            let value = value.to_string();
            let kind = FieldErrorKind::Duplicate { value };
            errors.push(FieldError::new(path.index(i), kind, ""));
        }
    }
}
