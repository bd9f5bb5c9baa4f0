//! Effects as requests to an API server, and its answers as outcomes: plain values.
//!
//! The sender of a [`Request`] (a simulated store, or HTTP) adds nothing and decides nothing. Every request can safely
//! be sent twice, because it names its object by uid, resourceVersion or a unique name.
//!
//! Reading order: [`effect`] (requests of a scheduler), [`event`] and [`series`] (repeated events), [`answer`];
//! [`next`] (of a plan of evictions).

pub mod answer;
pub mod effect;
pub mod event;
pub mod next;
pub mod series;
mod stamp;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use k8s_openapi::api::{admissionregistration, coordination, core, events};
use serde_json::Value;

use strew_manifest::ocm;

pub(crate) use answer::version_of;
pub use answer::{Answer, outcome_of};
pub use effect::{Context, requests_of};
pub use next::Next;
pub use series::Series;
pub(crate) use stamp::{micro_time, time, timestamp};

/// The verb of a request to the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// GET of one object.
    Get,
    /// POST
    Create,
    /// PUT
    Update,
    /// PATCH, strategic merge
    Patch,
    /// PATCH, merge (RFC 7386): the only one that custom resources take beside JSON patch
    MergePatch,
    /// PATCH, JSON patch (RFC 6902)
    JsonPatch,
    /// DELETE
    Delete,
}

impl Verb {
    /// The HTTP method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Create => "POST",
            Self::Update => "PUT",
            Self::Patch | Self::MergePatch | Self::JsonPatch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The verb in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch | Self::MergePatch | Self::JsonPatch => "patch",
            Self::Delete => "delete",
        }
    }

    /// The media type of the body.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Patch => "application/strategic-merge-patch+json",
            Self::MergePatch => "application/merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
            Self::Get | Self::Create | Self::Update | Self::Delete => "application/json",
        }
    }
}

/// A kind of objects, as a path names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resource {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// The version in the group.
    pub version: &'static str,
    /// The plural name.
    pub plural: &'static str,
}

impl Resource {
    /// The resource of a type.
    pub const fn of<T: k8s_openapi::Resource>() -> Self {
        Self {
            group: T::GROUP,
            version: T::VERSION,
            plural: T::URL_PATH_SEGMENT,
        }
    }

    /// `v1` `pods`
    pub const PODS: Self = Self::of::<core::v1::Pod>();
    /// `events.k8s.io/v1` `events`
    pub const EVENTS: Self = Self::of::<events::v1::Event>();
    /// `cluster.open-cluster-management.io/v1beta1` `placements`
    pub const PLACEMENTS: Self = Self::of::<ocm::Placement>();
    /// `cluster.open-cluster-management.io/v1beta1` `placementdecisions`
    pub const PLACEMENT_DECISIONS: Self = Self::of::<ocm::PlacementDecision>();
    /// `coordination.k8s.io/v1` `leases`
    pub const LEASES: Self = Self::of::<coordination::v1::Lease>();
    /// `admissionregistration.k8s.io/v1` `mutatingwebhookconfigurations`
    pub const MUTATING_WEBHOOKS: Self =
        Self::of::<admissionregistration::v1::MutatingWebhookConfiguration>();
    /// `admissionregistration.k8s.io/v1` `validatingwebhookconfigurations`
    pub const VALIDATING_WEBHOOKS: Self =
        Self::of::<admissionregistration::v1::ValidatingWebhookConfiguration>();
    /// `v1` `secrets`
    pub const SECRETS: Self = Self::of::<core::v1::Secret>();
}

/// The condition under which a request is carried out. The body states it in the form of the verb.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Precondition {
    /// The object's uid, since another object may get this name.
    pub uid: Option<String>,
    /// The object's resourceVersion.
    pub resource_version: Option<String>,
}

impl Precondition {
    /// The object must have this uid.
    pub fn uid(uid: &str) -> Self {
        Self {
            uid: Some(uid.to_owned()),
            resource_version: None,
        }
    }

    /// The object must still have this version.
    pub fn resource_version(version: &str) -> Self {
        Self {
            uid: None,
            resource_version: Some(version.to_owned()),
        }
    }
}

/// A complete request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The verb.
    pub verb: Verb,
    /// The kind of the object.
    pub resource: Resource,
    /// The object's namespace; empty for an object of the cluster.
    pub namespace: String,
    /// The object's name; a creation has it in its body too.
    pub name: String,
    /// `status`, `binding`; empty for the object itself.
    pub subresource: &'static str,
    /// The body; `null` for none.
    pub body: Value,
    /// The precondition.
    pub precondition: Precondition,
}

impl Request {
    /// A request for an object itself, without a precondition; an empty namespace is that of an object of the cluster.
    pub fn of(
        verb: Verb,
        resource: Resource,
        (namespace, name): (&str, &str),
        body: Value,
    ) -> Self {
        Self {
            verb,
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: "",
            body,
            precondition: Precondition::default(),
        }
    }

    /// The path and query of its URL. It asks the server to refuse unknown fields, which would be a defect of strew.
    pub fn path(&self) -> String {
        let Resource {
            group,
            version,
            plural,
        } = self.resource;
        let mut path = match group {
            "" => format!("/api/{version}"),
            _ => format!("/apis/{group}/{version}"),
        };
        if !self.namespace.is_empty() {
            let _ = write!(path, "/namespaces/{}", escaped(&self.namespace));
        }
        let _ = write!(path, "/{plural}");
        // A subresource is created at its object, an object in its collection.
        if self.verb != Verb::Create || !self.subresource.is_empty() {
            let _ = write!(path, "/{}", escaped(&self.name));
        }
        if !self.subresource.is_empty() {
            let _ = write!(path, "/{}", self.subresource);
        }
        if matches!(
            self.verb,
            Verb::Create | Verb::Update | Verb::Patch | Verb::MergePatch | Verb::JsonPatch
        ) {
            path.push_str("?fieldValidation=Strict");
        }
        path
    }

    /// True if a second execution has the same result. This is false for an update: a repeated one gets the conflict
    /// that another client's write would cause.
    pub fn is_idempotent(&self) -> bool {
        self.verb != Verb::Update
    }

    pub(crate) fn is_binding(&self) -> bool {
        self.subresource == "binding"
    }
}

/// A segment of a path. Names of valid objects need no escape, but a name from a file must not leave its segment.
fn escaped(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    match out.as_str() {
        // Dots alone would change the path.
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => out,
    }
}
