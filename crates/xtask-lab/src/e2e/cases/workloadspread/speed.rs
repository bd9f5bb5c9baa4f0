//! The cost of a WorkloadSpread: time of a large scale-up, status writes, memory of the webhook.

use std::fmt;
use std::fs;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::json;
use xtask_lab::lab::{now, until};

use super::by_hand::{Made, make_pods};
use super::{expect_truth, limit, scale, scheduler, until_observed, writes};
use crate::bench_live::figures::median;
use crate::e2e::follow::Follow;
use crate::e2e::histogram::Histogram;
use crate::e2e::parts::Spreading;
use crate::e2e::stage::{PAUSE, Stage};

const N_PODS: usize = 2000;

/// The time with a WorkloadSpread until all pods are ready is at most this factor of the time without one. A scale-up
/// is over when its pods are ready.
///
/// The time until all are created is printed and not judged (docs/benchmarks.md).
const FACTOR_MAX: f64 = 1.25;

/// One write of the status covers at least this number of pods.
const PODS_A_WRITE: usize = 10;

/// The number of pods that come one by one, at this rate a second.
const N_STEADY: usize = 2000;

const RATE: u32 = 100;

/// The number of pods for the measurement of memory.
const N_MANY: usize = 10_000;

/// The bound for the webhook's resident memory with [`N_MANY`] pods, in KiB.
const KIB_MAX: u64 = 60 << 10;

/// Each order once: neither a machine that grows slower or faster nor the state that a run leaves behind favours one.
const ROUNDS: [[By; 3]; 6] = [
    [By::Nothing, By::Unlimited, By::Ledger],
    [By::Ledger, By::Unlimited, By::Nothing],
    [By::Unlimited, By::Ledger, By::Nothing],
    [By::Nothing, By::Ledger, By::Unlimited],
    [By::Unlimited, By::Nothing, By::Ledger],
    [By::Ledger, By::Nothing, By::Unlimited],
];

const DONE_WITHIN: Duration = Duration::from_secs(900);

/// A Deployment from nothing to 2,000 pods, without a WorkloadSpread and with one, until all are created and until all
/// are ready; and then to 10,000.
///
/// The time of creation where no scheduler places the pods is printed, and not judged: it is the cost of admission
/// where nothing else uses the cores, and the API server's own part of it varies by half.
pub(crate) fn speed(stage: &mut Stage) -> anyhow::Result<()> {
    let spreading = stage.spreading(2)?;
    stage.apply("ws-many.yaml")?;
    stage.run(&["delete", "workloadspread/front"])?;
    stage.until_nodes_are_ready()?;
    let size = size(stage)?;
    let mut scheduler = scheduler(stage)?;
    let scheduled = scale_ups(stage, &size, End::Ready)?;
    println!("  {N_PODS} pods that are scheduled: {scheduled}");
    scheduler.kill();
    let pending = scale_ups(stage, &size, End::Created)?;
    println!("  {N_PODS} pods that nobody schedules: {pending}");
    stage.apply("ws-many.yaml")?;
    until_observed(stage, "front")?;
    created(stage, &size, 1)?;
    steadily(stage, &spreading)?;
    created(stage, &size, N_MANY)?;
    let mut most = 0;
    for webhook in &spreading.webhooks {
        let resident = resident_kib(webhook.process.id())?;
        println!("  a webhook has {} MiB with {N_MANY} pods", resident >> 10);
        most = most.max(resident);
    }
    // Figures of a build without optimisation are meaningless.
    if cfg!(debug_assertions) {
        println!("  not judged: build xtask with --release");
        return Ok(());
    }
    let factor = scheduled.ready.over(By::Ledger, By::Nothing);
    ensure!(
        factor <= FACTOR_MAX,
        "{factor:.2} times as long until all are ready"
    );
    for n_writes in [scheduled.n_writes, pending.n_writes] {
        let is_counted = (1..=N_PODS / PODS_A_WRITE).contains(&n_writes);
        ensure!(is_counted, "{n_writes} writes");
    }
    ensure!(most <= KIB_MAX, "{most} KiB");
    Ok(())
}

/// Creates pods at a steady rate, and prints how long they waited for the webhooks, by the bounds of the histogram.
fn steadily(stage: &mut Stage, spreading: &Spreading) -> anyhow::Result<()> {
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
    Ok(())
}

/// How long the admission of creations took, over all webhooks.
fn admissions(stage: &Stage, spreading: &Spreading) -> anyhow::Result<Histogram> {
    let mut sum = Histogram::default();
    for webhook in &spreading.webhooks {
        sum.read_admissions(stage, webhook)?;
    }
    Ok(sum)
}

/// The setting of a scale-up.
#[derive(Clone, Copy)]
enum By {
    /// No WorkloadSpread.
    Nothing,
    /// One subset that takes all: the webhook changes pods, and the controller writes no status.
    Unlimited,
    /// Subsets with limits.
    Ledger,
}

/// When a scale-up is over.
#[derive(Clone, Copy)]
enum End {
    /// All pods are created.
    Created,
    /// All pods are ready.
    Ready,
}

/// The seconds of each scale-up, by its setting. Their median is judged, since others use the machine, too.
#[derive(Default)]
struct Compared([Vec<f64>; 3]);

impl Compared {
    fn add(&mut self, by: By, took: Duration) {
        self.0[by as usize].push(took.as_secs_f64());
    }

    /// The ratio of the times of two settings.
    fn over(&self, by: By, other: By) -> f64 {
        let [by, other] = [by, other].map(|by| median(self.0[by as usize].clone()));
        by / other
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([plain, unlimited, spread]) = self;
        let by_unlimited = self.over(By::Unlimited, By::Nothing);
        let [factor, ledger] =
            [By::Nothing, By::Unlimited].map(|other| self.over(By::Ledger, other));
        write!(
            f,
            "in {plain:.1?} s without a WorkloadSpread, {unlimited:.1?} s with one without limits ({by_unlimited:.2} times \
             as long), {spread:.1?} s with limits ({factor:.2}; {ledger:.2} times as long as without limits)"
        )
    }
}

/// The scale-ups under all settings.
#[derive(Default)]
struct ScaleUps {
    created: Compared,
    /// Empty where no scheduler places the pods.
    ready: Compared,
    /// The most status writes in one scale-up.
    n_writes: usize,
}

impl fmt::Display for ScaleUps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            created,
            ready,
            n_writes,
        } = self;
        writeln!(f, "{n_writes} writes of the status at most")?;
        write!(f, "    created {created}")?;
        match ready.0[0].is_empty() {
            true => Ok(()),
            false => write!(f, "\n    ready {ready}"),
        }
    }
}

/// Scales up under all settings in all orders.
fn scale_ups(stage: &Stage, size: &Follow<Size>, end: End) -> anyhow::Result<ScaleUps> {
    let mut ups = ScaleUps::default();
    // The first scale-up finds cold caches, and does not count.
    created(stage, size, N_PODS)?;
    none_left(stage, size)?;
    for by in ROUNDS.concat() {
        match by {
            By::Nothing => {}
            By::Unlimited => {
                stage.apply("ws-unlimited.yaml")?;
                until_observed(stage, "front")?;
            }
            By::Ledger => {
                stage.apply("ws-many.yaml")?;
                limit(stage, "front", 0, json!(N_PODS / 3))?;
                limit(stage, "front", 1, json!(N_PODS / 3))?;
                until_observed(stage, "front")?;
            }
        }
        // Asked under every setting, though counted with limits only: the question is work, and each setting must have
        // it.
        let before = writes(stage)?;
        let begin = now();
        created(stage, size, N_PODS)?;
        ups.created.add(by, begin.elapsed());
        if let End::Ready = end {
            until("all pods are ready", DONE_WITHIN, PAUSE, || {
                Ok(size.look(|size| size.ready == N_PODS).then_some(()))
            })?;
            ups.ready.add(by, begin.elapsed());
        }
        if let By::Ledger = by {
            ups.n_writes = ups.n_writes.max(writes(stage)? - before);
            expect_truth(stage, "front")?;
        }
        stage.run(&["delete", "workloadspread/front", "--ignore-not-found"])?;
        none_left(stage, size)?;
    }
    Ok(ups)
}

/// Scales down to nothing, and waits until all pods are gone.
fn none_left(stage: &Stage, size: &Follow<Size>) -> anyhow::Result<()> {
    scale(stage, "deployment/front", 0)?;
    until("all pods go", DONE_WITHIN, 5 * PAUSE, || {
        let is_empty = size.look(|size| size.made == 0);
        Ok((is_empty && stage.pods()?.is_empty()).then_some(()))
    })
}

/// Scales the Deployment, and waits until all pods exist.
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

/// Follows the Deployment by a watch: polling would take a good part of the measured time.
fn size(stage: &Stage) -> anyhow::Result<Follow<Size>> {
    Follow::start(stage, "deployments", |size: &mut Size, _, deployment| {
        let number = |field: &str| deployment["status"][field].as_u64().unwrap_or(0) as usize;
        *size = Size {
            made: number("replicas"),
            ready: number("readyReplicas"),
        };
    })
}

/// Resident memory of a process in KiB, from Linux.
fn resident_kib(id: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.context("no VmRSS")
}
