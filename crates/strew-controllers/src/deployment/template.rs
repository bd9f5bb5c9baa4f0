//! Equality of templates.
//!
//! Source: spec/controllers §2.2: "equality is semantic", `pod-template-hash` left out.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde_json::{Map, Value};
use strew_manifest::json::Json;
use strew_manifest::quantity::Quantity;

/// The label that distinguishes the ReplicaSets of a Deployment.
pub const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// True if two templates make the same pods, apart from their hash labels.
pub fn equals(a: &PodTemplateSpec, b: &PodTemplateSpec) -> bool {
    let [a, b] = [a, b].map(|template| without_hash(template.clone()));
    a == b || same(&a.to_json(), &b.to_json(), false)
}

/// The template without the label that a ReplicaSet adds.
pub fn without_hash(mut template: PodTemplateSpec) -> PodTemplateSpec {
    let labels = template.metadata.as_mut().and_then(|m| m.labels.as_mut());
    if let Some(labels) = labels {
        labels.remove(POD_TEMPLATE_HASH);
    }
    template
}

/// Absent equals empty, and quantities are compared by value.
fn same(a: &Value, b: &Value, is_quantity: bool) -> bool {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            let keys = x.keys().chain(y.keys().filter(|key| !x.contains_key(*key)));
            keys.into_iter().all(|key| {
                let of = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
                let (x, y) = (of(x), of(y));
                match key.as_str() {
                    "labels" | "annotations" | "matchLabels" | "nodeSelector" => {
                        x == y || (is_empty(&x) && is_empty(&y))
                    }
                    "requests" | "limits" | "overhead" | "sizeLimit" | "divisor" => {
                        same(&x, &y, true)
                    }
                    _ => same(&x, &y, is_quantity),
                }
            })
        }
        (Value::Array(x), Value::Array(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y, is_quantity))
        }
        (Value::String(x), Value::String(y)) if is_quantity => x == y || same_quantity(x, y),
        _ => a == b || (is_empty(a) && is_empty(b)),
    }
}

fn same_quantity(a: &str, b: &str) -> bool {
    let parse = |text: &str| Quantity::parse(text).ok();
    parse(a).is_some_and(|a| parse(b) == Some(a))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_means_something_else_is_different() {
        let base = || {
            json!({
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}]}
            })
        };
        let read = |value: Value| serde_json::from_value::<PodTemplateSpec>(value).unwrap();
        for (pointer, value, expected) in [
            (
                "/spec/containers/0/resources/requests/cpu",
                json!("1000m"),
                true,
            ),
            (
                "/spec/containers/0/resources/requests/cpu",
                json!("1001m"),
                false,
            ),
            ("/spec/containers/0/image", json!("nginx:2"), false),
            ("/spec/tolerations", json!([]), true),
            ("/spec/nodeSelector", json!({}), true),
            ("/spec/nodeSelector", json!({"a": "b"}), false),
            ("/metadata/labels/pod-template-hash", json!("x"), true),
            ("/metadata/labels/tier", json!("x"), false),
            ("/metadata/annotations", json!({"a": "b"}), false),
            ("/metadata/annotations", json!({}), true),
        ] {
            let mut other = base();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            other.pointer_mut(parent).unwrap()[key] = value;
            let text = other.to_string();
            let (a, b) = (read(base()), read(other));
            assert_eq!([equals(&a, &b), equals(&b, &a)], [expected; 2], "{text}");
        }
    }
}
