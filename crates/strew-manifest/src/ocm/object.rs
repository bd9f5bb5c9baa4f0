//! Makes strew's types Kubernetes objects as k8s-openapi's are, so that the same code reads, checks and writes them.

use serde::{Deserialize, Deserializer};

/// Whether a part of an object is left out when it is written.
pub(super) trait Absent {
    /// It is not there.
    fn is_absent(&self) -> bool;
}

impl<T> Absent for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// `null` means absence, as for Kubernetes' decoder.
pub(super) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Declares objects: metadata, and the parts `spec` and `status` where they have them.
macro_rules! objects {
    ($(
        $(#[$doc:meta])*
        $name:ident: $api_version:literal = $group:literal $version:literal, $plural:literal, $scope:ident {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct $name {
            /// Name, labels, annotations.
            pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
            $($(#[$field_doc])* pub $field: Option<$type>,)*
        }

        impl k8s_openapi::Resource for $name {
            const API_VERSION: &'static str = $api_version;
            const GROUP: &'static str = $group;
            const KIND: &'static str = stringify!($name);
            const VERSION: &'static str = $version;
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = k8s_openapi::$scope;
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
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                use $crate::ocm::object::Absent;
                let mut map = serializer.serialize_map(None)?;
                map.serialize_entry("apiVersion", $api_version)?;
                map.serialize_entry("kind", stringify!($name))?;
                map.serialize_entry("metadata", &self.metadata)?;
                $(if !self.$field.is_absent() {
                    map.serialize_entry(stringify!($field), &self.$field)?;
                })*
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                /// The parts of an object; its type was checked before.
                #[derive(serde::Deserialize)]
                struct Parts {
                    #[serde(default, deserialize_with = "null_as_default")]
                    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
                    $($field: Option<$type>,)*
                }
                let Parts { metadata, $($field),* } = Parts::deserialize(deserializer)?;
                Ok(Self { metadata, $($field),* })
            }
        }

        #[cfg(feature = "schemas")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $(#[$doc])*
                #[derive(schemars::JsonSchema)]
                #[allow(dead_code, reason = "only its schema is wanted")]
                #[schemars(rename_all = "camelCase")]
                struct Parts {
                    api_version: String,
                    kind: String,
                    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
                    $($(#[$field_doc])* $field: Option<$type>,)*
                }
                Parts::json_schema(generator)
            }
        }
    )*};
}

pub(super) use objects;
