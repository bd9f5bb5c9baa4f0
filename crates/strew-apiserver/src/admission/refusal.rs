//! Refusals of admission plug-ins.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A 403; `Display` is the API server's message: `pods "web" is forbidden: REASON`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The resource with its group, as in `deployments.apps`.
    pub resource: String,
    /// The object's name, else its `generateName`, else `Unknown`.
    pub name: String,
    /// The plug-in's message.
    pub reason: String,
}

impl Refusal {
    /// Refuses an object of `resource`.
    /// Source: `NewForbidden`, `extractResourceName` of `k8s.io/apiserver/pkg/admission`, v1.36.
    pub fn new(resource: &str, object: &ObjectMeta, reason: impl Into<String>) -> Self {
        let given = [&object.name, &object.generate_name];
        let mut given = given.into_iter().flatten().filter(|name| !name.is_empty());
        Self {
            resource: resource.to_string(),
            name: given.next().map_or("Unknown", String::as_str).to_string(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource,
            name,
            reason,
        } = self;
        write!(f, "{resource} {name:?} is forbidden: {reason}")
    }
}

impl std::error::Error for Refusal {}
