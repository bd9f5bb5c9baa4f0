//! What comes of a life: steps, expectations, verbs that were refused; and who is told on the way.

use std::ops::ControlFlow;

use strew_model::time::Span;
use strew_sim::{Simulation, Stuck};

use crate::expect::spread::ByDomain;
use crate::format::Step;

/// Told of each step when it is over, and of each verb that was done.
pub trait Watcher {
    /// A life begins; nobody has acted.
    fn begin(&mut self, simulation: &mut Simulation) {
        let _ = simulation;
    }

    /// A step begins; nothing of it was done.
    fn begin_step(&mut self, number: usize, step: &Step, simulation: &Simulation) {
        let _ = (number, step, simulation);
    }

    /// A step is over, and what it expects at once was judged.
    fn step(
        &mut self,
        number: usize,
        step: &Step,
        result: &StepResult,
        simulation: &Simulation,
    ) -> ControlFlow<()> {
        let _ = (number, step, result, simulation);
        ControlFlow::Continue(())
    }

    /// An instant is over; everybody has come to rest.
    fn instant(&mut self, simulation: &Simulation) -> ControlFlow<()> {
        let _ = simulation;
        ControlFlow::Continue(())
    }

    /// A verb was done, or refused.
    fn verb(&mut self, at: Span, text: &str, refused: Option<&str>) {
        let _ = (at, text, refused);
    }

    /// The life is over, at its end or before.
    fn end(&mut self, simulation: &Simulation) {
        let _ = simulation;
    }
}

impl Watcher for () {}

/// What came of one expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Its text.
    pub text: String,
    /// Whether it held.
    pub held: bool,
    /// The run was ended, as somebody wished, before it was decided.
    pub is_open: bool,
    /// Why not, or what was found; empty if there is nothing to add.
    pub why: String,
    /// When that was decided.
    pub at: Span,
    /// What happened at that instant, as far as it concerns the claim; for claims that must always hold.
    pub cause: Option<String>,
    /// Pods by domain, as they were counted for it.
    pub counts: Option<ByDomain>,
    /// It had time to come true, and was true before the verbs of its step, and right after them: it says nothing of
    /// the step.
    pub held_at_once: bool,
}

/// What came of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepResult {
    /// When its verbs were done.
    pub began: Span,
    /// When it was over: the last write of a cluster that came to rest.
    pub ended: Span,
    /// How it ended.
    pub state: StepState,
    /// The domains and nodes that were chosen for targets such as `zone=<most pods>`.
    pub chosen: Vec<String>,
    /// What it expects, in the order of the file.
    pub expectations: Vec<Outcome>,
    /// Verbs that the API server refused, and why; or that gave up, as a drain does.
    pub refused: Vec<Refused>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// Its verbs were done; it waits for nothing.
    Done,
    /// The cluster came to rest.
    AtRest,
    /// The cluster did not come to rest in time.
    NotAtRest,
    /// The run was ended in its midst.
    Cut,
}

/// A verb that was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its text.
    pub text: String,
    /// Why.
    pub why: String,
    /// Whether that is a breach: a drain that gives up is told, and no more.
    pub is_breach: bool,
}

/// One life.
#[derive(Debug)]
pub struct Played {
    /// Per step that was reached.
    pub steps: Vec<StepResult>,
    /// What must always hold.
    pub always: Vec<Outcome>,
    /// When it ended.
    pub ended: Span,
    /// Whether the watcher ended it before its time.
    pub is_partial: bool,
    /// Whether it was ended earlier than the scenario says, as was asked.
    pub is_cut: bool,
}

impl Played {
    /// Whether every expectation held.
    pub fn held(&self) -> bool {
        let mut steps = self.steps.iter();
        self.always.iter().all(|outcome| outcome.held)
            && steps.all(|step| {
                step.expectations.iter().all(|outcome| outcome.held)
                    && !step.refused.iter().any(|refused| refused.is_breach)
            })
    }

    /// The first breach in the order of time: of which step, unless of `always`.
    pub fn first_breach(&self) -> Option<(Option<usize>, &Outcome)> {
        let always = self.always.iter().map(|outcome| (None, outcome));
        let steps = self.steps.iter().enumerate();
        let steps = steps.flat_map(|(i, step)| step.expectations.iter().map(move |o| (Some(i), o)));
        let broken = always
            .chain(steps)
            .filter(|(_, outcome)| !outcome.held && !outcome.is_open);
        broken.min_by_key(|(step, outcome)| (outcome.at, *step))
    }
}

/// A life that came to no end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Some instant never ended, or the cluster grew beyond all bounds.
    #[error(transparent)]
    Stuck(#[from] Stuck),
}
