//! All that the controllers ask of the API server: each controller has a table of its own, and runs with no more.

use crate::permission::Permission;
use crate::scheduler::permissions::READ;

/// To tell what they do.
pub const OF_EVENTS: &[Permission] = &[Permission::on(
    "events.k8s.io",
    "events",
    &["create", "patch"],
)];

/// The controller of WorkloadSpreads. Source: spec/workloadspread §6.4, as far as strew needs it.
pub const WORKLOAD_SPREAD: &[Permission] = &[
    Permission::on("apps.kruise.io", "workloadspreads", READ),
    Permission::on("apps.kruise.io", "workloadspreads/status", &["update"]),
    // Adopted, given a cost, and replaced where they cannot be scheduled.
    Permission::on("", "pods", &["get", "list", "watch", "patch", "delete"]),
    Permission::on("", "nodes", READ),
    Permission::on("", "replicationcontrollers", READ),
    Permission::on("apps", "deployments", READ),
    Permission::on("apps", "replicasets", READ),
    Permission::on("apps", "statefulsets", READ),
    Permission::on("batch", "jobs", READ),
    Permission::on("apps.kruise.io", "clonesets", READ),
    Permission::on("apps.kruise.io", "statefulsets", READ),
    WHITE_LIST,
];

/// The white list of custom kinds, in whichever namespace Kruise has it.
pub const WHITE_LIST: Permission =
    Permission::on("", "configmaps", READ).named(&["kruise-configuration"]);

/// The controller of Placements. Source: spec/placement §4, as far as strew needs it.
pub const PLACEMENT: &[Permission] = &[
    Permission::on(OCM, "managedclusters", READ),
    Permission::on(OCM, "managedclustersets", READ),
    Permission::on(OCM, "managedclustersetbindings", READ),
    Permission::on(OCM, "addonplacementscores", READ),
    Permission::on(OCM, "placements", READ),
    Permission::on(OCM, "placements/status", &["patch"]),
    // PlacementDecisions keep their Placement from going before them.
    Permission::on(OCM, "placements/finalizers", &["update"]),
    Permission::on(
        OCM,
        "placementdecisions",
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    Permission::on(OCM, "placementdecisions/status", &["patch"]),
];

const OCM: &str = "cluster.open-cluster-management.io";
