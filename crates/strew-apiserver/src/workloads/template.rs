//! The hash of a template.

use k8s_openapi::api::core::v1::PodTemplateSpec;

use super::names;
use strew_manifest::json::Json;

/// The label that a Deployment gives to its pods.
const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// The hash of a template: 7 to 10 characters, the same for equal templates.
///
/// Upstream hashes a dump of Go structures; this one hashes the template's JSON, so the values
/// differ from a real cluster's while everything that depends on equality is the same.
/// The template's own label `pod-template-hash` is left out, as upstream does when it compares.
pub fn template_hash(template: &PodTemplateSpec) -> String {
    template_hash_after(template, None)
}

/// The hash of a template where others with its name have been met; `None`: no other was.
pub fn template_hash_after(template: &PodTemplateSpec, collision_count: Option<i32>) -> String {
    let mut bytes = canonical(template).into_bytes();
    bytes.extend(collision_count.into_iter().flat_map(i32::to_le_bytes));
    names::safe_encode(names::fnv_1a_32(&bytes))
}

/// Field order is that of the types and maps are sorted: equal templates, equal text.
fn canonical(template: &PodTemplateSpec) -> String {
    let mut template = template.clone();
    let metadata = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(POD_TEMPLATE_HASH);
    }
    template.to_json().to_string()
}
