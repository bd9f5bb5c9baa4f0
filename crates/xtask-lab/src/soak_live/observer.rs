//! Observes the processes from outside: probes as a kubelet's, memory, CPU time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};
use xtask_lab::lab::https::ask;
use xtask_lab::lab::now;

use super::parts::Parts;
use crate::taken::Taken;

/// The time limit of a kubelet for a probe. Source: `timeoutSeconds` of a probe, by default.
const PROBE_WITHIN: Duration = Duration::from_secs(1);

/// Between two probes, and two samples.
const EVERY: Duration = Duration::from_secs(1);

/// Observes until its runtime ends.
pub(super) struct Observer {
    begin: Instant,
    targets: Vec<Arc<Target>>,
    log: Arc<Mutex<Log>>,
}

/// An observed process.
struct Target {
    name: &'static str,
    id: u32,
    pages: u16,
    /// True while it is frozen on purpose, and so not probed.
    is_stopped: AtomicBool,
}

/// All observations.
#[derive(Debug, Default, Clone)]
pub(super) struct Log {
    /// The names of the processes.
    pub(super) names: Vec<&'static str>,
    pub(super) samples: Vec<Sample>,
    pub(super) probes: Vec<Probe>,
    pub(super) scale_ups: Vec<Done>,
    /// The beginning of each phase.
    pub(super) phases: Vec<(f64, String)>,
}

/// Memory and CPU time of a process; times are seconds since the begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) at: f64,
    /// The index of its name.
    pub(super) of: usize,
    pub(super) taken: Taken,
}

/// A probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    /// When it was sent.
    pub(super) at: f64,
    pub(super) of: usize,
    pub(super) seconds: f64,
    /// True if it was answered with 200 in time.
    pub(super) is_ok: bool,
}

/// A scale-up of the victim.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    /// When it was over.
    pub(super) at: f64,
    pub(super) seconds: f64,
    /// Milliseconds from created to bound, of 99 in 100 pods.
    pub(super) wait: f64,
}

impl Observer {
    /// Starts to observe.
    pub(super) fn start(parts: &Parts, runtime: &tokio::runtime::Handle) -> Self {
        let targets = parts.all.iter().map(|part| {
            Arc::new(Target {
                name: part.name,
                id: part.process.id(),
                pages: part.pages,
                is_stopped: AtomicBool::new(false),
            })
        });
        let targets: Vec<_> = targets.collect();
        let log = Log {
            names: targets.iter().map(|target| target.name).collect(),
            ..Log::default()
        };
        let observer = Self {
            begin: now(),
            targets,
            log: Arc::new(Mutex::new(log)),
        };
        for (of, target) in observer.targets.iter().enumerate() {
            let (begin, log) = (observer.begin, Arc::clone(&observer.log));
            let probed = Arc::clone(target);
            runtime.spawn(async move { probe(of, &probed, begin, &log).await });
            let (target, log) = (Arc::clone(target), Arc::clone(&observer.log));
            runtime.spawn(async move { sample(of, &target, begin, &log).await });
        }
        observer
    }

    /// Seconds since the begin.
    pub(super) fn at(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    /// The observations so far.
    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    /// Forgets the largest memory that each process had.
    pub(super) fn forget_peaks(&self) -> anyhow::Result<()> {
        for target in &self.targets {
            // Source: proc_pid_clear_refs(5): "5" resets the peak to what is resident now.
            std::fs::write(format!("/proc/{}/clear_refs", target.id), "5")?;
        }
        Ok(())
    }

    /// What each process has taken so far.
    pub(super) fn taken(&self) -> anyhow::Result<Vec<Taken>> {
        let each = self.targets.iter().map(|target| Taken::of(target.id));
        each.collect()
    }

    /// Marks a process as frozen on purpose, or as running again.
    pub(super) fn set_stopped(&self, name: &str, is_stopped: bool) {
        for target in self.targets.iter().filter(|target| target.name == name) {
            target.is_stopped.store(is_stopped, Ordering::Release);
        }
    }
}

impl Log {
    /// Of the probes since `begin`: the number answered, the number sent, and the longest, in seconds.
    pub(super) fn probes_since(&self, begin: f64) -> (usize, usize, f64) {
        let probes = || self.probes.iter().filter(|probe| probe.at >= begin);
        let longest = probes().map(|probe| probe.seconds).fold(0.0, f64::max);
        (
            probes().filter(|p| p.is_ok).count(),
            probes().count(),
            longest,
        )
    }
}

async fn probe(of: usize, target: &Arc<Target>, begin: Instant, log: &Mutex<Log>) {
    let mut beat = interval(EVERY);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        if target.is_stopped.load(Ordering::Acquire) {
            continue;
        }
        let sent = now();
        let pages = target.pages;
        let asked = move || ask(pages, PROBE_WITHIN, "GET", "/livez", &[], &[]);
        let reply = tokio::task::spawn_blocking(asked).await;
        // A process that was frozen meanwhile is not judged.
        if target.is_stopped.load(Ordering::Acquire) {
            continue;
        }
        let took = sent.elapsed();
        let is_well = reply.is_ok_and(|r| r.is_ok_and(|r| r.is_some_and(|r| r.status == 200)));
        lock(log).probes.push(Probe {
            at: (sent - begin).as_secs_f64(),
            of,
            seconds: took.as_secs_f64(),
            is_ok: is_well && took <= PROBE_WITHIN,
        });
    }
}

async fn sample(of: usize, target: &Target, begin: Instant, log: &Mutex<Log>) {
    let mut beat = interval(EVERY);
    loop {
        beat.tick().await;
        // The caller of `expect_running` finds a process that has ended.
        if let Ok(taken) = Taken::of(target.id) {
            let at = begin.elapsed().as_secs_f64();
            lock(log).samples.push(Sample { at, of, taken });
        }
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
