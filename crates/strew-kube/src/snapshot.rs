//! Lists all objects that decisions depend on, page by page.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use kube::Client;
use serde_json::Value;
use strew_manifest::snapshot::Scrubber;
use thiserror::Error;

/// A kind of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// The path without the leading `/`, up to the version.
    api: &'static str,
    /// The plural name.
    plural: &'static str,
    /// The version that is listed where this one is not served.
    older: Option<&'static str>,
    /// True if a snapshot fails without it.
    is_needed: bool,
}

const fn needed(api: &'static str, plural: &'static str) -> Listed {
    Listed {
        api,
        plural,
        older: None,
        is_needed: true,
    }
}

const fn other(api: &'static str, plural: &'static str) -> Listed {
    Listed {
        api,
        plural,
        older: None,
        is_needed: false,
    }
}

/// A kind of Kruise, in the version that it stores from 1.9 on, else in the first one.
const fn of_kruise(plural: &'static str) -> Listed {
    Listed {
        older: Some("apis/apps.kruise.io/v1alpha1"),
        ..other("apis/apps.kruise.io/v1beta1", plural)
    }
}

/// The kinds in the order of listing; those that pods depend on come first.
const LISTED: &[Listed] = &[
    other("api/v1", "namespaces"),
    needed("api/v1", "nodes"),
    other("apis/scheduling.k8s.io/v1", "priorityclasses"),
    other("apis/node.k8s.io/v1", "runtimeclasses"),
    other("apis/storage.k8s.io/v1", "storageclasses"),
    other("apis/storage.k8s.io/v1", "csinodes"),
    other("api/v1", "persistentvolumes"),
    other("api/v1", "persistentvolumeclaims"),
    other("api/v1", "resourcequotas"),
    other("api/v1", "limitranges"),
    other("api/v1", "services"),
    other("api/v1", "replicationcontrollers"),
    other("apis/apps/v1", "deployments"),
    other("apis/apps/v1", "replicasets"),
    other("apis/apps/v1", "statefulsets"),
    other("apis/apps/v1", "daemonsets"),
    other("apis/apps/v1", "controllerrevisions"),
    other("apis/batch/v1", "cronjobs"),
    other("apis/batch/v1", "jobs"),
    other("apis/autoscaling/v2", "horizontalpodautoscalers"),
    other("apis/policy/v1", "poddisruptionbudgets"),
    of_kruise("clonesets"),
    of_kruise("workloadspreads"),
    other(
        "apis/cluster.open-cluster-management.io/v1",
        "managedclusters",
    ),
    other(
        "apis/cluster.open-cluster-management.io/v1beta2",
        "managedclustersets",
    ),
    other(
        "apis/cluster.open-cluster-management.io/v1beta2",
        "managedclustersetbindings",
    ),
    other(
        "apis/cluster.open-cluster-management.io/v1beta1",
        "placements",
    ),
    other(
        "apis/cluster.open-cluster-management.io/v1beta1",
        "placementdecisions",
    ),
    other(
        "apis/cluster.open-cluster-management.io/v1alpha1",
        "addonplacementscores",
    ),
    needed("api/v1", "pods"),
];

/// The path prefix of a hub's kinds.
const HUB: &str = "apis/cluster.open-cluster-management.io/";

/// Objects per page.
const PAGE: u32 = 500;

/// Kinds listed concurrently.
const AT_ONCE: usize = 4;

/// The time limit for one page.
const PAGE_WITHIN: Duration = Duration::from_secs(60);

/// The objects of a cluster.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The objects, each with its `apiVersion` and `kind`.
    pub objects: Vec<Value>,
    /// The kinds that may not be read, in the API server's words.
    pub left_out: Vec<String>,
}

/// Why there is no snapshot.
#[derive(Debug, Error)]
#[error("{plural} cannot be listed: {text}")]
pub struct SnapshotError {
    plural: &'static str,
    text: String,
}

/// Lists everything. Kinds that the API server does not serve are skipped; forbidden kinds are left out.
///
/// # Errors
/// Nodes or pods are forbidden, or a list fails.
pub async fn take(client: &Client) -> Result<Snapshot, SnapshotError> {
    take_all(client, LISTED.iter().copied()).await
}

/// Lists the objects of a hub that Placements depend on, and nothing else.
///
/// # Errors
/// A list fails.
pub async fn take_hub(client: &Client) -> Result<Snapshot, SnapshotError> {
    let of_hub = |listed: &Listed| listed.api.starts_with(HUB);
    take_all(client, LISTED.iter().copied().filter(of_hub)).await
}

/// Lists what an audit reads: all but the kinds of a hub. Each page is scrubbed when it arrives, so that what decides
/// nothing is never kept. Kinds that may not be read are left out.
///
/// # Errors
/// Nodes or pods are forbidden, or a list fails.
pub async fn take_for_audit(client: &Client) -> Result<Vec<Value>, SnapshotError> {
    let scrubber = Mutex::new(Scrubber::default());
    let scrub = |object: &mut Value| {
        let mut scrubber = scrubber.lock().unwrap_or_else(PoisonError::into_inner);
        scrubber.scrub(object);
    };
    Ok(take_with(client, of_audit_listed(), &scrub).await?.objects)
}

fn of_audit_listed() -> impl Iterator<Item = Listed> {
    { LISTED.iter().copied() }.filter(|listed| !listed.api.starts_with(HUB))
}

/// The API groups and plural names of the kinds that [`take_for_audit`] lists.
pub fn of_audit() -> impl Iterator<Item = (&'static str, &'static str)> {
    of_audit_listed().map(|listed| {
        let group = listed.api.strip_prefix("apis/").unwrap_or_default();
        let group = group.split('/').next().unwrap_or_default();
        (group, listed.plural)
    })
}

async fn take_all(
    client: &Client,
    listed: impl Iterator<Item = Listed>,
) -> Result<Snapshot, SnapshotError> {
    take_with(client, listed, &|_| {}).await
}

async fn take_with(
    client: &Client,
    listed: impl Iterator<Item = Listed>,
    each: &(impl Fn(&mut Value) + Sync),
) -> Result<Snapshot, SnapshotError> {
    let lists = stream::iter(listed.map(|listed| list(client, listed, each)));
    let lists: Vec<Result<Found, SnapshotError>> = lists.buffered(AT_ONCE).collect().await;
    let mut snapshot = Snapshot::default();
    for found in lists {
        match found? {
            Found::Objects(mut objects) => snapshot.objects.append(&mut objects),
            Found::Forbidden(text) => snapshot.left_out.push(text),
        }
    }
    Ok(snapshot)
}

enum Found {
    Objects(Vec<Value>),
    Forbidden(String),
}

async fn list(
    client: &Client,
    mut listed: Listed,
    each: &(impl Fn(&mut Value) + Sync),
) -> Result<Found, SnapshotError> {
    let fail = |text: String| SnapshotError {
        plural: listed.plural,
        text,
    };
    let mut objects = Vec::new();
    let mut token = String::new();
    loop {
        let path = path(&listed, &token);
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| fail(error.to_string()))?;
        let page = tokio::time::timeout(PAGE_WITHIN, client.request::<Value>(request)).await;
        let mut page = match page {
            Ok(Ok(page)) => page,
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => match listed.older.take() {
                Some(older) => {
                    listed.api = older;
                    continue;
                }
                None => return Ok(Found::Objects(objects)),
            },
            Ok(Err(kube::Error::Api(status))) if status.code == 403 && !listed.is_needed => {
                return Ok(Found::Forbidden(status.message.clone()));
            }
            // The continue token has expired: the list starts again.
            Ok(Err(kube::Error::Api(status))) if status.code == 410 && !token.is_empty() => {
                objects.clear();
                token.clear();
                continue;
            }
            Ok(Err(error)) => return Err(fail(crate::causes::in_a_line(&error))),
            Err(_) => {
                return Err(fail(format!(
                    "no answer within {} s",
                    PAGE_WITHIN.as_secs()
                )));
            }
        };
        let n_before = objects.len();
        take_page(&mut page, &mut objects);
        objects.iter_mut().skip(n_before).for_each(each);
        match page["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => next.clone_into(&mut token),
            _ => return Ok(Found::Objects(objects)),
        }
    }
}

fn path(listed: &Listed, token: &str) -> String {
    let mut path = format!("/{}/{}?limit={PAGE}", listed.api, listed.plural);
    if !token.is_empty() {
        path.push_str("&continue=");
        // A token is base64 for URLs, except for its padding.
        path.push_str(&token.replace('=', "%3D").replace('+', "%2B"));
    }
    path
}

/// Moves the items of a page, which get `apiVersion` and `kind` from the list.
fn take_page(page: &mut Value, objects: &mut Vec<Value>) {
    let version = page["apiVersion"].clone();
    let kind = page["kind"].as_str().unwrap_or_default();
    let kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
    let Value::Array(items) = page["items"].take() else {
        return;
    };
    for item in items {
        let Value::Object(fields) = item else {
            continue;
        };
        let mut object = serde_json::Map::new();
        object.insert("apiVersion".to_owned(), version.clone());
        object.insert("kind".to_owned(), kind.clone().into());
        object.extend(fields);
        objects.push(Value::Object(object));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_are_told_what_they_are() {
        let mut page =
            json!({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a"}}]});
        let mut objects = Vec::new();
        take_page(&mut page, &mut objects);
        let wanted = json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}]);
        assert_eq!(Value::Array(objects), wanted);
    }

    #[test]
    fn a_page_after_the_first_is_asked_for_by_its_token() {
        let pods = needed("api/v1", "pods");
        assert_eq!(path(&pods, ""), "/api/v1/pods?limit=500");
        assert_eq!(path(&pods, "ab="), "/api/v1/pods?limit=500&continue=ab%3D");
    }
}
