//! Whether a cluster's CustomResourceDefinitions are strew's own. Definitions of other projects are used and never
//! replaced.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use strew_api::definition::is_own;

/// The owner of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// There is none.
    Nobody,
    /// `strew install`.
    Strew,
    /// Another project: Kruise or OCM.
    Others,
}

/// The owner of the definition of this name.
///
/// # Errors
/// The API server cannot be asked, or does not tell.
pub async fn maker(client: &Client, name: &str) -> Result<Maker, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = api.get_metadata_opt(name).await?;
    Ok(match found {
        None => Maker::Nobody,
        Some(found) if is_own(found.metadata.labels.as_ref()) => Maker::Strew,
        Some(_) => Maker::Others,
    })
}
