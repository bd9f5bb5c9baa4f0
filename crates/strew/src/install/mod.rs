//! `strew install`: prints manifests that install strew's parts. It only prints; `kubectl apply -f -` applies.
//!
//! Reading order: [`flags`] (checks), [`objects`] (objects of every part), [`pods`] (what
//! clusters want of pods), [`rights`] (its
//! permissions), [`network`] (its peers), [`scheduler`], [`definitions`] (who owns CustomResourceDefinitions),
//! [`elsewhere`] (another installation), [`workloadspread`], [`alone`] (other controllers), [`placement`].

mod alone;
mod definitions;
pub(crate) mod elsewhere;
pub(crate) mod flags;
mod network;
mod objects;
mod placement;
mod pods;
mod rights;
mod scheduler;
mod workloadspread;

use anyhow::anyhow;
use clap::{Args, FromArgMatches, Subcommand};
use serde_json::Value;

use self::elsewhere::Elsewhere;
pub(crate) use self::rights::table_of;
use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::failure::{EXIT_INPUT, Failure};
use crate::manifest::{self, Manifest};
use crate::terminal;

pub(crate) const EXAMPLES: &str = "Examples:
  IMAGE=registry.example.com/strew:0.1.0             built with deploy/Containerfile
  PROGRAM install scheduler --image $IMAGE | kubectl apply -f -
  PROGRAM install scheduler --image $IMAGE --namespace scheduling
  PROGRAM install scheduler --image $IMAGE --config config.yaml
                                                     with its profiles
  PROGRAM install scheduler --image $IMAGE | kubectl diff -f -
                                                     what would change?
  PROGRAM install workloadspread --image $IMAGE | kubectl apply --server-side -f -
  PROGRAM install placement --image $IMAGE --crds=always > placement.yaml
  PROGRAM install keep --image $IMAGE | kubectl apply -f -
  PROGRAM install audit --image $IMAGE --extra-arg=--audit-every=30m | kubectl apply -f -
  PROGRAM install rebalance --image $IMAGE | kubectl apply -f -
  PROGRAM install workloadspread --image $IMAGE --webhook-url https://10.0.0.7:9443
                                                     for a webhook outside the cluster

It only prints. It asks the cluster, if one is known, whether strew is installed in another namespace, whether another
scheduler has the same profile and, without --crds, whose CustomResourceDefinitions are there.
Exit codes: 0 done; 2 wrong usage or configuration, or strew is installed in another namespace; 3 the cluster of
--kubeconfig cannot be asked.";

/// Arguments of `strew install`.
#[derive(Args, Debug)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand, Debug)]
enum Part {
    /// The scheduler: two replicas over zones, one of which is active, with only the rights that it needs
    Scheduler(scheduler::SchedulerPart),
    /// WorkloadSpreads: webhook and controller, and the webhook's registration
    Workloadspread(workloadspread::WorkloadSpreadPart),
    /// Placements of Open Cluster Management, in place of its own placement controller
    Placement(placement::PlacementPart),
    /// Deletion costs, so that labelled workloads stay spread when they are scaled down
    Keep(alone::ControllerPart),
    /// Audits of the cluster on a timer, as metrics: what the loss, the shift and the drain of each zone would do
    Audit(alone::ControllerPart),
    /// Evictions, one at a time, that make labelled workloads even again
    Rebalance(alone::ControllerPart),
}

impl Part {
    fn access(&self) -> &AccessArgs {
        match self {
            Self::Scheduler(part) => &part.access,
            Self::Workloadspread(part) => part.definitions.access(),
            Self::Placement(part) => part.definitions.access(),
            Self::Keep(part) | Self::Audit(part) | Self::Rebalance(part) => &part.access,
        }
    }

    fn common(&self) -> &Common {
        match self {
            Self::Scheduler(part) => &part.common,
            Self::Workloadspread(part) => &part.common,
            Self::Placement(part) => &part.common,
            Self::Keep(part) | Self::Audit(part) | Self::Rebalance(part) => &part.common,
        }
    }

    /// All objects; `None`: there is an error, which was reported.
    fn manifests(&self, context: &Context) -> Result<Option<Vec<Manifest>>, Failure> {
        let manifests = match self {
            Self::Scheduler(part) => return part.manifests(context),
            Self::Workloadspread(part) => part.manifests(context),
            Self::Placement(part) => part.manifests(context),
            Self::Keep(part) => alone::KEEP.manifests(&part.common, Vec::new()),
            Self::Audit(part) => alone::AUDIT.manifests(&part.common, Vec::new()),
            Self::Rebalance(part) => alone::REBALANCE.manifests(&part.common, Vec::new()),
        };
        manifests.map(Some)
    }

    /// Its subcommand.
    fn name(&self) -> &'static str {
        match self {
            Self::Scheduler(_) => Component::Scheduler.name(),
            Self::Workloadspread(_) => Component::WorkloadSpread.name(),
            Self::Placement(_) => Component::Placement.name(),
            Self::Keep(_) => Component::Keep.name(),
            Self::Audit(_) => Component::Audit.name(),
            Self::Rebalance(_) => Component::Rebalance.name(),
        }
    }

    /// What each right is for, as Markdown.
    fn rights(&self) -> String {
        match self {
            Self::Scheduler(part) => part.rights(),
            Self::Workloadspread(part) => part.rights(),
            Self::Placement(part) => alone::PLACEMENT.rights(&part.common),
            Self::Keep(part) => alone::KEEP.rights(&part.common),
            Self::Audit(part) => alone::AUDIT.rights(&part.common),
            Self::Rebalance(part) => alone::REBALANCE.rights(&part.common),
        }
    }
}

/// The components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    /// The scheduler.
    Scheduler,
    /// Webhook and controller of WorkloadSpreads.
    WorkloadSpread,
    /// The placement controller.
    Placement,
    /// The controller that keeps ReplicaSets spread.
    Keep,
    /// The audit.
    Audit,
    /// The controller that makes workloads even again.
    Rebalance,
}

impl Component {
    /// Its subcommand.
    fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::WorkloadSpread => "workloadspread",
            Self::Placement => "placement",
            Self::Keep => "keep",
            Self::Audit => "audit",
            Self::Rebalance => "rebalance",
        }
    }

    /// The definitions of its kinds.
    pub(crate) fn definitions(self) -> Vec<Value> {
        match self {
            Self::Scheduler | Self::Keep | Self::Audit | Self::Rebalance => Vec::new(),
            Self::WorkloadSpread => vec![workloadspread::definition()],
            Self::Placement => strew_wire::placement::crd::all(),
        }
    }
}

/// All objects of a component in this namespace with default arguments, without definitions and without a question to a
/// cluster.
///
/// # Errors
/// Never: the arguments are valid.
pub(crate) fn objects_of(
    component: Component,
    namespace: &str,
    context: &Context,
) -> Result<Vec<Value>, Failure> {
    let mut words = vec![
        component.name(),
        component.name(),
        "--namespace",
        namespace,
        "--image=unused",
    ];
    if !component.definitions().is_empty() {
        words.push("--crds=never");
    }
    let matches = Part::augment_subcommands(clap::Command::new("install"))
        .try_get_matches_from(words)
        .and_then(|matches| Part::from_arg_matches(&matches));
    let part = matches.map_err(Failure::input)?;
    let manifests = match &part {
        Part::Scheduler(part) => part.unasked(context)?,
        part => part.manifests(context)?,
    };
    let manifests = manifests.unwrap_or_default();
    Ok(manifests
        .into_iter()
        .map(|manifest| manifest.object)
        .collect())
}

/// The arguments of every part.
#[derive(Args, Debug, Clone)]
pub(crate) struct Common {
    /// The namespace, which is created as well
    #[arg(long, value_name = "NAME", default_value = "strew-system", value_parser = flags::namespace)]
    namespace: String,
    /// The container image, in a registry that the nodes can reach; required, because no image of strew is published
    #[arg(long, value_name = "IMAGE", value_parser = flags::image)]
    image: Option<String>,
    /// The number of replicas; one of them is active, of the webhook all
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    replicas: u16,
    /// Allow only pods of this namespace to reach health and metrics; may be repeated [default: pods of all namespaces]
    #[arg(long, value_name = "NAME", value_parser = flags::namespace)]
    metrics_namespace: Vec<String>,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml", value_parser = ["yaml", "json"])]
    output: String,
    /// Print a table of the rights of its service accounts with their purposes, and no manifests
    #[arg(long)]
    rights: bool,
    #[command(flatten)]
    pods: pods::PodArgs,
}

impl Common {
    /// The image. There is no default, since manifests with an image that no node can pull would install everything
    /// except the processes.
    ///
    /// # Errors
    /// No image is given.
    fn image(&self) -> Result<&str, Failure> {
        let image = self.image.as_deref().ok_or_else(|| {
            Failure::input(anyhow!("--image is required: no image of strew is published yet")).with_hint(concat!(
                "build one with deploy/Containerfile, push it to a registry that the nodes reach, and name it: ",
                "--image registry.example.com/strew:",
                env!("CARGO_PKG_VERSION"),
            ))
        })?;
        Ok(image)
    }
}

pub(crate) fn run(args: &InstallArgs, context: &Context) -> Result<u8, Failure> {
    if args.part.common().rights {
        terminal::print(&args.part.rights())?;
        return Ok(0);
    }
    // The error was reported.
    let Some(manifests) = args.part.manifests(context)? else {
        return Ok(EXIT_INPUT);
    };
    let Common {
        namespace, output, ..
    } = args.part.common();
    let objects: Vec<Value> = manifests.iter().map(|m| m.object.clone()).collect();
    if let Some(found) = elsewhere::find(&objects, namespace, args.part.access())? {
        let Elsewhere {
            binding,
            namespace: other,
        } = found;
        let error = anyhow!(
            "strew is installed in namespace {other}: ClusterRoleBinding {binding} gives its rights to an account there, \
             and this installation would take them"
        );
        return Err(Failure::input(error).with_hint(format!(
            "use --namespace {other}, or take the other one out first: strew uninstall {} --namespace {other}",
            args.part.name()
        )));
    }
    terminal::print(&manifest::written(&manifests, output)?)?;
    Ok(0)
}
