//! Makes CustomResourceDefinitions from the types, for `deploy/crds/`.
//!
//! Source: structural schemas of `apiextensions.k8s.io/v1`.

use k8s_openapi::Resource;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::OWN_LABEL;

/// The facts of a definition beside its versions.
pub(crate) struct Facts {
    /// `Namespaced` or `Cluster`.
    pub(crate) scope: &'static str,
    /// Short names for kubectl.
    pub(crate) short_names: &'static [&'static str],
    /// How versions are converted, if there are several.
    pub(crate) conversion: Option<Value>,
}

/// The definition of a kind, with its versions.
pub(crate) fn definition<T: Resource>(facts: Facts, versions: Vec<Value>) -> Value {
    let (key, value) = OWN_LABEL;
    let mut names = json!({
        "kind": T::KIND,
        "listKind": format!("{}List", T::KIND),
        "plural": T::URL_PATH_SEGMENT,
        "singular": T::KIND.to_ascii_lowercase(),
    });
    if !facts.short_names.is_empty() {
        names["shortNames"] = facts.short_names.into();
    }
    let mut spec = json!({"group": T::GROUP, "names": names, "scope": facts.scope});
    if let Some(conversion) = facts.conversion {
        spec["conversion"] = conversion;
    }
    spec["versions"] = versions.into();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.{}", T::URL_PATH_SEGMENT, T::GROUP),
            "labels": {key: value},
        },
        "spec": spec,
    })
}

/// A served version with the subresource `status`.
pub(crate) fn version<T: Resource>(is_stored: bool, schema: Value, columns: &[Column]) -> Value {
    let mut version = json!({
        "name": T::VERSION,
        "served": true,
        "storage": is_stored,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    });
    if !columns.is_empty() {
        let columns: Vec<Value> = columns.iter().map(Column::value).collect();
        version["additionalPrinterColumns"] = columns.into();
    }
    version
}

/// A column of `kubectl get`.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// `string`, `integer`, `boolean` or `date`.
    pub(crate) kind: &'static str,
    pub(crate) path: &'static str,
    pub(crate) description: &'static str,
}

/// The column with the age of an object.
pub(crate) const AGE: Column = Column {
    name: "Age",
    kind: "date",
    path: ".metadata.creationTimestamp",
    description: "Since when it is there",
};

impl Column {
    fn value(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "jsonPath": self.path,
            "description": self.description,
        })
    }
}

/// The structural schema of a type: without references, and without keywords that only JSON schema has.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let root = SchemaGenerator::default().into_root_schema_for::<T>();
    let root = root.as_value();
    let mut schema = structural(root, &root["$defs"], None);
    // The API server defines these itself.
    schema["properties"]["metadata"] = json!({"type": "object"});
    for known in ["apiVersion", "kind"] {
        schema["properties"][known] = json!({"type": "string"});
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("required");
    }
    schema
}

/// Adds rules to fields of a schema. Each rule is a set of schema keywords for a field path: `spec.taints[].key`, where
/// `[]` means the elements of a list and `{}` the values of a map; the empty path is the object itself.
///
/// # Panics
/// The field does not exist: paths and types are both part of strew.
pub(crate) fn constrain(schema: &mut Value, rules: &[(&str, Value)]) {
    for (path, words) in rules {
        let field = field_mut(schema, path);
        let field = field.and_then(Value::as_object_mut);
        let field = field.unwrap_or_else(|| panic!("there is no field {path:?}"));
        for (word, value) in words.as_object().into_iter().flatten() {
            field.insert(word.clone(), value.clone());
        }
    }
}

fn field_mut<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut at = schema;
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let name = step.trim_end_matches(['[', ']', '{', '}']);
        at = at.get_mut("properties")?.get_mut(name)?;
        for inner in step.as_bytes()[name.len()..].chunks(2) {
            at = at.get_mut(match inner {
                b"[]" => "items",
                _ => "additionalProperties",
            })?;
        }
    }
    Some(at)
}

const REFERENCE_PREFIX: &str = "#/$defs/";

/// Keywords of JSON schema that structural schemas have too.
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

/// `name` is that of the definition that the schema comes from.
fn structural(schema: &Value, definitions: &Value, name: Option<&str>) -> Value {
    if let Some((definition, description)) = referred(schema) {
        let mut found = structural(&definitions[definition], definitions, Some(definition));
        if let Some(description) = description {
            found["description"] = description.clone();
        }
        return found;
    }
    let Some(given) = schema.as_object() else {
        // The schema `true` accepts anything.
        return json!({});
    };
    let mut made = Map::new();
    for key in KEPT {
        let Some(value) = given.get(key) else {
            continue;
        };
        let value = match key {
            // The second type is null: absence, which structural schemas do not express.
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

/// The definition that a schema refers to, directly, as the only member of `allOf`, or beside null; and the description
/// of the field itself.
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

/// Reads the markers of Kubernetes' generator in descriptions: `+structType=atomic`, `+listType=atomic`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_find_fields_in_lists_and_maps() {
        let text = || json!({"type": "string"});
        let mut schema = json!({"properties": {"spec": {"properties": {
            "names": {"items": {"properties": {"key": text()}}},
            "amounts": {"additionalProperties": {"items": text()}},
        }}}});
        let rules = [
            ("", json!({"required": ["spec"]})),
            ("spec.names", json!({"maxItems": 8})),
            ("spec.names[].key", json!({"maxLength": 3})),
            ("spec.amounts{}[]", json!({"pattern": "x"})),
        ];
        constrain(&mut schema, &rules);
        let at = |path: &str| schema.pointer(path).cloned();
        let spec = "/properties/spec/properties";
        assert_eq!(at("/required"), Some(json!(["spec"])));
        assert_eq!(at(&format!("{spec}/names/maxItems")), Some(json!(8)));
        let key = format!("{spec}/names/items/properties/key/maxLength");
        assert_eq!(at(&key), Some(json!(3)));
        let amount = format!("{spec}/amounts/additionalProperties/items/pattern");
        assert_eq!(at(&amount), Some(json!("x")));
    }

    #[test]
    #[should_panic(expected = "there is no field \"spec.nmes\"")]
    fn a_rule_about_nothing_is_a_mistake() {
        let mut schema = json!({"properties": {"spec": {"properties": {"names": {}}}}});
        constrain(&mut schema, &[("spec.nmes", json!({}))]);
    }
}
