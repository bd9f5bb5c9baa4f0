//! Leases, as JSON: only elections read and write them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Leases by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Leases(BTreeMap<(String, String), Value>);

impl Leases {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.0.get(&(namespace.to_owned(), name.to_owned()))
    }

    pub(super) fn set(
        &mut self,
        namespace: &str,
        name: &str,
        version: u64,
        mut lease: Value,
    ) -> Value {
        if let Some(metadata) = lease["metadata"].as_object_mut() {
            metadata.insert("resourceVersion".to_owned(), version.to_string().into());
            metadata.insert("namespace".to_owned(), namespace.into());
            metadata.insert("name".to_owned(), name.into());
        }
        self.0
            .insert((namespace.to_owned(), name.to_owned()), lease.clone());
        lease
    }
}
