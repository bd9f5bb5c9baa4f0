//! The rights that the controllers need at the API server.

use strew_wire::workloadspread::registration::NAME;

use super::Name;
use crate::permission::{NamedPermission, Permission, permission};
use strew_runtime::registration::replicas::LEASE;
pub use crate::scheduler::permissions::{OF_FIRST_LEASE, OF_PAGES, of_lease};

const READ: &[&str] = &["get", "list", "watch"];

/// The rights of one controller in the whole cluster.
pub fn of(name: Name) -> &'static [Permission] {
    match name {
        Name::WorkloadSpread => WORKLOAD_SPREAD,
        Name::Placement => PLACEMENT,
        Name::Keep => KEEP,
        Name::Audit => AUDIT,
    }
}

/// The rights in the namespace of the ConfigMap that names custom kinds; empty if the controller needs none.
pub fn of_configuration(name: Name) -> &'static [Permission] {
    match name {
        Name::WorkloadSpread => CONFIGURATION,
        Name::Placement | Name::Keep | Name::Audit => &[],
    }
}

/// Source: spec/workloadspread §6.4, as far as strew needs it. The administrator who lists a custom kind grants the
/// rights for it.
const WORKLOAD_SPREAD: &[Permission] = &[
    permission(
        "apps.kruise.io",
        "workloadspreads",
        READ,
        "the subsets, and their limits",
    ),
    permission(
        "apps.kruise.io",
        "workloadspreads/status",
        &["update"],
        "the ledger, counts of each subset, conditions",
    ),
    permission(
        "apps.kruise.io",
        "clonesets",
        READ,
        "a target, and how many pods it asks for",
    ),
    permission(
        "apps.kruise.io",
        "statefulsets",
        READ,
        "a target, and how many pods it asks for",
    ),
    permission(
        "",
        "pods",
        &["get", "list", "watch", "patch", "delete"],
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
        "",
        "nodes",
        READ,
        "the subset of a pod that was created without one: by its node",
    ),
    permission(
        "apps",
        "deployments",
        READ,
        "a target, and how many pods it asks for",
    ),
    permission(
        "apps",
        "replicasets",
        READ,
        "a target, and the owner of a Deployment's pods",
    ),
    permission(
        "apps",
        "statefulsets",
        READ,
        "a target, and how many pods it asks for",
    ),
    permission(
        "batch",
        "jobs",
        READ,
        "a target, and how many pods it asks for",
    ),
    permission(
        "events.k8s.io",
        "events",
        &["create", "patch"],
        "events on WorkloadSpreads",
    ),
];

/// The ConfigMap `kruise-configuration`.
const CONFIGURATION: &[Permission] = &[permission(
    "",
    "configmaps",
    READ,
    "ConfigMap kruise-configuration: which custom kinds can be targets",
)];

/// The rights of one controller on the Lease that shows which replicas of the webhook are ready.
pub fn of_replicas(name: Name) -> &'static [NamedPermission<'static>] {
    match name {
        Name::WorkloadSpread => REPLICAS,
        Name::Placement | Name::Keep | Name::Audit => &[],
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
        Name::Placement | Name::Keep | Name::Audit => &[],
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

const KEEP: &[Permission] = &[
    permission(
        "",
        "namespaces",
        READ,
        "whether the workloads of a namespace ask for it",
    ),
    permission("", "nodes", READ, "the domains of a constraint"),
    permission(
        "",
        "pods",
        &["get", "list", "watch", "patch"],
        "what each domain has; deletion costs are patched",
    ),
    permission(
        "apps",
        "deployments",
        READ,
        "whether a workload asks for it",
    ),
    permission("apps", "replicasets", READ, "whose pods are deleted"),
];

const LIST: &[&str] = &["list"];

/// Nothing is watched or written: each audit lists the kinds of [`snapshot::of_audit`](crate::snapshot::of_audit).
const AUDIT: &[Permission] = &[
    permission(
        "",
        "namespaces",
        LIST,
        "namespace selectors of pod affinity terms",
    ),
    permission("", "nodes", LIST, "the domains, and their room"),
    permission("", "pods", LIST, "what runs in each domain"),
    permission(
        "",
        "services",
        LIST,
        "endpoints that are left; default constraints",
    ),
    permission(
        "",
        "replicationcontrollers",
        LIST,
        "which pods are made again",
    ),
    permission(
        "",
        "persistentvolumes",
        LIST,
        "volumes that exist in one domain",
    ),
    permission("", "persistentvolumeclaims", LIST, "the volumes of a pod"),
    permission("", "resourcequotas", LIST, "whether new pods are admitted"),
    permission("", "limitranges", LIST, "requests of new pods"),
    permission("apps", "deployments", LIST, "which pods are made again"),
    permission("apps", "replicasets", LIST, "which pods are made again"),
    permission("apps", "statefulsets", LIST, "which pods are made again"),
    permission("apps", "daemonsets", LIST, "pods that stay on their nodes"),
    permission(
        "apps",
        "controllerrevisions",
        LIST,
        "the templates of StatefulSets and DaemonSets",
    ),
    permission("batch", "jobs", LIST, "which pods are made again"),
    permission("batch", "cronjobs", LIST, "Jobs that begin meanwhile"),
    permission(
        "autoscaling",
        "horizontalpodautoscalers",
        LIST,
        "how many pods a workload asks for",
    ),
    permission(
        "policy",
        "poddisruptionbudgets",
        LIST,
        "which evictions a drain may do, and how many pods must be left",
    ),
    permission(
        "scheduling.k8s.io",
        "priorityclasses",
        LIST,
        "priorities of new pods",
    ),
    permission(
        "node.k8s.io",
        "runtimeclasses",
        LIST,
        "overheads and node selectors of new pods",
    ),
    permission(
        "storage.k8s.io",
        "storageclasses",
        LIST,
        "whether a claim waits for the pod's first node",
    ),
    permission(
        "storage.k8s.io",
        "csinodes",
        LIST,
        "how many volumes a node can attach",
    ),
    permission(
        "apps.kruise.io",
        "clonesets",
        LIST,
        "which pods are made again",
    ),
    permission(
        "apps.kruise.io",
        "workloadspreads",
        LIST,
        "the subsets of new pods",
    ),
];

const OCM: &str = "cluster.open-cluster-management.io";

/// Source: spec/placement §4.
const PLACEMENT: &[Permission] = &[
    permission(OCM, "managedclusters", READ, "the clusters to choose from"),
    permission(
        OCM,
        "managedclustersets",
        READ,
        "which clusters belong together",
    ),
    permission(
        OCM,
        "managedclustersetbindings",
        READ,
        "which sets a namespace may use",
    ),
    permission(
        OCM,
        "addonplacementscores",
        READ,
        "scores that prioritizers read",
    ),
    permission(OCM, "placements", READ, "what is asked for"),
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
        &[
            "get", "list", "watch", "create", "update", "patch", "delete",
        ],
        "the answer: which clusters a Placement gets",
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
