//! The CustomResourceDefinition, made from the types.
//!
//! Source: spec/workloadspread §2.1, §2.5.

use k8s_openapi::Resource;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::super::registration::{CONVERT, Reach};
use super::super::{v1alpha1, v1beta1};
use crate::definition::made::{AGE, Column, Facts, definition, schema_of, version};

/// The CustomResourceDefinition of WorkloadSpread: both versions served, v1beta1 stored, converted by strew's webhook.
pub fn workload_spread(webhook: &Reach) -> Value {
    let facts = Facts {
        scope: "Namespaced",
        short_names: &["ws"],
        conversion: Some(json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": webhook.client_config(CONVERT),
            },
        })),
    };
    let versions = vec![
        of_version::<v1alpha1::WorkloadSpread>(false),
        of_version::<v1beta1::WorkloadSpread>(true),
    ];
    definition::<v1beta1::WorkloadSpread>(facts, versions)
}

fn of_version<T: Resource + JsonSchema>(is_stored: bool) -> Value {
    let columns = [
        Column {
            name: "WorkloadName",
            kind: "string",
            path: ".spec.targetRef.name",
            description: "Name of the workload",
        },
        Column {
            name: "WorkloadKind",
            kind: "string",
            path: ".spec.targetRef.kind",
            description: "Kind of the workload",
        },
        Column {
            name: "Adaptive",
            kind: "boolean",
            path: ".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]",
            description: "Whether the strategy is Adaptive",
        },
        AGE,
    ];
    version::<T>(is_stored, schema_of::<T>(), &columns)
}
