//! Names of types as kubectl takes them: `deployment`, `deployments`, `deploy`, `deployments.apps`.

use crate::read::nearest;

/// A type by all its names.
#[derive(Debug, PartialEq, Eq)]
pub struct TypeName {
    /// `Deployment`
    pub kind: &'static str,
    /// `deployments`
    pub plural: &'static str,
    /// `deploy`; the singular where there is none.
    pub short: &'static str,
    /// `apps`; none for the core.
    pub group: Option<&'static str>,
    /// Whether its objects live in namespaces.
    pub is_namespaced: bool,
}

/// The types that strew knows by name.
pub const TYPES: [TypeName; 29] = [
    of("Pod", "pods", "po", None),
    of("Deployment", "deployments", "deploy", Some("apps")),
    of("ReplicaSet", "replicasets", "rs", Some("apps")),
    of("StatefulSet", "statefulsets", "sts", Some("apps")),
    of("DaemonSet", "daemonsets", "ds", Some("apps")),
    of(
        "ReplicationController",
        "replicationcontrollers",
        "rc",
        None,
    ),
    of("Job", "jobs", "job", Some("batch")),
    of("CronJob", "cronjobs", "cj", Some("batch")),
    global("Node", "nodes", "no", None),
    global("Namespace", "namespaces", "ns", None),
    of("Service", "services", "svc", None),
    of("LimitRange", "limitranges", "limits", None),
    of("ResourceQuota", "resourcequotas", "quota", None),
    of(
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
        "pvc",
        None,
    ),
    global("PersistentVolume", "persistentvolumes", "pv", None),
    global(
        "PriorityClass",
        "priorityclasses",
        "pc",
        Some("scheduling.k8s.io"),
    ),
    global(
        "StorageClass",
        "storageclasses",
        "sc",
        Some("storage.k8s.io"),
    ),
    global(
        "RuntimeClass",
        "runtimeclasses",
        "runtimeclass",
        Some("node.k8s.io"),
    ),
    of(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "pdb",
        Some("policy"),
    ),
    of(
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        Some("autoscaling"),
    ),
    of("CloneSet", "clonesets", "clone", Some("apps.kruise.io")),
    of("Lease", "leases", "lease", Some("coordination.k8s.io")),
    of(
        "WorkloadSpread",
        "workloadspreads",
        "ws",
        Some("apps.kruise.io"),
    ),
    of(
        "Placement",
        "placements",
        "placement",
        Some("cluster.open-cluster-management.io"),
    ),
    global(
        "ManagedCluster",
        "managedclusters",
        "mcl",
        Some("cluster.open-cluster-management.io"),
    ),
    global(
        "ManagedClusterSet",
        "managedclustersets",
        "mclset",
        Some("cluster.open-cluster-management.io"),
    ),
    of(
        "ManagedClusterSetBinding",
        "managedclustersetbindings",
        "mclsetbinding",
        Some("cluster.open-cluster-management.io"),
    ),
    of(
        "PlacementDecision",
        "placementdecisions",
        "placementdecision",
        Some("cluster.open-cluster-management.io"),
    ),
    of(
        "AddOnPlacementScore",
        "addonplacementscores",
        "addonplacementscore",
        Some("cluster.open-cluster-management.io"),
    ),
];

const fn of(
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    group: Option<&'static str>,
) -> TypeName {
    TypeName {
        kind,
        plural,
        short,
        group,
        is_namespaced: true,
    }
}

const fn global(
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    group: Option<&'static str>,
) -> TypeName {
    TypeName {
        is_namespaced: false,
        ..of(kind, plural, short, group)
    }
}

/// The type of this name, in any letter case.
pub fn find(text: &str) -> Option<&'static TypeName> {
    let text = text.to_lowercase();
    let (name, group) = match text.split_once('.') {
        Some((name, group)) => (name, Some(group)),
        None => (text.as_str(), None),
    };
    let is_named = |known: &&TypeName| {
        let named =
            known.kind.to_lowercase() == name || known.plural == name || known.short == name;
        let grouped = group.is_none_or(|g| {
            known
                .group
                .is_some_and(|own| g == own || g.ends_with(&format!(".{own}")))
        });
        named && grouped
    };
    TYPES.iter().find(is_named)
}

/// The type of this kind.
pub fn of_kind(kind: &str) -> Option<&'static TypeName> {
    TYPES.iter().find(|known| known.kind == kind)
}

/// The singular name nearest to one that is none.
pub fn meant(text: &str) -> Option<String> {
    let singular: Vec<String> = TYPES
        .iter()
        .map(|known| known.kind.to_lowercase())
        .collect();
    nearest(text, singular.iter().map(String::as_str)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_kubectls_names_are_understood() {
        let kind = |text| find(text).map(|known| known.kind);
        for name in ["deploy", "Deployment", "deployments", "deployments.apps"] {
            assert_eq!(kind(name), Some("Deployment"), "{name}");
        }
        assert_eq!(kind("po"), Some("Pod"));
        assert_eq!(kind("hpa"), Some("HorizontalPodAutoscaler"));
        assert_eq!(kind("workloadspread"), Some("WorkloadSpread"));
        assert_eq!(kind("deployments.batch"), None);
        assert_eq!(kind("gateway"), None);
        assert_eq!(meant("deplyment").as_deref(), Some("deployment"));
    }
}
