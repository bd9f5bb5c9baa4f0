//! The rights that the scheduler needs at the API server.

use strew_runtime::scheduler::READS;

use crate::permission::{NamedPermission, Permission, WATCH, permission, rights};

/// Rights in the whole cluster. Source: spec/scheduler §5.10, as far as strew needs it.
pub fn in_cluster() -> Vec<Permission> {
    rights(READS, WATCH, WRITES)
}

const WRITES: &[Permission] = &[
    permission(
        "",
        "pods",
        &["delete"],
        "victims of a preemption are deleted",
    ),
    permission("", "pods/binding", &["create"], "place a pod on its node"),
    permission(
        "",
        "pods/status",
        &["patch"],
        "the condition PodScheduled, the nominated node, and DisruptionTarget of a victim",
    ),
    permission(
        "events.k8s.io",
        "events",
        &["create", "patch"],
        "the events Scheduled, FailedScheduling and Preempted",
    ),
];

/// Rights to authenticate and authorize clients of its pages.
pub const OF_PAGES: &[Permission] = &[
    permission(
        "authentication.k8s.io",
        "tokenreviews",
        &["create"],
        "metrics and debug pages: the user of a token",
    ),
    permission(
        "authorization.k8s.io",
        "subjectaccessreviews",
        &["create"],
        "metrics and debug pages, and reviews of pods: what a user may do",
    ),
];

/// The right to create the lease in its namespace. RBAC cannot restrict `create` to a name.
pub const OF_FIRST_LEASE: &[Permission] = &[permission(
    "coordination.k8s.io",
    "leases",
    &["create"],
    "the first creation of its lease; a role cannot name an object that is being created",
)];

/// Rights on the leases of these names, in their namespace: other leases belong to other processes.
pub fn of_lease<'a>(names: &'a [&'a str]) -> [NamedPermission<'a>; 1] {
    let permission = permission(
        "coordination.k8s.io",
        "leases",
        &["get", "update"],
        "one replica acts at a time: it holds this lease",
    );
    [NamedPermission { permission, names }]
}
