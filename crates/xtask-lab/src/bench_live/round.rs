//! One round: a backlog of pods, then a steady rate.

use std::fmt;

use super::BenchLive;
use super::cluster::{Cluster, Times};
use super::contender::Process;
use super::figures::{Table, median, quantile};

/// The figures of a contender in a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// Pods a second, from the first bound pod to the last.
    rate: f64,
    /// Milliseconds of its own CPU time for each pod, with its start.
    cpu: f64,
    /// The most MiB that it held, until the end of the round.
    peak: f64,
    /// Milliseconds from seen to bound: the median of the pods that came one by one.
    p50: f64,
    /// Milliseconds from seen to bound: the 99th percentile of those pods.
    p99: f64,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} pods/s, {:.2} ms of CPU a pod; then p50 {:.1} ms, p99 {:.1} ms; {:.0} MiB",
            self.rate, self.cpu, self.p50, self.p99, self.peak
        )
    }
}

/// Plays one round. The process ends with the round, so that the next contender begins anew.
pub(super) async fn play(
    cluster: &Cluster,
    process: &mut Process<'_>,
    options: &BenchLive,
) -> anyhow::Result<Round> {
    let mut watch = cluster.watch().await?;
    cluster.make_pods("backlog", options.pods, None).await?;
    watch.created(options.pods).await?;
    process.start(&[])?;
    let times = watch.bound(options.pods).await?;
    let cpu = process.taken()?.cpu;
    let rate = rate(&times);

    let n = (options.rate * options.seconds) as usize;
    let (made, times) = tokio::join!(
        cluster.make_pods_steadily("steady", n, options.rate),
        watch.bound(n)
    );
    made?;
    let waits = times?.iter().map(milliseconds).collect::<Vec<_>>();
    Ok(Round {
        rate,
        cpu: cpu * 1e3 / options.pods as f64,
        peak: process.taken()?.peak,
        p50: quantile(&waits, 0.5),
        p99: quantile(&waits, 0.99),
    })
}

fn milliseconds(times: &Times) -> f64 {
    let wait = times.bound.saturating_duration_since(times.created);
    wait.as_secs_f64() * 1e3
}

fn rate(times: &[Times]) -> f64 {
    let bound = times.iter().map(|t| t.bound);
    let span = bound.clone().max().zip(bound.min());
    let seconds = span.map_or(0.0, |(last, first)| (last - first).as_secs_f64());
    (times.len() - 1) as f64 / seconds
}

/// Both contenders, by medians, with the bounds for strew.
pub(super) fn compared(kube_scheduler: &[Round], strew: &[Round]) -> Table {
    let mut table = Table::new(&["", "kube-scheduler", "strew", "ratio"]);
    let mut compare = |what: &str, of: fn(&Round) -> f64, digits: usize, bound: Bound| {
        let middle = |rounds: &[Round]| median(rounds.iter().map(of).collect());
        let (theirs, ours) = (middle(kube_scheduler), middle(strew));
        let ratio = ours / theirs;
        let (is_met, asked) = match bound {
            Bound::AtLeast(times) => (ratio >= times, format!("at least {times}")),
            Bound::AtMost(times) => (ratio <= times, format!("at most {times}")),
            Bound::MiB(most) => (ours <= most, format!("at most {most} MiB")),
        };
        let cells = [theirs, ours].map(|figure| format!("{figure:.digits$}"));
        let [theirs, ours] = cells;
        table.row(
            &[what, &theirs, &ours, &format!("{ratio:.2}")],
            &asked,
            is_met,
        );
    };
    compare("pods/s from a backlog", |r| r.rate, 0, Bound::AtLeast(1.8));
    compare("CPU a pod, ms", |r| r.cpu, 2, Bound::AtMost(0.25));
    compare("most memory, MiB", |r| r.peak, 0, Bound::MiB(50.0));
    compare("steady p50, ms", |r| r.p50, 1, Bound::AtMost(0.7));
    compare("steady p99, ms", |r| r.p99, 1, Bound::AtMost(0.5));
    table
}

/// A bound for a figure of strew.
enum Bound {
    /// A bound for the ratio.
    AtLeast(f64),
    /// A bound for the ratio.
    AtMost(f64),
    /// A bound for the figure itself.
    MiB(f64),
}
