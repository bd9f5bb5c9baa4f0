//! Files and options into a simulated cluster that is about to live.

use std::sync::Arc;

use strew_api::config::AdmissionOptions;
use strew_api::config::Configuration;
use strew_api::read::Sources;
use strew_model::Interner;
use strew_sim::{Blueprint, Settings, Simulation, Size, Timing};

use crate::arguments::{Context, WorldArgs};
use crate::failure::Failure;
use crate::load;
use crate::memory::Need;
use crate::simulate::{Format, print_diagnostics, say_diagnostics, say_note};
use strew_view::moment::Frame;

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
    let mut blueprint = Blueprint::of(configuration, names);
    if let Some(first) = blueprint.profiles.first().filter(|_| !is_given) {
        let mut own = first.clone();
        own.scheduler_name = OWN_NAME.to_owned();
        blueprint.profiles.push(own);
    }
    blueprint
}

/// Loads what was read; `None` if the input is wrong, which has been told.
pub(crate) fn load(
    sources: &Sources,
    args: &WorldArgs,
    output: Option<Format>,
    context: &Context,
) -> Result<Option<Setup>, Failure> {
    let scheduling = &args.scheduling;
    let config_file = scheduling.read()?;
    let (gates, mut elsewhere) = scheduling.gates();
    let gates_are_right = elsewhere.is_empty();
    let options = gates.admission(AdmissionOptions::KUBERNETES_1_36);
    let load = load::load(sources, &args.nodes, &options)?;
    let mut diagnostics = load.diagnostics;
    let mut names = Interner::new();
    let configured = scheduling.configure(
        config_file.as_ref(),
        sources,
        &load.configurations,
        &gates,
        &mut names,
    );
    elsewhere.extend(configured.elsewhere);
    diagnostics.extend(configured.in_manifests);
    let said = [
        (elsewhere, config_file.as_ref().unwrap_or(sources)),
        (diagnostics, sources),
    ];
    say_diagnostics(&said, context);
    let configuration = configured.configuration.filter(|_| gates_are_right);
    let (Some(loaded), Some(configuration)) = (load.loaded, configuration) else {
        print_diagnostics(&said, output)?;
        return Ok(None);
    };
    for note in loaded.notes.iter().chain(&configuration.notes) {
        say_note(note, context);
    }
    args.memory.check(Need {
        size: Size::of(&loaded.objects),
        n_at_once: 1,
        n_runs: 1,
    })?;
    let blueprint = blueprint(&configuration, configured.is_given, names);
    Ok(Some(Setup {
        frame: Frame {
            names: blueprint.names.clone(),
            profiles: blueprint.profiles.clone(),
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
