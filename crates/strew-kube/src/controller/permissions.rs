//! The rights that the controllers need at the API server.

use strew_api::workloadspread::registration::NAME;

use super::Name;
use crate::permission::{NamedPermission, Permission};
use crate::registration::replicas::LEASE;
pub use crate::scheduler::permissions::{OF_FIRST_LEASE, OF_PAGES, of_lease};

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
    // Pods of Jobs that cannot be scheduled.
    permission("", "pods/eviction", &["create"]),
    permission("", "nodes", READ),
    permission("apps", "deployments", READ),
    permission("apps", "replicasets", READ),
    permission("apps", "statefulsets", READ),
    permission("batch", "jobs", READ),
    permission("events.k8s.io", "events", &["create", "patch"]),
];

/// The ConfigMap `kruise-configuration`.
const CONFIGURATION: &[Permission] = &[permission("", "configmaps", READ)];

/// In strew's namespace, of one controller: by this Lease it knows which replicas of the webhook are ready.
pub fn of_replicas(name: Name) -> &'static [NamedPermission<'static>] {
    match name {
        Name::WorkloadSpread => REPLICAS,
        Name::Placement => &[],
    }
}

const REPLICAS: &[NamedPermission<'_>] = &[NamedPermission {
    permission: permission("coordination.k8s.io", "leases", &["get"]),
    names: &[LEASE],
}];

/// In the whole cluster, of one controller: it takes the webhook out where no replica is ready.
pub fn of_registration(name: Name) -> &'static [NamedPermission<'static>] {
    match name {
        Name::WorkloadSpread => REGISTRATION,
        Name::Placement => &[],
    }
}

const REGISTRATION: &[NamedPermission<'_>] = &[NamedPermission {
    permission: permission(
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        &["get", "patch"],
    ),
    names: &[NAME],
}];

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
