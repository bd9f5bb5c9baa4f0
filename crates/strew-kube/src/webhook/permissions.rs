//! All that the webhook asks of the API server.

use crate::controller::permissions::WHITE_LIST;
use crate::permission::Permission;
use crate::scheduler::permissions::READ;

/// In the whole cluster: what decides about a pod's subset, and the ledger. Source: spec/workloadspread §6.4.
pub const IN_CLUSTER: &[Permission] = &[
    Permission::on("apps.kruise.io", "workloadspreads", READ),
    Permission::on("apps.kruise.io", "workloadspreads/status", &["update"]),
    Permission::on("", "pods", READ),
    // Simulated scheduling.
    Permission::on("", "nodes", READ),
    Permission::on("", "namespaces", READ),
    Permission::on("", "services", READ),
    Permission::on("", "replicationcontrollers", READ),
    Permission::on("apps", "deployments", READ),
    Permission::on("apps", "replicasets", READ),
    Permission::on("apps", "statefulsets", READ),
    Permission::on("batch", "jobs", READ),
    Permission::on("apps.kruise.io", "clonesets", READ),
    Permission::on("apps.kruise.io", "statefulsets", READ),
    WHITE_LIST,
];

/// To tell the API server whose certificates to trust.
pub const OF_CONFIGURATIONS: &[Permission] = &[
    Permission::on(
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        &["get", "patch"],
    )
    .named(&["strew-webhook"]),
    Permission::on(
        "admissionregistration.k8s.io",
        "validatingwebhookconfigurations",
        &["get", "patch"],
    )
    .named(&["strew-webhook"]),
    Permission::on(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        &["get", "patch"],
    )
    .named(&["workloadspreads.apps.kruise.io"]),
];

/// In its own namespace: the certificate authority that all replicas share.
pub const OF_AUTHORITY: &[Permission] = &[
    Permission::on("", "secrets", &["create"]),
    Permission::on("", "secrets", &["get", "list", "watch", "update"]).named(&["strew-webhook-ca"]),
];
