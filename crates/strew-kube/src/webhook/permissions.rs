//! The rights that the webhook needs at the API server.
//!
//! Rights on custom kinds (of the white list, or named by WorkloadSpreads with `strew.dev/any-kind`) are not included.
//! The administrator who adds such a kind binds a role with `get`, `list` and `watch` on it, and `get` on its `scale`,
//! to the service account. Without that role a warning names the missing right, and pods of that kind pass unchanged.

use strew_runtime::admission;
use strew_runtime::authority::bundle::{CONFIGURATION, DEFINITION};
use strew_runtime::registration::replicas;

use crate::authority::rotator::SECRET;
use crate::permission::{NamedPermission, Permission, WATCH, permission, rights};

/// Rights in the whole cluster. Source: spec/workloadspread §6.4, as far as the webhook needs it.
pub fn in_cluster() -> Vec<Permission> {
    let status = permission(
        "apps.kruise.io",
        "workloadspreads/status",
        &["update"],
        "the ledger: a pod's place is reserved before its creation is answered",
    );
    let claims = permission(
        "policy",
        "poddisruptionbudgets",
        &["get", "list", "watch", "patch"],
        "budgets by zone: which ones there are, and the claim of a zone; a policy bounds the rest",
    );
    rights(&admission::reads(), WATCH, &[status, claims])
}

/// Rights in the webhook's own namespace: to read the list of custom kinds.
pub const IN_NAMESPACE: &[Permission] = &[permission(
    "",
    "configmaps",
    WATCH,
    "ConfigMap kruise-configuration: which custom kinds can be targets",
)];

/// Rights in the webhook's own namespace, unless a certificate is given: to create its leases and its Secret. RBAC
/// cannot restrict `create` to a name.
pub const OF_AUTHORITY: &[Permission] = &[
    permission(
        "coordination.k8s.io",
        "leases",
        &["create"],
        "the first creation of its leases; a policy allows its own names alone",
    ),
    permission(
        "",
        "secrets",
        &["create"],
        "the first creation of its CA; a policy allows its own name alone",
    ),
];

/// Rights in the webhook's namespace, unless a certificate is given: on the Secret, and on the rotator's lease.
pub const OF_SECRET: &[NamedPermission<'_>] = &[
    NamedPermission {
        permission: permission(
            "",
            "secrets",
            &["get", "list", "watch", "update"],
            "the CA that signs the certificates of all replicas, and its exchange",
        ),
        names: &[SECRET],
    },
    NamedPermission {
        permission: permission(
            "coordination.k8s.io",
            "leases",
            &["get", "update"],
            "one replica maintains the CA: it holds this lease",
        ),
        names: &[super::LEASE],
    },
];

/// Rights in the webhook's own namespace, unless another program registers the webhook: on the Lease that shows ready
/// replicas. [`OF_AUTHORITY`] allows its creation.
pub const OF_REPLICAS: &[NamedPermission<'_>] = &[NamedPermission {
    permission: permission(
        "coordination.k8s.io",
        "leases",
        &["patch"],
        "which replicas are ready: the last one takes the registration out",
    ),
    names: &[replicas::LEASE],
}];

/// Rights in the whole cluster, unless another program maintains `caBundle`.
pub const OF_CONFIGURATIONS: &[NamedPermission<'_>] = &[
    NamedPermission {
        permission: permission(
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations",
            &["get", "list", "watch", "patch"],
            "registers the webhook when a replica is ready, and writes caBundle; a policy bounds the rest",
        ),
        names: &[CONFIGURATION],
    },
    NamedPermission {
        permission: permission(
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            &["get", "list", "watch", "patch"],
            "writes caBundle; a policy bounds the rest",
        ),
        names: &[CONFIGURATION],
    },
    NamedPermission {
        permission: permission(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            &["get", "list", "watch", "patch"],
            "writes caBundle of the conversion webhook; a policy bounds the rest",
        ),
        names: &[DEFINITION],
    },
];
