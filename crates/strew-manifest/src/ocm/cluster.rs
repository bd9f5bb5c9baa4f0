//! ManagedCluster, `v1`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::object::{null_as_default, objects};

objects! {
    /// A cluster of the fleet.
    ManagedCluster: "cluster.open-cluster-management.io/v1" =
        "cluster.open-cluster-management.io" "v1", "managedclusters", ClusterResourceScope {
        /// How it is meant to be.
        spec: ManagedClusterSpec,
        /// How it is.
        status: ManagedClusterStatus,
    }
}

impl ManagedCluster {
    /// Its labels.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let labels = self.metadata.labels.iter().flatten();
        labels.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Its claims.
    pub fn claims(&self) -> impl Iterator<Item = (&str, &str)> {
        let status = self.status.iter();
        let claims = status.flat_map(|status| status.cluster_claims.iter().flatten());
        claims.map(|claim| (claim.name.as_str(), claim.value.as_str()))
    }
}

/// How it is meant to be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterSpec {
    /// Where its API server is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_cluster_client_configs: Option<Vec<ClientConfig>>,
    /// Whether it may join.
    #[serde(deserialize_with = "null_as_default")]
    pub hub_accepts_client: bool,
    /// How often its agent tells that it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// What keeps placements away.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
}

/// Where an API server is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ClientConfig {
    /// Its URL.
    #[serde(deserialize_with = "null_as_default")]
    pub url: String,
    /// Its certificate authorities, in Base64.
    #[serde(rename = "caBundle", skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

/// What keeps placements away.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    /// Its key.
    #[serde(deserialize_with = "null_as_default")]
    pub key: String,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSelect`, `PreferNoSelect` or `NoSelectIfNew`.
    #[serde(deserialize_with = "null_as_default")]
    pub effect: String,
    /// Since when it is there; OCM's webhook fills it in.
    pub time_added: Option<Time>,
}

/// How it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterStatus {
    /// Joined, available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// All that its nodes have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// All that pods may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ManagedClusterVersion>,
    /// What it says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_claims: Option<Vec<ClusterClaim>>,
    /// Namespaces that sets keep on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_namespaces: Option<Vec<ManagedNamespace>>,
}

/// Its version.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedClusterVersion {
    /// Of Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<String>,
}

/// What a cluster says of itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterClaim {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// Its value.
    #[serde(deserialize_with = "null_as_default")]
    pub value: String,
}

/// A namespace that a set keeps on a cluster.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ManagedNamespace {
    /// Its name.
    #[serde(deserialize_with = "null_as_default")]
    pub name: String,
    /// The set.
    #[serde(deserialize_with = "null_as_default")]
    pub cluster_set: String,
    /// Whether it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}
