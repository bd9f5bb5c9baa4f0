//! Compares kube-scheduler and strew on one API server: `cargo xtask bench-live`.
//!
//! In each round both schedulers do the same work, one after the other; the next round has the other order, so that a
//! noisy machine does not favour one. Kubelets and controllers run only until the nodes are ready, so that API server
//! and etcd work for the measured scheduler alone. Results are ratios within a run. The schedulers measure nothing
//! themselves: a watch of this program sees when a pod is created and bound, and the kernel reports CPU time and
//! memory.
//!
//! Reading order: [`contender`] (the schedulers), [`cluster`] (the API server as this program uses it), [`round`] (the
//! work and the measurements), [`size`] (a large existing cluster), [`updates`] (a cluster that other clients change
//! meanwhile), [`figures`] (medians, quantiles, tables).

mod cluster;
mod contender;
pub(crate) mod figures;
mod round;
mod size;
mod updates;

use std::process::{Command, ExitCode};

use anyhow::ensure;
use clap::ValueEnum;
use xtask_lab::lab::Lab;

use cluster::Cluster;
use contender::Contender;
use figures::Table;
use round::Round;

/// What the command line says.
#[derive(clap::Args)]
pub(crate) struct BenchLive {
    /// What is measured
    #[arg(value_enum, default_value_t = What::Work)]
    what: What,
    /// How many rounds; figures are their medians
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Nodes of the cluster
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// Pods that wait when a contender starts
    #[arg(long, default_value_t = 5_000)]
    pods: usize,
    /// Pods a second that come afterwards
    #[arg(long, default_value_t = 100)]
    rate: u32,
    /// How long, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u32,
}

/// What is measured.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// Pods a second from a backlog, CPU and memory for it, and how long a pod waits when they come one by one
    Work,
    /// Memory, and the time to be ready, beside 5,000 nodes and 20,000 pods on them
    Size,
    /// CPU a pod while ReplicaSets are updated, with controllers and kubelets at work
    Updates,
}

/// Runs the measurement. Exit code 1 if a bound is missed.
pub(crate) fn run(options: &BenchLive) -> anyhow::Result<ExitCode> {
    if cfg!(debug_assertions) {
        return optimized();
    }
    ensure!(options.rounds > 0 && options.rate > 0 && options.seconds > 0);
    let strew = crate::e2e::build()?;
    let mut lab = crate::e2e::control_plane()?;
    // The watch has a thread of its own: it sees events when they happen.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let table = runtime.block_on(async {
        let cluster = Cluster::connect(&lab).await?;
        match options.what {
            What::Work => work(&mut lab, &cluster, &strew, options).await,
            What::Size => size::measure(&mut lab, &cluster, &strew).await,
            What::Updates => updates::measure(&mut lab, &cluster, &strew, options).await,
        }
    })?;
    print!("\n{table}");
    Ok(match table.is_met() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs this program again, optimized as the measured programs are: its watch uses the same two cores.
fn optimized() -> anyhow::Result<ExitCode> {
    let status = Command::new(xtask::program("xtask-lab", true)?)
        .args(std::env::args_os().skip(1))
        .status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// Ends the processes that would work for each new pod: the measurement would include kubelets and controllers, on the
/// cores that they share with the contenders.
fn leave_alone(lab: &mut Lab) -> anyhow::Result<()> {
    for name in ["kwok", "controller-manager"] {
        lab.component(name)?.kill();
    }
    Ok(())
}

async fn work(
    lab: &mut Lab,
    cluster: &Cluster,
    strew: &std::path::Path,
    options: &BenchLive,
) -> anyhow::Result<Table> {
    cluster.make_nodes(options.nodes).await?;
    leave_alone(lab)?;
    let mut rounds: [Vec<Round>; 2] = [Vec::new(), Vec::new()];
    for number in 0..options.rounds {
        let order = match number % 2 {
            0 => [Contender::KubeScheduler, Contender::Strew],
            _ => [Contender::Strew, Contender::KubeScheduler],
        };
        for contender in order {
            let mut process = contender.prepare(lab, strew);
            let round = round::play(cluster, &mut process, options).await?;
            println!("round {}, {contender}: {round}", number + 1);
            rounds[contender as usize].push(round);
            drop(process);
            cluster.clear_pods().await?;
        }
    }
    let [kube_scheduler, strew] = rounds;
    Ok(round::compared(&kube_scheduler, &strew))
}
