//! The rights that the controllers need at the API server.

use strew_runtime::registration::replicas::LEASE;
use strew_runtime::{keep, placement, workloadspread};
use strew_wire::workloadspread::registration::NAME;

use super::Name;
use crate::permission::{NamedPermission, Permission, WATCH, permission, rights};
pub use crate::scheduler::permissions::{OF_FIRST_LEASE, OF_PAGES, of_lease};
use crate::snapshot::OF_AUDIT;
use crate::webhook::permissions::IN_NAMESPACE;

/// The rights of one controller in the whole cluster.
pub fn of(name: Name) -> Vec<Permission> {
    match name {
        Name::WorkloadSpread => rights(&workloadspread::reads(), WATCH, WORKLOAD_SPREAD),
        Name::Placement => rights(placement::READS, WATCH, PLACEMENT),
        Name::Keep => rights(keep::READS, WATCH, KEEP),
        // Nothing is watched or written.
        Name::Audit => rights(OF_AUDIT, &["list"], &[]),
        Name::Rebalance => rights(OF_AUDIT, &["list"], REBALANCE),
    }
}

/// The rights in the namespace of the ConfigMap that names custom kinds; empty if the controller needs none.
pub fn of_configuration(name: Name) -> &'static [Permission] {
    match name {
        Name::WorkloadSpread => IN_NAMESPACE,
        Name::Placement | Name::Keep | Name::Audit | Name::Rebalance => &[],
    }
}

/// Source: spec/workloadspread §6.4, as far as strew needs it. The administrator who lists a custom kind grants the
/// rights for it.
const WORKLOAD_SPREAD: &[Permission] = &[
    permission(
        "apps.kruise.io",
        "workloadspreads/status",
        &["update"],
        "the ledger, counts of each subset, conditions",
    ),
    permission(
        "",
        "pods",
        &["patch", "delete"],
        "deletion costs and markers of subsets are patched; a pod that cannot be scheduled is deleted, so that its \
         replacement goes to another subset",
    ),
    permission(
        "",
        "pods/eviction",
        &["create"],
        "a pod of a Job that cannot be scheduled is evicted, because a Job counts a deletion as a failure",
    ),
    permission(
        "events.k8s.io",
        "events",
        &["create", "patch"],
        "events on WorkloadSpreads",
    ),
];

/// The rights of one controller on the Lease that shows which replicas of the webhook are ready.
pub fn of_replicas(name: Name) -> &'static [NamedPermission<'static>] {
    match name {
        Name::WorkloadSpread => REPLICAS,
        Name::Placement | Name::Keep | Name::Audit | Name::Rebalance => &[],
    }
}

const REPLICAS: &[NamedPermission<'_>] = &[NamedPermission {
    permission: permission(
        "coordination.k8s.io",
        "leases",
        &["get"],
        "whether a replica of the webhook is ready",
    ),
    names: &[LEASE],
}];

/// The rights of one controller on the webhook's registration, which it removes if no replica is ready.
pub fn of_registration(name: Name) -> &'static [NamedPermission<'static>] {
    match name {
        Name::WorkloadSpread => REGISTRATION,
        Name::Placement | Name::Keep | Name::Audit | Name::Rebalance => &[],
    }
}

const REGISTRATION: &[NamedPermission<'_>] = &[NamedPermission {
    permission: permission(
        "admissionregistration.k8s.io",
        "mutatingwebhookconfigurations",
        &["get", "patch"],
        "takes the webhook out when no replica has been ready for a while; a policy bounds the rest",
    ),
    names: &[NAME],
}];

const KEEP: &[Permission] = &[permission(
    "",
    "pods",
    &["patch"],
    "deletion costs are patched",
)];

const REBALANCE: &[Permission] = &[permission(
    "",
    "pods/eviction",
    &["create"],
    "pods of labelled workloads are evicted, one at a time, as their budgets allow",
)];

const OCM: &str = "cluster.open-cluster-management.io";

/// Source: spec/placement §4.
const PLACEMENT: &[Permission] = &[
    permission(
        OCM,
        "placements/status",
        &["update", "patch"],
        "counts and conditions",
    ),
    permission(
        OCM,
        "placements/finalizers",
        &["update"],
        "owner references of PlacementDecisions that block the deletion of their Placement",
    ),
    permission(
        OCM,
        "placementdecisions",
        &["create", "update", "patch", "delete"],
        "created, changed and deleted with it",
    ),
    permission(
        OCM,
        "placementdecisions/status",
        &["update", "patch"],
        "the clusters of a decision",
    ),
    permission(
        "events.k8s.io",
        "events",
        &["create", "patch"],
        "events on Placements",
    ),
];
