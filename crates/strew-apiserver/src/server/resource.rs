//! The served resources: one row each, found by the group, version and plural in a request's path.

use strew_manifest::kinds::{KINDS, KindRow};
use strew_manifest::patch::Schema;
use strew_manifest::read::is_namespaced;
use strew_wire::request::Resource;

use crate::object::Kind;

/// Where the objects of a resource are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Storage {
    /// In the tables.
    Objects(Kind),
    /// In the log of events.
    Events,
    /// Beside the tables: a lease renewal triggers no watch.
    Documents,
}

/// A served resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) storage: Storage,
    /// Group and version: `apps/v1`.
    pub(super) api_version: String,
    pub(super) kind: &'static str,
    pub(super) is_namespaced: bool,
    /// The schema of strategic merge patches; `None` for custom resources, which do not support them.
    pub(super) schema: Option<Schema>,
}

/// Kinds that no scenario has: only strew's own processes read and write them.
const DOCUMENTS: [(Resource, &str, bool); 3] = [
    (
        Resource::MUTATING_WEBHOOKS,
        "MutatingWebhookConfiguration",
        false,
    ),
    (
        Resource::VALIDATING_WEBHOOKS,
        "ValidatingWebhookConfiguration",
        false,
    ),
    (Resource::SECRETS, "Secret", true),
];

/// The row of a resource; `None` if the server does not serve it.
pub(super) fn served(resource: Resource) -> Option<Served> {
    let Resource {
        group,
        version,
        plural,
    } = resource;
    let api_version = api_version(group, version);
    if resource == Resource::EVENTS {
        return Some(Served {
            storage: Storage::Events,
            api_version,
            kind: "Event",
            is_namespaced: true,
            schema: None,
        });
    }
    if let Some((_, kind, is_namespaced)) = DOCUMENTS.iter().find(|(of, ..)| *of == resource) {
        return Some(Served {
            storage: Storage::Documents,
            api_version,
            kind,
            is_namespaced: *is_namespaced,
            schema: None,
        });
    }
    let is_it = |row: &&KindRow| row.plural == plural && row.group == group;
    let row = KINDS.iter().find(is_it)?;
    // Earlier versions of kinds that strew reads are served too.
    let is_namespaced = match resource {
        Resource::LEASES => row.is_namespaced,
        _ => is_namespaced(&api_version, row.kind)?,
    };
    let storage = match resource {
        Resource::LEASES => Storage::Documents,
        _ => Storage::Objects(Kind::of_group(&api_version, row.kind)),
    };
    Some(Served {
        storage,
        api_version,
        kind: row.kind,
        is_namespaced,
        schema: row.patch,
    })
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
        for kind in KINDS.iter().filter(|kind| kind.short.is_some()) {
            let resource = Resource {
                group: kind.group,
                version: kind.version,
                plural: kind.plural,
            };
            let found = served(resource);
            if found.is_none_or(|row| row.is_namespaced != kind.is_namespaced) {
                unserved.push(kind.kind);
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
