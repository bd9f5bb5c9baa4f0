//! Finds out whether a cluster's CustomResourceDefinitions are strew's own. strew uses definitions of other projects
//! and never replaces them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, Client};
use serde_json::Value;
use strew_wire::definition::is_own;

/// The project that installed a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The definition does not exist.
    Nobody,
    /// `strew install`.
    Strew,
    /// Another project: Kruise or OCM.
    Others,
}

/// The project that installed the definition of this name.
///
/// # Errors
/// The API server does not answer.
pub async fn maker(client: &Client, name: &str) -> Result<Maker, kube::Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let found = api.get_metadata_opt(name).await?;
    Ok(match found {
        None => Maker::Nobody,
        Some(found) if is_own(found.metadata.labels.as_ref()) => Maker::Strew,
        Some(_) => Maker::Others,
    })
}

/// The number of objects of a definition, in all namespaces. They are counted in the stored version, which needs no
/// conversion webhook.
///
/// # Errors
/// The API server does not answer.
pub async fn n_objects(client: &Client, definition: &Value) -> Result<usize, kube::Error> {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array();
    let mut versions = versions.into_iter().flatten();
    let stored = versions.find(|version| version["storage"] == true);
    let group = text(&spec["group"]);
    let version = stored.map_or_else(String::new, |version| text(&version["name"]));
    let resource = ApiResource {
        api_version: format!("{group}/{version}"),
        group,
        version,
        kind: text(&spec["names"]["kind"]),
        plural: text(&spec["names"]["plural"]),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    // The list of one object has the number of the remaining ones.
    let page = api.list_metadata(&ListParams::default().limit(1)).await?;
    let rest = page.metadata.remaining_item_count.unwrap_or_default();
    Ok(page.items.len() + usize::try_from(rest).unwrap_or_default())
}
