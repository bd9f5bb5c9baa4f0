//! `strew rebalance`: evictions after which the constraints of a cluster are kept again, each simulated with those before
//! it.
//!
//! Reading order: this file (arguments, what is asked, from the files to a plan), [`strew_scenario::rebalance`] (plans,
//! and carrying them out), `text` (for people), `apply` (on a cluster).

#[cfg(feature = "cluster")]
mod apply;
mod text;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use crate::cluster::access::AccessArgs;
use crate::configuration;
use crate::context::Context;
use crate::destination;
use crate::diagnostics;
use crate::explain::time_of;
use crate::failure::{EXIT_INPUT, EXIT_NO, Failure};
use crate::inputs;
use crate::output::{Format, serialized};
use crate::progress::Progress;
use crate::scenario;
use crate::scenario::{Life, When};
use crate::terminal;
use crate::workloads::{FailOn, WorkloadArgs};
use crate::world::WorldArgs;
use strew_apiserver::Tables;
use strew_manifest::printable::printable_line;
use strew_model::Span;
use strew_scenario::rebalance::plan::{self, Asked};
use strew_scenario::rebalance::rounds;
use strew_scenario::rebalance::values::RebalancePlan;
use strew_suite::report::API_VERSION;
use strew_suite::shown::Choice;
use strew_view::cluster_state::ClusterState;
use strew_view::moment;
use strew_view::workload::WorkloadName;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM rebalance dump.json                      which evictions make the cluster even again?
  PROGRAM rebalance                                the cluster of the current context, which is only read
  PROGRAM rebalance dump.json --soft               soft constraints and the cluster's defaults, too
  PROGRAM rebalance dump.json -n shop --max-evictions 10
  PROGRAM rebalance -o yaml --out plan.yaml        a plan to read, and to carry out:
  PROGRAM rebalance --apply plan.yaml --dry-run=server
  PROGRAM rebalance --apply plan.yaml              evicts, after a question
  PROGRAM rebalance dump.json --fail-on Uneven     exit code 1 if there is anything to do
  PROGRAM rebalance dump.json -o json | jq -r '.steps[] | \"\\(.namespace)/\\(.pod)\"'

Each step evicts one pod, as the Eviction API does; its controller makes another one, and the scheduler's own code
decides where that goes, on the cluster as it is after the steps before. A step is in the plan only if fewer pods have
to move after it, and its pod has a node again. Budgets are kept, and nothing more stays Pending. Workloads are left
alone whose controllers are about to make or delete pods. Pods stay that no controller makes again as they are, that
are made for a node, run to an end (Jobs), have an emptyDir (see --delete-emptydir-data), are critical to the cluster,
or whose annotation says so: cluster-autoscaler.kubernetes.io/safe-to-evict: \"false\",
karpenter.sh/do-not-disrupt: \"true\", descheduler.alpha.kubernetes.io/prefer-no-eviction. They count nevertheless.

--apply evicts the pods of a plan one after the other, each by its uid, and waits until the pod in its place is ready
in the domain of the plan. What goes otherwise ends it; then make a new plan. Nothing else evicts.

Exit codes: 0 all constraints that were looked at are kept, now or after the plan, or --apply carried it out; 1 the plan
leaves one that is not, one is not kept now and --fail-on Uneven is given, or --apply stopped; 2 wrong input, such as
one without pods on nodes; 3 something outside failed.";

const NO_POD: &str = "no pod is on a node in the input, so there is nothing to rebalance";

const NO_POD_HINT: &str =
    "rebalance looks at a dump of a cluster: kubectl get all,nodes,pdb,quota,pvc,pv,sc -A -o json";

/// Arguments of `strew rebalance`.
#[derive(Args, Debug)]
pub(crate) struct RebalanceArgs {
    /// Dumps: files, folders, or - for standard input; without files a live cluster, which is only read
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Keep soft constraints, too, the cluster's defaults among them, as far as no hard one is kept less
    #[arg(long)]
    soft: bool,
    /// The most evictions [default: as many as help]
    #[arg(long, value_name = "N")]
    max_evictions: Option<usize>,
    /// Evict pods with an emptyDir, too: its content is lost
    #[arg(long)]
    delete_emptydir_data: bool,
    /// End with exit code 1 if a constraint is not kept now, even if the plan mends it
    #[arg(long, value_name = "STATE", ignore_case = true)]
    fail_on: Option<FailOn>,
    /// Evict the pods of this plan, one after the other
    #[arg(long, value_name = "PLAN", conflicts_with_all = ["files", "filename", "output", "out", "fail_on"])]
    apply: Option<PathBuf>,
    /// With --apply: ask no question
    #[arg(long)]
    yes: bool,
    /// With --apply: the API server checks each eviction alone, and evicts nothing
    #[arg(long, value_name = "WHO", value_parser = ["server"])]
    dry_run: Option<String>,
    /// With --apply: how long a step may wait for its budget, and for the pod in its place [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = time_of)]
    step_timeout: Option<Span>,
    /// How to write the plan
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<PlanFormat>,
    /// Write the plan into this file, completely or not at all, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    workloads: WorkloadArgs,
    /// If there are more evictions or constraints than this, show the first; -o wide shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    world: WorldArgs,
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum PlanFormat {
    /// Kind RebalancePlan
    Json,
    /// The same as YAML
    Yaml,
    /// All evictions, with their nodes, and all constraints
    Wide,
}

impl PlanFormat {
    fn of_programs(self) -> Option<Format> {
        match self {
            Self::Json => Some(Format::Json),
            Self::Yaml => Some(Format::Yaml),
            Self::Wide => None,
        }
    }
}

pub(crate) fn run(args: &RebalanceArgs, context: &Context) -> Result<u8, Failure> {
    if let Some(plan) = &args.apply {
        return args.apply(plan, context);
    }
    args.check_apart()?;
    let names = args.world.names(&args.files);
    planned(args, &names, context).inspect_err(|failure| {
        let first_file = names.first().map_or("", String::as_str);
        let output = args.output.and_then(PlanFormat::of_programs);
        diagnostics::print_failure("rebalance", failure, output, first_file);
    })
}

fn planned(args: &RebalanceArgs, names: &[String], context: &Context) -> Result<u8, Failure> {
    let choice = args.workloads.choice(usize::MAX)?;
    configuration::check(&args.world.scheduling, names)?;
    let inputs = args
        .world
        .inputs_or_cluster(names, &args.access, "rebalance", context)?;
    if let Some(out) = &args.out {
        inputs::check_output(out, &inputs)?;
    }
    if scenario::is_in(&inputs) {
        let error = anyhow!("rebalance looks at a dump of a cluster, and a file holds a Scenario");
        return Err(Failure::input(error).with_hint("strew simulate plays Scenarios"));
    }
    let format = args.output.and_then(PlanFormat::of_programs);
    let verb = Some("rebalance");
    let life = scenario::looked_at(&args.world, None, names, inputs, format, verb, context)?;
    let Some(life) = life else {
        return Ok(EXIT_INPUT);
    };
    let plan = args.plan(&life, &choice, context)?;
    let text = match format {
        Some(format) => serialized(&plan, format)?,
        None => text::write(
            &plan,
            &text::Look {
                context,
                top: match args.output {
                    Some(PlanFormat::Wide) => usize::MAX,
                    _ => args.top,
                },
                wide: args.output == Some(PlanFormat::Wide),
            },
        ),
    };
    destination::write(args.out.as_deref(), &text)?;
    Ok(exit(&plan, args.fail_on))
}

/// The exit code.
fn exit(plan: &RebalancePlan, fail_on: Option<FailOn>) -> u8 {
    let fails_now = fail_on == Some(FailOn::Uneven) && plan.summary.uneven_before > 0;
    let sums = &plan.summary;
    let unknown = sums.other_scheduler + sums.off_nodes;
    let fails = sums.uneven_after + sums.without_domain + unknown > 0;
    match fails_now || fails {
        true => EXIT_NO,
        false => 0,
    }
}

/// Looks at a cluster of these objects as it is.
///
/// # Errors
/// The objects are no cluster.
#[cfg(feature = "cluster")]
pub(crate) fn with_world<T>(
    objects: Vec<serde_json::Value>,
    look: impl FnOnce(&mut ClusterState, &Tables) -> T,
) -> Result<T, Failure> {
    let world = WorldArgs::default();
    let inputs = world.listed(objects)?;
    let life = scenario::looked_at(&world, None, &[], inputs, None, None, &Context::quiet())?;
    let none = || Failure::input(anyhow!("there is no cluster in the input"));
    let life = life.ok_or_else(none)?;
    let mut look = Some(look);
    let mut made = None;
    life.look(When::Start, &Progress::new(true), &mut |seen, frame| {
        let (mut world, _) = moment::world(seen.moment, frame);
        made = look.take().map(|look| look(&mut world, seen.moment.tables));
    })?;
    made.ok_or_else(none)
}

/// A note for each workload with evictions whose rollout is under way.
fn rollouts(plan: &RebalancePlan, world: &ClusterState, tables: &Tables) -> String {
    let rolling = rounds::rolling(plan, world, tables).into_iter();
    let note = |workload: &WorkloadName| {
        let text = format!(
            "note: a rollout of {}/{} is under way: its old and new pods are evicted alike, and the rollout may make it uneven again; wait until it has ended, as the controller rebalance does",
            workload.namespace,
            workload.of()
        );
        printable_line(&text).into_owned() + "\n"
    };
    rolling.map(note).collect()
}

/// The JSON schema of a plan.
pub(crate) fn schema() -> serde_json::Value {
    schemars::schema_for!(RebalancePlan).to_value()
}

/// How long a step may wait, by default.
const STEP_TIMEOUT: Span = Span::from_secs(600);

impl RebalanceArgs {
    /// Refuses flags that mean something with `--apply` alone. (clap drops `requires` where the argument conflicts with
    /// another one that is there.)
    fn check_apart(&self) -> Result<(), Failure> {
        let given = [
            ("--yes", self.yes),
            ("--dry-run", self.dry_run.is_some()),
            ("--step-timeout", self.step_timeout.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => {
                let error = anyhow!("{flag} belongs to --apply: without it nothing is evicted");
                Err(Failure::input(error).with_hint("--apply PLAN carries out a plan of -o yaml"))
            }
        }
    }

    /// The plan for the cluster of the files.
    ///
    /// # Errors
    /// No pod is on a node, or no workload is one of the chosen ones.
    fn plan(
        &self,
        life: &Life,
        choice: &Choice,
        context: &Context,
    ) -> Result<RebalancePlan, Failure> {
        let asked = Asked {
            means: &|workload| choice.means(workload),
            evicts: &|_| true,
            soft: self.soft,
            evictions_max: self.max_evictions.unwrap_or(usize::MAX),
            deletes_empty_dirs: self.delete_emptydir_data,
        };
        let progress = Progress::new(context.quiet);
        let mut made = None;
        let mut notes = String::new();
        life.look(When::Start, &progress, &mut |seen, frame| {
            let (mut world, _) = moment::world(seen.moment, frame);
            let no_pod = || Failure::input(anyhow!(NO_POD)).with_hint(NO_POD_HINT);
            let plan = plan::plan(&mut world, seen.moment.tables, &asked).ok_or_else(no_pod);
            made = Some(plan.and_then(|plan| {
                choice.check(&world.workloads)?;
                notes = rollouts(&plan, &world, seen.moment.tables);
                Ok(RebalancePlan {
                    api_version: API_VERSION.to_owned(),
                    ..plan
                })
            }));
        })?;
        progress.finish();
        if !context.quiet {
            terminal::say(&notes);
        }
        made.unwrap_or_else(|| Err(Failure::input(anyhow!("there is no cluster in the input"))))
    }

    /// Carries a plan out.
    #[cfg(feature = "cluster")]
    fn apply(&self, plan: &Path, context: &Context) -> Result<u8, Failure> {
        let how = apply::How {
            access: &self.access,
            yes: self.yes,
            dry_run: self.dry_run.is_some(),
            patience: self.step_timeout.unwrap_or(STEP_TIMEOUT),
        };
        apply::run(plan, &how, context)
    }

    /// Refuses: there is no client of API servers.
    #[cfg(not(feature = "cluster"))]
    fn apply(&self, _: &Path, context: &Context) -> Result<u8, Failure> {
        crate::cluster::fetch(&self.access, context.quiet).map(|_| 0)
    }
}
