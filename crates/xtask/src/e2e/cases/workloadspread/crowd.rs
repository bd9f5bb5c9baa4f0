//! A tenant that creates expensive pods at full speed, and what others notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use strew_kube::connect::{Access, connect};
use xtask::lab::https::ask;
use xtask::lab::{now, until};

use super::by_hand::pod_of;
use super::{limit, scale, until_observed};
use crate::bench_live::figures::median;
use crate::e2e::follow::Follow;
use crate::e2e::stage::{PAUSE, SOON, Stage};
use crate::steady::post;

/// Pods of the other tenant.
const N_PODS: usize = 100;

const ROUNDS: usize = 3;

/// As long as in quiet, and a half more.
const FACTOR_MAX: f64 = 1.5;

/// How long a probe takes, at most.
const PROBE_MAX: Duration = Duration::from_secs(1);

/// Requests of the crowd that are under way at any moment.
const AT_ONCE: usize = 8;

/// The crowd is at full speed when so many of its requests are answered.
const AT_SPEED: usize = 40;

const DONE_WITHIN: Duration = Duration::from_secs(120);

/// How long the creation of 100 pods of one tenant takes, in quiet and while another one creates pods of 0.9 MB with 9,000
/// terms, and others just below the bounds of simulated scheduling, as fast as it can; and probes all the while.
pub(crate) fn crowd(stage: &mut Stage) -> anyhow::Result<()> {
    let spreading = stage.spreading(1)?;
    stage.apply("ws-many.yaml")?;
    for (index, replicas) in [(0, 30), (1, 30)] {
        limit(stage, "front", index, json!(replicas))?;
    }
    until_observed(stage, "front")?;
    let of_eve = format!("{}-eve", stage.namespace);
    let kubeconfig = eve(stage, &of_eve)?;
    let owner = until("eve's ReplicaSet", SOON, PAUSE, || {
        let all = stage.kubectl().run(&[
            "--namespace",
            &of_eve,
            "get",
            "replicasets",
            "--output=json",
        ])?;
        let mut all: Value = serde_json::from_str(&all)?;
        let first = all["items"][0].take();
        Ok((!first.is_null()).then_some(first))
    })?;
    let made = Follow::start(stage, "deployments", |made: &mut usize, _, deployment| {
        *made = deployment["status"]["replicas"].as_u64().unwrap_or(0) as usize;
    })?;
    let pages = spreading.webhooks[0].pages;
    // The first finds nothing warm, and is not counted.
    created(stage, &made)?;
    let mut factor = f64::MAX;
    for _ in 0..2 {
        let quiet = rounds(stage, &made)?;
        let crowd = Crowd::begin(&kubeconfig, &of_eve, &owner)?;
        let probes = Probes::begin(pages)?;
        until("the crowd is at full speed", SOON, PAUSE, || {
            Ok((crowd.answered() >= AT_SPEED).then_some(()))
        })?;
        let before = (now(), crowd.answered());
        let crowded = rounds(stage, &made)?;
        let rate = (crowd.answered() - before.1) as f64 / before.0.elapsed().as_secs_f64();
        let (n_probes, longest) = probes.end()?;
        crowd.end()?;
        factor = median(crowded.clone()) / median(quiet.clone());
        println!(
            "  {N_PODS} pods created in {quiet:.2?} s; beside {rate:.0} hostile ones a second in {crowded:.2?} s \
             ({factor:.2} times as long); {n_probes} probes, {longest:.0?} at most"
        );
        ensure!(longest <= PROBE_MAX, "a probe took {longest:?}");
        if factor <= FACTOR_MAX {
            break;
        }
    }
    stage
        .kubectl()
        .run(&["delete", "namespace", &of_eve, "--wait=false"])?;
    // Figures of a build without optimisation say nothing.
    if cfg!(debug_assertions) {
        println!("  not judged: build xtask with --release");
        return Ok(());
    }
    ensure!(factor <= FACTOR_MAX, "{factor:.2} times as long");
    Ok(())
}

/// Eve's namespace and workload; a kubeconfig with her rights.
fn eve(stage: &Stage, namespace: &str) -> anyhow::Result<std::path::PathBuf> {
    let run = |args: &[&str]| stage.kubectl().run(args);
    run(&["create", "namespace", namespace])?;
    let of_eve = ["--namespace", namespace];
    run(&[&of_eve[..], &["create", "serviceaccount", "eve"]].concat())?;
    let account = format!("--serviceaccount={namespace}:eve");
    let bind = [
        "create",
        "rolebinding",
        "eve",
        "--clusterrole=edit",
        &account,
    ];
    run(&[&of_eve[..], &bind].concat())?;
    let path = stage.file("ws-crowd.yaml");
    let file = format!("--filename={}", path.display());
    run(&[&of_eve[..], &["apply", "--server-side", &file]].concat())?;
    let user = format!("--as=system:serviceaccount:{namespace}:eve");
    until("eve's rights", SOON, PAUSE, || {
        let ask = ["auth", "can-i", &user, "create", "pods"];
        Ok(run(&[&of_eve[..], &ask].concat()).ok())
    })?;
    stage.kubeconfig_of(namespace, "eve", &[])
}

fn rounds(stage: &Stage, made: &Follow<usize>) -> anyhow::Result<Vec<f64>> {
    (0..ROUNDS).map(|_| created(stage, made)).collect()
}

/// Seconds until all pods are created; afterwards they go.
fn created(stage: &Stage, made: &Follow<usize>) -> anyhow::Result<f64> {
    let begin = now();
    scale(stage, "deployment/front", N_PODS)?;
    until("all pods are created", DONE_WITHIN, PAUSE / 4, || {
        Ok(made.look(|made| *made == N_PODS).then_some(()))
    })?;
    let took = begin.elapsed().as_secs_f64();
    scale(stage, "deployment/front", 0)?;
    until("all pods go", DONE_WITHIN, 5 * PAUSE, || {
        let is_empty = made.look(|made| *made == 0);
        Ok((is_empty && stage.pods()?.is_empty()).then_some(()))
    })?;
    Ok(took)
}

/// Somebody who creates pods at full speed.
struct Crowd {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Crowd {
    fn begin(kubeconfig: &std::path::Path, namespace: &str, owner: &Value) -> anyhow::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicUsize::new(0));
        let (told, counted) = (Arc::clone(&is_over), Arc::clone(&answered));
        let access = Access {
            kubeconfig: Some(kubeconfig.to_owned()),
            ..Access::default()
        };
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let pod = pod_of(owner);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let client = connect(&access, "strew-crowd").await?.client;
                let asks = (0..AT_ONCE).map(async |place| {
                    let mut n = place;
                    while !told.load(Ordering::Relaxed) {
                        let n_terms = [9_000, 64][n % 2];
                        // Whatever it comes to: the next one follows.
                        drop(post(&client, &path, &hostile(&pod, n, n_terms)).await);
                        counted.fetch_add(1, Ordering::Relaxed);
                        n += AT_ONCE + 1;
                    }
                });
                futures::future::join_all(asks).await;
                anyhow::Ok(())
            })
        });
        Ok(Self {
            is_over,
            answered,
            thread,
        })
    }

    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    fn end(self) -> anyhow::Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.ok().context("the crowd panicked")?
    }
}

/// A valid pod with so many terms that no other pod has.
fn hostile(pod: &Value, n: usize, n_terms: usize) -> Value {
    let term = |i: usize| {
        let labels = json!({"app": format!("{n}-{i}")});
        json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}})
    };
    let terms: Vec<Value> = (0..n_terms).map(term).collect();
    let mut pod = pod.clone();
    pod["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    pod
}

/// A kubelet that asks whether the webhook lives.
struct Probes {
    /// Dropped: no more.
    go_on: Sender<()>,
    thread: JoinHandle<anyhow::Result<(usize, Duration)>>,
}

impl Probes {
    fn begin(port: u16) -> anyhow::Result<Self> {
        let (go_on, told) = channel();
        let thread = std::thread::spawn(move || {
            let (mut n_probes, mut longest) = (0, Duration::ZERO);
            while told.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                let begin = now();
                let reply = ask(port, SOON, "GET", "/livez", &[], b"")?;
                let reply = reply.context("no answer to a probe")?;
                ensure!(reply.status == 200, "/livez: {}", reply.body);
                longest = longest.max(begin.elapsed());
                n_probes += 1;
            }
            Ok((n_probes, longest))
        });
        Ok(Self { go_on, thread })
    }

    fn end(self) -> anyhow::Result<(usize, Duration)> {
        drop(self.go_on);
        self.thread.join().ok().context("the probes panicked")?
    }
}
