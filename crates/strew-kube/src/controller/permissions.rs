//! All that the controllers ask of the API server.

use super::Name;
use crate::permission::Permission;
pub use crate::scheduler::permissions::{OF_LEASE, OF_PAGES};

const READ: &[&str] = &["get", "list", "watch"];

/// Of one controller, in the whole cluster.
pub fn of(name: Name) -> &'static [Permission] {
    match name {
        Name::WorkloadSpread => WORKLOAD_SPREAD,
        Name::Placement => PLACEMENT,
    }
}

/// In the namespace of the ConfigMap that names custom kinds; none for controllers that need none.
pub fn of_configuration(name: Name) -> &'static [Permission] {
    match name {
        Name::WorkloadSpread => CONFIGURATION,
        Name::Placement => &[],
    }
}

const fn permission(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Permission {
    Permission {
        group,
        resource,
        verbs,
    }
}

/// Source: spec/workloadspread §6.4, as far as strew needs it. Custom kinds are given besides, by who lists them.
const WORKLOAD_SPREAD: &[Permission] = &[
    permission("apps.kruise.io", "workloadspreads", READ),
    permission("apps.kruise.io", "workloadspreads/status", &["update"]),
    permission("apps.kruise.io", "clonesets", READ),
    permission("apps.kruise.io", "statefulsets", READ),
    permission("", "pods", &["get", "list", "watch", "patch", "delete"]),
    permission("", "nodes", READ),
    permission("apps", "deployments", READ),
    permission("apps", "replicasets", READ),
    permission("apps", "statefulsets", READ),
    permission("batch", "jobs", READ),
    permission("events.k8s.io", "events", &["create", "patch"]),
];

/// The ConfigMap `kruise-configuration`.
const CONFIGURATION: &[Permission] = &[permission("", "configmaps", READ)];

const OCM: &str = "cluster.open-cluster-management.io";

/// Source: spec/placement §4.
const PLACEMENT: &[Permission] = &[
    permission(OCM, "managedclusters", READ),
    permission(OCM, "managedclustersets", READ),
    permission(OCM, "managedclustersetbindings", READ),
    permission(OCM, "addonplacementscores", READ),
    permission(OCM, "placements", READ),
    permission(OCM, "placements/status", &["update", "patch"]),
    // Owner references that block the owner's deletion.
    permission(OCM, "placements/finalizers", &["update"]),
    permission(
        OCM,
        "placementdecisions",
        &[
            "get", "list", "watch", "create", "update", "patch", "delete",
        ],
    ),
    permission(OCM, "placementdecisions/status", &["update", "patch"]),
    permission("events.k8s.io", "events", &["create", "patch"]),
];
