//! `strew simulate`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use strew_api::printable::printable_line;
use strew_api::read::{Diagnostic, Severity, Sources, render};
use strew_api::workloadspread::status::PATCH_APPLIED;
use strew_apiserver::object::WorkloadSpread;
use strew_sim::Simulation;

use crate::arguments::{Context, WorldArgs};
use crate::failure::{EXIT_NO, Failure};
use crate::html::{self, Tape};
use crate::label_query::LabelQuery;
use crate::progress::Progress;
use crate::report::{self, Report, Step};
use crate::scenario::{self, Log, ScenarioArgs};
use crate::shown::{self, Shown};
use crate::story::{self, Done};
use crate::text::{self, Look};
use crate::{inputs, setup, terminal};
use strew_view::moment::Frame;
use strew_view::skews::Skews;
use strew_view::view::View;
use strew_view::world::{Standing, World};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate shop.yaml                          on 12 made-up nodes in 3 zones
  PROGRAM simulate shop.yaml --until deploy           where do its pods go, and no more
  PROGRAM simulate deploy/ -R --nodes 30 --zones 3 --node-cpu 16 --node-memory 64Gi
  kubectl get nodes,pods,deploy,rs,svc -A -o json | PROGRAM simulate - app.yaml
                                                      what if app.yaml came to this cluster?
  PROGRAM simulate shop.yaml --config scheduler-config.yaml
  PROGRAM simulate shop.yaml --feature-gates MinDomainsInPodTopologySpread=false
  PROGRAM simulate shop.yaml --seed 7                 another life: other names, times and orders
  PROGRAM simulate dump.json -n shop -o json | jq .steps[0].workloads
  PROGRAM simulate --new > scenario.yaml              a Scenario to begin with: steps and expectations
  PROGRAM simulate scenarios/                         each Scenario, all variants and seeds
  PROGRAM simulate scenarios/ -o junit > report.xml
  PROGRAM simulate rollout.yaml --html rollout.html   what happened, in a browser: time, domains, variants
  PROGRAM simulate rollout.yaml --variant base --seed 7 --until 42s --events log.jsonl
                                                      one run again, with all that happened

A folder with one Scenario is one stream; of a folder with several, each file is a scenario of
its own, with the manifests in it and in the other files named.

Exit codes with a Scenario: 0 all held; 1 something broke, or nothing where it must; 2 wrong
input; 3 could not run; 130 interrupted.";

/// Arguments of `strew simulate`.
#[derive(Args, Debug)]
pub(crate) struct SimulateArgs {
    /// Manifests or dumps: files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present_any = ["filename", "schema", "starter"])]
    files: Vec<String>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
    /// Write all that happened as one page for a browser, which needs no network: a time slider, pods by domain, two
    /// variants side by side, verdicts; of each variant the first seed
    #[arg(long, value_name = "FILE")]
    html: Option<String>,
    /// Show the workloads of this namespace only
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Show the workloads of all namespaces; the default
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Show the workloads with these labels only
    #[arg(short = 'l', long, value_name = "QUERY")]
    selector: Option<String>,
    /// Of more workloads than this, show those with most Pending pods or most skew
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Show all workloads
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Leave out the headers of tables
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    world: WorldArgs,
    #[command(flatten)]
    scenario: ScenarioArgs,
}

/// The values of `-o`.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// All domains, all nodes, all reasons
    Wide,
    /// Kind SimulationReport
    Json,
    /// The same as YAML
    Yaml,
    /// Names only: of workloads, of a scenario's variants
    Name,
    /// Of scenarios: a test case for each expectation, as CI systems read them
    Junit,
}

impl Format {
    pub(crate) fn is_for_programs(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

pub(crate) fn run(args: &SimulateArgs, context: &Context) -> Result<u8, Failure> {
    let query = args
        .selector
        .as_deref()
        .map(LabelQuery::parse)
        .transpose()?;
    if let Some(document) = scenario::document(&args.scenario) {
        terminal::print(&document)?;
        return Ok(0);
    }
    let names: Vec<String> = args
        .files
        .iter()
        .chain(&args.world.filename)
        .cloned()
        .collect();
    args.world.scheduling.check(&names)?;
    let inputs = args.world.read.read(&names)?;
    let outputs = args.html.iter().chain(args.scenario.events.as_ref());
    for output in outputs {
        inputs::check_output(output, &inputs)?;
    }
    if scenario::is_meant(&inputs) {
        let question = scenario::Question {
            args: &args.scenario,
            world: &args.world,
            files: &names,
            output: args.output,
            html: args.html.as_deref(),
        };
        return scenario::run(&question, inputs, context);
    }
    check_no_scenario(args)?;
    let sources = inputs::sources(inputs);
    let Some(setup) = setup::load(&sources, &args.world, args.output, context)? else {
        return Ok(2);
    };
    let progress = Progress::new(context.global.quiet);
    let (mut simulation, mut frame) = setup.begin();
    // Programs get everything.
    let is_cut = args.output.is_none_or(|format| format == Format::Wide) && !args.all;
    let mut teller = Teller {
        args,
        context,
        query,
        top: if is_cut { args.top } else { usize::MAX },
        start: View::of(strew_scenario::moment(&simulation), &mut frame, None),
        first: None,
        last: None,
        text: String::new(),
        steps: Vec::new(),
    };
    say_left_alone(&teller.start.world, context);
    let mut told = |simulation: &Simulation, frame: &mut Frame, skews: &Skews, done: &Done| {
        teller.step(
            View::of(
                strew_scenario::moment(simulation),
                frame,
                Some(teller.before()),
            ),
            skews,
            done,
        );
    };
    let until = args.scenario.last_step()?;
    let mut log = args
        .html
        .is_some()
        .then(|| story_log(args, context, setup.seed()));
    if let Some(log) = &mut log {
        log.follow(&mut simulation);
    }
    let mut heard = |simulation: &Simulation, begun: Option<&Done>| match (&mut log, begun) {
        (Some(log), Some(done)) => log.verb(simulation.elapsed(), &done.name(), None),
        (Some(log), None) => log.listen(simulation),
        (None, _) => {}
    };
    let (heard, told) = (&mut heard, &mut told);
    let skews = story::play(&mut simulation, &mut frame, until, &progress, heard, told)?;
    progress.finish();
    say_unpatched(&simulation, context);
    let log = log.map(|log| log.finish(simulation.elapsed(), false));
    teller.end(&skews, log)
}

/// A log that says what plays the story again.
fn story_log(args: &SimulateArgs, context: &Context, seed: u64) -> Log {
    let replay = format!("{} simulate {}", context.program, files_and_options(args));
    Log::new(&json!({
        "type": "run",
        "apiVersion": report::API_VERSION,
        "seed": seed,
        "replay": replay,
    }))
}

/// Words that mean a Scenario, where there is none.
fn check_no_scenario(args: &SimulateArgs) -> Result<(), Failure> {
    let output = (args.output == Some(Format::Junit)).then_some("-o junit");
    match args.scenario.given().or(output) {
        None => Ok(()),
        Some(word) => {
            let error = anyhow::anyhow!("{word} is for a Scenario, and no file holds one");
            let hint = "strew simulate --new writes one to begin with";
            Err(Failure::input(error).with_hint(hint))
        }
    }
}

/// Makes text or a report of the steps.
struct Teller<'a> {
    args: &'a SimulateArgs,
    context: &'a Context,
    query: Option<LabelQuery>,
    top: usize,
    /// Before anybody has acted.
    start: View,
    /// After the first step, and which workloads are shown.
    first: Option<(View, Shown)>,
    /// After the last step, if there was another.
    last: Option<(View, String)>,
    text: String,
    steps: Vec<Step>,
}

impl Teller<'_> {
    fn before(&self) -> &View {
        let last = self.last.as_ref().map(|(view, _)| view);
        let first = self.first.as_ref().map(|(view, _)| view);
        last.or(first).unwrap_or(&self.start)
    }

    fn step(&mut self, view: View, skews: &Skews, done: &Done) {
        let shown = match self.first.take() {
            Some((first, shown)) => {
                self.first = Some((first, shown.clone()));
                self.tell(done, &view, Some(skews), &shown);
                let time = text::time_text(done.at);
                self.last = Some((view, format!("{} at {time}", done.step.name())));
                return;
            }
            None => {
                let namespace = self.args.namespace.as_deref();
                shown::select(&view, namespace, self.query.as_ref(), self.top)
            }
        };
        self.tell(done, &view, None, &shown);
        self.first = Some((view, shown));
    }

    /// Writes a step down; `skews` are those on the way of a later one.
    fn tell(&mut self, done: &Done, view: &View, skews: Option<&Skews>, shown: &Shown) {
        let (args, context) = (self.args, self.context);
        let is_for_programs = args.output.is_some_and(Format::is_for_programs);
        if is_for_programs || args.html.is_some() {
            self.steps.push(Step::of(done, view, &shown.workloads));
        }
        match args.output {
            Some(_) if is_for_programs => return,
            Some(Format::Name) => return,
            _ if context.global.quiet => return,
            _ => {}
        }
        let explain = |pod: &str, namespace: &str| suggest_explain(args, context, pod, namespace);
        let look = Look {
            terminal: &context.terminal,
            wide: args.output == Some(Format::Wide),
            pods: context.global.verbose > 0,
            headers: !args.no_headers,
            explain: &explain,
            is_explained: std::cell::Cell::new(false),
            in_namespace: args.namespace.is_some(),
        };
        let text = match skews {
            None => text::write(view, shown, &look),
            Some(skews) => {
                let before = self.before();
                text::step_block(done, view, before, skews, &shown.workloads, &look) + "\n"
            }
        };
        self.text.push_str(&text);
    }

    fn end(self, skews: &Skews, log: Option<String>) -> Result<u8, Failure> {
        let Some((view, shown)) = self.first else {
            return Ok(0);
        };
        let report = Report::of(
            &view,
            &shown.workloads,
            &self.args.world.scheduling,
            self.steps,
            skews,
        );
        if let (Some(path), Some(log)) = (&self.args.html, log) {
            let report = serde_json::to_value(&report).map_err(Failure::outside)?;
            html::write(path, &report, &[Tape { log }])?;
        }
        let text = match self.args.output {
            Some(format) if format.is_for_programs() => serialized(&report, format)?,
            Some(Format::Name) => {
                let names = shown.workloads.iter();
                names
                    .map(|&w| view.world.workloads[w].name.resource() + "\n")
                    .collect()
            }
            _ => {
                let terminal = &self.context.terminal;
                let mut text = self.text + &text::summary_line(&view, terminal);
                if let Some((last, when)) = &self.last {
                    let pods = last.summaries.iter().map(|s| s.replicas).sum();
                    let pods = text::count(pods, "pod");
                    text += &format!("; after {when}: {pods}, {} Pending", last.n_pending());
                }
                text::drawn(text + "\n", terminal)
            }
        };
        terminal::print(&text)?;
        Ok(if view.n_pending() > 0 { EXIT_NO } else { 0 })
    }
}

/// Tells programs what is wrong.
pub(crate) fn print_diagnostics(
    said: &[(Vec<Diagnostic>, &Sources)],
    output: Option<Format>,
) -> Result<(), Failure> {
    let Some(format) = output.filter(|format| format.is_for_programs()) else {
        return Ok(());
    };
    let each = said.iter();
    let items = each.flat_map(|(all, sources)| all.iter().map(|d| d.to_json(sources)));
    let items: Vec<_> = items.collect();
    let list = json!({"apiVersion": report::API_VERSION, "kind": "Diagnostics", "items": items});
    terminal::print(&serialized(&list, format)?)
}

/// Text for programs.
pub(crate) fn serialized(value: &impl Serialize, format: Format) -> Result<String, Failure> {
    let text = match format {
        Format::Yaml => {
            serde_saphyr::to_string(value).map_err(|e| Failure::outside(anyhow::anyhow!("{e}")))?
        }
        _ => serde_json::to_string_pretty(value).map_err(Failure::outside)?,
    };
    Ok(match text.ends_with('\n') {
        true => text,
        false => text + "\n",
    })
}

/// Tells what is wrong; each list is about places in its own files. Whether there is an error.
pub(crate) fn say_diagnostics(said: &[(Vec<Diagnostic>, &Sources)], context: &Context) -> bool {
    say_problems(said, "simulated", context)
}

/// The same of what is not simulated: `done` says what is not done then.
pub(crate) fn say_problems(
    said: &[(Vec<Diagnostic>, &Sources)],
    done: &str,
    context: &Context,
) -> bool {
    let is_error = |d: &&Diagnostic| d.severity == Severity::Error;
    let mut n_errors = 0;
    let mut texts = Vec::new();
    for (all, sources) in said {
        n_errors += all.iter().filter(is_error).count();
        let shown = all.iter().filter(|d| !context.global.quiet || is_error(d));
        let shown: Vec<Diagnostic> = shown.cloned().collect();
        if !shown.is_empty() {
            texts.push(render(&shown, sources, true));
        }
    }
    if texts.is_empty() {
        return false;
    }
    terminal::say(&texts.join("\n"));
    if n_errors > 0 {
        let error = context.terminal.styles.error;
        let errors = text::count(n_errors, "error");
        terminal::say(&format!(
            "\n{error}error{error:#}: nothing was {done}: {errors} in the input\n"
        ));
    }
    n_errors > 0
}

/// Tells a thing that a reader should know.
pub(crate) fn say_note(note: &str, context: &Context) {
    if !context.global.quiet {
        let style = context.terminal.styles.warning;
        let note = printable_line(note);
        terminal::say(&format!("{style}note{style:#}: {note}\n"));
    }
}

/// Tells which patches of WorkloadSpreads were not applied, as conditions have it.
fn say_unpatched(simulation: &Simulation, context: &Context) {
    for spread in simulation.server().tables().of::<WorkloadSpread>().iter() {
        let rows = spread.status.subset_statuses.iter().flatten();
        let conditions = rows.flat_map(|row| row.conditions.iter().flatten());
        let unpatched = conditions.filter(|c| c.type_ == PATCH_APPLIED && c.status == "False");
        for condition in unpatched {
            let (name, why) = (&spread.meta.name, &condition.message);
            say_note(&format!("WorkloadSpread {name}: {why}"), context);
        }
    }
}

fn say_left_alone(world: &World, context: &Context) {
    let mut others = std::collections::BTreeMap::<&str, usize>::new();
    for pod in &world.pods {
        if let Standing::OfAnother(scheduler) = &pod.standing {
            *others.entry(scheduler).or_default() += 1;
        }
    }
    for (scheduler, n) in others {
        let pods = text::count(n, "pod");
        say_note(
            &format!("left {pods} alone: schedulerName {scheduler}"),
            context,
        );
    }
    let nowhere = world.members.iter().flatten().filter(|&&entry| {
        let node = world.node_of(entry);
        node.is_some_and(|node| world.cluster.node(node).fact().is_none())
    });
    let nowhere = nowhere.count();
    if nowhere > 0 {
        let pods = text::count(nowhere, "pod");
        say_note(
            &format!(
                "{pods} on nodes that are not in the files: garbage collection removes them, and their owners make others"
            ),
            context,
        );
    }
}

/// The command that explains a pod, and the files and options that it shares with all others.
fn suggest_explain(
    args: &SimulateArgs,
    context: &Context,
    pod: &str,
    namespace: &str,
) -> (String, String) {
    let mut command = format!("{} explain pod/{pod}", context.program);
    if namespace != "default" {
        command.push_str(&format!(" -n {namespace}"));
    }
    (command, files_and_options(args))
}

/// What makes the same cluster again.
fn files_and_options(args: &SimulateArgs) -> String {
    let files = args.files.iter().chain(&args.world.filename);
    let mut rest: Vec<String> = files.map(|file| inputs::quoted(file)).collect();
    rest.extend(args.world.read.to_args());
    rest.extend(args.world.nodes.to_args());
    rest.extend(args.world.scheduling.to_args());
    rest.join(" ")
}
