//! `strew simulate`.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::Format;
use crate::scenario::{self, PlayedKind, Question, ScenarioArgs};
use crate::schema::SchemaKind;
use crate::workloads::WorkloadArgs;
use crate::world::WorldArgs;
use crate::{configuration, diagnostics, inputs, terminal};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate shop.yaml                          on 12 made-up nodes in 3 zones
  PROGRAM simulate shop.yaml --until deploy           where do its pods go, and no more
  PROGRAM simulate deploy/ --nodes 30 --zones 3 --node-cpu 16 --node-memory 64Gi
  kubectl get -A -o json > dump.json \\
RESOURCES
  PROGRAM simulate dump.json app.yaml                 what if app.yaml came to this cluster?
  PROGRAM simulate shop.yaml --fail-on deploy,rollout  the loss of a zone decides nothing
  PROGRAM simulate shop.yaml --config scheduler-config.yaml
  PROGRAM simulate shop.yaml --feature-gates MinDomainsInPodTopologySpread=false
  PROGRAM simulate shop.yaml --seed 7                 another life: other names, times and orders
  PROGRAM simulate dump.json -n shop -o json | jq .scenarios[0].variants[0].runs[0].steps[0].workloads
  PROGRAM simulate --new > scenario.yaml              a Scenario to begin with: steps and expectations
  PROGRAM simulate scenarios/                         each Scenario, all variants and seeds
  PROGRAM simulate scenarios/ -o junit > report.xml
  PROGRAM simulate scenarios/ --seeds 0..1000000 --shard 3/7 --out shard-3.json
                                                      a part of many seeds; strew merge adds parts up
  PROGRAM simulate rollout.yaml --html rollout.html   what happened, in a browser: time, domains, variants
  PROGRAM simulate rollout.yaml --variant base --seed 7 --until 42s --events log.jsonl
                                                      one run again, with all that happened

A folder with one Scenario is one stream; of a folder with several, each file is a scenario of
its own, with the manifests in it and in the other files named.

A step of the built-in story fails if, once the cluster is at rest, a workload is not rolled out (pods
are not made, not of the newest template, not ready, or Pending), or if a rollout leaves a hard spread
constraint exceeded. The step lose fails if a workload has no ready pod, or fewer healthy ones than a
PodDisruptionBudget asks for. Small clusters are played with 20 seeds, all are judged, and the first that
failed is shown. Where something new comes beside a dump, what was not rolled out in the dump already is
not judged.

Exit codes: 0 every step and expectation holds; 1 one failed (--fail-on chooses steps), or nothing
did where it must; 2 wrong input, also one with nothing to simulate; 3 could not run;
130 interrupted. With --shard: 0 the shard was played, whatever came of it.";

/// Arguments of `strew simulate`.
#[derive(Args, Debug)]
pub(crate) struct SimulateArgs {
    /// Manifests or dumps: files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["filename", "schema", "starter"])]
    files: Vec<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    /// Write the result into this file, completely or not at all, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write everything that happened as one page for a browser, which needs no network: what is wrong, skew bars, a map
    /// of the domains, a time slider; of each variant the first seed that broke
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    #[command(flatten)]
    workloads: WorkloadArgs,
    /// Count every workload by this topology key in addition to those of constraints, zone and node: reports that are
    /// compared then count by the same keys
    #[arg(long, value_name = "KEY")]
    by: Vec<String>,
    /// If there are more workloads than this, show those with most Pending pods or most skew
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Show all workloads
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Print tables without headers
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    scenario: ScenarioArgs,
}

pub(crate) fn run(args: &SimulateArgs, context: &Context) -> Result<u8, Failure> {
    if let Some(document) = document(&args.scenario) {
        terminal::print(&document)?;
        return Ok(0);
    }
    let names = args.world.names(&args.files);
    simulated(args, &names, context).inspect_err(|failure| {
        let first_file = names.first().map_or("", String::as_str);
        diagnostics::print_failure("simulate", failure, args.output, first_file);
    })
}

fn simulated(args: &SimulateArgs, names: &[String], context: &Context) -> Result<u8, Failure> {
    configuration::check(&args.world.scheduling, names)?;
    let piped = format!("{} simulate -", context.program);
    let inputs = args.world.inputs(names, piped)?;
    let out = args.out.as_deref();
    let named = args.html.iter().chain(args.scenario.events.as_ref());
    for output in named.map(Path::new).chain(out) {
        inputs::check_output(output, &inputs)?;
    }
    let output = output(args)?;
    // Programs get all workloads.
    let is_cut = output.is_none_or(|format| format == Format::Wide) && !args.all;
    let question = Question {
        verb: None,
        args: &args.scenario,
        world: &args.world,
        files: names,
        output,
        out,
        html: args.html.as_deref(),
        choice: args
            .workloads
            .choice(if is_cut { args.top } else { usize::MAX })?,
        by: &args.by,
        headers: !args.no_headers,
        is_only_errors: false,
    };
    scenario::run(&question, inputs, context)
}

/// The output that needs no files: the schema, or a starter.
fn document(args: &ScenarioArgs) -> Option<String> {
    if let Some(kind) = args.schema {
        let kind = match kind {
            PlayedKind::Scenario => SchemaKind::Scenario,
            PlayedKind::Report => SchemaKind::Report,
        };
        return Some(format!("{:#}\n", kind.schema()));
    }
    args.starter
        .then(|| strew_scenario::format::starter().to_owned())
}

/// The format; for a shard the one that can be merged.
fn output(args: &SimulateArgs) -> Result<Option<Format>, Failure> {
    match (args.scenario.shard, args.output) {
        (None, output) => Ok(output),
        (Some(_), None | Some(Format::Summary)) => Ok(Some(Format::Summary)),
        (Some(shard), Some(_)) => {
            let error = anyhow!("--shard {shard} writes a summary, and -o another format");
            let hint = "strew merge writes all shards together, also with -o junit and -o sarif";
            Err(Failure::input(error).with_hint(hint))
        }
    }
}
