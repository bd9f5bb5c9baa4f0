//! ManagedClusterSet and ManagedClusterSetBinding, `v1beta2`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use serde::{Deserialize, Serialize};

use super::object::{null_as_default, objects};

objects! {
    /// Clusters that belong together.
    ManagedClusterSet: "cluster.open-cluster-management.io/v1beta2" =
        "cluster.open-cluster-management.io" "v1beta2", "managedclustersets", ClusterResourceScope {
        /// Which clusters.
        spec: ManagedClusterSetSpec,
        /// How many there are.
        status: ManagedClusterSetStatus,
    }
    /// Lets the Placements of a namespace choose from a set; its name is the set's.
    ManagedClusterSetBinding: "cluster.open-cluster-management.io/v1beta2" =
        "cluster.open-cluster-management.io" "v1beta2", "managedclustersetbindings", NamespaceResourceScope {
        /// Which set.
        spec: ManagedClusterSetBindingSpec,
        /// Whether the set is there.
        status: ManagedClusterSetBindingStatus,
    }
}

/// Which clusters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSetSpec {
    /// Which clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_selector: Option<ClusterSetSelector>,
    /// Namespaces that are kept on all of them; placement does not look at it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_namespaces: Option<Vec<ManagedNamespaceConfig>>,
}

/// Which clusters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSetSelector {
    /// `ExclusiveClusterSetLabel`, also where nothing is written, or `LabelSelector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector_type: Option<String>,
    /// For `LabelSelector`; absent: no cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<LabelSelector>,
}

/// A namespace that is kept on clusters.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedNamespaceConfig {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
}

/// How many there are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSetStatus {
    /// `ClusterSetEmpty`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

/// Which set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSetBindingSpec {
    /// The set's name, which is the binding's too.
    #[serde(deserialize_with = "null_as_default")]
    pub cluster_set: String,
}

/// Whether the set is there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSetBindingStatus {
    /// `Bound`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
