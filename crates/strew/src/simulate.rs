//! `strew simulate`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use strew_sim::Simulation;

use crate::arguments::{Context, WorldArgs};
use crate::failure::{EXIT_NO, Failure};
use crate::inputs;
use crate::label_query::LabelQuery;
use crate::live::Frame;
use crate::progress::Progress;
use crate::report::{Report, Step};
use crate::setup;
use crate::skews::Skews;
use crate::story::{self, Done, StepName};
use crate::terminal;
use crate::text::{self, Look};
use crate::view::{self, Shown, View};
use crate::world::{Standing, World};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate shop.yaml                          on 12 made-up nodes in 3 zones
  PROGRAM simulate shop.yaml --until deploy           where do its pods go, and no more
  PROGRAM simulate deploy/ -R --nodes 30 --zones 3 --node-cpu 16 --node-memory 64Gi
  kubectl get nodes,pods,deploy,rs,svc -A -o json | PROGRAM simulate - app.yaml
                                                      what if app.yaml came to this cluster?
  PROGRAM simulate shop.yaml --config scheduler-config.yaml
  PROGRAM simulate shop.yaml --feature-gates MinDomainsInPodTopologySpread=false
  PROGRAM simulate shop.yaml --seed 7                 another life: other names, times and orders
  PROGRAM simulate dump.json -n shop -o json | jq .steps[0].workloads";

/// Arguments of `strew simulate`.
#[derive(Args, Debug)]
pub(crate) struct SimulateArgs {
    /// Manifests or dumps: files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "filename")]
    files: Vec<String>,
    /// End the story after this step
    #[arg(long, value_name = "STEP")]
    until: Option<StepName>,
    /// How to write the result
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
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
    /// Names of workloads only
    Name,
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
    let Some(setup) = setup::load(&args.files, &args.world, args.output, context)? else {
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
        start: View::of(&simulation, &mut frame, None),
        first: None,
        last: None,
        text: String::new(),
        steps: Vec::new(),
    };
    say_left_alone(&teller.start.world, context);
    let mut told = |simulation: &Simulation, frame: &mut Frame, skews: &Skews, done: &Done| {
        teller.step(
            View::of(simulation, frame, Some(teller.before())),
            skews,
            done,
        );
    };
    let until = args.until.unwrap_or(StepName::Restore);
    let skews = story::play(&mut simulation, &mut frame, until, &progress, &mut told)?;
    progress.finish();
    teller.end(setup.seed(), &skews)
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
                view::select(&view, namespace, self.query.as_ref(), self.top)
            }
        };
        self.tell(done, &view, None, &shown);
        self.first = Some((view, shown));
    }

    /// Writes a step down; `skews` are those on the way of a later one.
    fn tell(&mut self, done: &Done, view: &View, skews: Option<&Skews>, shown: &Shown) {
        let (args, context) = (self.args, self.context);
        match args.output {
            Some(format) if format.is_for_programs() => {
                self.steps.push(Step::of(done, view, &shown.workloads));
                return;
            }
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

    fn end(self, seed: u64, skews: &Skews) -> Result<u8, Failure> {
        let Some((view, shown)) = self.first else {
            return Ok(0);
        };
        let text = match self.args.output {
            Some(format) if format.is_for_programs() => {
                let report = Report::of(&view, &shown.workloads, seed, self.steps, skews);
                serialized(&report, format)?
            }
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

/// Tells a thing that a reader should know.
pub(crate) fn say_note(note: &str, context: &Context) {
    if !context.global.quiet {
        let style = context.terminal.styles.warning;
        terminal::say(&format!("{style}note{style:#}: {note}\n"));
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
    let files = args.files.iter().chain(&args.world.filename);
    let mut rest: Vec<String> = files.map(|file| inputs::quoted(file)).collect();
    if args.world.recursive {
        rest.push("-R".to_owned());
    }
    rest.extend(args.world.nodes.to_args());
    rest.extend(args.world.scheduling.to_args());
    (command, rest.join(" "))
}
