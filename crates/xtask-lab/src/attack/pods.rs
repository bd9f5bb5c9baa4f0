//! Pods of a tenant: expensive ones, and short-lived ones.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use strew_kube::connect::{Access, connect};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::tally::Tally;

/// The number of pods that are deleted at once, before the next ones come.
const GENERATION: usize = 1_000;

/// Longer than an API server keeps a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// A user with rights in one namespace.
#[derive(clap::Args)]
pub(crate) struct Tenant {
    /// The tenant's kubeconfig
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The tenant's namespace
    #[arg(long)]
    namespace: String,
    /// The uid of the ReplicaSet `owner`, which the pods name as their controller
    #[arg(long, default_value = "")]
    owner: String,
    /// The scheduler that the pods name
    #[arg(long, default_value = "strew")]
    scheduler: String,
    /// Anti-affinity terms of a pod
    #[arg(long, default_value_t = 1)]
    terms: usize,
    /// Requests at a time
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// Pods a second; 0: as fast as it goes
    #[arg(long, default_value_t = 0)]
    rate: u32,
}

impl Tenant {
    async fn client(&self) -> anyhow::Result<Client> {
        let access = Access {
            kubeconfig: Some(self.kubeconfig.clone()),
            ..Access::default()
        };
        Ok(connect(&access, "strew-attack").await?.client)
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// A pod with labels of its own, and terms on them.
    fn pod(&self, number: usize) -> Value {
        // Another attack of the same tenant has other pods.
        let name = format!("p-{}-{number}", std::process::id());
        let terms: Vec<Value> = (0..self.terms)
            .map(|term| {
                let labels = match term {
                    0 => json!({"job-name": name}),
                    term => json!({"job-name": name, "t": term.to_string()}),
                };
                json!({
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchLabels": labels},
                })
            })
            .collect();
        let mut pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "owner", "job-name": name}},
            "spec": {
                "schedulerName": self.scheduler,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "i"}],
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms},
                },
            },
        });
        if !self.owner.is_empty() {
            pod["metadata"]["ownerReferences"] = json!([{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "owner",
                "uid": self.owner,
                "controller": true,
            }]);
        }
        pod
    }

    /// Makes these pods, `at_once` at a time, at `rate`; deletes each pod at once if `are_taken_away`.
    async fn make(
        &self,
        client: &Client,
        numbers: Range<usize>,
        are_taken_away: bool,
        tally: &Arc<Tally>,
    ) {
        let mut beat = (self.rate > 0).then(|| {
            let mut beat = interval(Duration::from_secs(1) / self.rate);
            beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
            beat
        });
        let mut under_way = JoinSet::new();
        for number in numbers {
            if let Some(beat) = &mut beat {
                beat.tick().await;
            }
            if under_way.len() >= self.at_once {
                drop(under_way.join_next().await);
            }
            let (client, path, tally) = (client.clone(), self.pods(), Arc::clone(tally));
            let pod = self.pod(number);
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            let own = format!("{path}/{name}?gracePeriodSeconds=0");
            let body = pod.to_string().into_bytes();
            under_way.spawn(async move {
                tally.count(ask(&client, Method::POST, &path, body).await);
                if are_taken_away {
                    // The ReplicaSet's controller may have deleted it first.
                    drop(ask(&client, Method::DELETE, &own, Vec::new()).await);
                }
            });
        }
        while under_way.join_next().await.is_some() {}
    }
}

/// Pods with many terms, each deleted as soon as it exists: only their cost stays.
pub(super) async fn hostile(tenant: Tenant, tally: Arc<Tally>) -> anyhow::Result<()> {
    let client = tenant.client().await?;
    tenant.make(&client, 0..usize::MAX, true, &tally).await;
    Ok(())
}

/// Short-lived pods; all of them are deleted before the next thousand.
pub(super) async fn churn(tenant: Tenant, tally: Arc<Tally>) -> anyhow::Result<()> {
    let client = tenant.client().await?;
    let all = format!("{}?gracePeriodSeconds=0", tenant.pods());
    let mut begin = 0;
    loop {
        let generation = begin..begin + GENERATION;
        tenant.make(&client, generation, false, &tally).await;
        let gone = ask(&client, Method::DELETE, &all, Vec::new()).await;
        tally.count(format!("generations gone: {gone}"));
        begin += GENERATION;
    }
}

/// The result of a request: an HTTP status, or the lack of an answer.
async fn ask(client: &Client, method: Method, path: &str, body: Vec<u8>) -> String {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body);
    let Ok(request) = request else {
        return "no request".to_owned();
    };
    let answer = client.request::<serde::de::IgnoredAny>(request);
    match timeout(ANSWER_WITHIN, answer).await {
        Ok(Ok(_)) => "200".to_owned(),
        Ok(Err(kube::Error::Api(status))) => status.code.to_string(),
        Ok(Err(_)) => "refused".to_owned(),
        Err(_) => "not answered".to_owned(),
    }
}
