//! The CustomResourceDefinition, made from the types.
//!
//! Source: spec/workloadspread §2.1, §2.5; structural schemas of `apiextensions.k8s.io/v1`.

use k8s_openapi::Resource;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::{GROUP, v1alpha1, v1beta1};

/// The CustomResourceDefinition of WorkloadSpread: both versions served, v1beta1 stored, converted by a webhook of the
/// Service of this namespace and name.
pub fn workload_spread(service_namespace: &str, service: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("workloadspreads.{GROUP}")},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": "WorkloadSpread",
                "listKind": "WorkloadSpreadList",
                "plural": "workloadspreads",
                "singular": "workloadspread",
                "shortNames": ["ws"],
            },
            "scope": "Namespaced",
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1", "v1beta1"],
                    "clientConfig": {"service": {"namespace": service_namespace, "name": service, "path": "/convert"}},
                },
            },
            "versions": [
                version::<v1alpha1::WorkloadSpread>(false),
                version::<v1beta1::WorkloadSpread>(true),
            ],
        },
    })
}

fn version<T: Resource + JsonSchema>(is_stored: bool) -> Value {
    let column = |name: &str, kind: &str, path: &str, description: &str| json!({"name": name, "type": kind, "jsonPath": path, "description": description});
    json!({
        "name": T::VERSION,
        "served": true,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": schema_of::<T>()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            column("WorkloadName", "string", ".spec.targetRef.name", "Name of the workload"),
            column("WorkloadKind", "string", ".spec.targetRef.kind", "Kind of the workload"),
            column("Adaptive", "boolean", ".spec.scheduleStrategy.type[?(@ == \"Adaptive\")]", "Whether the strategy is Adaptive"),
            column("Age", "date", ".metadata.creationTimestamp", "Since when it is there"),
        ],
    })
}

/// The structural schema of a type: nothing is referred to, and what only JSON schema says is left out.
fn schema_of<T: JsonSchema>() -> Value {
    let root = SchemaGenerator::default().into_root_schema_for::<T>();
    let root = root.as_value();
    let mut schema = structural(root, &root["$defs"], None);
    // The API server knows metadata itself.
    schema["properties"]["metadata"] = json!({"type": "object"});
    schema
}

const REFERENCE_PREFIX: &str = "#/$defs/";

/// Words of JSON schema that a structural schema has, too.
const KEPT: [&str; 13] = [
    "description",
    "type",
    "format",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "enum",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
];

/// `name` is that of the definition that the schema is.
fn structural(schema: &Value, definitions: &Value, name: Option<&str>) -> Value {
    if let Some((definition, description)) = referred(schema) {
        let mut found = structural(&definitions[definition], definitions, Some(definition));
        if let Some(description) = description {
            found["description"] = description.clone();
        }
        return found;
    }
    let Some(given) = schema.as_object() else {
        // `true`: anything.
        return json!({});
    };
    let mut made = Map::new();
    for key in KEPT {
        let Some(value) = given.get(key) else {
            continue;
        };
        let value = match key {
            // The second type is null: absence, of which structural schemas do not speak.
            "type" => value.get(0).unwrap_or(value).clone(),
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields
                    .map(|(name, field)| (name.clone(), structural(field, definitions, None)));
                Value::Object(fields.collect())
            }
            "items" | "additionalProperties" if value.is_object() => {
                structural(value, definitions, None)
            }
            "enum" => {
                let all = value.as_array().into_iter().flatten();
                Value::Array(all.filter(|one| !one.is_null()).cloned().collect())
            }
            _ => value.clone(),
        };
        made.insert(key.to_owned(), value);
    }
    atomic(name, &mut made);
    Value::Object(made)
}

/// The definition that a schema refers to, directly, as the only member of `allOf`, or beside null; and what is said
/// about the field itself.
fn referred(schema: &Value) -> Option<(&str, Option<&Value>)> {
    let ways = [
        &schema["$ref"],
        &schema["allOf"][0]["$ref"],
        &schema["anyOf"][0]["$ref"],
    ];
    let reference = ways.iter().find_map(|way| way.as_str())?;
    Some((
        reference.strip_prefix(REFERENCE_PREFIX)?,
        schema.get("description"),
    ))
}

/// What the types of Kubernetes say in comments for its own generator: `+structType=atomic`, `+listType=atomic`.
fn atomic(definition: Option<&str>, schema: &mut Map<String, Value>) {
    let Some((_, kind)) = definition.and_then(|name| name.rsplit_once('.')) else {
        return;
    };
    let lists: &[&str] = match kind {
        "NodeSelectorTerm" => &["matchExpressions", "matchFields"],
        "LabelSelector" => &["matchExpressions"],
        "NodeSelectorRequirement" | "LabelSelectorRequirement" => &["values"],
        _ => return,
    };
    if matches!(kind, "NodeSelectorTerm" | "LabelSelector") {
        schema.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    for list in lists {
        if let Some(field) = schema.get_mut("properties").and_then(|p| p.get_mut(*list)) {
            field["x-kubernetes-list-type"] = "atomic".into();
        }
    }
}
