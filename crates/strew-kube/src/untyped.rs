//! An object as the API server sent it.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope};
use kube::{Api, Client, Resource};
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
        let mut value = Map::deserialize(deserializer)?;
        let mut given = value.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(fields) = &mut given {
            fields.shift_remove("managedFields");
        }
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
        for metadata in [json!(null), json!(3), json!({"name": 3})] {
            let object: Untyped = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            assert_eq!(object.metadata.name, None);
        }
    }
}
