//! A large existing cluster: the time until strew is ready, and its memory then.

use std::path::Path;
use std::time::Duration;

use xtask_lab::lab::https::ask;
use xtask_lab::lab::{Lab, free_ports, now, until};

use super::cluster::Cluster;
use super::contender::Contender;
use super::figures::{Table, median};
use crate::taken::Taken;

const NODES: usize = 5_000;

const PODS: usize = 20_000;

/// The number of starts.
const STARTS: usize = 5;

/// The number of requests for its metrics.
const SCRAPES: u32 = 20;

/// The longest time until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// The pause between two requests of `/readyz`.
const PAUSE: Duration = Duration::from_millis(20);

/// The time after which its memory counts as steady.
const STEADY_AFTER: Duration = Duration::from_secs(10);

/// The figures of one start.
struct Start {
    /// Seconds until it was ready.
    ready: f64,
    at_ready: Taken,
    steady: Taken,
    /// Milliseconds until `/metrics` was answered, and of the process' CPU time for it.
    scrape: [f64; 2],
    /// The size of `/metrics` in KiB.
    page: f64,
}

/// Measures the starts.
pub(super) async fn measure(
    lab: &mut Lab,
    cluster: &Cluster,
    strew: &Path,
) -> anyhow::Result<Table> {
    cluster.make_nodes(NODES).await?;
    super::leave_alone(lab)?;
    cluster.make_pods("there", PODS, Some(NODES)).await?;
    println!("{NODES} nodes and {PODS} pods are there");
    let mut starts = Vec::new();
    for number in 1..=STARTS {
        let start = start(lab, strew).await?;
        println!(
            "start {number}: ready after {:.1} s and {:.1} s of CPU; {:.0} MiB, at most {:.0}",
            start.ready, start.at_ready.cpu, start.steady.resident, start.steady.peak
        );
        starts.push(start);
    }
    let middle = |of: fn(&Start) -> f64| median(starts.iter().map(of).collect());
    let mut table = Table::new(&["5,000 nodes, 20,000 pods", "strew"]);
    let (ready, steady) = (middle(|s| s.ready), middle(|s| s.steady.resident));
    let cells = ["from start to ready, s", &format!("{ready:.1}")];
    table.row(&cells, "at most 10", ready <= 10.0);
    let cells = ["steady memory, MiB", &format!("{steady:.0}")];
    table.row(&cells, "at most 150", steady <= 150.0);
    let mut note = |what: &str, of: fn(&Start) -> f64, digits: usize| {
        table.note(&[what, &format!("{:.digits$}", middle(of))]);
    };
    note("most memory, MiB", |s| s.steady.peak, 0);
    note("CPU to be ready, s", |s| s.at_ready.cpu, 1);
    note("a scrape of /metrics, ms", |s| s.scrape[0], 1);
    note("CPU for it, ms", |s| s.scrape[1], 1);
    note("its size, KiB", |s| s.page, 0);
    Ok(table)
}

async fn start(lab: &mut Lab, strew: &Path) -> anyhow::Result<Start> {
    let [port] = free_ports()?;
    let bearer = format!("Bearer {}", lab.token()?);
    let page = |path: &str| {
        let headers = [("Authorization", bearer.as_str())];
        let reply = ask(port, READY_WITHIN, "GET", path, &headers, b"")?;
        anyhow::Ok(reply.filter(|reply| reply.status == 200))
    };
    let mut process = Contender::Strew.prepare(lab, strew);
    let begin = now();
    process.start(&[&format!("--secure-port={port}"), "--bind-address=127.0.0.1"])?;
    // Nothing listens at first.
    until("it is not ready", READY_WITHIN, PAUSE, || {
        Ok(page("/readyz").ok().flatten())
    })?;
    let ready = begin.elapsed().as_secs_f64();
    let at_ready = process.taken()?;
    tokio::time::sleep(STEADY_AFTER).await;
    let steady = process.taken()?;
    let begin = now();
    let mut size = 0;
    for _ in 0..SCRAPES {
        size = page("/metrics")?.map_or(0, |reply| reply.body.len());
    }
    let wall = begin.elapsed().as_secs_f64();
    let cpu = process.taken()?.cpu - steady.cpu;
    Ok(Start {
        ready,
        at_ready,
        steady,
        scrape: [wall, cpu].map(|seconds| seconds * 1e3 / f64::from(SCRAPES)),
        page: size as f64 / 1024.0,
    })
}
