//! What makes a type a Kubernetes object: group, version, kind, and the fields that all objects have.

use serde::{Deserialize, Deserializer};

/// The API group of WorkloadSpread, CloneSet and Kruise's StatefulSet.
pub const GROUP: &str = "apps.kruise.io";

/// Declares a namespaced kind of [`GROUP`] as k8s-openapi declares its own: `metadata`, `spec` and `status` of the given
/// types, `apiVersion` and `kind` written, and not stored.
macro_rules! object {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $version:literal, $plural:literal, $spec:ty, $status:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Deserialize)]
        #[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
        #[serde(default)]
        #[cfg_attr(feature = "schemas", schemars(transform = $crate::kruise::object::add_type))]
        pub struct $name {
            /// Standard object's metadata.
            #[serde(deserialize_with = "or_default")]
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            /// What is asked for.
            pub spec: Option<$spec>,
            /// What was found.
            pub status: Option<$status>,
        }

        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = concat!("apps.kruise.io/", $version);
            const GROUP: &'static str = $crate::kruise::object::GROUP;
            const KIND: &'static str = $kind;
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::NamespaceResourceScope;
        }

        impl k8s_openapi::Metadata for $name {
            type Ty = k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

            fn metadata(&self) -> &Self::Ty {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut Self::Ty {
                &mut self.metadata
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = to.serialize_map(None)?;
                map.serialize_entry("apiVersion", <Self as k8s_openapi::Resource>::API_VERSION)?;
                map.serialize_entry("kind", <Self as k8s_openapi::Resource>::KIND)?;
                map.serialize_entry("metadata", &self.metadata)?;
                if let Some(spec) = &self.spec {
                    map.serialize_entry("spec", spec)?;
                }
                if let Some(status) = &self.status {
                    map.serialize_entry("status", status)?;
                }
                map.end()
            }
        }
    };
}
pub(super) use object;

/// `null` is absence, as it is to Kubernetes' decoder.
pub(super) fn or_default<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// Adds `apiVersion` and `kind` to a schema.
#[cfg(feature = "schemas")]
pub(super) fn add_type(schema: &mut schemars::Schema) {
    let Some(properties) = schema.get_mut("properties").and_then(|p| p.as_object_mut()) else {
        return;
    };
    for name in ["kind", "apiVersion"] {
        let text = serde_json::json!({"type": "string"});
        properties.shift_insert(0, name.to_owned(), text);
    }
}
