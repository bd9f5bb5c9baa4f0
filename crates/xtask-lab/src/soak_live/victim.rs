//! A Deployment that scales from zero to 100 pods and back.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::StreamExt;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::json;
use strew_kube::connect::{Access, connect};
use xtask_lab::lab::{Lab, now};

use super::tenants::VICTIM;

/// The number of its pods.
pub(super) const PODS: usize = 100;

/// The longest time of a scale-up; one that takes longer counts as this time.
const PATIENCE: Duration = Duration::from_secs(120);

/// The pause after a failed request or watch.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

/// The Deployment.
pub(super) struct Victim {
    client: Client,
    namespace: String,
}

/// The result of one scale-up.
#[derive(Debug, Clone, Default)]
pub(super) struct ScaleUp {
    /// Seconds until all pods were ready, or the scale-up was given up.
    pub(super) seconds: f64,
    /// The number of pods that were ready then.
    pub(super) ready: usize,
    /// Milliseconds from a pod's first event to the one with its node.
    pub(super) waits: Vec<f64>,
}

/// The fields of a pod that are read.
#[derive(Deserialize, Clone, Debug)]
struct Pod {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
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

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Deserialize, Clone, Debug)]
struct Condition {
    r#type: String,
    status: String,
}

#[derive(Deserialize)]
struct List {
    metadata: Meta,
    items: Vec<Pod>,
}

/// The present pods.
#[derive(Default)]
struct Seen {
    pods: BTreeMap<String, Times>,
}

struct Times {
    created: Instant,
    bound: Option<Instant>,
    is_ready: bool,
}

impl Victim {
    /// A client with the administrator's rights, which uses none of the attacked doors.
    pub(super) async fn connect(lab: &Lab, namespace: &str) -> anyhow::Result<Self> {
        let access = Access {
            kubeconfig: Some(lab.folder().join("kubeconfig")),
            ..Access::default()
        };
        let client = connect(&access, "strew-soak").await?.client;
        Ok(Self {
            client,
            namespace: namespace.to_owned(),
        })
    }

    /// Scales to 100 pods; waits until all are ready, at most for [`PATIENCE`].
    pub(super) async fn scale_up(&self) -> ScaleUp {
        let begin = now();
        let mut seen = Seen::default();
        let all_ready = async {
            self.scale(PODS).await;
            self.follow(&mut seen, |seen| seen.ready() >= PODS).await;
        };
        // Given up, the time until then is what it took.
        let _ = tokio::time::timeout(PATIENCE, all_ready).await;
        ScaleUp {
            seconds: begin.elapsed().as_secs_f64(),
            ready: seen.ready(),
            waits: seen.waits(),
        }
    }

    /// Scales to nothing, and waits until all pods are gone.
    pub(super) async fn scale_down(&self) -> anyhow::Result<()> {
        let mut seen = Seen::default();
        let none = async {
            self.scale(0).await;
            self.follow(&mut seen, |seen| seen.pods.is_empty()).await;
        };
        let none = tokio::time::timeout(PATIENCE, none).await;
        ensure!(none.is_ok(), "{} pods of the victim stay", seen.pods.len());
        Ok(())
    }

    /// Tries until the API server has taken it.
    async fn scale(&self, replicas: usize) {
        let namespace = &self.namespace;
        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{VICTIM}/scale");
        let patch = json!({"spec": {"replicas": replicas}}).to_string();
        loop {
            let request = Request::patch(&path)
                .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
                .body(patch.clone().into_bytes());
            if let Ok(request) = request
                && let Ok(serde::de::IgnoredAny) = self.client.request(request).await
            {
                return;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    /// Watches the pods until `is_so`. A watch that ends is followed by a list.
    async fn follow(&self, seen: &mut Seen, is_so: impl Fn(&Seen) -> bool) {
        while self.follow_once(seen, &is_so).await.is_err() {
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    async fn follow_once(
        &self,
        seen: &mut Seen,
        is_so: impl Fn(&Seen) -> bool,
    ) -> anyhow::Result<()> {
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        let list: List = self
            .client
            .request(Request::get(&path).body(Vec::new())?)
            .await?;
        let names: Vec<&str> = list
            .items
            .iter()
            .map(|p| p.metadata.name.as_str())
            .collect();
        seen.pods.retain(|name, _| names.contains(&name.as_str()));
        list.items.iter().for_each(|pod| seen.take_in(pod));
        if is_so(seen) {
            return Ok(());
        }
        let version = list.metadata.resource_version;
        let path = format!("{path}?watch=true&resourceVersion={version}");
        let request = Request::get(path).body(Vec::new())?;
        let events = self.client.request_events::<Pod>(request).await?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => seen.take_in(&pod),
                WatchEvent::Deleted(pod) => drop(seen.pods.remove(&pod.metadata.name)),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => anyhow::bail!("{}", status.message),
            }
            if is_so(seen) {
                return Ok(());
            }
        }
        anyhow::bail!("the watch ended")
    }
}

impl Seen {
    fn take_in(&mut self, pod: &Pod) {
        let name = pod.metadata.name.clone();
        let times = self.pods.entry(name).or_insert_with(|| Times {
            created: now(),
            bound: None,
            is_ready: false,
        });
        if pod.spec.node_name.is_some() {
            times.bound.get_or_insert_with(now);
        }
        let mut conditions = pod.status.conditions.iter();
        times.is_ready = conditions.any(|c| c.r#type == "Ready" && c.status == "True");
    }

    fn ready(&self) -> usize {
        self.pods.values().filter(|times| times.is_ready).count()
    }

    fn waits(&self) -> Vec<f64> {
        let waits = self.pods.values().filter_map(|times| {
            let wait = times.bound?.saturating_duration_since(times.created);
            Some(wait.as_secs_f64() * 1e3)
        });
        waits.collect()
    }
}
