//! The life of a story, judged.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use strew_api::admission::{AdmissionContext, AdmissionOptions, PriorityClasses, admit_object};
use strew_api::config::{FeatureGates, Given, configure};
use strew_api::read::KubeObject;
use strew_api::workloads::NameSource;
use strew_controllers::object::Object;
use strew_model::Interner;
use strew_model::time::Span;
use strew_scheduler::machine::Limits;

use super::story::{Action, Story, World};
use super::{acts, manifests};
use crate::auditor::{Rule, Violation};
use crate::fault::{Component, Crash};
use crate::scheduler::Blueprint;
use crate::simulation::{ControllerMaker, Settings, Simulation};
use crate::timing::Timing;

/// Every so many instants everything is recounted.
const SAMPLED: u64 = 16;

/// An instant begins at most so often at one moment: else time stands still.
const INSTANTS_MAX: u64 = 200_000;

/// Nothing was written for so long: everybody rests. Longer than any wait after an error, any back-off, any flush.
const QUIET: Span = Span::from_secs(660);

/// After so long everybody must rest.
const PATIENCE: Span = Span::from_secs(3 * 60 * 60);

/// What a story is played with: the real parts, or broken ones that the judge must notice.
#[derive(Clone)]
pub struct Parts {
    /// How the scheduler is built.
    pub scheduler: Blueprint,
    /// The controllers.
    pub controllers: ControllerMaker,
}

impl Parts {
    /// The real parts.
    pub fn real() -> Self {
        let mut names = Interner::new();
        let gates = FeatureGates::default();
        let configured = configure(Given::Nothing, &gates, &mut names)
            .expect("the defaults are a configuration");
        Self {
            scheduler: Blueprint {
                names,
                profiles: configured.profiles,
                limits: Limits::default(),
                election: configured.leader_election,
            },
            controllers: Arc::new(crate::controllers),
        }
    }
}

/// What a life consisted of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Moments at which somebody did something.
    pub instants: u64,
    /// Steps of components.
    pub steps: u64,
    /// Binds that were judged.
    pub judged: u64,
    /// Choices of subsets that were judged.
    pub choices: u64,
    /// Binds that reached the store.
    pub binds: u64,
    /// Writes.
    pub writes: u64,
    /// How often each kind of fault began.
    pub faults: BTreeMap<&'static str, u64>,
}

impl Figures {
    /// Adds those of another life.
    pub fn add(&mut self, other: &Self) {
        self.instants += other.instants;
        self.steps += other.steps;
        self.judged += other.judged;
        self.choices += other.choices;
        self.binds += other.binds;
        self.writes += other.writes;
        for (kind, n) in &other.faults {
            *self.faults.entry(kind).or_default() += n;
        }
    }
}

/// How a life went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What was found to be wrong at the first instant at which anything was.
    pub violations: Vec<Violation>,
    /// What happened.
    pub figures: Figures,
}

/// Plays a story with these parts, to the first violation.
pub fn play(story: &Story, parts: &Parts) -> Verdict {
    let mut life = Life::new(story, parts);
    let violations = match life.live(story) {
        ControlFlow::Break(violations) => violations,
        ControlFlow::Continue(()) => Vec::new(),
    };
    if let Some(witness) = life.sim.witness() {
        life.figures.judged = witness.n_judged;
        life.figures.binds = witness.n_bound;
        life.figures.writes = witness.n_written;
    }
    life.figures.choices = life.sim.choices_judged();
    life.figures.steps = life.sim.n_steps();
    Verdict {
        violations,
        figures: life.figures,
    }
}

pub(super) struct Life {
    pub(super) sim: Simulation,
    figures: Figures,
}

/// Breaks with what was wrong.
pub(super) type Going = ControlFlow<Vec<Violation>>;

impl Life {
    fn new(story: &Story, parts: &Parts) -> Self {
        let mut sim = Simulation::new(Settings {
            seed: story.seed,
            objects: objects(&story.world),
            options: AdmissionOptions::KUBERNETES_1_36,
            scheduler: parts.scheduler.clone(),
            elects: story.world.elects,
            controllers: Arc::clone(&parts.controllers),
            timing: Timing::default(),
            groups: Vec::new(),
            autoscaler: None,
        });
        if story.world.n_webhooks > 0 {
            sim.set_webhook_replicas(usize::from(story.world.n_webhooks));
        }
        sim.watch_closely();
        let figures = Figures::default();
        Self { sim, figures }
    }

    fn live(&mut self, story: &Story) -> Going {
        for event in story.events.iter().filter(|event| event.at < story.calm) {
            self.until(event.at)?;
            if let Some(kind) = event.action.fault() {
                *self.figures.faults.entry(kind).or_default() += 1;
            }
            acts::act(&mut self.sim, &story.world, &event.action);
        }
        self.until(story.calm)?;
        self.sim.calm();
        // Half of the worlds get their nodes back.
        if story.seed.is_multiple_of(2) {
            for node in &story.world.nodes {
                let action = Action::Restore(node.name.clone());
                acts::act(&mut self.sim, &story.world, &action);
            }
        }
        self.rest()?;
        if !story.world.spreads.is_empty() {
            // One sync of each WorkloadSpread, as I3 has it: pods without a marker set off none, nor do StatefulSets.
            self.sim.crash(Crash {
                component: Component::Controller,
                after_writes: 0,
                down: Span::default(),
            });
            self.rest()?;
        }
        self.sim.audit_rest();
        self.verdict()?;
        match story.world.spreads.is_empty() {
            true => Going::Continue(()),
            false => self.probe(story),
        }
    }

    pub(super) fn verdict(&mut self) -> Going {
        let violations = self.sim.violations();
        match violations.is_empty() {
            true => Going::Continue(()),
            false => Going::Break(violations),
        }
    }

    pub(super) fn until(&mut self, end: Span) -> Going {
        let mut found = Vec::new();
        let (mut n_instants, mut last) = (0_u64, None);
        let figures = &mut self.figures;
        let ended = self.sim.run_until(end, &mut |sim| {
            figures.instants += 1;
            n_instants = match last == Some(sim.now()) {
                true => n_instants + 1,
                false => 0,
            };
            last = Some(sim.now());
            if figures.instants.is_multiple_of(SAMPLED) {
                sim.audit_structure();
            }
            found = sim.violations();
            if n_instants > INSTANTS_MAX {
                found.push(restless(sim, "time stands still".to_owned()));
            }
            match found.is_empty() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        if let Err(stuck) = ended {
            found.push(restless(&self.sim, stuck.to_string()));
        }
        match found.is_empty() {
            true => Going::Continue(()),
            false => Going::Break(found),
        }
    }

    /// Waits until nothing is written any more.
    fn rest(&mut self) -> Going {
        let calm = self.sim.elapsed();
        let (mut written, mut since) = (self.sim.server().log_end(), calm);
        loop {
            let end = Span(self.sim.elapsed().0 + Span::from_secs(60).0);
            self.until(end)?;
            let now = self.sim.elapsed();
            if self.sim.server().log_end() != written {
                (written, since) = (self.sim.server().log_end(), now);
            }
            if now.0 - since.0 >= QUIET.0 {
                return Going::Continue(());
            }
            if now.0 - calm.0 > PATIENCE.0 {
                let last = self.sim.server().last_written();
                let text = format!("still at work {PATIENCE} after all faults, last on {last}");
                return Going::Break(vec![restless(&self.sim, text)]);
            }
        }
    }
}

fn restless(sim: &Simulation, text: String) -> Violation {
    Violation {
        rule: Rule::Rest,
        after: sim.elapsed(),
        actor: "the cluster".to_owned(),
        text,
    }
}

/// The objects of a world, admitted.
fn objects(world: &World) -> Vec<Object> {
    let decoded = manifests::of(world).into_iter();
    let decoded: Vec<KubeObject> = decoded
        .filter_map(|v| KubeObject::of_json(v).ok())
        .collect();
    let classes = decoded.iter().filter_map(|object| match object {
        KubeObject::PriorityClass(class) => Some((**class).clone()),
        _ => None,
    });
    let classes: Vec<_> = classes.collect();
    let context = AdmissionContext {
        priority_classes: &PriorityClasses::new(classes.iter()),
        options: &AdmissionOptions::KUBERNETES_1_36,
    };
    let mut names = NameSource::new(0);
    let admitted = decoded.into_iter().filter_map(|object| {
        let (object, _) = admit_object(object, &context, &mut names).ok()?;
        Some(Object::of_wire(object))
    });
    admitted.collect()
}
