//! The API server for the measuring program: creates nodes and pods, and watches bindings.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use http::{Method, Request};
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::{Value, json};
use strew_kube::connect::{Access, connect};
use tokio::sync::mpsc;
use xtask_lab::lab::{KUBELET_LABEL, Lab, node, now};

use crate::steady::{at_rate, post};

const NAMESPACE: &str = "bench";

const ZONE: &str = "topology.kubernetes.io/zone";

/// The number of this program's requests that are under way at once.
const AT_ONCE: usize = 32;

/// Longer than any phase takes.
const PATIENCE: Duration = Duration::from_secs(600);

/// The pause between two requests where no watch can be used.
const PAUSE: Duration = Duration::from_millis(500);

/// A client of the lab's API server.
pub(super) struct Cluster {
    client: Client,
}

/// The part of a pod that this program reads.
#[derive(Deserialize, Clone, Debug)]
struct Pod {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    name: String,
    resource_version: String,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
}

/// A list, of which only the version and the number of items matter.
#[derive(Deserialize)]
struct List {
    metadata: Meta,
    items: Vec<serde::de::IgnoredAny>,
}

/// When a pod was first seen, and first seen on a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) created: Instant,
    pub(super) bound: Instant,
}

/// A pod as the watch saw it, and when.
struct Seen {
    name: String,
    is_bound: bool,
    at: Instant,
}

/// A watch of pods, from its start on.
pub(super) struct Watch {
    told: mpsc::UnboundedReceiver<Result<Seen, String>>,
    created: BTreeMap<String, Instant>,
}

impl Cluster {
    /// Connects with the rights of the lab's administrator, and makes a namespace for pods.
    pub(super) async fn connect(lab: &Lab) -> anyhow::Result<Self> {
        let access = Access {
            kubeconfig: Some(lab.folder().join("kubeconfig")),
            ..Access::default()
        };
        let client = connect(&access, "strew-bench").await?.client;
        lab.kubectl().run(&["create", "namespace", NAMESPACE])?;
        let cluster = Self { client };
        // A pod needs its namespace's service account, which a controller makes.
        let account = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default");
        cluster
            .until("a service account", PAUSE, async || {
                Ok(cluster.get::<Value>(&account).await.ok())
            })
            .await?;
        Ok(cluster)
    }

    /// Makes nodes in three zones with room for all pods, and waits until each is Ready.
    pub(super) async fn make_nodes(&self, n: usize) -> anyhow::Result<()> {
        let bodies = (0..n).map(|number| {
            let zone = ["a", "b", "c"][number % 3];
            node(json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": format!("n-{number:05}"), "labels": {ZONE: zone}},
                "status": {"allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"}},
            }))
        });
        self.make("/api/v1/nodes", bodies).await?;
        let select = format!("/api/v1/nodes?labelSelector={KUBELET_LABEL}%3Druns");
        self.until("nodes are ready", PAUSE, async || {
            let list: Value = self.get(&select).await?;
            let nodes = list["items"].as_array();
            let is_ready = |node: &Value| {
                let conditions = node["status"]["conditions"].as_array();
                let mut conditions = conditions.into_iter().flatten();
                conditions.any(|c| c["type"] == "Ready" && c["status"] == "True")
                    && node["spec"]["taints"].is_null()
            };
            let n_ready = nodes.into_iter().flatten().filter(|n| is_ready(n)).count();
            Ok((n_ready == n).then_some(()))
        })
        .await
    }

    /// Makes pods of one application with spread constraints, with names that begin with `prefix`; on these nodes in
    /// turn, if there are any.
    pub(super) async fn make_pods(
        &self,
        prefix: &str,
        n: usize,
        n_nodes: Option<usize>,
    ) -> anyhow::Result<()> {
        let bodies = (0..n).map(|number| {
            let mut pod = pod(prefix, number);
            if let Some(n_nodes) = n_nodes {
                pod["spec"]["nodeName"] = json!(format!("n-{:05}", number % n_nodes));
            }
            pod
        });
        self.make(&pods_path(), bodies).await
    }

    /// Makes pods at a steady rate, whether earlier ones are bound yet or not.
    pub(super) async fn make_pods_steadily(
        &self,
        prefix: &str,
        n: usize,
        rate: u32,
    ) -> anyhow::Result<()> {
        let make = |number| {
            let (client, pod) = (self.client.clone(), pod(prefix, number));
            async move { post(&client, &pods_path(), &pod).await }
        };
        at_rate(n, rate, make).await.map(drop)
    }

    /// Makes ReplicaSets without pods.
    pub(super) async fn make_replica_sets(&self, n: usize) -> anyhow::Result<()> {
        let bodies = (0..n).map(replica_set);
        self.make(&replica_sets_path(), bodies).await
    }

    /// Changes an annotation of one ReplicaSet after the other, for a number of changes, at a rate a second.
    pub(super) async fn update_replica_sets(
        &self,
        n: usize,
        n_updates: usize,
        rate: u32,
    ) -> anyhow::Result<()> {
        let update = |number: usize| {
            let client = self.client.clone();
            let path = format!("{}/r-{:05}", replica_sets_path(), number % n);
            async move {
                let annotations = json!({"bench/number": number.to_string()});
                let patch = json!({"metadata": {"annotations": annotations}});
                let request = Request::patch(path)
                    .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
                    .body(patch.to_string().into_bytes())?;
                let _: serde::de::IgnoredAny = client.request(request).await?;
                Ok(())
            }
        };
        at_rate(n_updates, rate, update).await.map(drop)
    }

    /// Deletes all pods at once, and waits until they are gone.
    pub(super) async fn clear_pods(&self) -> anyhow::Result<()> {
        let path = format!("{}?gracePeriodSeconds=0", pods_path());
        self.until("pods are gone", PAUSE, async || {
            let request = Request::builder().method(Method::DELETE).uri(&path);
            let _: Value = self.client.request(request.body(Vec::new())?).await?;
            let list: List = self.get(&pods_path()).await?;
            Ok(list.items.is_empty().then_some(()))
        })
        .await
    }

    /// Watches the namespace's pods from now on.
    pub(super) async fn watch(&self) -> anyhow::Result<Watch> {
        let list: List = self.get(&format!("{}?limit=1", pods_path())).await?;
        let (to, told) = mpsc::unbounded_channel();
        let version = list.metadata.resource_version;
        tokio::spawn(follow(self.client.clone(), version, to));
        Ok(Watch {
            told,
            created: BTreeMap::new(),
        })
    }

    async fn make(&self, path: &str, bodies: impl Iterator<Item = Value>) -> anyhow::Result<()> {
        let requests =
            stream::iter(bodies.map(|body| async move { post(&self.client, path, &body).await }));
        requests
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| std::future::ready(Ok(())))
            .await
    }

    async fn get<T: serde::de::DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let request = Request::get(path).body(Vec::new())?;
        Ok(self.client.request(request).await?)
    }

    /// Asks again and again, with a pause between, until there is an answer.
    async fn until<T>(
        &self,
        what: &str,
        pause: Duration,
        mut ask: impl AsyncFnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let begin = now();
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            ensure!(begin.elapsed() < PATIENCE, "{what}: not in time");
            tokio::time::sleep(pause).await;
        }
    }
}

impl Watch {
    /// Waits until `n` more pods were seen on nodes; returns the times of each.
    pub(super) async fn bound(&mut self, n: usize) -> anyhow::Result<Vec<Times>> {
        let mut times = Vec::with_capacity(n);
        while times.len() < n {
            let seen = self.next().await;
            let seen = seen.with_context(|| format!("{} of {n} pods are bound", times.len()))?;
            if !seen.is_bound {
                self.created.entry(seen.name).or_insert(seen.at);
            } else if let Some(created) = self.created.remove(&seen.name) {
                let bound = seen.at;
                times.push(Times { created, bound });
            }
        }
        Ok(times)
    }

    /// Waits until `n` pods were seen that are on no node.
    pub(super) async fn created(&mut self, n: usize) -> anyhow::Result<()> {
        while self.created.len() < n {
            let Seen { name, at, .. } = self.next().await?;
            self.created.entry(name).or_insert(at);
        }
        Ok(())
    }

    async fn next(&mut self) -> anyhow::Result<Seen> {
        let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
        let told = told.context("nothing is told any more")?;
        told.context("the watch ended")?.map_err(anyhow::Error::msg)
    }
}

/// Sends each pod as the watch sees it, from a version on. An API server ends the watch of a slow client: the watch
/// goes on where it stopped, and the time of a missed event is the time at which it arrives.
async fn follow(
    client: Client,
    mut version: String,
    to: mpsc::UnboundedSender<Result<Seen, String>>,
) {
    loop {
        let uri = format!("{}?watch=true&resourceVersion={version}", pods_path());
        let request = Request::get(uri).body(Vec::new());
        let events = match request {
            Ok(request) => client.request_events::<Pod>(request).await,
            Err(error) => Err(kube::Error::HttpError(error)),
        };
        let events = match events {
            Ok(events) => events,
            Err(error) => return drop(to.send(Err(error.to_string()))),
        };
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let told = match event {
                Ok(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => {
                    version = pod.metadata.resource_version;
                    Ok(Seen {
                        name: pod.metadata.name,
                        is_bound: pod.spec.node_name.is_some(),
                        at: now(),
                    })
                }
                Ok(WatchEvent::Deleted(_) | WatchEvent::Bookmark(_)) => continue,
                Ok(WatchEvent::Error(status)) => Err(status.message.clone()),
                Err(error) => Err(error.to_string()),
            };
            if to.send(told).is_err() {
                return;
            }
        }
        if to.is_closed() {
            return;
        }
    }
}

fn pods_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

fn replica_sets_path() -> String {
    format!("/apis/apps/v1/namespaces/{NAMESPACE}/replicasets")
}

/// A ReplicaSet with the template of the pods.
fn replica_set(number: usize) -> Value {
    let name = format!("r-{number:05}");
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": pod("template", number)["spec"],
            },
        },
    })
}

/// A pod with a hard constraint over zones and a soft one over nodes.
fn pod(prefix: &str, number: usize) -> Value {
    let labels = json!({"app": "web"});
    let constraint = |key: &str, when: &str| {
        json!({
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": labels},
        })
    };
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": format!("{prefix}-{number:05}"), "labels": labels},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "web",
                "image": "web:1",
                "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
            }],
            "topologySpreadConstraints": [
                constraint(ZONE, "DoNotSchedule"),
                constraint("kubernetes.io/hostname", "ScheduleAnyway"),
            ],
        },
    })
}
