//! The CustomResourceDefinition of WorkloadSpread.

#[cfg(feature = "schemas")]
pub mod made;

use serde_json::Value;

use super::registration::{CONVERT, Reach};
use crate::definition::{crd, of_text};

/// The CustomResourceDefinition of WorkloadSpread: both versions served, v1beta1 stored, converted by strew's webhook.
pub fn workload_spread(webhook: &Reach) -> Value {
    let mut definition = of_text(crd!("workloadspreads.apps.kruise.io"));
    definition["spec"]["conversion"]["webhook"]["clientConfig"] = webhook.client_config(CONVERT);
    definition
}
