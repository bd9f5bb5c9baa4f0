//! CustomResourceDefinitions of OCM's kinds, for hubs without OCM.

#[cfg(feature = "schemas")]
pub mod made;

use serde_json::Value;

use crate::definition::{crd, of_text};

/// The texts of the definitions, in the order in which they are installed.
const TEXTS: [&str; 6] = [
    crd!("placements.cluster.open-cluster-management.io"),
    crd!("placementdecisions.cluster.open-cluster-management.io"),
    crd!("managedclusters.cluster.open-cluster-management.io"),
    crd!("managedclustersets.cluster.open-cluster-management.io"),
    crd!("managedclustersetbindings.cluster.open-cluster-management.io"),
    crd!("addonplacementscores.cluster.open-cluster-management.io"),
];

/// All definitions.
pub fn all() -> Vec<Value> {
    TEXTS.into_iter().map(of_text).collect()
}
