//! One installation a cluster: roles, bindings, policies and webhook configurations have one name, so that a second
//! installation would take the rights of the first.

use serde_json::Value;
use strew_kube::connect::{ConnectError, connect};
use strew_kube::installed::elsewhere;
use strew_wire::config::ClientConnection;

use crate::cluster::access::{self, AccessArgs};
use crate::cluster::ask;
use crate::failure::Failure;

/// A ClusterRoleBinding that gives its rights to accounts of another namespace.
pub(crate) struct Elsewhere {
    /// Its name.
    pub(crate) binding: String,
    /// That namespace.
    pub(crate) namespace: String,
}

/// The first ClusterRoleBinding among these objects that the cluster has for accounts of another namespace. `None` if
/// there is none, if no cluster is known, or if one that no flag names does not answer.
///
/// # Errors
/// The cluster that a flag names does not answer.
pub(crate) fn find(
    objects: &[Value],
    namespace: &str,
    args: &AccessArgs,
) -> Result<Option<Elsewhere>, Failure> {
    let bindings = objects
        .iter()
        .filter(|object| object["kind"] == "ClusterRoleBinding");
    let bindings = bindings.filter_map(|object| object["metadata"]["name"].as_str());
    let bindings: Vec<&str> = bindings.collect();
    let found = ask(async {
        let access = args.of(&ClientConnection::default());
        let client = match connect(&access, "strew").await {
            Ok(connection) => connection.client,
            Err(ConnectError::Nowhere(_)) => return Ok(None),
            Err(error) => return Err(access::failure(error)),
        };
        for binding in bindings {
            let found = elsewhere(&client, binding, namespace).await;
            if let Some(namespace) = found.map_err(Failure::outside)? {
                let binding = binding.to_owned();
                return Ok(Some(Elsewhere { binding, namespace }));
            }
        }
        Ok(None)
    });
    match found {
        Err(error) if args.is_named() => Err(error),
        found => Ok(found.unwrap_or_default()),
    }
}
