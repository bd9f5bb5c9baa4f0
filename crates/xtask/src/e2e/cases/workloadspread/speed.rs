//! What a WorkloadSpread costs: time of a large scale-up, writes of its status, memory of the webhook.

use std::fmt;
use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;
use xtask::lab::{now, until};

use super::by_hand::{Made, make_pods};
use super::{expect_truth, limit, scale, scheduler, until_observed, writes};
use crate::bench_live::figures::median;
use crate::e2e::follow::Follow;
use crate::e2e::histogram::Histogram;
use crate::e2e::parts::Spreading;
use crate::e2e::stage::{PAUSE, Stage};

const N_PODS: usize = 2000;

/// As long as without it, and a quarter more: until all pods are created, and until all are ready. Under a WorkloadSpread
/// without limits no status is written: it tells what the API server's part is, and is not judged.
const FACTOR_MAX: f64 = 1.25;

/// The status is written for so many pods at a time.
const PODS_A_WRITE: usize = 10;

/// So many pods come one by one, at this rate a second.
const N_STEADY: usize = 2000;

const RATE: u32 = 100;

/// In which 99 of 100 are admitted.
const ADMITTED_WITHIN: Duration = Duration::from_millis(10);

/// So many pods for the memory.
const N_MANY: usize = 10_000;

/// Resident memory of the webhook with that many.
const KIB_MAX: u64 = 60 << 10;

/// Each order once: a machine that grows slower or faster favours none, nor does what the one before left behind.
const ROUNDS: [[By; 3]; 6] = [
    [By::Nothing, By::Unlimited, By::Ledger],
    [By::Ledger, By::Unlimited, By::Nothing],
    [By::Unlimited, By::Ledger, By::Nothing],
    [By::Nothing, By::Ledger, By::Unlimited],
    [By::Unlimited, By::Nothing, By::Ledger],
    [By::Ledger, By::Nothing, By::Unlimited],
];

const DONE_WITHIN: Duration = Duration::from_secs(900);

/// A Deployment from nothing to 2,000 pods, without a WorkloadSpread and with one; and then to 10,000.
pub(crate) fn speed(stage: &mut Stage) -> anyhow::Result<()> {
    let spreading = stage.spreading(2)?;
    stage.apply("ws-many.yaml")?;
    stage.run(&["delete", "workloadspread/front"])?;
    stage.until_nodes_are_ready()?;
    let mut scheduler = scheduler(stage)?;
    let size = size(stage)?;
    let [mut plain, mut unlimited, mut spread] = [const { Scaled::NEVER }; 3];
    let mut n_writes = 0;
    // The first finds nothing warm, and is not counted.
    for by in [By::WarmUp].into_iter().chain(ROUNDS.concat()) {
        match by {
            By::WarmUp => {
                scaled(stage, &size, N_PODS)?;
            }
            By::Nothing => plain.add(scaled(stage, &size, N_PODS)?),
            By::Unlimited => {
                stage.apply("ws-unlimited.yaml")?;
                until_observed(stage, "front")?;
                unlimited.add(scaled(stage, &size, N_PODS)?);
            }
            By::Ledger => {
                stage.apply("ws-many.yaml")?;
                limit(stage, "front", 0, json!(N_PODS / 3))?;
                limit(stage, "front", 1, json!(N_PODS / 3))?;
                until_observed(stage, "front")?;
                let before = writes(stage)?;
                spread.add(scaled(stage, &size, N_PODS)?);
                n_writes = n_writes.max(writes(stage)? - before);
                expect_truth(stage, "front")?;
            }
        }
        stage.run(&["delete", "workloadspread/front", "--ignore-not-found"])?;
        scale(stage, "deployment/front", 0)?;
        until("all pods go", DONE_WITHIN, 5 * PAUSE, || {
            let is_empty = size.look(|size| size.made == 0);
            Ok((is_empty && stage.pods()?.is_empty()).then_some(()))
        })?;
    }
    scheduler.kill();
    println!("  {N_PODS} pods: {plain}; {n_writes} writes of the status at most");
    for (what, of) in [
        ("with a WorkloadSpread without limits", &unlimited),
        ("with limits", &spread),
    ] {
        let Factors { made, ready } = of.over(&plain);
        println!("  {what}: {of}; {made:.2} and {ready:.2} times as long");
    }
    let Factors { made, .. } = spread.over(&unlimited);
    println!("  limits: {made:.2} times as long as without limits until all are created");
    stage.apply("ws-many.yaml")?;
    until_observed(stage, "front")?;
    created(stage, &size, 1)?;
    let within = steadily(stage, &spreading)?;
    created(stage, &size, N_MANY)?;
    let mut most = 0;
    for webhook in &spreading.webhooks {
        let resident = resident_kib(webhook.process.id())?;
        println!("  a webhook has {} MiB with {N_MANY} pods", resident >> 10);
        most = most.max(resident);
    }
    // Figures of a build without optimisation say nothing.
    if cfg!(debug_assertions) {
        println!("  not judged: build xtask with --release");
        return Ok(());
    }
    let Factors { made, ready } = spread.over(&plain);
    for (factor, what) in [(ready, "ready"), (made, "created")] {
        let is_within = factor <= FACTOR_MAX;
        ensure!(is_within, "{factor:.2} times as long until all are {what}");
    }
    let is_counted = (1..=N_PODS / PODS_A_WRITE).contains(&n_writes);
    ensure!(is_counted, "{n_writes} writes");
    ensure!(within < ADMITTED_WITHIN, "99 in 100 within {within:?}");
    ensure!(most <= KIB_MAX, "{most} KiB");
    Ok(())
}

/// Creates pods at a steady rate; in which time the webhooks answer 99 of 100, by the bounds of their own histogram.
fn steadily(stage: &mut Stage, spreading: &Spreading) -> anyhow::Result<Duration> {
    let before = admissions(stage, spreading)?;
    let asks = |stage: &Stage| scale(stage, "deployment/front", N_STEADY + 1);
    let look = |stage: &Stage, made| anyhow::Ok((admissions(stage, spreading)?, made));
    let (after, Made { took, repeated }) = make_pods(stage, asks, &[None], N_STEADY, RATE, look)?;
    let admitted = after - before;
    let n_admitted = admitted.total();
    ensure!(n_admitted >= N_STEADY as u64, "{n_admitted} admissions");
    let within = admitted.quantile(0.99);
    let milliseconds = |share: usize| took[took.len() * share / 100].as_secs_f64() * 1e3;
    println!(
        "  {RATE} creates a second: half are admitted within {:?}, 99 in 100 within {within:?} (bounds of the webhooks' \
         histogram); the API server took {:.1} ms for half, {:.1} ms for 99 in 100; {repeated} were refused at first",
        admitted.quantile(0.5),
        milliseconds(50),
        milliseconds(99)
    );
    Ok(within)
}

/// How long creations of pods took to admit, of all webhooks together.
fn admissions(stage: &Stage, spreading: &Spreading) -> anyhow::Result<Histogram> {
    let mut sum = Histogram::default();
    for webhook in &spreading.webhooks {
        sum.read_admissions(stage, webhook)?;
    }
    Ok(sum)
}

/// What a Deployment is scaled up under.
#[derive(Clone, Copy)]
enum By {
    /// No WorkloadSpread, for the first time.
    WarmUp,
    /// No WorkloadSpread.
    Nothing,
    /// One subset that takes all: pods are changed, and no status is written.
    Unlimited,
    /// Subsets with limits.
    Ledger,
}

/// How many seconds scale-ups took, each. The median judges them: others use the machine, too.
struct Scaled {
    /// Until all pods were created.
    made: Vec<f64>,
    /// Until all were ready.
    ready: Vec<f64>,
}

/// How many times as long as others some scale-ups took.
struct Factors {
    made: f64,
    ready: f64,
}

impl Scaled {
    const NEVER: Self = Self {
        made: Vec::new(),
        ready: Vec::new(),
    };

    fn add(&mut self, (made, ready): (Duration, Duration)) {
        self.made.push(made.as_secs_f64());
        self.ready.push(ready.as_secs_f64());
    }

    fn over(&self, other: &Self) -> Factors {
        Factors {
            made: median(self.made.clone()) / median(other.made.clone()),
            ready: median(self.ready.clone()) / median(other.ready.clone()),
        }
    }
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { made, ready } = self;
        write!(f, "created in {made:.1?} s, ready in {ready:.1?} s")
    }
}

/// Scales up, and waits until all pods are there and ready: how long each took.
fn scaled(
    stage: &Stage,
    size: &Follow<Size>,
    replicas: usize,
) -> anyhow::Result<(Duration, Duration)> {
    let begin = now();
    created(stage, size, replicas)?;
    let made = begin.elapsed();
    until("all pods are ready", DONE_WITHIN, PAUSE, || {
        Ok(size.look(|size| size.ready == replicas).then_some(()))
    })?;
    Ok((made, begin.elapsed()))
}

/// Scales the Deployment, and waits until all pods are there.
fn created(stage: &Stage, size: &Follow<Size>, replicas: usize) -> anyhow::Result<()> {
    scale(stage, "deployment/front", replicas)?;
    until("all pods are there", DONE_WITHIN, PAUSE, || {
        Ok(size.look(|size| size.made == replicas).then_some(()))
    })
}

/// How large the Deployment is, by its status.
#[derive(Default)]
struct Size {
    made: usize,
    ready: usize,
}

/// Follows the Deployment: asking again and again would take a good part of what is measured.
fn size(stage: &Stage) -> anyhow::Result<Follow<Size>> {
    Follow::start(stage, "deployments", |size: &mut Size, _, deployment| {
        let number = |field: &str| deployment["status"][field].as_u64().unwrap_or(0) as usize;
        *size = Size {
            made: number("replicas"),
            ready: number("readyReplicas"),
        };
    })
}

/// Resident memory of a process, as Linux tells it.
fn resident_kib(id: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.context("no VmRSS")
}
