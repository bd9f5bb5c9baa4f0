//! Files and options into a simulated cluster that is about to live.

use std::sync::Arc;

use serde_json::json;
use strew_api::admission::AdmissionOptions;
use strew_api::config::Configuration;
use strew_api::read::{Diagnostic, Severity, Sources, render};
use strew_model::Interner;
use strew_model::time::Span;
use strew_scheduler::machine::Limits;
use strew_sim::{Blueprint, Settings, Simulation, Timing};

use crate::arguments::{Context, WorldArgs};
use crate::failure::Failure;
use crate::inputs;
use crate::live::Frame;
use crate::load;
use crate::report;
use crate::simulate::{Format, say_note, serialized};
use crate::terminal;
use crate::text;

/// What a simulated cluster is made of, any number of times.
pub(crate) struct Setup {
    settings: Settings,
    frame: Frame,
}

impl Setup {
    /// The cluster at second 0.
    pub(crate) fn begin(&self) -> (Simulation, Frame) {
        (Simulation::new(self.settings.clone()), self.frame.clone())
    }

    /// What everything is drawn from.
    pub(crate) fn seed(&self) -> u64 {
        self.settings.seed
    }
}

/// Without a configuration the default profile answers to strew's own name, too.
const OWN_NAME: &str = "strew";

/// How the scheduler of a configuration is built, which is a given one or the default.
pub(crate) fn blueprint(
    configuration: &Configuration,
    is_given: bool,
    names: Interner,
) -> Blueprint {
    let mut profiles = configuration.profiles.clone();
    if let Some(first) = profiles.first().filter(|_| !is_given) {
        let mut own = first.clone();
        own.scheduler_name = OWN_NAME.to_owned();
        profiles.push(own);
    }
    let mut limits = Limits::default();
    limits.queue.backoff.initial = Span::from_secs(configuration.pod_initial_backoff_s);
    limits.queue.backoff.max = Span::from_secs(configuration.pod_max_backoff_s);
    Blueprint {
        names,
        profiles,
        limits,
        election: configuration.leader_election.clone(),
    }
}

/// Reads and loads; `None` if the input is wrong, which has been told.
pub(crate) fn load(
    files: &[String],
    args: &WorldArgs,
    output: Option<Format>,
    context: &Context,
) -> Result<Option<Setup>, Failure> {
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
    let mut names = Interner::new();
    let configured = scheduling.configure(
        config_file.as_ref(),
        &sources,
        &load.configurations,
        &gates,
        &mut names,
    );
    elsewhere.extend(configured.elsewhere);
    diagnostics.extend(configured.in_manifests);
    let said = [
        (elsewhere, config_file.as_ref().unwrap_or(&sources)),
        (diagnostics, &sources),
    ];
    say_diagnostics(&said, context);
    let configuration = configured.configuration.filter(|_| gates_are_right);
    let (Some(loaded), Some(configuration)) = (load.loaded, configuration) else {
        if let Some(format) = output.filter(|format| format.is_for_programs()) {
            let each = said.iter();
            let items = each.flat_map(|(all, sources)| all.iter().map(|d| d.to_json(sources)));
            let items: Vec<_> = items.collect();
            let list =
                json!({"apiVersion": report::API_VERSION, "kind": "Diagnostics", "items": items});
            terminal::print(&serialized(&list, format)?)?;
        }
        return Ok(None);
    };
    for note in loaded.notes.iter().chain(&configuration.notes) {
        say_note(note, context);
    }
    let blueprint = blueprint(&configuration, configured.is_given, names);
    Ok(Some(Setup {
        frame: Frame {
            blueprint: blueprint.clone(),
            compat: scheduling.compat,
            workloads: loaded.workloads,
        },
        settings: Settings {
            seed: scheduling.seed.unwrap_or(0),
            objects: loaded.objects,
            options,
            scheduler: blueprint,
            elects: false,
            controllers: Arc::new(strew_sim::controllers),
            timing: Timing::default(),
            groups: Vec::new(),
            autoscaler: None,
        },
    }))
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
