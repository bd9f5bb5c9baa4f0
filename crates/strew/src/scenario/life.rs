//! Plays one run to look at it at one moment.

use std::ops::ControlFlow;

use anyhow::anyhow;
use strew_apiserver::object::Kind;
use strew_apiserver::server::EventLog;
use strew_manifest::finding::Finding;
use strew_manifest::read::Located;
use strew_model::{Instant, Span};
use strew_scenario::format::Step;
use strew_scenario::run::{RunError, Watcher, play};
use strew_sim::Simulation;
use strew_suite::ready::largest;

use super::{BASE, PlayArgs, Question, ScenarioArgs, is_in, say};
use crate::context::Context;
use crate::failure::Failure;
use crate::inputs::Input;
use crate::memory::Need;
use crate::output::Format;
use crate::progress::Progress;
use crate::world::WorldArgs;
use strew_scenario::story;
use strew_suite::clock::clock;
use strew_suite::dump;
use strew_suite::suite::{self, Cast, Suite};
use strew_view::facts::Facts;
use strew_view::moment::{Frame, Moment};

/// When to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before any component has acted: as the files are.
    Start,
    /// This long after the start.
    At(Span),
    /// At the end.
    End,
}

/// A cluster at a moment of a run, or as the files say it is, which nothing is played for.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) moment: Moment<'a>,
    /// The events of the run.
    pub(crate) events: &'a EventLog,
    /// Second 0.
    pub(crate) start: Instant,
    pub(crate) now: Instant,
}

impl<'a> Seen<'a> {
    /// The present moment of a simulation.
    pub(crate) fn of(simulation: &'a Simulation) -> Self {
        Self {
            moment: strew_scenario::moment(simulation),
            events: simulation.server().events(),
            start: simulation.start(),
            now: simulation.now(),
        }
    }
}

/// The function that looks.
pub(crate) type Look<'a> = &'a mut dyn FnMut(Seen<'_>, &mut Frame);

/// A variant of a Scenario with a seed, which can be played repeatedly with equal results.
pub(crate) struct Life {
    name: String,
    cast: Cast,
    seed: u64,
    is_story: bool,
    findings: Vec<Finding>,
}

/// The run of a Scenario's variant, or of other files up to their deployment; `None` if the files have errors, which
/// were reported. Nodes are made up only if they are asked for. `verb` is what the command does, in errors.
///
/// # Errors
/// There are several Scenarios, or files without a node.
pub(crate) fn looked_at(
    world: &WorldArgs,
    variant: Option<String>,
    names: &[String],
    inputs: Vec<Input>,
    output: Option<Format>,
    verb: Option<&'static str>,
    context: &Context,
) -> Result<Option<Life>, Failure> {
    let mut world = world.clone();
    let is_shaped = world.nodes.is_shaped() || world.nodes.nodes.is_some();
    if !is_shaped && !is_in(&inputs) {
        // An explanation needs real nodes; made-up ones must be asked for.
        world.nodes.nodes = Some(0);
    }
    let world = &world;
    let play = PlayArgs {
        variant: vec![variant.unwrap_or_else(|| BASE.to_owned())],
        // For manifests, the explanation is about their deployment.
        until: (!is_in(&inputs)).then(|| story::FIRST_STEP.to_owned()),
        ..PlayArgs::default()
    };
    let scenario = ScenarioArgs {
        play,
        ..ScenarioArgs::default()
    };
    let question = Question {
        output,
        verb,
        ..Question::of(&scenario, world, names)
    };
    let life = life(&question, inputs, context)?;
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

/// Files as a recorded cluster, which nothing is played for; `None` if they have errors, which were reported.
///
/// # Errors
/// There are several Scenarios, or arguments that contradict each other.
#[cfg(feature = "cluster")]
pub(crate) fn recorded(
    world: &WorldArgs,
    names: &[String],
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<Life>, Failure> {
    let mut world = world.clone();
    world.nodes.nodes = Some(0);
    let scenario = ScenarioArgs::default();
    let question = Question::of(&scenario, &world, names);
    life(&question, inputs, context)
}

/// The run that a question names; `None` if the files have errors, which were reported.
///
/// # Errors
/// There are several Scenarios.
fn life(
    question: &Question<'_>,
    inputs: Vec<Input>,
    context: &Context,
) -> Result<Option<Life>, Failure> {
    let mut options = question.options(context)?;
    options.keep.objects = true;
    let staged = suite::stage(&options, inputs)?;
    say(&staged, question, context)?;
    let Some((suites, findings)) = staged.sound() else {
        return Ok(None);
    };
    let files: Vec<String> = suites.iter().map(|suite| suite.file.clone()).collect();
    let Ok([suite]) = <[Suite; 1]>::try_from(suites) else {
        let error = anyhow!("{} files hold a Scenario each", files.len());
        let hint = format!("name one of them: {}", files.join(", "));
        return Err(Failure::input(error).with_hint(hint));
    };
    question.world.memory.check(Need {
        size: largest(std::slice::from_ref(&suite)),
        n_at_once: 1,
        n_runs: 1,
        n_kept: 1,
        n_steps: 1,
        is_page: false,
    })?;
    let cast = suite.variants.into_iter().next();
    Ok(cast.and_then(|cast| {
        let seed = cast.seeds.iter().next()?;
        Some(Life {
            name: format!(
                "{} (variant {}, seed {seed})",
                suite.file, cast.variant.name
            ),
            cast,
            seed,
            is_story: suite.is_story,
            findings,
        })
    }))
}

impl Life {
    /// What a person should know about the files.
    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The objects of the files.
    pub(crate) fn objects(&self) -> &[Located] {
        &self.cast.variant.objects
    }

    /// True if the files are a dump of a cluster with this pod, and nothing that changes it: pods that are to be created
    /// have no uid yet.
    pub(crate) fn is_recorded(&self, uid: &str) -> bool {
        let objects = self.cast.plan.objects().iter();
        let mut pods = objects.filter(|object| object.kind() == Kind::Pod);
        self.applies_nothing() && pods.any(|pod| *pod.meta().uid == *uid)
    }

    /// True if the files are a cluster with nodes, and nothing that changes it.
    #[cfg(feature = "cluster")]
    pub(crate) fn is_dump(&self) -> bool {
        self.applies_nothing() && self.has_nodes()
    }

    fn applies_nothing(&self) -> bool {
        let first = self.cast.variant.scenario.timeline.first();
        self.is_story && first.is_none_or(|step| step.verbs.is_empty())
    }

    /// True if it has nodes at second 0, or is a Scenario, which may get them later.
    pub(crate) fn has_nodes(&self) -> bool {
        let mut objects = self.cast.plan.objects().iter();
        !self.is_story || objects.any(|object| object.kind() == Kind::Node)
    }

    /// Plays until then, and calls `look` once.
    ///
    /// # Errors
    /// An instant that does not end, or a run that ends before that moment.
    pub(crate) fn look(
        &self,
        when: When,
        progress: &Progress,
        look: Look<'_>,
    ) -> Result<(), Failure> {
        let mut frame = self.cast.frame(&[]);
        if when == When::Start {
            let (objects, blueprint) = (self.cast.plan.objects(), self.cast.plan.blueprint());
            let start = Simulation::start_of(objects);
            let facts = Facts::of_objects(objects, start, &blueprint.names, &blueprint.profiles);
            let seen = Seen {
                moment: facts.moment(),
                events: &EventLog::default(),
                start,
                now: start,
            };
            look(seen, &mut frame);
            return Ok(());
        }
        let end = self.cast.variant.scenario.end();
        let until = match when {
            When::At(at) if at > end && !self.is_story => {
                let error = anyhow!("{} ends after {}", self.name, clock(end));
                let hint =
                    "--at is a time within the run; spec.until of the Scenario makes it longer";
                return Err(Failure::input(error).with_hint(hint));
            }
            When::At(at) => Some(at),
            _ => None,
        };
        let mut looker = Looker {
            progress,
            look: &mut |simulation| look(Seen::of(simulation), &mut frame),
        };
        // Manifests have no end.
        let longer = until.filter(|_| self.is_story);
        let longer = longer.map(|until| self.cast.plan.lasting(until));
        let plan = longer.as_ref().unwrap_or(&self.cast.plan);
        play(plan, self.seed, until, &mut looker)
            .map(drop)
            .map_err(|RunError::Stuck(source)| {
                let name = self.name.clone();
                strew_suite::failure::Failure::Stuck { name, source }.into()
            })
    }
}

struct Looker<'a> {
    progress: &'a Progress,
    look: &'a mut dyn FnMut(&Simulation),
}

impl Watcher for Looker<'_> {
    fn begin_step(&mut self, _number: usize, step: &Step, simulation: &Simulation) {
        let name = step.name.as_deref().unwrap_or("playing");
        self.progress.show(name, simulation.elapsed());
    }

    fn instant(&mut self, simulation: &Simulation) -> ControlFlow<()> {
        self.progress.show("playing", simulation.elapsed());
        ControlFlow::Continue(())
    }

    fn end(&mut self, simulation: &Simulation) {
        (self.look)(simulation);
    }
}
