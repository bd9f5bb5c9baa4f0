//! An object as the API server sent it.

use std::borrow::Cow;
use std::fmt::{self, Formatter};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use kube::{Api, Client, Resource};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// An object of any kind, not yet decoded: one watch of this type serves all kinds.
#[derive(Debug, Clone)]
pub(crate) struct Untyped {
    /// Namespace, name, uid and resourceVersion; the rest is in the value only.
    pub(crate) metadata: ObjectMeta,
    /// The object, without `managedFields`.
    pub(crate) value: Value,
}

impl<'de> Deserialize<'de> for Untyped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = deserializer.deserialize_map(Fields)?;
        let given = value.get("metadata").and_then(Value::as_object);
        let text = |field: &str| Some(given.as_ref()?.get(field)?.as_str()?.to_owned());
        let metadata = ObjectMeta {
            namespace: text("namespace"),
            name: text("name"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            ..ObjectMeta::default()
        };
        let value = Value::Object(value);
        Ok(Self { metadata, value })
    }
}

/// Reads the fields of an object.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = given.next_key::<String>()? {
            let value = match &*name {
                "metadata" => given.next_value::<Metadata>()?.0,
                _ => given.next_value()?,
            };
            fields.insert(name, value);
        }
        Ok(fields)
    }
}

/// Any value; an object comes without its `managedFields`, which are often the largest part of what is sent, and are
/// not kept in memory even while it is read.
struct Metadata(Value);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MetadataFields).map(Self)
    }
}

struct MetadataFields;

impl<'de> Visitor<'de> for MetadataFields {
    type Value = Value;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut given: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = given.next_key::<String>()? {
            match &*name {
                "managedFields" => drop(given.next_value::<IgnoredAny>()?),
                _ => drop(fields.insert(name, given.next_value()?)),
            }
        }
        Ok(Value::Object(fields))
    }

    // Metadata that is no object is for the decoder to refuse.

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut given: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = given.next_element()? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }
}

impl Resource for Untyped {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        of.api_version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The objects of a kind in a namespace, not decoded.
pub(crate) fn api<K: Resource<DynamicType = ()>>(client: &Client, namespace: &str) -> Api<Untyped> {
    Api::namespaced_with(client.clone(), namespace, &ApiResource::erase::<K>(&()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_keeps_all_but_its_managed_fields() {
        let metadata = json!({"name": "a", "managedFields": [{}], "labels": {"x": "y"}});
        let object: Untyped =
            serde_json::from_value(json!({"metadata": metadata, "spec": 1})).unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some("a"));
        let kept = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": 1});
        assert_eq!(object.value, kept);
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for wrong in [json!(null), json!("pod"), json!([1])] {
            assert!(serde_json::from_value::<Untyped>(wrong).is_err());
        }
        // Objects without usable metadata are for the decoder to refuse.
        for metadata in [
            json!(null),
            json!(true),
            json!(3),
            json!(-3),
            json!(0.5),
            json!("a"),
            json!(["a"]),
            json!({"name": 3}),
        ] {
            let value = json!({"metadata": metadata});
            for object in [
                serde_json::from_value::<Untyped>(value.clone()),
                serde_json::from_str(&value.to_string()),
            ] {
                let object = object.unwrap();
                assert_eq!(object.metadata.name, None);
                assert_eq!(object.value, value);
            }
        }
    }
}
