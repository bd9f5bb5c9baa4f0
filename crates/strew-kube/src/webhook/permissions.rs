//! The rights that the webhook needs at the API server.
//!
//! Custom kinds (of the white list, or named by WorkloadSpreads with `strew.dev/any-kind`) are not included. Whoever
//! adds one binds a role with `get`, `list` and `watch` on it, and `get` on its `scale`, to the service account.
//! Without that role a warning names the missing right, and pods of that kind pass unchanged.

use crate::authority::bundle::{CONFIGURATION, DEFINITION};
use crate::authority::keeper::SECRET;
use crate::permission::{NamedPermission, Permission};
use crate::registration::replicas;

const READ: &[&str] = &["get", "list", "watch"];

/// In the whole cluster. Source: spec/workloadspread §6.4, as far as the webhook needs it.
pub const IN_CLUSTER: &[Permission] = &[
    Permission {
        group: "apps.kruise.io",
        resource: "workloadspreads",
        verbs: READ,
    },
    Permission {
        group: "apps.kruise.io",
        resource: "workloadspreads/status",
        verbs: &["update"],
    },
    Permission {
        group: "",
        resource: "pods",
        verbs: READ,
    },
    Permission {
        group: "",
        resource: "nodes",
        verbs: READ,
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
        resource: "deployments",
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
        group: "batch",
        resource: "jobs",
        verbs: READ,
    },
    Permission {
        group: "apps.kruise.io",
        resource: "clonesets",
        verbs: READ,
    },
    Permission {
        group: "apps.kruise.io",
        resource: "statefulsets",
        verbs: READ,
    },
];

/// In the webhook's own namespace: the list of custom kinds.
pub const IN_NAMESPACE: &[Permission] = &[Permission {
    group: "",
    resource: "configmaps",
    verbs: READ,
}];

/// In the webhook's own namespace, unless a certificate is given: its first leases, and its first Secret. What is
/// created has no name yet that a role could name.
pub const OF_AUTHORITY: &[Permission] = &[
    Permission {
        group: "coordination.k8s.io",
        resource: "leases",
        verbs: &["create"],
    },
    Permission {
        group: "",
        resource: "secrets",
        verbs: &["create"],
    },
];

/// In the webhook's namespace, unless a certificate is given: the Secret, and the lease of its maintainer.
pub const OF_SECRET: &[NamedPermission<'_>] = &[
    NamedPermission {
        permission: Permission {
            group: "",
            resource: "secrets",
            verbs: &["get", "list", "watch", "update"],
        },
        names: &[SECRET],
    },
    NamedPermission {
        permission: Permission {
            group: "coordination.k8s.io",
            resource: "leases",
            verbs: &["get", "update"],
        },
        names: &[super::LEASE],
    },
];

/// In the webhook's own namespace, unless another program registers the webhook: by this Lease replicas know of each
/// other. It is made under [`OF_AUTHORITY`].
pub const OF_REPLICAS: &[NamedPermission<'_>] = &[NamedPermission {
    permission: Permission {
        group: "coordination.k8s.io",
        resource: "leases",
        verbs: &["patch"],
    },
    names: &[replicas::LEASE],
}];

/// In the whole cluster, unless `caBundle` is maintained by other means.
pub const OF_CONFIGURATIONS: &[NamedPermission<'_>] = &[
    NamedPermission {
        permission: Permission {
            group: "admissionregistration.k8s.io",
            resource: "mutatingwebhookconfigurations",
            verbs: &["get", "list", "watch", "patch"],
        },
        names: &[CONFIGURATION],
    },
    NamedPermission {
        permission: Permission {
            group: "admissionregistration.k8s.io",
            resource: "validatingwebhookconfigurations",
            verbs: &["get", "list", "watch", "patch"],
        },
        names: &[CONFIGURATION],
    },
    NamedPermission {
        permission: Permission {
            group: "apiextensions.k8s.io",
            resource: "customresourcedefinitions",
            verbs: &["get", "list", "watch", "patch"],
        },
        names: &[DEFINITION],
    },
];
