//! Pods created as a ReplicaSet's controller would, at a chosen rate and through chosen API servers. The real
//! controller is stopped meanwhile, since it would delete pods that it did not create.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use strew_kube::connect::{Access, connect};

use crate::e2e::stage::Stage;
use crate::steady::{at_rate, post};

/// The number of tries for each pod.
const TRIES: usize = 20;

/// The result of the creations.
pub(super) struct Made {
    /// How long the API servers took for each creation, the shortest first.
    pub(super) took: Vec<Duration>,
    /// How many creations the API server refused because of too many writes, and were tried again.
    pub(super) repeated: usize,
}

/// Creates pods of the Deployment's ReplicaSet at a rate a second, through these API servers in turn. The controllers
/// stop before `first` runs, and go on after `after` has returned. The ReplicaSet must want pods: WorkloadSpreads
/// ignore the pods of a ReplicaSet that wants none.
pub(super) fn make_pods<T>(
    stage: &mut Stage,
    first: impl FnOnce(&Stage) -> anyhow::Result<()>,
    servers: &[Option<String>],
    n: usize,
    rate: u32,
    after: impl FnOnce(&Stage, Made) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let controllers = |stage: &mut Stage, signal: &str| {
        let controllers = stage.lab.component("controller-manager")?;
        controllers.signal(signal)
    };
    let owner = stage.list("replicasets")?.pop();
    let owner = owner.context("the Deployment has a ReplicaSet")?;
    controllers(stage, "STOP")?;
    let made = first(stage).and_then(|()| made(stage, &owner, servers, n, rate));
    let result = made.and_then(|made| after(stage, made));
    controllers(stage, "CONT")?;
    result
}

fn made(
    stage: &Stage,
    owner: &Value,
    servers: &[Option<String>],
    n: usize,
    rate: u32,
) -> anyhow::Result<Made> {
    let path = format!("/api/v1/namespaces/{}/pods", stage.namespace);
    let repeated = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut took = runtime.block_on(async {
        let mut clients = Vec::new();
        for server in servers {
            let access = Access {
                kubeconfig: Some(stage.lab.folder().join("kubeconfig")),
                master: server.clone(),
                ..Access::default()
            };
            clients.push(connect(&access, "strew-e2e").await?.client);
        }
        let pod = pod_of(owner);
        let make = |number: usize| {
            let (client, path) = (clients[number % clients.len()].clone(), path.clone());
            let (pod, repeated) = (pod.clone(), repeated.clone());
            async move {
                for _ in 1..TRIES {
                    let Err(error) = post(&client, &path, &pod).await else {
                        return Ok(());
                    };
                    // The controller tries again, too.
                    let text = format!("{error:#}");
                    anyhow::ensure!(text.contains("status changed meanwhile"), text);
                    repeated.fetch_add(1, Ordering::Relaxed);
                }
                post(&client, &path, &pod).await
            }
        };
        at_rate(n, rate, make).await
    })?;
    took.sort_unstable();
    let repeated = repeated.load(Ordering::Relaxed);
    Ok(Made { took, repeated })
}

/// A pod of a ReplicaSet, as its controller makes it.
fn pod_of(owner: &Value) -> Value {
    let template = &owner["spec"]["template"];
    let meta = &owner["metadata"];
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "by-hand-",
            "labels": template["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": meta["name"],
                "uid": meta["uid"],
                "controller": true,
            }],
        },
        "spec": template["spec"],
    })
}
