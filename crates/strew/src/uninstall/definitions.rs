//! The CustomResourceDefinitions of a component that belong to strew, with the number of objects of each.

use serde_json::{Value, json};
use strew_kube::connect::connect;
use strew_kube::definitions::{Maker, maker, n_objects};
use strew_wire::config::ClientConnection;

use crate::cluster::access::{self, AccessArgs};
use crate::cluster::runtime;
use crate::failure::Failure;

/// A definition in the cluster.
pub(super) struct Found {
    /// The object to print; `None`: it stays.
    pub(super) object: Option<Value>,
    /// The note about it.
    pub(super) note: String,
}

/// The definitions among these that the cluster has.
///
/// # Errors
/// The cluster cannot be asked.
pub(super) fn of_strew(definitions: &[Value], access: &AccessArgs) -> Result<Vec<Found>, Failure> {
    runtime()?.block_on(async {
        let access = access.of(&ClientConnection::default());
        let connection = connect(&access, "strew").await.map_err(access::failure)?;
        let client = &connection.client;
        let mut found = Vec::new();
        for definition in definitions {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            found.extend(match maker(client, name).await.map_err(Failure::outside)? {
                Maker::Nobody => None,
                Maker::Others => Some(Found {
                    object: None,
                    note: format!("CustomResourceDefinition {name} is not strew's: it stays"),
                }),
                Maker::Strew => {
                    let n = n_objects(client, definition)
                        .await
                        .map_err(Failure::outside)?;
                    Some(Found {
                        object: Some(json!({
                            "apiVersion": definition["apiVersion"],
                            "kind": definition["kind"],
                            "metadata": {"name": name},
                        })),
                        note: format!(
                            "CustomResourceDefinition {name} goes with all its {n} objects"
                        ),
                    })
                }
            });
        }
        Ok(found)
    })
}
