//! What the server serves: one row a resource, found by the names that a request's path holds.

use strew_api::patch::Schema;
use strew_api::read::is_namespaced;
use strew_api::request::Resource;
use strew_api::typename::TYPES;

use crate::object::Kind;

/// Where the objects of a resource are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Storage {
    /// In the tables.
    Objects(Kind),
    /// In the log of events.
    Events,
    /// Beside the tables: a lease that is renewed wakes no watch.
    Leases,
}

/// A resource that the server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) storage: Storage,
    /// Group and version: `apps/v1`.
    pub(super) api_version: String,
    pub(super) kind: &'static str,
    pub(super) is_namespaced: bool,
    /// What a strategic merge patch goes by; `None`: a custom resource, which takes none.
    pub(super) schema: Option<Schema>,
}

/// The row of a resource; `None`: the server has no such resource.
pub(super) fn served(resource: Resource) -> Option<Served> {
    let Resource {
        group,
        version,
        plural,
    } = resource;
    let row = |storage, kind, is_namespaced| Served {
        storage,
        api_version: api_version(group, version),
        kind,
        is_namespaced,
        schema: Schema::of_kind(kind),
    };
    match resource {
        Resource::EVENTS => return Some(row(Storage::Events, "Event", true)),
        Resource::LEASES => return Some(row(Storage::Leases, "Lease", true)),
        _ => {}
    }
    let is_it = |name: &&strew_api::typename::TypeName| {
        name.plural == plural && name.group.unwrap_or_default() == group
    };
    let kind = TYPES.iter().find(is_it)?.kind;
    let api_version = api_version(group, version);
    let is_namespaced = is_namespaced(&api_version, kind)?;
    let storage = Storage::Objects(Kind::of_group(&api_version, kind));
    Some(row(storage, kind, is_namespaced))
}

fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_known_by_name_and_by_its_fields_is_served() {
        let mut unserved = Vec::new();
        for name in TYPES {
            let versions = ["v1", "v2", "v1beta1", "v1alpha1", "v1beta2"];
            let found = versions.into_iter().any(|version| {
                let resource = Resource {
                    group: name.group.unwrap_or_default(),
                    version,
                    plural: name.plural,
                };
                served(resource).is_some_and(|row| row.is_namespaced == name.is_namespaced)
            });
            if !found {
                unserved.push(name.kind);
            }
        }
        assert_eq!(unserved, [""; 0]);
    }

    #[test]
    fn a_name_of_another_group_or_version_is_not_served() {
        let pods = Resource::PODS;
        for resource in [
            Resource {
                version: "v2",
                ..pods
            },
            Resource {
                group: "apps",
                ..pods
            },
            Resource {
                plural: "pod",
                ..pods
            },
        ] {
            assert_eq!(served(resource), None, "{resource:?}");
        }
    }
}
