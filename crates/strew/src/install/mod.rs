//! `strew install`: manifests that put strew's parts into a cluster. It prints; `kubectl apply -f -` does.
//!
//! Reading order: [`manifest`] (what is printed), [`objects`] (what every part has), [`network`] (who reaches it),
//! [`scheduler`], [`definitions`] (whose CustomResourceDefinitions there are), [`workloadspread`], [`placement`].

mod definitions;
mod manifest;
mod network;
mod objects;
mod placement;
mod scheduler;
mod workloadspread;

use clap::{Args, Subcommand};

use crate::arguments::Context;
use crate::failure::{EXIT_INPUT, Failure};
use crate::terminal;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM install scheduler | kubectl apply -f -
  PROGRAM install scheduler --namespace scheduling --image registry.example.com/strew:0.1.0
  PROGRAM install scheduler --config config.yaml        with its profiles
  PROGRAM install scheduler | kubectl diff -f -         what would change?
  PROGRAM install workloadspread | kubectl apply --server-side -f -
  PROGRAM install placement --crds=always > placement.yaml
  PROGRAM install workloadspread --webhook-url https://10.0.0.7:9443
                                                     for a webhook outside the cluster

It only prints; without --crds it asks the cluster whose CustomResourceDefinitions are there.
Exit codes: 0 done; 2 wrong usage or configuration; 3 the cluster of --kubeconfig cannot be asked.";

/// Arguments of `strew install`.
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// The scheduler: two replicas over zones, of which one acts, with no more rights than it needs
    Scheduler(scheduler::SchedulerPart),
    /// WorkloadSpreads: webhook and controller, and how the API server calls the webhook
    Workloadspread(workloadspread::WorkloadSpreadPart),
    /// Placements of Open Cluster Management, in the place of its own placement controller
    Placement(placement::PlacementPart),
}

/// What every part is asked for.
#[derive(Args, Debug, Clone)]
pub(crate) struct Common {
    /// The namespace that it lives in; made as well
    #[arg(long, value_name = "NAME", default_value = "strew-system")]
    namespace: String,
    /// Its container image
    #[arg(long, value_name = "IMAGE", default_value = concat!("strew:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// How many replicas; one acts at a time, of the webhook all
    #[arg(long, value_name = "N", default_value_t = 2)]
    replicas: u16,
    /// Let pods of this namespace alone reach health and metrics; may be repeated [default: pods of all namespaces]
    #[arg(long, value_name = "NAME")]
    metrics_namespace: Vec<String>,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = ["yaml", "json"])]
    output: String,
}

pub(crate) fn run(args: &InstallArgs, context: &Context) -> Result<u8, Failure> {
    let (common, manifests) = match &args.part {
        Part::Scheduler(part) => (&part.common, part.manifests(context)?),
        Part::Workloadspread(part) => (&part.common, Some(part.manifests(context)?)),
        Part::Placement(part) => (&part.common, Some(part.manifests(context)?)),
    };
    // What is wrong was told.
    let Some(manifests) = manifests else {
        return Ok(EXIT_INPUT);
    };
    terminal::print(&manifest::written(&manifests, &common.output)?)?;
    Ok(0)
}
