//! Lists all objects that decisions depend on, page by page.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, StreamExt};
use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    LimitRange, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    ReplicationController, ResourceQuota, Service,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use kube::Client;
use serde_json::Value;
use strew_manifest::kinds::{self, KindRow, Pods};
use strew_manifest::kruise::v1beta1::WorkloadSpread;
use strew_manifest::kruise::workloads::CloneSet;
use strew_manifest::snapshot::Scrubber;
use strew_runtime::placement;
use strew_runtime::reads::Reads;
use thiserror::Error;

/// The kinds that an audit lists: those of a cluster that decisions depend on.
pub const OF_AUDIT: &[Reads] = &[
    Reads::of::<Namespace>("namespace selectors of pod affinity terms"),
    Reads::of::<Node>("the domains, and their room"),
    Reads::of::<Pod>("what runs in each domain"),
    Reads::of::<Service>("endpoints that are left; default constraints"),
    Reads::of::<ReplicationController>("which pods are made again"),
    Reads::of::<PersistentVolume>("volumes that exist in one domain"),
    Reads::of::<PersistentVolumeClaim>("the volumes of a pod"),
    Reads::of::<ResourceQuota>("whether new pods are admitted"),
    Reads::of::<LimitRange>("requests of new pods"),
    Reads::of::<Deployment>("which pods are made again"),
    Reads::of::<ReplicaSet>("which pods are made again"),
    Reads::of::<StatefulSet>("which pods are made again"),
    Reads::of::<DaemonSet>("pods that stay on their nodes"),
    Reads::of::<ControllerRevision>("the templates of StatefulSets and DaemonSets"),
    Reads::of::<Job>("which pods are made again"),
    Reads::of::<CronJob>("Jobs that begin meanwhile"),
    Reads::of::<HorizontalPodAutoscaler>("how many pods a workload asks for"),
    Reads::of::<PodDisruptionBudget>(
        "which evictions a drain may do, and how many pods must be left",
    ),
    Reads::of::<PriorityClass>("priorities of new pods"),
    Reads::of::<RuntimeClass>("overheads and node selectors of new pods"),
    Reads::of::<StorageClass>("whether a claim waits for the pod's first node"),
    Reads::of::<CSINode>("how many volumes a node can attach"),
    Reads::of::<CloneSet>("which pods are made again"),
    Reads::of::<WorkloadSpread>("the subsets of new pods"),
];

/// The kinds of a hub that Placements depend on.
const OF_HUB: &[Reads] = placement::READS;

/// A kind of a snapshot.
struct Listed {
    row: KindRow,
    /// The versions to list, the newest last; where one is not served, the one before is listed.
    versions: Vec<&'static str>,
}

impl Listed {
    fn of(reads: &Reads) -> Self {
        let row = reads.row;
        let mut versions = kinds::versions(row.group, row.kind);
        versions.reverse();
        Self { row, versions }
    }

    /// True if a snapshot fails without it.
    fn is_needed(&self) -> bool {
        self.row.kind == "Node" || self.row.pods == Pods::Are
    }
}

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
    take_with(client, &[OF_AUDIT, OF_HUB].concat(), &|_| {}).await
}

/// Lists the objects of a hub that Placements depend on, and nothing else.
///
/// # Errors
/// A list fails.
pub async fn take_hub(client: &Client) -> Result<Snapshot, SnapshotError> {
    take_with(client, OF_HUB, &|_| {}).await
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
    Ok(take_with(client, OF_AUDIT, &scrub).await?.objects)
}

async fn take_with(
    client: &Client,
    reads: &[Reads],
    each: &(impl Fn(&mut Value) + Sync),
) -> Result<Snapshot, SnapshotError> {
    let mut listed: Vec<Listed> = reads.iter().map(Listed::of).collect();
    // Pods come last: what they depend on is then in the snapshot.
    listed.sort_by_key(|listed| listed.row.pods == Pods::Are);
    let lists = listed.into_iter().map(|listed| list(client, listed, each));
    let lists = stream::iter(lists);
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
        plural: listed.row.plural,
        text,
    };
    let mut objects = Vec::new();
    let mut token = String::new();
    let mut version = listed.versions.pop().unwrap_or(listed.row.version);
    loop {
        let path = path(&listed.row, version, &token);
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|error| fail(error.to_string()))?;
        let page = tokio::time::timeout(PAGE_WITHIN, client.request::<Value>(request)).await;
        let mut page = match page {
            Ok(Ok(page)) => page,
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                match listed.versions.pop() {
                    Some(older) => {
                        version = older;
                        continue;
                    }
                    None => return Ok(Found::Objects(objects)),
                }
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 && !listed.is_needed() => {
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

fn path(row: &KindRow, version: &str, token: &str) -> String {
    let mut path = match row.group {
        "" => format!("/api/{version}/{}?limit={PAGE}", row.plural),
        group => format!("/apis/{group}/{version}/{}?limit={PAGE}", row.plural),
    };
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
        let pods = Listed::of(&Reads::of::<Pod>("")).row;
        assert_eq!(path(&pods, "v1", ""), "/api/v1/pods?limit=500");
        let next = "/api/v1/pods?limit=500&continue=ab%3D";
        assert_eq!(path(&pods, "v1", "ab="), next);
    }

    #[test]
    fn the_newest_version_that_is_served_is_listed() {
        let mut sets = Listed::of(&Reads::of::<CloneSet>(""));
        let paths = std::iter::from_fn(|| Some(path(&sets.row, sets.versions.pop()?, "")));
        let of = |version| format!("/apis/apps.kruise.io/{version}/clonesets?limit=500");
        assert!(paths.eq([of("v1beta1"), of("v1alpha1")]));
    }
}
