//! Prepares a variant: does everything that does not depend on the seed, once.

use std::sync::Arc;

use strew_apiserver::object::Object;
use strew_cel::{Environment, Program};
use strew_manifest::field::FieldError;
use strew_manifest::read::Located;
use strew_model::time::Span;
use strew_sim::{
    AutoscalerSettings, Between, Blueprint, Expander, NodeGroup, Settings, Simulation, Timing,
};
use strew_wire::config::AdmissionOptions;
use strew_wire::config::FeatureGates;

use super::admission::{Admitted, admit};
use crate::format::{self, Claim, Expectation, Scenario, SpanRange, Verb};

/// Builds the scheduler for a set of gates; `None` if the configuration does not fit them.
pub type Configure = Arc<dyn Fn(&FeatureGates) -> Option<Blueprint> + Send + Sync>;

/// A variant, ready to be played with any seed.
#[derive(Clone)]
pub struct Plan {
    pub(crate) scenario: Scenario,
    admitted: Admitted,
    pub(crate) configure: Configure,
    blueprint: Blueprint,
    elects: bool,
    /// The compiled expression of each expectation, those of `always` first, then step by step; `None` for other
    /// claims.
    pub(crate) programs: Vec<Option<Arc<Program>>>,
}

/// Why a variant cannot be played.
#[derive(Debug, Clone)]
pub enum Unplayable {
    /// The API server refuses an object of the stream: its index, and the errors.
    Refused(usize, Vec<FieldError>),
    /// An expression does not compile: the expectation, and the error.
    Expression(Box<Expectation>, strew_cel::CompileError),
    /// The scheduler's configuration does not fit the gates.
    Configuration,
}

impl Plan {
    /// The objects at second 0.
    pub fn objects(&self) -> &[Object] {
        &self.admitted.objects
    }

    /// How the scheduler is built.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// Admits the objects and compiles the expressions.
    ///
    /// # Errors
    /// Everything that prevents a run.
    pub fn new(
        scenario: &Scenario,
        stream: &[Located],
        configure: Configure,
    ) -> Result<Self, Vec<Unplayable>> {
        Self::of(scenario, stream.to_vec(), configure)
    }

    /// As [`new`](Self::new), of objects that nobody else needs.
    ///
    /// # Errors
    /// Everything that prevents a run.
    pub fn of(
        scenario: &Scenario,
        stream: Vec<Located>,
        configure: Configure,
    ) -> Result<Self, Vec<Unplayable>> {
        let mut problems = Vec::new();
        let gates = &scenario.feature_gates;
        let admitted = admit(stream, &options(gates)).unwrap_or_else(|refusals| {
            let refusals = refusals.into_iter();
            problems.extend(refusals.map(|(number, errors)| Unplayable::Refused(number, errors)));
            Admitted::default()
        });
        let programs = programs(scenario, &mut problems);
        let blueprint = configure(gates);
        if blueprint.is_none() {
            problems.push(Unplayable::Configuration);
        }
        match (problems.is_empty(), blueprint) {
            (true, Some(blueprint)) => Ok(Self {
                admitted: with_groups(admitted, scenario),
                configure,
                blueprint,
                elects: has_second_scheduler(scenario),
                programs,
                scenario: scenario.clone(),
            }),
            _ => Err(problems),
        }
    }

    /// The same plan, played until this time after its last step.
    pub fn lasting(&self, until: Span) -> Self {
        let mut plan = self.clone();
        plan.scenario.until = Some(until);
        plan
    }

    /// The same plan with these steps, which have no expectation in CEL; it ends with the last one.
    pub(crate) fn with_timeline(&self, timeline: Vec<format::Step>) -> Self {
        let mut plan = self.clone();
        plan.scenario.until = None;
        plan.scenario.always.clear();
        plan.scenario.timeline = timeline;
        plan.programs = expectations(&plan.scenario).map(|_| None).collect();
        plan
    }

    /// The same plan, with this object in place of the one with its key at second 0.
    pub(crate) fn with_object(mut self, object: Object) -> Self {
        let key = object.key();
        let mut objects = self.admitted.objects.iter_mut();
        if let Some(known) = objects.find(|known| known.key() == key) {
            *known = object;
        }
        self
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The objects at second 0, with notes and warnings.
    pub fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    /// Builds the cluster at second 0.
    pub fn simulation(&self, seed: u64) -> Simulation {
        let scenario = &self.scenario;
        let timing = timing(scenario);
        let groups = scenario.node_groups.iter().map(group).collect();
        let autoscaler = scenario.autoscaler.as_ref().map(autoscaler);
        Simulation::new(Settings {
            seed,
            objects: self.admitted.objects.clone(),
            options: options(&scenario.feature_gates),
            scheduler: self.blueprint.clone(),
            elects: self.elects,
            controllers: Arc::new(strew_sim::controllers),
            timing,
            groups,
            autoscaler,
        })
    }
}

/// The nodes of the node groups at second 0.
pub fn nodes_of_groups(scenario: &Scenario) -> impl Iterator<Item = Object> {
    scenario.node_groups.iter().flat_map(|wanted| {
        let group = group(wanted);
        let nodes = (0..wanted.size).map(move |number| group.node(number));
        nodes.map(|node| Object::of_wire(node.into()))
    })
}

/// The API server's options for these gates.
pub(crate) fn options(gates: &FeatureGates) -> AdmissionOptions {
    gates.admission(AdmissionOptions::KUBERNETES_1_36)
}

fn with_groups(mut admitted: Admitted, scenario: &Scenario) -> Admitted {
    admitted.objects.extend(nodes_of_groups(scenario));
    admitted
}

fn group(wanted: &format::NodeGroup) -> NodeGroup {
    NodeGroup {
        name: wanted.name.as_str().into(),
        min: wanted.min,
        max: wanted.max,
        boot: wanted.boot.map(|boot| Between {
            min: boot,
            max: boot,
        }),
        template: wanted.template.clone(),
    }
}

fn timing(scenario: &Scenario) -> Timing {
    let given = &scenario.timing;
    let usual = Timing::default();
    let between = |given: Option<SpanRange>, usual: Between| match given {
        Some(SpanRange { min, max }) => Between { min, max },
        None => usual,
    };
    Timing {
        pod_start: between(given.pod_start, usual.pod_start),
        pod_stop: between(given.pod_stop, usual.pod_stop),
        pod_run: between(given.pod_run, usual.pod_run),
        node_boot: between(given.node_boot, usual.node_boot),
        status_write: between(given.status_write, usual.status_write),
    }
}

fn autoscaler(given: &format::Autoscaler) -> AutoscalerSettings {
    AutoscalerSettings {
        scan_every: given.scan_every,
        unneeded: given.unneeded,
        delay_after_add: given.delay_after_add,
        delay_after_failure: given.delay_after_failure,
        expander: match given.expander {
            format::Expander::LeastWaste => Expander::LeastWaste,
            format::Expander::MostPods => Expander::MostPods,
            format::Expander::Random => Expander::Random,
        },
        scales_down: true,
    }
}

fn has_second_scheduler(scenario: &Scenario) -> bool {
    let verbs = scenario.timeline.iter().flat_map(|step| &step.verbs);
    let mut faults = verbs.filter_map(|located| match &located.verb {
        Verb::Fault(faults) => Some(faults),
        _ => None,
    });
    faults.any(|faults| {
        let is_second =
            |fault: &format::Fault| matches!(fault, format::Fault::SecondScheduler { .. });
        faults.iter().any(is_second)
    })
}

/// All expectations: those of `always`, then step by step.
pub(crate) fn expectations(scenario: &Scenario) -> impl Iterator<Item = &Expectation> {
    let steps = scenario.timeline.iter().flat_map(|step| &step.expect);
    scenario.always.iter().chain(steps)
}

fn programs(scenario: &Scenario, problems: &mut Vec<Unplayable>) -> Vec<Option<Arc<Program>>> {
    let program = |expectation: &Expectation| match &expectation.claim {
        Claim::Cel(text) => match Program::compile(text, Environment::Scenario) {
            Ok(program) => Some(Arc::new(program)),
            Err(error) => {
                let expectation = Box::new(expectation.clone());
                problems.push(Unplayable::Expression(expectation, error));
                None
            }
        },
        _ => None,
    };
    expectations(scenario).map(program).collect()
}
