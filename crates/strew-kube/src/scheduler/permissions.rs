//! All that the scheduler asks of the API server.

use crate::permission::Permission;

/// To follow what there is.
pub(crate) const READ: &[&str] = &["get", "list", "watch"];

/// In the whole cluster. Source: spec/scheduler §5.10, as far as strew needs it.
pub const IN_CLUSTER: &[Permission] = &[
    Permission::on("", "nodes", READ),
    Permission::on("", "pods", &["get", "list", "watch", "delete"]),
    Permission::on("", "pods/binding", &["create"]),
    Permission::on("", "pods/status", &["patch"]),
    Permission::on("", "namespaces", READ),
    Permission::on("", "services", READ),
    Permission::on("", "replicationcontrollers", READ),
    Permission::on("apps", "replicasets", READ),
    Permission::on("apps", "statefulsets", READ),
    Permission::on("policy", "poddisruptionbudgets", READ),
    Permission::on("", "persistentvolumeclaims", READ),
    Permission::on("", "persistentvolumes", READ),
    Permission::on("storage.k8s.io", "storageclasses", READ),
    Permission::on("storage.k8s.io", "csinodes", READ),
    Permission::on("events.k8s.io", "events", &["create", "patch"]),
];

/// To ask who may see its pages.
pub const OF_PAGES: &[Permission] = &[
    Permission::on("authentication.k8s.io", "tokenreviews", &["create"]),
    Permission::on("authorization.k8s.io", "subjectaccessreviews", &["create"]),
];

/// In the namespace of the lease.
pub const OF_LEASE: &[Permission] = &[Permission::on(
    "coordination.k8s.io",
    "leases",
    &["create", "get", "update"],
)];
