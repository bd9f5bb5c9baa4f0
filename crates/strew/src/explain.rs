//! `strew explain`, for files or a live cluster.

pub(crate) mod cause;
mod moment;
mod newest;
mod node;
pub(crate) mod pending;
mod target;

use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use strew_manifest::duration::GoDuration;
use strew_manifest::ocm::GROUP;
use strew_manifest::read::{KubeObject, Reading, Sources, read};
use strew_model::time::Span;
use strew_scheduler::explain::Whereabouts;

use crate::cluster::access::AccessArgs;
use crate::configuration;
use crate::context::Context;
use crate::diagnostics::say_diagnostics;
use crate::explain_output;
use crate::failure::{EXIT_NO, Failure};
use crate::inputs::{self, Input};
use crate::output::{Format, serialized};
use crate::place;
use crate::progress::Progress;
use crate::recorded::Refusals;
use crate::scenario::{self, Life, When};
use crate::spread_explain::{Source, Spreads, ledger, of_pod};
use crate::terminal;
use crate::what_if;
use crate::world::WorldArgs;
pub(crate) use moment::{Explained, Moment};
use moment::{as_recorded, explain, explain_at, explain_changed, lacking, look};
use target::Target;

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM explain dump.json                           all Pending pods by cause, the most first
  PROGRAM explain -n shop --fail-on Pending           in the cluster of the current context: exit code 1 if any is
  PROGRAM explain pod/web-7 -n shop                   in the cluster of the current context
  PROGRAM explain pod/web-7 -n shop dump.json         why is it Pending, or why there?
  PROGRAM explain deployment/web dump.json            its first Pending pod, else its first
  PROGRAM explain deployment/web shop.yaml --nodes 12 on made-up nodes
  PROGRAM explain pod web-7 -n shop -o json -f dump.json
  PROGRAM explain deployment/web dump.json --at 90s   as things are then
  PROGRAM explain pod/web-7 story.yaml --variant gate-off --seed 7 --at 3m
                                                      in that run of a Scenario
  PROGRAM explain deployment/web dump.json --what-if lose=topology.kubernetes.io/zone/a
                                                      what a zone's loss turns
  PROGRAM explain node/n1 dump.json                   its pods, what is free, and whom it refuses
  PROGRAM explain workloadspread/web dump.json        its ledger against the pods
  PROGRAM explain workloadspread/web story.yaml --at 90s
                                                      the same in a run of a Scenario
  PROGRAM explain placement/web -n apps --context hub which clusters it gets, and why not the others
  PROGRAM explain deployment/web dump.json --config scheduler-config.yaml

Exit codes: 0 explained, whether the pod has a node or not; 1 it is Pending, with --fail-on; or a WorkloadSpread whose ledger differs from its
pods, or a limit that is exceeded; or a Placement that is not as asked for; 2 wrong input, one
without nodes, or no such pod; 3 the cluster or a file could not be read.";

/// Arguments of `strew explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// TYPE/NAME or TYPE NAME, then files as for simulate; without a name: all Pending pods by cause; without files: a
    /// live cluster, which is only read
    #[arg(value_name = "TYPE/NAME FILE", num_args = 0..)]
    words: Vec<String>,
    /// The pod's namespace [default: default, else the only namespace with the name]; without a name: only its pods
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Without a name: only workloads with these labels, or whose pods have them
    #[arg(short = 'l', long, value_name = "QUERY")]
    selector: Option<String>,
    /// How to write it; wide adds kube-scheduler's sentence and the pods to each cause
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml", "wide"])]
    output: Option<String>,
    /// End with exit code 1 if the pod is Pending; without a name, if any is
    #[arg(long, value_name = "STATE", value_parser = [PENDING])]
    fail_on: Option<String>,
    /// Play for this long first, and explain the state then, for example 90s or 1h30m
    #[arg(long, value_name = "DURATION", value_parser = time_of)]
    at: Option<Span>,
    /// For files with a Scenario: explain this variant [default: base, with --seed 1]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    #[arg(long, value_name = "CHANGE", value_parser = what_if::asked, help = what_if::help())]
    what_if: Vec<what_if::Asked>,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// The state of `--fail-on`.
const PENDING: &str = "Pending";

pub(crate) fn run(args: &ExplainArgs, context: &Context) -> Result<u8, Failure> {
    if !target::is_named(&args.words) {
        return pending::explain(args, &args.words, context);
    }
    if args.selector.is_some() {
        let error = anyhow!("--selector chooses among all Pending pods, and a name is given");
        return Err(Failure::input(error).with_hint("leave out TYPE/NAME, or --selector"));
    }
    let is_of_others = spread_named(&args.words).is_some()
        || named(&args.words, PLACEMENT, GROUP).is_some()
        || named(&args.words, node::NODE, "").is_some();
    if is_of_others && !args.what_if.is_empty() {
        let error = anyhow!("--what-if is about one pod or workload, and another kind is named");
        let hint = "name any pod or workload: it lists all pods that a change moves, those of other workloads too; a WorkloadSpread and a Placement have strew simulate and strew place --what-if";
        return Err(Failure::input(error).with_hint(hint));
    }
    if let Some((name, files)) = spread_named(&args.words) {
        return explain_spread(args, name, files, context);
    }
    if let Some((name, files)) = named(&args.words, PLACEMENT, GROUP) {
        let files = args.names(files)?;
        let inputs = (files, args.world.read.clone(), args.access.clone());
        let namespace = args.namespace.clone();
        return place::explain(name, inputs, namespace, args.format(), context);
    }
    if let Some((name, files)) = named(&args.words, node::NODE, "") {
        return node::explain(args, name, files, context);
    }
    let (target, files) = Target::parse(&args.words)?;
    let output = args.format();
    let names = args.names(files)?;
    let inputs = args.inputs(&names, context)?;
    let mentions_spreads = inputs.iter().any(|input| input.holds(b"WorkloadSpread"));
    let Some(life) = life(args, &names, inputs, context)? else {
        return Ok(2);
    };
    let namespace = args.namespace.as_deref();
    let progress = Progress::new(context.quiet);
    let explained = match args.at {
        _ if !args.what_if.is_empty() => explain_changed(args, &life, &target, &progress),
        Some(at) => explain_at(&life, &target, namespace, at, &progress),
        None => match as_recorded(&life, &target, namespace, &progress)? {
            Some(explained) => Ok(explained),
            None => explain(&life, &target, namespace, &progress),
        },
    };
    let explained = with_what_is_missing(explained, args, &target, &life, &progress)?;
    let explained = with_recorded_refusal(explained, &target, &life, &progress)?;
    let spreads = match explained.played {
        None => Spreads::of(life.objects(), Source::Files),
        // Playing costs more than looking for the word.
        Some(_) if !mentions_spreads => None,
        Some(when) => look(&life, when, &progress, |seen, _| Spreads::of_moment(seen))?,
    };
    progress.finish();
    let pod = explained.world.pods[explained.entry].pod;
    let uid = Arc::clone(&explained.world.cluster.pod(pod).uid);
    let spread = spreads.and_then(|spreads| of_pod(&spreads, &uid));
    let is_pending = explained.is_astray || explained.world.node_of(explained.entry).is_none();
    terminal::print(&explain_output::write(
        explained,
        spread,
        life.findings(),
        output,
        context,
    )?)?;
    Ok(match args.fails(is_pending) {
        true => EXIT_NO,
        false => 0,
    })
}

/// The explanation with what the named workload lacks, if its pod that is explained is not itself what is missing.
fn with_what_is_missing(
    explained: Result<Explained, Failure>,
    args: &ExplainArgs,
    target: &Target,
    life: &Life,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let (says_more, namespace) = match &explained {
        Ok(explained) => (
            matches!(explained.explanation.standing, Whereabouts::Placed { .. })
                && explained.turned.is_none(),
            Some(explained.world.pods[explained.entry].namespace.to_string()),
        ),
        Err(_) => (true, args.namespace.clone()),
    };
    let workload = target.workload(namespace.as_deref());
    let Some(workload) = workload.filter(|_| says_more) else {
        return explained;
    };
    // Playing costs more than looking: a dump whose workload has its pods needs no reason.
    let is_recorded = matches!(&explained, Ok(explained) if explained.moment == Moment::Files);
    if is_recorded && lacking(life, workload.clone(), When::Start, progress)?.is_none() {
        return explained;
    }
    let when = args.at.map_or(When::End, When::At);
    let lacks = lacking(life, workload, when, progress)?;
    match explained {
        Ok(explained) => Ok(Explained { lacks, ..explained }),
        Err(failure) => Err(match lacks {
            Some((_, lacks)) => failure.with_hint(lacks),
            None => failure,
        }),
    }
}

/// The explanation with the event that pods of the named workload were refused at creation. What lacks in the files
/// counts then, also where a run could make the pods: what refuses them may not be among the files.
fn with_recorded_refusal(
    mut explained: Explained,
    target: &Target,
    life: &Life,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let entry = &explained.world.pods[explained.entry];
    let namespace = entry.namespace.to_string();
    let is_placed = matches!(explained.explanation.standing, Whereabouts::Placed { .. });
    let workload = target.workload(Some(&namespace));
    let Some(workload) = workload.filter(|_| is_placed) else {
        return Ok(explained);
    };
    let Some(event) = Refusals::of(life.objects()).last(&namespace, &workload.name) else {
        return Ok(explained);
    };
    if explained.lacks.is_none() {
        explained.lacks = lacking(life, workload, When::Start, progress)?;
    }
    explained.lacks_recorded = explained.lacks.is_some().then_some(event);
    Ok(explained)
}

impl ExplainArgs {
    fn format(&self) -> Option<Format> {
        match self.output.as_deref()? {
            "yaml" => Some(Format::Yaml),
            "json" => Some(Format::Json),
            _ => None,
        }
    }

    fn is_wide(&self) -> bool {
        self.output.as_deref() == Some("wide")
    }

    /// True if `--fail-on` makes this the exit code 1.
    fn fails(&self, is_pending: bool) -> bool {
        is_pending && self.fail_on.is_some()
    }

    /// All files of the command line, as written.
    fn all_files<'a>(&'a self, files: &'a [String]) -> impl Iterator<Item = &'a str> {
        let all = files.iter().chain(&self.world.filename);
        all.map(String::as_str)
    }

    /// All files of the command line.
    fn names(&self, files: &[String]) -> Result<Vec<String>, Failure> {
        let names: Vec<String> = self.all_files(files).map(str::to_owned).collect();
        configuration::check(&self.world.scheduling, &names)?;
        Ok(names)
    }

    /// The files; without any, the cluster of the kubeconfig.
    fn inputs(&self, names: &[String], context: &Context) -> Result<Vec<Input>, Failure> {
        let target = match self.words.first().map(String::as_str) {
            Some(whole) if whole.contains('/') => format!(" {whole}"),
            Some(_) if target::is_named(&self.words) => " TYPE/NAME".to_owned(),
            _ => String::new(),
        };
        let command = format!("explain{target}");
        self.world
            .inputs_or_cluster(names, &self.access, &command, context)
    }
}

/// The names of the kind Placement.
const PLACEMENT: &[&str] = &["placement", "placements"];

/// The name of the WorkloadSpread to explain, and the files.
fn spread_named(words: &[String]) -> Option<(&str, &[String])> {
    named(
        words,
        &["ws", "workloadspread", "workloadspreads"],
        "apps.kruise.io",
    )
}

/// The name of the object of one of these kinds of a group, and the files.
fn named<'w>(words: &'w [String], kinds: &[&str], group: &str) -> Option<(&'w str, &'w [String])> {
    let (kind, name, files) = match words[0].split_once('/') {
        Some((kind, name)) => (kind, name, &words[1..]),
        None => (words[0].as_str(), words.get(1)?.as_str(), &words[2..]),
    };
    let kind = kind.to_lowercase();
    let bare = kind
        .strip_suffix(group)
        .and_then(|kind| kind.strip_suffix('.'));
    let is_meant = kinds.contains(&bare.unwrap_or(&kind));
    (is_meant && !name.is_empty()).then_some((name, files))
}

/// Compares the ledger of a WorkloadSpread with the pods, from the files or from a simulation at a moment. Exit code 1
/// if they differ, or if a subset has more pods than its limit.
fn explain_spread(
    args: &ExplainArgs,
    name: &str,
    files: &[String],
    context: &Context,
) -> Result<u8, Failure> {
    let names = args.names(files)?;
    let inputs = args.inputs(&names, context)?;
    let is_asked = args.at.is_some() || args.variant.is_some();
    let recorded = match is_asked || scenario::is_in(&inputs) {
        true => None,
        false => recorded(&names, &inputs),
    };
    let spreads = if let Some((sources, reading, source)) = recorded {
        if reading.has_errors() {
            say_diagnostics(&[(reading.diagnostics, &sources)], context);
            return Ok(2);
        }
        Spreads::of(&reading.objects, source)
    } else {
        let Some(life) = life(args, &names, inputs, context)? else {
            return Ok(2);
        };
        let progress = Progress::new(context.quiet);
        let when = args.at.map_or(When::End, When::At);
        let spreads = look(&life, when, &progress, |seen, _| Spreads::of_moment(seen))?;
        progress.finish();
        spreads
    };
    let Some(spreads) = spreads else {
        let error = anyhow!("there is no WorkloadSpread in the files");
        return Err(Failure::input(error));
    };
    let ledger = ledger(&spreads, &spreads.find(name, args.namespace.as_deref())?);
    let text = match args.format() {
        Some(format) => serialized(&ledger, format)?,
        None if context.terminal.unicode => ledger.text(),
        None => terminal::ascii(&ledger.text()),
    };
    terminal::print(&text)?;
    Ok(u8::from(!ledger.is_right()))
}

/// The objects of a cluster, or of a dump, which has pods; `None` for manifests with a WorkloadSpread and no pod, which
/// are explained as they are deployed.
fn recorded(names: &[String], inputs: &[Input]) -> Option<(Sources, Reading, Source)> {
    let sources = inputs::sources(inputs.to_vec());
    let reading = read(&sources);
    if names.is_empty() {
        return Some((sources, reading, Source::Cluster));
    }
    let mut objects = reading.objects.iter().map(|located| &located.object);
    let has_pods = objects.any(|object| matches!(object, KubeObject::Pod(_)));
    let holds_spreads = || inputs.iter().any(|input| input.holds(b"WorkloadSpread"));
    (has_pods || !holds_spreads()).then_some((sources, reading, Source::Files))
}

/// The run of the files; `None` if they have errors, which were reported.
fn life(
    args: &ExplainArgs,
    names: &[String],
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<Life>, Failure> {
    let variant = args.variant.clone();
    scenario::looked_at(
        &args.world,
        variant,
        names,
        inputs,
        args.format(),
        Some("explain"),
        context,
    )
}

/// Parses `--at`: `90s`, `1h30m`.
pub(crate) fn time_of(text: &str) -> Result<Span, String> {
    let duration = GoDuration::parse(text).filter(|duration| *duration >= GoDuration::ZERO);
    let span = duration.map(|duration| Span(duration.nanos()));
    span.ok_or_else(|| "no duration, as 90s or 1h30m are".to_owned())
}
