//! Runs and judges a story.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde_json::Value;
use strew_apiserver::admission::{AdmissionContext, PriorityClasses, RuntimeClasses, admit_object};
use strew_apiserver::object::{Key, Kind, Name, Object, Pod};
use strew_apiserver::workloads::NameSource;
use strew_apiserver::{ApiError, DeleteOptions, Tables};
use strew_manifest::field::FieldError;
use strew_manifest::read::KubeObject;
use strew_model::Interner;
use strew_model::time::{Instant, Span};
use strew_wire::config::AdmissionOptions;
use strew_wire::config::{FeatureGates, Given, configure};

use super::story::{Action, Event, Group, Story};
use super::{acts, manifests};
use crate::auditor::{Rule, Violation};
use crate::autoscaler::AutoscalerSettings;
use crate::fault::{Component, Crash, Hits, Sabotage};
use crate::limits::MachineLimits;
use crate::scheduler::Blueprint;
use crate::simulation::{ControllerMaker, Settings, Simulation};
use crate::timing::Timing;

/// Everything is recounted after this many instants.
const SAMPLED: u64 = 16;

/// The cluster is at rest after this long without a write. Longer than any pause after an error, any backoff, any
/// flush.
pub(super) const QUIET: Span = Span::from_secs(660);

/// The quiet time with a quota, which refuses pods: a controller retries after 1,000 seconds at most.
const QUIET_WITH_QUOTA: Span = Span::from_secs(1100);

/// The quiet time with a node group: ten minutes after the last new node, and ten minutes unneeded.
const QUIET_WITH_GROUP: Span = Span::from_secs(1400);

/// A pod that preempts this many times in this time preempts for ever: the pods that replace its victims take the room
/// again, by every rule, before it is tried (kube-scheduler has the same endless loop, docs/fidelity.md). Only then is
/// its workload deleted; every other loop is a violation.
const CIRCLE: (usize, Span) = (20, Span::from_secs(30 * 60));

/// The time after which the cluster must be at rest.
const PATIENCE: Span = Span::from_secs(3 * 60 * 60);

/// The parts of a run: the real ones, or broken ones that the judge must notice.
#[derive(Clone)]
pub struct Parts {
    /// How the scheduler is built.
    pub scheduler: Blueprint,
    /// Makes the controllers.
    pub controllers: ControllerMaker,
    /// A defect that the run gets on purpose.
    pub sabotage: Option<Sabotage>,
}

impl Parts {
    /// The real parts.
    pub fn real() -> Self {
        let mut names = Interner::new();
        let gates = FeatureGates::default();
        let configured = configure(Given::Nothing, &gates, &mut names)
            .expect("the defaults are a configuration");
        Self {
            scheduler: Blueprint::of(&configured, names),
            controllers: Arc::new(crate::controllers),
            sabotage: None,
        }
    }
}

/// Counts of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Instants with an action.
    pub instants: u64,
    /// Steps of components.
    pub steps: u64,
    /// Binds judged.
    pub judged: u64,
    /// Choices of subsets judged.
    pub choices: u64,
    /// Scale-downs judged.
    pub scaled: u64,
    /// Binds stored.
    pub binds: u64,
    /// Writes.
    pub writes: u64,
    /// Endless preemptions.
    pub circles: u64,
    /// Decisions on placements that led to writes.
    pub placed: u64,
    /// Writes of PlacementDecisions judged.
    pub decisions: u64,
    /// The objects of the world, and the actions of users.
    pub asked: u64,
    /// Of these, what the API server refused as invalid, by its sentence: a world that is not the one that was meant.
    pub refused: BTreeMap<String, u64>,
    /// The number of faults that began, by kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// The number of faults that hit WorkloadSpread's webhook, by kind.
    pub webhook_hits: Hits,
}

impl Figures {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.instants += other.instants;
        self.steps += other.steps;
        self.judged += other.judged;
        self.choices += other.choices;
        self.scaled += other.scaled;
        self.binds += other.binds;
        self.writes += other.writes;
        self.circles += other.circles;
        self.placed += other.placed;
        self.decisions += other.decisions;
        self.asked += other.asked;
        for (sentence, n) in &other.refused {
            *self.refused.entry(sentence.clone()).or_default() += n;
        }
        for (kind, n) in &other.faults {
            *self.faults.entry(kind).or_default() += n;
        }
        for (kind, n) in &other.webhook_hits {
            *self.webhook_hits.entry(kind).or_default() += n;
        }
    }

    /// True if more than one in a hundred of the objects and actions were refused as invalid: then other worlds were
    /// played than were generated.
    pub fn is_refused(&self) -> bool {
        self.refused.values().sum::<u64>() * 100 > self.asked
    }

    /// Counts an object of the world, or an action. Refusals other than of invalid objects are no matter: users make
    /// mistakes.
    pub fn ask(&mut self, answer: Result<(), ApiError>) {
        self.asked += 1;
        if let Err(ApiError::Invalid(sentence)) = answer {
            *self.refused.entry(sentence.to_string()).or_default() += 1;
        }
    }
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The violations of the first instant that has any.
    pub violations: Vec<Violation>,
    /// The counts.
    pub figures: Figures,
}

impl Verdict {
    /// True if a violation is one of this rule.
    pub(super) fn breaks(&self, rule: Rule) -> bool {
        self.violations.iter().any(|broken| broken.rule == rule)
    }
}

/// Plays a story with these parts until the first violation; a panic is one.
pub fn play(story: &Story, parts: &Parts) -> Verdict {
    caught(|| play_on(story, parts))
}

/// The verdict on a run; a panic is a violation.
pub fn caught(play: impl FnOnce() -> Verdict) -> Verdict {
    let played = catch_unwind(AssertUnwindSafe(play));
    played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Verdict {
            violations: vec![Violation {
                rule: Rule::Panic,
                after: Span::default(),
                actor: "the simulation".to_owned(),
                text: text.unwrap_or_default().to_owned(),
            }],
            figures: Figures::default(),
        }
    })
}

fn play_on(story: &Story, parts: &Parts) -> Verdict {
    let world = &story.world;
    let manifests = manifests::of(world);
    let mut life = Life::begin(
        (story.seed, story.limits),
        manifests,
        world.elects,
        world.group,
        parts,
    );
    if let Some(plan) = world.registration {
        life.sim.register_webhooks(plan);
    }
    if world.n_webhooks > 0 {
        life.sim.set_webhook_replicas(usize::from(world.n_webhooks));
    }
    let ended = life.live(story);
    life.end(ended)
}

/// A run in progress.
pub struct Life {
    /// The cluster.
    pub sim: Simulation,
    /// The counts so far.
    pub figures: Figures,
}

/// Breaks with the violations.
pub type Going = ControlFlow<Vec<Violation>>;

impl Life {
    /// Begins a run with these objects, with a witness.
    pub fn begin(
        (seed, limits): (u64, MachineLimits),
        manifests: Vec<Value>,
        elects: bool,
        group: Option<Group>,
        parts: &Parts,
    ) -> Self {
        let mut figures = Figures::default();
        let mut sim = Simulation::new(Settings {
            seed,
            objects: objects(manifests, &mut figures),
            options: AdmissionOptions::KUBERNETES_1_36,
            scheduler: Blueprint {
                limits,
                ..parts.scheduler.clone()
            },
            elects,
            controllers: Arc::clone(&parts.controllers),
            timing: Timing::default(),
            groups: group.iter().filter_map(manifests::group).collect(),
            autoscaler: group.map(|_| AutoscalerSettings::default()),
        });
        sim.watch_closely();
        sim.sabotage = parts.sabotage;
        Self { sim, figures }
    }

    /// Ends the run.
    pub fn end(mut self, ended: Going) -> Verdict {
        if let Some(witness) = self.sim.witness() {
            self.figures.judged = witness.n_judged;
            self.figures.binds = witness.n_bound;
            self.figures.writes = witness.n_written;
            self.figures.placed = witness.n_placed;
            self.figures.decisions = witness.n_decisions;
        }
        self.figures.choices += self.sim.choices_judged();
        self.figures.steps = self.sim.n_steps();
        self.figures.webhook_hits = self.sim.webhook_hits();
        for (kind, n) in self.sim.zone_hits() {
            *self.figures.webhook_hits.entry(kind).or_default() += n;
        }
        Verdict {
            violations: ended.break_value().unwrap_or_default(),
            figures: self.figures,
        }
    }

    /// Carries out the events before `calm`, which ends all faults.
    pub(super) fn storm<A>(
        &mut self,
        (events, calm): (&[Event<A>], Span),
        fault: fn(&A) -> Option<&'static str>,
        act: impl Fn(&mut Simulation, &A) -> Result<(), ApiError>,
    ) -> Going {
        for event in events.iter().filter(|event| event.at < calm) {
            self.until(event.at)?;
            if let Some(kind) = fault(&event.action) {
                *self.figures.faults.entry(kind).or_default() += 1;
            }
            let answer = act(&mut self.sim, &event.action);
            self.figures.ask(answer);
        }
        self.until(calm)?;
        self.sim.calm();
        Going::Continue(())
    }

    fn live(&mut self, story: &Story) -> Going {
        let storm = (&*story.events, story.calm);
        self.storm(storm, Action::fault, |sim, action| {
            acts::act(sim, &story.world, action)
        })?;
        // Half of the stories get their nodes back.
        if story.seed.is_multiple_of(2) {
            for node in &story.world.nodes {
                let action = Action::Restore(node.name.clone());
                let answer = acts::act(&mut self.sim, &story.world, &action);
                self.figures.ask(answer);
            }
        }
        let quiet = match (story.world.group, story.world.quota) {
            (Some(_), _) => QUIET_WITH_GROUP,
            (None, Some(_)) => QUIET_WITH_QUOTA,
            (None, None) => QUIET,
        };
        self.rest(quiet)?;
        if !story.world.spreads.is_empty() {
            // Every WorkloadSpread is synced once, as I3 demands: pods without a marker and StatefulSets trigger no
            // sync.
            self.sim.crash(Crash {
                component: Component::Controller,
                after_writes: 0,
                down: Span::default(),
            });
            self.rest(quiet)?;
        }
        self.sim.audit_rest();
        self.verdict()?;
        if story.world.registration.is_some() {
            self.probe_registration()?;
        }
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

    /// Runs until this long after the start, or until a violation.
    pub fn until(&mut self, end: Span) -> Going {
        let mut found = Vec::new();
        let figures = &mut self.figures;
        let ended = self.sim.run_until(end, &mut |sim| {
            figures.instants += 1;
            if figures.instants.is_multiple_of(SAMPLED) {
                sim.audit_structure();
            }
            found = sim.violations();
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

    /// Runs until nothing is written any more.
    pub(super) fn rest(&mut self, quiet: Span) -> Going {
        let mut calm = self.sim.elapsed();
        let (mut seen, mut since) = (self.sim.server().listen(), calm);
        loop {
            let end = Span(self.sim.elapsed().0 + Span::from_secs(60).0);
            self.until(end)?;
            let now = self.sim.elapsed();
            if self.sim.server().catch_up(&mut seen) {
                since = now;
            }
            if now.0 - since.0 >= quiet.0 {
                return Going::Continue(());
            }
            if now.0 - calm.0 > CIRCLE.1.0 && self.break_circle() {
                calm = now;
                self.figures.circles += 1;
            }
            if now.0 - calm.0 > PATIENCE.0 {
                let last = self.sim.server().last_written();
                let text = format!("still at work {PATIENCE} after all faults, last on {last}");
                return Going::Break(vec![restless(&self.sim, text)]);
            }
        }
    }

    /// Deletes the workloads of pods that preempt without end. Returns false if there are none.
    fn break_circle(&mut self) -> bool {
        let (times, within) = CIRCLE;
        let since = Instant(self.sim.now().0.saturating_sub(within.0));
        let witness = self.sim.witness();
        let preempting = witness.map_or_else(Vec::new, |w| w.preempting(since, times));
        let tables = self.sim.server().tables();
        let pods = tables.of::<Pod>().iter();
        let waiting = pods.filter(|p| p.node.is_none() && preempting.contains(&p.meta.uid));
        let makers: BTreeSet<Key> = waiting.map(|pod| maker(pod, tables)).collect();
        for key in &makers {
            // The workload may be gone already.
            let _gone = self.sim.delete(key, &DeleteOptions::KUBECTL);
        }
        !makers.is_empty()
    }
}

/// The topmost owner of a pod.
fn maker(pod: &Pod, tables: &Tables) -> Key {
    let mut found = Object::from(pod.clone());
    while let Some(owner) = found.meta().controller() {
        let above = Key {
            kind: Kind::of(&owner.kind),
            name: Name::new(&*found.meta().name.namespace, &*owner.name),
        };
        match tables.find(&above) {
            Some(above) => found = above,
            None => break,
        }
    }
    found.key()
}

fn restless(sim: &Simulation, text: String) -> Violation {
    Violation {
        rule: Rule::Rest,
        after: sim.elapsed(),
        actor: "the cluster".to_owned(),
        text,
    }
}

/// The objects of a world, admitted. `figures` counts them.
fn objects(manifests: Vec<Value>, figures: &mut Figures) -> Vec<Object> {
    let mut decoded: Vec<KubeObject> = Vec::new();
    for manifest in manifests {
        match KubeObject::of_json(manifest) {
            Ok(object) => decoded.push(object),
            Err(error) => figures.ask(Err(ApiError::Invalid(error.to_string().into()))),
        }
    }
    let classes = decoded.iter().filter_map(|object| match object {
        KubeObject::PriorityClass(class) => Some((**class).clone()),
        _ => None,
    });
    let classes: Vec<_> = classes.collect();
    let context = AdmissionContext {
        priority_classes: &PriorityClasses::new(classes.iter()),
        runtime_classes: &RuntimeClasses::default(),
        options: &AdmissionOptions::KUBERNETES_1_36,
    };
    let mut names = NameSource::new(0);
    let admitted = decoded.into_iter().filter_map(|object| {
        let answer = admit_object(object, &context, &mut names);
        figures.ask(answer.as_ref().map(drop).map_err(|errors| invalid(errors)));
        Some(Object::of_wire(answer.ok()?.0))
    });
    admitted.collect()
}

fn invalid(errors: &[FieldError]) -> ApiError {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    ApiError::Invalid(errors.join("; ").into())
}
