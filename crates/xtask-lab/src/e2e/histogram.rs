//! Parses a histogram of a process.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, ensure};
use xtask_lab::lab::https::ask;

use super::parts::Webhook;
use super::stage::{SOON, Stage};

/// How many observations took at most the bound, by the bound.
#[derive(Default, Debug)]
pub(super) struct Histogram(BTreeMap<Duration, u64>);

impl Histogram {
    /// Adds the histogram that a process serves on this port: of a metric, the lines with these labels.
    fn read(&mut self, port: u16, token: &str, metric: &str, labels: &str) -> anyhow::Result<()> {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        let reply = ask(port, SOON, "GET", "/metrics", &headers, b"")?;
        let reply = reply.context("no answer")?;
        ensure!(reply.status == 200, "/metrics: {}", reply.status);
        self.add(&reply.body, metric, labels)
    }

    /// Adds the time that a webhook took for creations of pods.
    pub(super) fn read_admissions(
        &mut self,
        stage: &Stage,
        webhook: &Webhook,
    ) -> anyhow::Result<()> {
        let name = "strew_webhook_admission_duration_seconds";
        let token = stage.lab.token()?;
        self.read(webhook.pages, &token, name, "operation=\"create\"")
    }

    fn add(&mut self, page: &str, metric: &str, labels: &str) -> anyhow::Result<()> {
        let begin = format!("{metric}_bucket{{");
        for line in page.lines().filter_map(|line| line.strip_prefix(&*begin)) {
            let (of, n) = line.split_once("} ").context("no value")?;
            let (_, bound) = of.split_once("le=\"").context("no bound")?;
            let (bound, _) = bound.split_once('"').context("no bound")?;
            if !of.contains(labels) {
                continue;
            }
            let bound = match bound {
                "+Inf" => Duration::MAX,
                bound => Duration::from_secs_f64(bound.parse()?),
            };
            *self.0.entry(bound).or_default() += n.parse::<f64>()? as u64;
        }
        Ok(())
    }

    /// The number of observations.
    pub(super) fn total(&self) -> u64 {
        self.0.values().copied().max().unwrap_or(0)
    }

    /// The first bound within which this share of the observations is.
    pub(super) fn quantile(&self, share: f64) -> Duration {
        let least = self.total() as f64 * share;
        let mut all = self.0.iter();
        let found = all.find(|(_, n)| **n as f64 >= least);
        found.map_or(Duration::MAX, |(bound, _)| *bound)
    }
}

impl std::ops::Sub for Histogram {
    type Output = Self;

    fn sub(mut self, before: Self) -> Self {
        for (bound, n) in before.0 {
            *self.0.entry(bound).or_default() -= n;
        }
        self
    }
}

#[test]
fn quantiles_are_bounds_of_buckets() -> anyhow::Result<()> {
    let page = |n: [u64; 3]| {
        let bounds = ["0.004", "0.008", "+Inf"];
        let lines = bounds.iter().zip(n);
        let lines = lines.map(|(le, n)| format!("took_bucket{{of=\"a\",le=\"{le}\"}} {n}.0\n"));
        let other = "took_bucket{of=\"b\",le=\"0.004\"} 9.0\n";
        format!("{}{other}", lines.collect::<String>())
    };
    let read = |pages: &[[u64; 3]]| {
        let mut sum = Histogram::default();
        let mut pages = pages.iter().map(|n| page(*n));
        pages.try_for_each(|page| sum.add(&page, "took", "of=\"a\""))?;
        anyhow::Ok(sum)
    };
    let found = read(&[[59, 110, 110]])? - read(&[[10, 10, 10]])?;
    assert_eq!(found.total(), 100);
    assert_eq!(found.quantile(0.49), Duration::from_millis(4));
    assert_eq!(found.quantile(0.5), Duration::from_millis(8));
    let beyond = read(&[[1, 2, 4], [1, 2, 4]])?;
    assert_eq!(beyond.total(), 8);
    assert_eq!(beyond.quantile(0.99), Duration::MAX);
    Ok(())
}
