//! `strew explain`, for files or a live cluster.

mod node;
mod target;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::anyhow;
use clap::Args;
use strew_apiserver::object::{Name, Pod};
use strew_cluster::NodeIdx;
use strew_manifest::duration::GoDuration;
use strew_manifest::ocm::GROUP;
use strew_manifest::read::{Sources, read};
use strew_model::time::Span;
use strew_plan::{WhatIf, suggest};
use strew_scenario::story;
use strew_scheduler::explain::Explanation;
use strew_scheduler::explain::Standing as Stands;
use strew_sim::Simulation;

use crate::cluster::{self, access::AccessArgs};
use crate::context::Context;
use crate::diagnostics::say_diagnostics;
use crate::dump;
use crate::explain_output;
use crate::failure::Failure;
use crate::inputs::{self, Input};
use crate::output::{Format, serialized};
use crate::place;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::scenario::{self, Life, PlayArgs, Question, ScenarioArgs, When};
use crate::shown::Choice;
use crate::spread_explain::{Source, Spreads, ledger, of_pod};
use crate::terminal;
use crate::text::time_text;
use crate::what_if::{self, Becomes, Turned, TurnedPod};
use crate::world::WorldArgs;
use strew_view::blocked::{Blocked, Eviction, Outcome};
use strew_view::moment::{self, Frame};
use strew_view::world::{PodEntry, Standing, World};
use target::Target;

pub(crate) const EXAMPLES: &str = "Examples:
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

Exit codes: 0 explained, whether the pod has a node or not; 1 a WorkloadSpread whose ledger differs from its
pods, or a limit that is exceeded; 2 wrong input, one without nodes, or no such pod; 3 the cluster or a file
could not be read.";

/// Arguments of `strew explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    /// TYPE/NAME or TYPE NAME, then files as for simulate; without files: a live cluster, which is only read
    #[arg(value_name = "TYPE/NAME FILE", required = true, num_args = 1..)]
    words: Vec<String>,
    /// The pod's namespace [default: default, else the only namespace with the name]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// How to write it
    #[arg(short, long, value_name = "FORMAT", value_parser = ["json", "yaml"])]
    output: Option<String>,
    /// Play for this long first, and explain the state then, for example 90s or 1h30m
    #[arg(long, value_name = "DURATION", value_parser = time_of)]
    at: Option<Span>,
    /// For files with a Scenario: explain this variant [default: base, with --seed 1]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Explain the state after a change, and show what else changes: lose=, drain=, cordon=, uncordon=NODES,
    /// taint=NODES:KEY[=VALUE]:EFFECT, untaint=NODES:KEY[:EFFECT], label=NODES:KEY=VALUE, unlabel=NODES:KEY,
    /// delete=PODS, move=POD:NODE, and for the workload's constraint on a topology key maxSkew=KEY:N, minDomains=KEY:N,
    /// soften=KEY, drop=KEY; NODES are names or KEY/VALUE
    #[allow(
        rustdoc::broken_intra_doc_links,
        reason = "brackets are what may be left out"
    )]
    #[arg(long, value_name = "CHANGE", value_parser = what_if::asked)]
    what_if: Vec<what_if::Asked>,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    access: AccessArgs,
}

/// The moment of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before the pod was put on its node, in this run.
    Decision,
    /// After the first step.
    End,
    /// The state of the files.
    Files,
    /// After the changes of `--what-if`, at the end of the first step.
    Changed,
    /// This long after the start.
    At(Span),
}

impl Moment {
    /// Its name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::End => "end",
            Self::Files => "files",
            Self::Changed => "changed",
            Self::At(_) => "at",
        }
    }
}

/// A pod, the moment, and the explanation.
pub(crate) struct Explained {
    pub(crate) entry: usize,
    pub(crate) moment: Moment,
    pub(crate) explanation: Explanation,
    /// Changes that would place the pod.
    pub(crate) what_if: Option<WhatIf>,
    /// The node and victims of a preemption for the pod.
    pub(crate) eviction: Option<Eviction>,
    /// The results of the changes of `--what-if`.
    pub(crate) turned: Option<Turned>,
    /// The world at that moment.
    pub(crate) world: World,
    /// The moment in the run; `None`: the state of the files.
    played: Option<When>,
    /// What the cluster recorded for a pod that is explained in the state of the files.
    pub(crate) recorded: Option<Recorded>,
}

pub(crate) fn run(args: &ExplainArgs, context: &Context) -> Result<u8, Failure> {
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
    let sources = mentions_spreads.then(|| inputs::sources(inputs.clone()));
    let holds_events = inputs.iter().any(|input| input.holds(b"Event"));
    let events = holds_events.then(|| inputs::sources(inputs.clone()));
    let Some(life) = life(args, &names, inputs, output, context)? else {
        return Ok(2);
    };
    let namespace = args.namespace.as_deref();
    let progress = Progress::new(context.quiet);
    let explained = match args.at {
        _ if !args.what_if.is_empty() => explain_changed(args, &life, &target, &progress)?,
        Some(at) => explain_at(&life, &target, namespace, at, &progress)?,
        None => match as_recorded(&life, &target, namespace, events.as_ref(), &progress)? {
            Some(explained) => explained,
            None => explain(&life, &target, namespace, &progress)?,
        },
    };
    let spreads = match (sources, explained.played) {
        (None, _) => None,
        (Some(sources), None) => Spreads::of(&read(&sources), Source::Files),
        (Some(_), Some(when)) => look(&life, when, &progress, |simulation, _| {
            Spreads::of_simulation(simulation)
        })?,
    };
    progress.finish();
    let pod = explained.world.pods[explained.entry].pod;
    let uid = Arc::clone(&explained.world.cluster.pod(pod).uid);
    let spread = spreads.and_then(|spreads| of_pod(&spreads, &uid));
    terminal::print(&explain_output::write(
        explained,
        spread,
        life.findings(),
        output,
        context,
    )?)?;
    Ok(0)
}

impl ExplainArgs {
    fn format(&self) -> Option<Format> {
        self.output.as_deref().map(|format| match format {
            "yaml" => Format::Yaml,
            _ => Format::Json,
        })
    }

    /// All files of the command line.
    fn names(&self, files: &[String]) -> Result<Vec<String>, Failure> {
        let names: Vec<String> = files.iter().chain(&self.world.filename).cloned().collect();
        self.world.scheduling.check(&names)?;
        Ok(names)
    }

    /// The files; without any, the cluster of the kubeconfig.
    fn inputs(&self, names: &[String], context: &Context) -> Result<Vec<Input>, Failure> {
        if !names.is_empty() {
            let target = match self.words[0].as_str() {
                whole if whole.contains('/') => whole,
                _ => "TYPE/NAME",
            };
            let piped = format!("{} explain {target} -", context.program);
            return self.world.inputs(names, piped);
        }
        let list = cluster::fetch(&self.access, context.quiet)?;
        let bytes = list.to_string().into_bytes();
        Ok(vec![self.world.made("<cluster>", bytes)])
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
    let is_played = args.at.is_some() || args.variant.is_some() || scenario::is_in(&inputs);
    let spreads = if is_played {
        let Some(life) = life(args, &names, inputs, args.format(), context)? else {
            return Ok(2);
        };
        let progress = Progress::new(context.quiet);
        let when = args.at.map_or(When::End, When::At);
        let spreads = look(&life, when, &progress, |simulation, _| {
            Spreads::of_simulation(simulation)
        })?;
        progress.finish();
        spreads
    } else {
        let source = match names.is_empty() {
            true => Source::Cluster,
            false => Source::Files,
        };
        let sources = inputs::sources(inputs);
        let reading = read(&sources);
        if reading.has_errors() {
            say_diagnostics(&[(reading.diagnostics, &sources)], context);
            return Ok(2);
        }
        Spreads::of(&reading, source)
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

/// The run of the files; `None` if they have errors, which were reported.
fn life(
    args: &ExplainArgs,
    names: &[String],
    inputs: Vec<Input>,
    output: Option<Format>,
    context: &Context,
) -> Result<Option<Life>, Failure> {
    let mut world = args.world.clone();
    let is_shaped = world.nodes.is_shaped() || world.nodes.nodes.is_some();
    if !is_shaped && !scenario::is_in(&inputs) {
        // An explanation needs real nodes; made-up ones must be asked for.
        world.nodes.nodes = Some(0);
    }
    let world = &world;
    let variant = args.variant.clone();
    let play = PlayArgs {
        variant: vec![variant.unwrap_or_else(|| scenario::BASE.to_owned())],
        // For manifests, the explanation is about their deployment.
        until: (!scenario::is_in(&inputs)).then(|| story::FIRST_STEP.to_owned()),
        ..PlayArgs::default()
    };
    let scenario = ScenarioArgs {
        play,
        ..ScenarioArgs::default()
    };
    let question = Question {
        args: &scenario,
        world,
        files: names,
        output,
        out: None,
        html: None,
        choice: Choice::ALL,
        by: &[],
        headers: true,
    };
    let life = scenario::life(&question, inputs, context)?;
    // A live cluster may have no nodes.
    let needs_nodes = !is_shaped && !names.is_empty();
    if life
        .as_ref()
        .is_some_and(|life| needs_nodes && !life.has_nodes())
    {
        let error = anyhow!("no node in the input, so there is nothing that a pod could go to");
        return Err(Failure::input(error).with_hint(dump::nodes_hint()));
    }
    Ok(life)
}

/// Parses `--at`: `90s`, `1h30m`.
fn time_of(text: &str) -> Result<Span, String> {
    let duration = GoDuration::parse(text).filter(|duration| *duration >= GoDuration::ZERO);
    let span = duration.map(|duration| Span(duration.nanos()));
    span.ok_or_else(|| "no duration, as 90s or 1h30m are".to_owned())
}

/// The world of a dump at second 0, before anything is played. `None` if the dump does not have the pod.
fn as_recorded(
    life: &Life,
    target: &Target,
    namespace: Option<&str>,
    events: Option<&Sources>,
    progress: &Progress,
) -> Result<Option<Explained>, Failure> {
    look(life, When::Start, progress, |simulation, frame| {
        let (world, outcomes) = now_in(simulation, frame);
        let entry = target
            .choose(&world, &outcomes, namespace, Moment::Files)
            .ok()?;
        let PodEntry {
            name,
            namespace,
            pod,
            ..
        } = &world.pods[entry];
        if !life.is_recorded(&world.cluster.pod(*pod).uid) {
            return None;
        }
        let name = Name::new(Arc::clone(namespace), Arc::clone(name));
        let mut explained = now(world, entry, Moment::Files, None);
        let pod = simulation.server().tables().get::<Pod>(&name)?;
        explained.recorded = Recorded::of(pod, &explained.explanation, events);
        Some(explained)
    })
}

/// The world at a moment.
fn explain_at(
    life: &Life,
    target: &Target,
    namespace: Option<&str>,
    at: Span,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let (world, outcomes) = look(life, When::At(at), progress, now_in)?;
    let moment = Moment::At(at);
    let entry = target.choose(&world, &outcomes, namespace, moment)?;
    Ok(now(world, entry, moment, Some(When::At(at))))
}

/// The present world of a simulation.
fn now_in(simulation: &Simulation, frame: &mut Frame) -> (World, Vec<Outcome>) {
    moment::world(strew_scenario::moment(simulation), frame)
}

/// The view of an observer at this moment.
fn look<T>(
    life: &Life,
    when: When,
    progress: &Progress,
    mut look: impl FnMut(&Simulation, &mut Frame) -> T,
) -> Result<T, Failure> {
    let mut seen = None;
    life.look(when, progress, &mut |simulation, frame| {
        seen = Some(look(simulation, frame));
    })?;
    seen.ok_or_else(|| Failure::outside(anyhow!("the run ended before that moment")))
}

/// The world at a moment, with changes.
fn explain_changed(
    args: &ExplainArgs,
    life: &Life,
    target: &Target,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let (when, moment) = match args.at {
        Some(at) => (When::At(at), Moment::At(at)),
        None => (When::End, Moment::Changed),
    };
    let namespace = args.namespace.as_deref();
    let (mut world, _) = look(life, when, progress, now_in)?;
    let entries = target.find(&world, namespace, moment)?;
    let turned = what_if::carry_out(&args.what_if, &mut world, namespace, &entries)?;
    let is_gone = |entry: &&usize| {
        let pod = &world.pods[**entry];
        let is_it = |t: &&TurnedPod| *t.namespace == *pod.namespace && *t.name == *pod.name;
        let found = turned.pods.iter().find(is_it);
        found.is_some_and(|turned| turned.becomes == Becomes::Gone)
    };
    let left = || entries.iter().filter(|entry| !is_gone(entry));
    let is_pending = |entry: &&usize| world.node_of(**entry).is_none();
    let entry = left().find(is_pending).or(left().next()).copied();
    let Some(entry) = entry else {
        let error = anyhow!(
            "after that {} has no pod, and no controller makes one",
            target.text()
        );
        return Err(Failure::input(error));
    };
    Ok(Explained {
        turned: Some(turned),
        ..now(world, entry, moment, Some(when))
    })
}

/// The world at the pod's decision; at the end if the pod stays Pending; the state of the files if the pod has its node
/// there.
fn explain(
    life: &Life,
    target: &Target,
    namespace: Option<&str>,
    progress: &Progress,
) -> Result<Explained, Failure> {
    let ((world, outcomes), placed) = look(life, When::End, progress, |simulation, frame| {
        (now_in(simulation, frame), placings(simulation))
    })?;
    let entry = target.choose(&world, &outcomes, namespace, Moment::End)?;
    let standing = &world.pods[entry].standing;
    if matches!(standing, Standing::OfAnother(_) | Standing::Leaving) {
        return Ok(now(world, entry, Moment::Files, None));
    }
    if world.node_of(entry).is_none() {
        return Ok(now(world, entry, Moment::End, Some(When::End)));
    }
    let uid = Arc::clone(&world.cluster.pod(world.pods[entry].pod).uid);
    let Some(place) = placed.iter().position(|placing| placing.uid == uid) else {
        let (files, _) = look(life, When::Start, progress, now_in)?;
        let entry = find_uid(&files, &uid).ok_or_else(|| lost(target))?;
        return Ok(now(files, entry, Moment::Files, None));
    };
    let node = world.node_of(entry).map(|node| world.cluster.node(node));
    let node = node.map(|node| world.cluster.names.text(node.name()).to_owned());
    // Pods that were put on a node later in the same instant are not counted.
    let later: BTreeSet<Arc<str>> = placed[place..].iter().map(|p| Arc::clone(&p.uid)).collect();
    let when = When::At(placed[place].at);
    let world = look(life, when, progress, |simulation, frame| {
        moment::world_before(strew_scenario::moment(simulation), frame, &later).0
    })?;
    let entry = find_uid(&world, &uid).ok_or_else(|| lost(target))?;
    let node = node.and_then(|name| world.cluster.names.get(&name));
    let drawn = node.and_then(|name| world.cluster.find_node(name));
    let moment = (Moment::Decision, Some(when));
    Ok(decided(world, entry, moment, drawn))
}

/// The event that a pod was put on a node.
struct Placing {
    uid: Arc<str>,
    at: Span,
}

fn placings(simulation: &Simulation) -> Vec<Placing> {
    let events = simulation.server().events().iter();
    let placings = events.filter(|event| &*event.reason == "Scheduled");
    placings
        .map(|event| Placing {
            uid: Arc::clone(&event.uid),
            at: event.at.since(simulation.start()),
        })
        .collect()
}

fn find_uid(world: &World, uid: &str) -> Option<usize> {
    let pod = world.cluster.find_pod(uid)?;
    world.pods.iter().position(|entry| entry.pod == pod)
}

fn lost(target: &Target) -> Failure {
    Failure::outside(anyhow!(
        "{} is not found again at its moment",
        target.text()
    ))
}

fn now(world: World, entry: usize, moment: Moment, played: Option<When>) -> Explained {
    decided(world, entry, (moment, played), None)
}

/// As in a decision at this moment, which chose this node if it was one of the best.
fn decided(
    mut world: World,
    entry: usize,
    (moment, played): (Moment, Option<When>),
    drawn: Option<NodeIdx>,
) -> Explained {
    let pod = world.pods[entry].pod;
    let World {
        cluster,
        schedulers,
        ..
    } = &mut world;
    let mut explanation = schedulers.explain(cluster, pod, drawn);
    let profile = schedulers.profile(cluster, cluster.pod(pod).class);
    let what_if = suggest(profile, cluster, &schedulers.nominations, &explanation);
    let mut eviction = None;
    // With what preemption would do.
    let is_pending = explanation.standing == Stands::Pending;
    if let Some(blocked) = is_pending.then(|| Blocked::now(&mut world, pod)).flatten() {
        explanation.sentence = blocked.message;
        eviction = blocked.eviction;
    }
    Explained {
        entry,
        moment,
        explanation,
        what_if,
        eviction,
        turned: None,
        world,
        played,
        recorded: None,
    }
}

impl Explained {
    /// Writes the moment, and what is special about the pod.
    pub(crate) fn heading(&self) -> String {
        match (self.moment, &self.world.pods[self.entry].standing) {
            (Moment::Decision, _) => {
                "placed in this run; explained at the moment of its decision".to_owned()
            }
            (Moment::At(at), _) => {
                format!("explained as things are after {}", time_text(at))
            }
            (Moment::End, _) => "stays Pending; explained as things are at the end".to_owned(),
            (Moment::Changed, _) => "explained as things are after the changes".to_owned(),
            (Moment::Files, Standing::OfAnother(scheduler)) => {
                format!(
                    "left to scheduler {scheduler}; explained as if it were strew's, as things are in the files"
                )
            }
            (Moment::Files, Standing::Leaving) => {
                "it is being deleted; explained as things are in the files".to_owned()
            }
            (Moment::Files, _) => "explained as things are in the files".to_owned(),
        }
    }
}
