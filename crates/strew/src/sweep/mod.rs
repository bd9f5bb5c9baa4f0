//! `strew sweep`: many seeds on many machines, with Kubernetes' own Jobs. It prints an Indexed Job; with `--collect` it
//! reads the results of one.
//!
//! Reading order: [`job`] (the output), [`pods`] (what clusters want of it), [`audits`] (an index a dump), [`collect`].

mod audits;
mod collect;
mod job;
mod pods;

use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use crate::cluster::access::AccessArgs;
use crate::context::Context;
use crate::destination;
use crate::diagnostics::say_note;
use crate::failure::{EXIT_INPUT, Failure};
use crate::install::flags;
use crate::manifest::written;
use crate::output::Format;
use crate::scenario::{self, PlayArgs, Question, ScenarioArgs, SummaryFormat};
use crate::world::WorldArgs;
use strew_suite::seeds::SHARDS_MAX;

pub(crate) const EXAMPLES: &str = "Examples:
  IMAGE=registry.example.com/strew:0.1.0             built with deploy/Containerfile
  PROGRAM sweep scenarios/ --seeds 0..100000 --shards 50 --image $IMAGE | kubectl apply -f -
  kubectl wait --for=condition=complete job/sweep-0a1b2c3d4e
  PROGRAM sweep --collect sweep-0a1b2c3d4e           what came of all seeds, and how to play a breach again
  PROGRAM sweep --collect sweep-0a1b2c3d4e -o junit --out report.xml
  PROGRAM sweep rollout.yaml --image $IMAGE --results-claim sweeps
                                                     results into a volume: merge its folder then
  PROGRAM sweep dumps/ --audit --image $IMAGE | kubectl apply -f -
                                                     each dump is audited, by a pod of its own
  PROGRAM sweep dump.json --seeds 0..1000 --image $IMAGE --files-claim sweeps
                                                     files of more than 1 MiB: from a volume
  PROGRAM sweep rollout.yaml --image $IMAGE --queue batch --toleration batch=yes:NoSchedule --ttl 86400
                                                     admitted by Kueue, on tainted nodes, gone after a day

The Job has one completion for each shard, and its pods are spread over zones. Its name is made of the
files and options, so that equal sweeps have equal names. A pod that is killed is made again; each index
may fail 6 times. What comes of a shard twice counts once.

Exit codes: 0 printed, or every step and expectation holds; 1 one failed; 2 wrong usage or input;
3 the cluster cannot be read, or shards are missing.";

/// Arguments of `strew sweep`.
#[derive(Args, Debug)]
pub(crate) struct SweepArgs {
    /// Manifests or dumps: files and folders below the current folder
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// The format: a Job as yaml or json; results as summary, junit or sarif
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<SweepFormat>,
    /// Write the result into this file, completely or not at all, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Collect the results of the Job of this name, and print no Job
    #[arg(long, value_name = "JOB", conflicts_with_all = ["files", "filename", "image"])]
    collect: Option<String>,
    /// Audit each file, the dump of a cluster, in place of playing seeds: one completion each
    #[arg(long, conflicts_with_all = ["collect", "PlayArgs", "shards", "results_claim"])]
    audit: bool,
    /// With --audit: the topology key whose domains are lost
    #[arg(long, value_name = "KEY", requires = "audit")]
    by: Option<String>,
    /// With --audit: how many domains are lost at once
    #[arg(long, value_name = "N", requires = "audit", value_parser = clap::value_parser!(u8).range(1..=3))]
    losing: Option<u8>,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    access: AccessArgs,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    play: PlayArgs,
}

/// The properties of the Job.
#[derive(Args, Debug)]
#[command(next_help_heading = "The Job")]
pub(super) struct JobArgs {
    /// The container image, with strew as its entry point
    #[arg(long, value_name = "IMAGE", value_parser = flags::image, required_unless_present = "collect")]
    image: Option<String>,
    /// Its name [default: sweep- and digits of the digest of files and options]
    #[arg(long, value_name = "NAME", value_parser = flags::namespace)]
    name: Option<String>,
    /// Its namespace [default: that of the context]
    #[arg(short, long, value_name = "NAME", value_parser = flags::namespace)]
    namespace: Option<String>,
    /// The number of equal parts of the seeds, one completion each
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=i64::from(SHARDS_MAX)))]
    shards: u32,
    /// The number of pods at the same time [default: the number of shards]
    #[arg(long, value_name = "N")]
    parallelism: Option<NonZeroU32>,
    /// The CPUs that each pod requests, and the number of runs that it plays at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    cpu: NonZeroU32,
    /// The memory limit of each pod
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi", value_parser = job::memory)]
    pod_memory: String,
    /// The topology key that pods are spread over, with a skew of 1; none: they are not spread
    #[arg(
        long,
        value_name = "KEY|none",
        default_value = "topology.kubernetes.io/zone"
    )]
    spread: String,
    /// Write results into the volume of this PersistentVolumeClaim, in a folder of the Job's name, instead of logs;
    /// several nodes must be able to write to it
    #[arg(long, value_name = "NAME", value_parser = flags::namespace)]
    results_claim: Option<String>,
    /// Read the files from the volume of this PersistentVolumeClaim, in a folder of the Job's name, instead of a ConfigMap,
    /// which holds 1 MiB; copy them there first
    #[arg(long, value_name = "NAME", value_parser = flags::namespace)]
    files_claim: Option<String>,
    #[command(flatten)]
    pods: pods::SweepPodArgs,
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum SweepFormat {
    /// The Job and its files as documents
    Yaml,
    /// The same as a List
    Json,
    /// For results: kind SimulationSummary in one line
    Summary,
    /// For results: a test case for each expectation
    Junit,
    /// For results: a result for each expectation that broke
    Sarif,
}

impl SweepArgs {
    fn of_collected(&self) -> Result<SummaryFormat, Failure> {
        match self.output {
            None => Ok(SummaryFormat::Text),
            Some(SweepFormat::Summary) => Ok(SummaryFormat::Summary),
            Some(SweepFormat::Junit) => Ok(SummaryFormat::Junit),
            Some(SweepFormat::Sarif) => Ok(SummaryFormat::Sarif),
            Some(SweepFormat::Yaml | SweepFormat::Json) => {
                let error = anyhow!("-o yaml and -o json are forms of the Job");
                Err(Failure::input(error).with_hint("--collect writes summary, junit or sarif"))
            }
        }
    }

    fn of_job(&self) -> Result<&'static str, Failure> {
        match self.output {
            None | Some(SweepFormat::Yaml) => Ok("yaml"),
            Some(SweepFormat::Json) => Ok("json"),
            Some(_) => {
                let error = anyhow!("the Job is written as yaml or json");
                Err(Failure::input(error).with_hint("--collect JOB writes the other formats"))
            }
        }
    }
}

pub(crate) fn run(args: &SweepArgs, context: &Context) -> Result<u8, Failure> {
    if let Some(name) = &args.collect {
        let format = args.of_collected()?;
        let namespace = args.job.namespace.as_deref();
        let out = args.out.as_deref();
        return collect::run(name, namespace, &args.access, format, out, context);
    }
    print(args, context)
}

/// Prints the Job, after its input was checked: errors are better reported here than by pods.
fn print(args: &SweepArgs, context: &Context) -> Result<u8, Failure> {
    let format = args.of_job()?;
    let names = args.world.names(&args.files);
    if names.is_empty() {
        let hint = format!("{} sweep FILE... --image IMAGE", context.program);
        return Err(Failure::input(anyhow!("no file to play")).with_hint(hint));
    }
    job::check_names(&names)?;
    crate::configuration::check(&args.world.scheduling, &names)?;
    let piped = format!("{} simulate -", context.program);
    let inputs = args.world.inputs(&names, piped)?;
    if args.audit {
        return audits::print(args, inputs, format, context);
    }
    let mut files = job::files(&inputs)?;
    if let Some(config) = &args.world.scheduling.config {
        job::check_names(std::slice::from_ref(config))?;
        for file in job::files(&crate::inputs::read_one(config)?)? {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    let scenario = ScenarioArgs {
        play: args.play.clone(),
        ..ScenarioArgs::default()
    };
    let question = Question {
        output: Some(Format::Summary),
        ..Question::of(&scenario, &args.world, &names)
    };
    let Some(ready) = scenario::ready(&question, inputs, context)? else {
        return Ok(EXIT_INPUT);
    };
    let (shards, n_seeds) = (args.job.shards, ready.n_seeds());
    if u64::from(shards) > n_seeds {
        let error =
            anyhow!("{shards} shards, and {n_seeds} seeds: some would have nothing to play");
        let hint = "--seeds 0..1000 plays more, --shards 2 divides less";
        return Err(Failure::input(error).with_hint(hint));
    }
    let mut words = scenario::words(&question, context)?;
    let shard = format!("$(JOB_COMPLETION_INDEX)/{shards}");
    words = job::literal(words);
    words.extend(["--shard".to_owned(), shard]);
    let played = job::Played {
        comment: "One completion for each shard. Pods are spread over zones, so that the loss of one costs few shards; a\n\
             pod that is lost is made again.",
        completions: shards,
        words,
        annotations: Vec::new(),
    };
    let name = match &args.job.name {
        Some(name) => name.clone(),
        None => job::name(&ready.inputs, shards),
    };
    let manifests = job::manifests(&args.job, &name, files, &played)?;
    destination::write(args.out.as_deref(), &written(&manifests, format)?)?;
    let program = context.program;
    let next = match &args.job.results_claim {
        None => format!("{program} sweep --collect {name}"),
        Some(claim) => {
            format!("{program} merge FOLDER, with folder {name} of volume claim {claim}")
        }
    };
    say_note(&format!("Job {name}; when it is complete: {next}"), context);
    if let Some(claim) = &args.job.files_claim {
        let folder = format!("folder {name} of volume claim {claim}");
        say_note(
            &format!("before it: copy the files into {folder}, with their folders"),
            context,
        );
    }
    Ok(0)
}
