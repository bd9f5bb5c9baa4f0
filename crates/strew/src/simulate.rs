//! `strew simulate`.

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::json;
use strew_api::admission::AdmissionOptions;
use strew_api::read::{Diagnostic, Severity, Sources, render};
use strew_cluster::Cluster;

use crate::arguments::{Context, WorldArgs};
use crate::failure::{EXIT_NO, Failure};
use crate::inputs;
use crate::label_query::LabelQuery;
use crate::load;
use crate::progress::Progress;
use crate::report::{self, Report};
use crate::schedulers::Schedulers;
use crate::terminal;
use crate::text::{self, Look};
use crate::view::{self, View};
use crate::world::{self, Standing, World};

pub(crate) const EXAMPLES: &str = "Examples:
  PROGRAM simulate shop.yaml                          on 12 made-up nodes in 3 zones
  PROGRAM simulate deploy/ -R --nodes 30 --zones 3 --node-cpu 16 --node-memory 64Gi
  kubectl get nodes,pods,deploy,rs,svc -A -o json | PROGRAM simulate - app.yaml
                                                      what if app.yaml came to this cluster?
  PROGRAM simulate shop.yaml --config scheduler-config.yaml
  PROGRAM simulate shop.yaml --feature-gates MinDomainsInPodTopologySpread=false
  PROGRAM simulate shop.yaml --tie random --seed 7    another of the equally good results
  PROGRAM simulate dump.json -n shop -o json | jq .steps[0].workloads";

/// Arguments of `strew simulate`.
#[derive(Args, Debug)]
pub(crate) struct SimulateArgs {
    /// Manifests or dumps: files, folders, or - for standard input
    #[arg(value_name = "FILE", required_unless_present = "filename")]
    files: Vec<String>,
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
    let Some(world) = load_world(&args.files, &args.world, args.output, context)? else {
        return Ok(2);
    };
    let progress = Progress::new(context.global.quiet);
    let view = View::run(world, &progress);
    say_left_alone(&view.world, context);
    if context.global.verbose > 0 {
        let decisions = text::count(view.deployed.n_decisions, "decision");
        say_note(&format!("{decisions} were made"), context);
    }
    // Programs get everything.
    let is_cut = args.output.is_none_or(|format| format == Format::Wide) && !args.all;
    let top = if is_cut { args.top } else { usize::MAX };
    let shown = view::select(&view, args.namespace.as_deref(), query.as_ref(), top);
    let text = match args.output {
        Some(format) if format.is_for_programs() => {
            serialized(&Report::of(&view, &shown.workloads), format)?
        }
        Some(Format::Name) => {
            let names = shown.workloads.iter();
            names
                .map(|&w| view.world.workloads[w].name.resource() + "\n")
                .collect()
        }
        _ if context.global.quiet => text::summary_line(&view, &context.terminal),
        _ => {
            let explain =
                |pod: &str, namespace: &str| suggest_explain(args, context, pod, namespace);
            let look = Look {
                terminal: &context.terminal,
                wide: args.output == Some(Format::Wide),
                pods: context.global.verbose > 0,
                headers: !args.no_headers,
                explain: &explain,
                is_explained: std::cell::Cell::new(false),
                in_namespace: args.namespace.is_some(),
            };
            text::write(&view, &shown, &look)
        }
    };
    terminal::print(&text)?;
    Ok(if view.n_pending() > 0 { EXIT_NO } else { 0 })
}

/// Reads, loads and builds; `None` if the input is wrong, which has been told.
pub(crate) fn load_world(
    files: &[String],
    args: &WorldArgs,
    output: Option<Format>,
    context: &Context,
) -> Result<Option<World>, Failure> {
    let names: Vec<String> = files.iter().chain(&args.filename).cloned().collect();
    let scheduling = &args.scheduling;
    scheduling.check(&names)?;
    let sources = inputs::read(&names, args.recursive)?;
    let config_file = scheduling.read()?;
    let (gates, mut elsewhere) = scheduling.gates();
    let gates_are_right = elsewhere.is_empty();
    let options = gates.admission(AdmissionOptions::KUBERNETES_1_36);
    let load = load::load(&sources, &args.nodes, &options)?;
    let mut diagnostics = load.diagnostics;
    let mut cluster = Cluster::new();
    let configured = scheduling.configure(
        config_file.as_ref(),
        &sources,
        &load.configurations,
        &gates,
        &mut cluster.names,
    );
    elsewhere.extend(configured.elsewhere);
    diagnostics.extend(configured.in_manifests);
    let mut notes = Vec::new();
    let configuration = configured.configuration.filter(|_| gates_are_right);
    let built = load.loaded.and_then(|mut loaded| {
        notes = std::mem::take(&mut loaded.notes);
        let configuration = configuration?;
        let is_given = configured.is_given;
        let schedulers = Schedulers::new(&configuration, is_given, &mut cluster.names);
        notes.extend(configuration.notes);
        let compat = scheduling.compat;
        let built = world::build(loaded, cluster, schedulers, compat, &sources);
        built.map_err(|errors| diagnostics.extend(errors)).ok()
    });
    let said = [
        (elsewhere, config_file.as_ref().unwrap_or(&sources)),
        (diagnostics, &sources),
    ];
    say_diagnostics(&said, context);
    if built.is_none() {
        if let Some(format) = output.filter(|format| format.is_for_programs()) {
            let each = said.iter();
            let items = each.flat_map(|(all, sources)| all.iter().map(|d| d.to_json(sources)));
            let items: Vec<_> = items.collect();
            let list =
                json!({"apiVersion": report::API_VERSION, "kind": "Diagnostics", "items": items});
            terminal::print(&serialized(&list, format)?)?;
        }
        return Ok(None);
    }
    for note in notes {
        say_note(&note, context);
    }
    Ok(built)
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

/// Tells what is wrong; each list is about places in its own files.
fn say_diagnostics(said: &[(Vec<Diagnostic>, &Sources)], context: &Context) {
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
        return;
    }
    terminal::say(&texts.join("\n"));
    if n_errors > 0 {
        let error = context.terminal.styles.error;
        let errors = text::count(n_errors, "error");
        terminal::say(&format!(
            "\n{error}error{error:#}: nothing was simulated: {errors} in the input\n"
        ));
    }
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
                "{pods} on nodes that are not in the files: they take nothing and count nowhere"
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
