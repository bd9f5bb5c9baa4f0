//! The rights that the scheduler needs at the API server.

use crate::permission::{NamedPermission, Permission};

const READ: &[&str] = &["get", "list", "watch"];

/// In the whole cluster. Source: spec/scheduler §5.10, as far as strew needs it.
pub const IN_CLUSTER: &[Permission] = &[
    Permission {
        group: "",
        resource: "nodes",
        verbs: READ,
    },
    Permission {
        group: "",
        resource: "pods",
        verbs: &["get", "list", "watch", "delete"],
    },
    Permission {
        group: "",
        resource: "pods/binding",
        verbs: &["create"],
    },
    Permission {
        group: "",
        resource: "pods/status",
        verbs: &["patch"],
    },
    Permission {
        group: "",
        resource: "namespaces",
        verbs: READ,
    },
    Permission {
        group: "",
        resource: "services",
        verbs: READ,
    },
    Permission {
        group: "",
        resource: "replicationcontrollers",
        verbs: READ,
    },
    Permission {
        group: "apps",
        resource: "replicasets",
        verbs: READ,
    },
    Permission {
        group: "apps",
        resource: "statefulsets",
        verbs: READ,
    },
    Permission {
        group: "policy",
        resource: "poddisruptionbudgets",
        verbs: READ,
    },
    Permission {
        group: "",
        resource: "persistentvolumeclaims",
        verbs: READ,
    },
    Permission {
        group: "",
        resource: "persistentvolumes",
        verbs: READ,
    },
    Permission {
        group: "storage.k8s.io",
        resource: "storageclasses",
        verbs: READ,
    },
    Permission {
        group: "storage.k8s.io",
        resource: "csinodes",
        verbs: READ,
    },
    Permission {
        group: "events.k8s.io",
        resource: "events",
        verbs: &["create", "patch"],
    },
];

/// To authorize clients of its pages.
pub const OF_PAGES: &[Permission] = &[
    Permission {
        group: "authentication.k8s.io",
        resource: "tokenreviews",
        verbs: &["create"],
    },
    Permission {
        group: "authorization.k8s.io",
        resource: "subjectaccessreviews",
        verbs: &["create"],
    },
];

/// In the namespace of the lease: its first creation. What is created has no name yet that a role could name.
pub const OF_FIRST_LEASE: &[Permission] = &[Permission {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: &["create"],
}];

/// In the namespace of the lease, with the leases of these names alone: others are not this process's to take.
pub fn of_lease<'a>(names: &'a [&'a str]) -> [NamedPermission<'a>; 1] {
    let permission = Permission {
        group: "coordination.k8s.io",
        resource: "leases",
        verbs: &["get", "update"],
    };
    [NamedPermission { permission, names }]
}
