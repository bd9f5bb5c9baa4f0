//! Kruise's own workloads, with the fields that a WorkloadSpread needs; other fields are ignored.
//!
//! Source: spec/workloadspread §3, §5.3; `apis/apps/{v1alpha1,v1beta1}` of openkruise/kruise at 07169cfa, for CloneSets
//! of v1beta1 at 044a5eb3.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::object::{object, or_default};

object! {
    /// A workload of like pods that can be updated in place.
    CloneSet, "CloneSet", "v1alpha1", "clonesets", CloneSetSpec, WorkloadStatus
}

object! {
    /// A CloneSet as Kruise stores it from 1.9 on: its fields are those of v1alpha1.
    CloneSetV1beta1, "CloneSet", "v1beta1", "clonesets", CloneSetSpec, WorkloadStatus
}

/// What is asked of a CloneSet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct CloneSetSpec {
    /// How many pods there are to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// What its pods are like.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplateSpec,
    /// Claims that each pod gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim_templates: Option<Vec<PersistentVolumeClaim>>,
    /// Which pods are deleted first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_strategy: Option<Value>,
    /// How pods are updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<Value>,
    /// How many old revisions are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// For how long a pod must be ready to be available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_ready_seconds: Option<i32>,
    /// What is done before pods are deleted or updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Value>,
    /// For how long an update may make no progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<i32>,
}

object! {
    /// Kruise's StatefulSet.
    AdvancedStatefulSet, "StatefulSet", "v1beta1", "statefulsets", AdvancedStatefulSetSpec, WorkloadStatus
}

object! {
    /// Kruise's StatefulSet as it was first.
    AdvancedStatefulSetV1alpha1, "StatefulSet", "v1alpha1", "statefulsets", AdvancedStatefulSetSpec, WorkloadStatus
}

/// What is asked of Kruise's StatefulSet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct AdvancedStatefulSetSpec {
    /// How many pods there are to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// What its pods are like.
    #[serde(deserialize_with = "or_default")]
    pub template: PodTemplateSpec,
    /// Claims that each pod gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim_templates: Option<Vec<PersistentVolumeClaim>>,
    /// The Service of its pods' names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// Whether pods are made one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_management_policy: Option<String>,
    /// How pods are updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<Value>,
    /// How many old revisions are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision_history_limit: Option<i32>,
    /// Numbers that are passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_ordinals: Option<Value>,
    /// What is done before pods are deleted or updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Value>,
    /// How pods are scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_strategy: Option<Value>,
    /// What becomes of the claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim_retention_policy: Option<Value>,
    /// The first number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinals: Option<Value>,
    /// How claims are updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim_update_strategy: Option<Value>,
}

/// What was found of a workload. Kinds differ in what else they tell, which nothing here looks at.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// The generation that the controller has seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Its ready pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// Its available pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_replicas: Option<i32>,
    /// Its pods of the revision before the update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_replicas: Option<i32>,
    /// Its pods of the newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_replicas: Option<i32>,
    /// Its ready pods of the newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_ready_replicas: Option<i32>,
    /// Its available pods of the newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_available_replicas: Option<i32>,
    /// How many pods are to be of the newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_updated_replicas: Option<i32>,
    /// The newest revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_revision: Option<String>,
    /// The revision before the update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<String>,
    /// How often a revision collided with another's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collision_count: Option<i32>,
    /// Conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Value>,
    /// Its pods, as a text for autoscalers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
    /// Claims by template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claims: Option<Value>,
}
