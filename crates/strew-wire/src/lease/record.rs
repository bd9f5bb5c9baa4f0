//! The Lease object: what is read from it and written to it.

use serde_json::{Value, json};
use strew_model::time::{Instant, Span};

use super::Settings;
use crate::request::{Precondition, Request, Resource, Verb, micro_time};

/// A Lease as the API server returned it; two are equal if their versions are.
#[derive(Debug, Clone)]
pub(super) struct Record(Value);

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        // A lease that was deleted and created again has another version too.
        self.version() == other.version()
    }
}

impl Record {
    pub(super) fn of(lease: Value) -> Self {
        Self(lease)
    }

    fn version(&self) -> &str {
        self.0["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
    }

    /// The holder; `None` if the lease was released.
    pub(super) fn holder(&self) -> Option<&str> {
        let holder = self.0["spec"]["holderIdentity"].as_str();
        holder.filter(|holder| !holder.is_empty())
    }

    /// Its duration, if its holder set one.
    pub(super) fn duration(&self) -> Option<Span> {
        let secs = self.0["spec"]["leaseDurationSeconds"].as_u64();
        secs.map(Span::from_secs)
    }

    fn transitions(&self) -> u64 {
        self.0["spec"]["leaseTransitions"]
            .as_u64()
            .unwrap_or_default()
    }
}

/// The purpose of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    /// To hold the lease, for the first time or further on.
    Hold,
    /// To release it.
    Release,
}

pub(super) fn read(settings: &Settings) -> Request {
    request(settings, Verb::Get, Value::Null, Precondition::default())
}

/// Creates the lease, or replaces the version that was read; other fields stay.
pub(super) fn write(
    settings: &Settings,
    seen: Option<&Record>,
    writing: Writing,
    wall: Instant,
) -> Request {
    let now = micro_time(wall);
    let Some(seen) = seen else {
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": settings.namespace, "name": settings.name},
            "spec": {
                "holderIdentity": settings.identity,
                "leaseDurationSeconds": seconds(settings.lease_duration),
                "acquireTime": now,
                "renewTime": now,
                "leaseTransitions": 0,
            },
        });
        return request(settings, Verb::Create, body, Precondition::default());
    };
    let mut body = seen.0.clone();
    if !body["spec"].is_object() {
        body["spec"] = json!({});
    }
    let spec = &mut body["spec"];
    spec["renewTime"] = now.as_str().into();
    match writing {
        Writing::Hold => {
            if seen.holder() != Some(&settings.identity) {
                spec["holderIdentity"] = settings.identity.as_str().into();
                spec["acquireTime"] = now.into();
                spec["leaseTransitions"] = seen.transitions().saturating_add(1).into();
            }
            spec["leaseDurationSeconds"] = seconds(settings.lease_duration).into();
        }
        Writing::Release => {
            // Source: client-go, `LeaderElector.release`.
            spec["holderIdentity"] = "".into();
            spec["acquireTime"] = now.into();
            spec["leaseDurationSeconds"] = 1.into();
        }
    }
    let precondition = Precondition::resource_version(seen.version());
    request(settings, Verb::Update, body, precondition)
}

/// Whole seconds, rounded up: a lease must not expire before its holder expects it.
fn seconds(span: Span) -> u64 {
    span.0.div_ceil(Span::from_secs(1).0).max(1)
}

fn request(settings: &Settings, verb: Verb, body: Value, precondition: Precondition) -> Request {
    Request {
        verb,
        resource: Resource::LEASES,
        namespace: settings.namespace.clone(),
        name: settings.name.clone(),
        subresource: "",
        body,
        precondition,
    }
}
