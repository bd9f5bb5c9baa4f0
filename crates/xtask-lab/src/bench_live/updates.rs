//! A busy cluster: the cost of a pod while ReplicaSets are updated.
//!
//! Controllers and kubelets stay. Pods come at a steady rate, in turn without updates of ReplicaSets and with them; the
//! updates change an annotation, which no decision reads.

use std::path::Path;
use std::time::Duration;

use anyhow::ensure;
use xtask_lab::lab::Lab;

use super::BenchLive;
use super::cluster::Cluster;
use super::contender::Contender;
use super::figures::{Table, median};

/// Updates a second: as many as this machine's API server handled beside all else when it was first measured.
const UPDATES: u32 = 84;

/// The number of ReplicaSets that are updated in turn.
const REPLICA_SETS: usize = 84;

/// The bound for the cost of a pod during updates, as a multiple of its cost without them.
const TIMES_MAX: f64 = 1.2;

/// The time until a scheduler's first pod is bound, in which it reads the existing objects.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Measures the cost.
pub(super) async fn measure(
    lab: &mut Lab,
    cluster: &Cluster,
    strew: &Path,
    options: &BenchLive,
) -> anyhow::Result<Table> {
    cluster.make_nodes(options.nodes).await?;
    cluster.make_replica_sets(REPLICA_SETS).await?;
    let mut costs = [Vec::new(), Vec::new()];
    for number in 0..options.rounds {
        let order = match number % 2 {
            0 => [false, true],
            _ => [true, false],
        };
        for is_updated in order {
            let cost = round(lab, cluster, strew, options, is_updated).await?;
            let what = if is_updated { "with" } else { "without" };
            println!(
                "round {}, {what} updates: {cost:.2} ms of CPU a pod",
                number + 1
            );
            costs[usize::from(is_updated)].push(cost);
            cluster.clear_pods().await?;
        }
    }
    let [without, with] = costs.map(median);
    let ratio = with / without;
    let mut table = Table::new(&["", "without updates", "with updates", "ratio"]);
    let cells = [without, with, ratio].map(|figure| format!("{figure:.2}"));
    let [without, with, ratio_text] = &cells;
    table.row(
        &["CPU a pod, ms", without, with, ratio_text],
        &format!("at most {TIMES_MAX}"),
        ratio <= TIMES_MAX,
    );
    Ok(table)
}

/// Milliseconds of CPU time for each pod.
async fn round(
    lab: &mut Lab,
    cluster: &Cluster,
    strew: &Path,
    options: &BenchLive,
    is_updated: bool,
) -> anyhow::Result<f64> {
    let mut watch = cluster.watch().await?;
    let mut process = Contender::Strew.prepare(lab, strew);
    process.start(&[])?;
    cluster.make_pods("first", 1, None).await?;
    let first = tokio::time::timeout(READY_WITHIN, watch.bound(1)).await;
    ensure!(first.is_ok_and(|f| f.is_ok()), "the first pod is not bound");
    let n = (options.rate * options.seconds) as usize;
    let before = process.taken()?.cpu;
    let n_updates = match is_updated {
        true => (UPDATES * options.seconds) as usize,
        false => 0,
    };
    let (made, bound, updated) = tokio::join!(
        cluster.make_pods_steadily("steady", n, options.rate),
        watch.bound(n),
        cluster.update_replica_sets(REPLICA_SETS, n_updates, UPDATES)
    );
    made?;
    bound?;
    updated?;
    Ok((process.taken()?.cpu - before) * 1e3 / n as f64)
}
