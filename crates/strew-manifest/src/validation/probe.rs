//! Probes and lifecycle hooks of containers.
//!
//! Source: `validateProbe`, `validateLifecycle`, `validateHandler` of `pkg/apis/core/validation`, v1.36.

use k8s_openapi::api::core::v1::{
    Container, ExecAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::container::port_number;
use super::{invalid_each, nonnegative, one_of, text};
use crate::field::{FieldError, FieldPath};

/// Checks the hooks and probes of a container that has them: one that runs as long as its pod, or is restarted.
pub(super) fn validate(container: &Container, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(lifecycle) = &container.lifecycle {
        let hooks = [
            ("postStart", &lifecycle.post_start),
            ("preStop", &lifecycle.pre_stop),
        ];
        for (name, hook) in hooks {
            if let Some(hook) = hook {
                handler(&hook.into(), &path.child("lifecycle").child(name), errors);
            }
        }
    }
    if let Some(probe) = &container.liveness_probe {
        let path = path.child("livenessProbe");
        validate_one(probe, &path, errors);
        succeeds_at_once(probe, &path, errors);
    }
    if let Some(probe) = &container.readiness_probe {
        let path = path.child("readinessProbe");
        validate_one(probe, &path, errors);
        if let Some(seconds) = probe.termination_grace_period_seconds {
            let at = path.child("terminationGracePeriodSeconds");
            let detail = "must not be set for readinessProbes";
            errors.push(FieldError::invalid_raw(at, seconds, detail));
        }
    }
    if let Some(probe) = &container.startup_probe {
        let path = path.child("startupProbe");
        validate_one(probe, &path, errors);
        succeeds_at_once(probe, &path, errors);
    }
}

/// Refuses hooks and probes of an init container that ends.
pub(super) fn refuse(container: &Container, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let fields = [
        ("lifecycle", container.lifecycle.is_some()),
        ("livenessProbe", container.liveness_probe.is_some()),
        ("readinessProbe", container.readiness_probe.is_some()),
        ("startupProbe", container.startup_probe.is_some()),
    ];
    for (name, _) in fields.into_iter().filter(|(_, is_set)| *is_set) {
        let detail = "may not be set for init containers without restartPolicy=Always";
        errors.push(FieldError::forbidden(path.child(name), detail));
    }
}

fn validate_one(probe: &Probe, path: &FieldPath, errors: &mut Vec<FieldError>) {
    handler(&probe.into(), path, errors);
    let numbers = [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ];
    for (name, number) in numbers {
        nonnegative(number.unwrap_or(0), &path.child(name), errors);
    }
    let grace = probe.termination_grace_period_seconds;
    if let Some(seconds) = grace.filter(|seconds| *seconds <= 0) {
        let at = path.child("terminationGracePeriodSeconds");
        errors.push(FieldError::invalid_raw(
            at,
            seconds,
            "must be greater than 0",
        ));
    }
}

/// 0 is defaulted to 1.
fn succeeds_at_once(probe: &Probe, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let threshold = probe.success_threshold.unwrap_or(1);
    if ![0, 1].contains(&threshold) {
        let at = path.child("successThreshold");
        errors.push(FieldError::invalid_raw(at, threshold, "must be 1"));
    }
}

/// What a probe or a hook does.
struct Handler<'a> {
    exec: Option<&'a ExecAction>,
    http_get: Option<&'a HTTPGetAction>,
    tcp_socket: Option<&'a TCPSocketAction>,
    grpc_port: Option<i32>,
    sleeps: bool,
}

impl<'a> From<&'a Probe> for Handler<'a> {
    fn from(probe: &'a Probe) -> Self {
        Self {
            exec: probe.exec.as_ref(),
            http_get: probe.http_get.as_ref(),
            tcp_socket: probe.tcp_socket.as_ref(),
            grpc_port: probe.grpc.as_ref().map(|grpc| grpc.port),
            sleeps: false,
        }
    }
}

impl<'a> From<&'a LifecycleHandler> for Handler<'a> {
    fn from(hook: &'a LifecycleHandler) -> Self {
        Self {
            exec: hook.exec.as_ref(),
            http_get: hook.http_get.as_ref(),
            tcp_socket: hook.tcp_socket.as_ref(),
            grpc_port: None,
            sleeps: hook.sleep.is_some(),
        }
    }
}

/// Exactly one action is given; only the first one is looked at.
fn handler(handler: &Handler<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let actions = [
        ("exec", handler.exec.is_some()),
        ("httpGet", handler.http_get.is_some()),
        ("tcpSocket", handler.tcp_socket.is_some()),
        ("grpc", handler.grpc_port.is_some()),
        ("sleep", handler.sleeps),
    ];
    let mut given = actions.into_iter().filter(|(_, is_given)| *is_given);
    let Some((first, _)) = given.next() else {
        let detail = "must specify a handler type";
        errors.push(FieldError::required(path.clone(), detail));
        return;
    };
    action(handler, &path.child(first), errors);
    for (other, _) in given {
        let detail = "may not specify more than 1 handler type";
        errors.push(FieldError::forbidden(path.child(other), detail));
    }
}

/// Checks the first action that is given; `path` is its own.
fn action(handler: &Handler<'_>, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(exec) = handler.exec {
        if exec.command.as_ref().is_none_or(Vec::is_empty) {
            errors.push(FieldError::required(path.child("command"), ""));
        }
    } else if let Some(request) = handler.http_get {
        port(&request.port, &path.child("port"), errors);
        let scheme = request.scheme.as_deref().unwrap_or_default();
        if !scheme.is_empty() {
            one_of(scheme, &["HTTP", "HTTPS"], &path.child("scheme"), errors);
        }
    } else if let Some(socket) = handler.tcp_socket {
        port(&socket.port, &path.child("port"), errors);
    } else if let Some(number) = handler.grpc_port {
        port_number(number, path.child("port"), errors);
    }
}

/// A port by its number or by the name of a container's port. Source: `ValidatePortNumOrName`.
pub fn port(port: &IntOrString, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match port {
        IntOrString::Int(number) => port_number(*number, path.clone(), errors),
        IntOrString::String(name) => invalid_each(text::port_name(name), name, path, errors),
    }
}
