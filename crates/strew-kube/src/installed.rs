//! Finds another installation of strew: what is the cluster's has one name, so that there can be one installation.

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::{Api, Client};

/// The namespace of the accounts that a ClusterRoleBinding gives its rights to, if it is another one than this. `None`
/// if the binding is not there, or has an account of this namespace.
///
/// # Errors
/// The API server does not answer, or does not allow to read the binding.
pub async fn elsewhere(
    client: &Client,
    binding: &str,
    namespace: &str,
) -> Result<Option<String>, kube::Error> {
    let api: Api<ClusterRoleBinding> = Api::all(client.clone());
    let found = api.get_opt(binding).await?;
    let subjects = found.and_then(|found| found.subjects).unwrap_or_default();
    let mut namespaces: Vec<String> = { subjects.into_iter() }
        .filter(|subject| subject.kind == "ServiceAccount")
        .filter_map(|subject| subject.namespace)
        .collect();
    let is_here = namespaces.iter().any(|found| found == namespace);
    Ok(namespaces.pop().filter(|_| !is_here))
}
