//! The results of a run (steps, outcomes, refused verbs), and the trait of its watchers.

use std::ops::ControlFlow;

use strew_controllers::drain::Left;
use strew_manifest::finding::Finding;
use strew_model::time::Span;
use strew_sim::{Simulation, Stuck};

use crate::expect::spread::ByDomain;
use crate::expect::{Answer, StepFacts, Verdict};
use crate::format::Step;

/// Receives each step when it ends, and each verb when it is done.
pub trait Watcher {
    /// The run begins; nothing has happened yet.
    fn begin(&mut self, simulation: &mut Simulation) {
        let _ = simulation;
    }

    /// A step begins; none of its verbs is done.
    fn begin_step(&mut self, number: usize, step: &Step, simulation: &Simulation) {
        let _ = (number, step, simulation);
    }

    /// A step is over, and its immediate expectations are judged.
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

    /// An instant is over: no component has work left in it. `Break` ends the run.
    fn instant(&mut self, simulation: &Simulation) -> ControlFlow<()> {
        let _ = simulation;
        ControlFlow::Continue(())
    }

    /// A verb was done, or was refused with this reason.
    fn verb(&mut self, at: Span, text: &str, refused: Option<&str>) {
        let _ = (at, text, refused);
    }

    /// The run is over, completed or not.
    fn end(&mut self, simulation: &Simulation) {
        let _ = simulation;
    }
}

impl Watcher for () {}

/// The text of the outcome that the last step of a Scenario without expectations has. It is decided when the run ends.
pub const POD_CREATION: &str = "at the end, no pod of a workload is refused at creation";

/// The result of one expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectationOutcome {
    /// Its text.
    pub text: String,
    /// Whether it held.
    pub held: bool,
    /// True if it could not be judged: its expression ended in an error, or its numbers leave pods out.
    pub is_unknown: bool,
    /// True if the run was ended early, before the expectation was decided.
    pub is_open: bool,
    /// Why it failed, or what was found; empty if there is nothing to add.
    pub why: String,
    /// When it was decided.
    pub at: Span,
    /// The last event of the instant in which a claim of `always` failed.
    pub cause: Option<String>,
    /// Pods by domain, as counted for the claim.
    pub counts: Option<ByDomain>,
    /// What a person should know, whether it held or not.
    pub findings: Vec<Finding>,
    /// True if the claim had time to become true, but was already true before the verbs of its step and right after
    /// them. Such a claim does not test the step.
    pub held_at_once: bool,
}

impl ExpectationOutcome {
    /// The outcome of a claim with this text, judged at this time.
    pub(super) fn of(text: &str, verdict: Verdict, at: Span) -> Self {
        Self {
            text: text.to_owned(),
            held: verdict.holds(),
            is_unknown: verdict.answer == Answer::Unknown,
            is_open: false,
            why: verdict.why,
            at,
            cause: None,
            counts: verdict.counts,
            findings: verdict.findings,
            held_at_once: false,
        }
    }

    /// The outcome of a claim whose step was cut.
    pub(super) fn undecided(text: &str, at: Span) -> Self {
        Self {
            text: text.to_owned(),
            held: false,
            is_unknown: false,
            is_open: true,
            why: String::new(),
            at,
            cause: None,
            counts: None,
            findings: Vec::new(),
            held_at_once: false,
        }
    }
}

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepResult {
    /// When its verbs were done.
    pub began: Span,
    /// When it ended; if the cluster came to rest, the time of the last write.
    pub ended: Span,
    /// How it ended.
    pub state: StepState,
    /// The domains and nodes chosen for targets such as `zone=<most pods>`.
    pub chosen: Vec<String>,
    /// The outcomes of its expectations, in the order of the file. [`POD_CREATION`] is the only outcome of a Scenario
    /// that expects nothing.
    pub expectations: Vec<ExpectationOutcome>,
    /// Verbs that the API server refused, or that gave up, as a drain does, with the reasons.
    pub refused: Vec<Refused>,
    /// Its facts that no expectation states.
    pub facts: StepFacts,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepState {
    /// Its verbs are done; it does not wait for rest.
    Done,
    /// The cluster came to rest.
    AtRest,
    /// The cluster did not come to rest in time.
    NotAtRest,
    /// The run was ended during the step.
    Cut,
}

/// A verb that was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its text.
    pub text: String,
    /// Why.
    pub why: String,
    /// When it was refused, or given up.
    pub at: Span,
    /// True if the refusal fails the run; false for a drain that must give up, and does, or whose time limit is over.
    pub is_breach: bool,
    /// The pods that a drain left on the nodes that it gave up.
    pub left: Vec<Left>,
}

/// The results of one run.
#[derive(Debug)]
pub struct Played {
    /// Per step that began.
    pub steps: Vec<StepResult>,
    /// The outcomes of the expectations of `always`.
    pub always: Vec<ExpectationOutcome>,
    /// When it ended.
    pub ended: Span,
    /// True if the watcher ended it early.
    pub is_partial: bool,
    /// True if it ended at the requested time, before the scenario's end.
    pub is_cut: bool,
}

impl Played {
    /// True if every expectation held.
    pub fn held(&self) -> bool {
        let mut steps = self.steps.iter();
        self.always.iter().all(|outcome| outcome.held)
            && steps.all(|step| {
                step.expectations.iter().all(|outcome| outcome.held)
                    && !step.refused.iter().any(|refused| refused.is_breach)
            })
    }

    /// The first failure in the order of time, with the index of its step; `None` as the index for `always`.
    pub fn first_breach(&self) -> Option<(Option<usize>, &ExpectationOutcome)> {
        let always = self.always.iter().map(|outcome| (None, outcome));
        let steps = self.steps.iter().enumerate();
        let steps = steps.flat_map(|(i, step)| step.expectations.iter().map(move |o| (Some(i), o)));
        let broken = always
            .chain(steps)
            .filter(|(_, outcome)| !outcome.held && !outcome.is_open);
        broken.min_by_key(|(step, outcome)| (outcome.at, *step))
    }
}

/// A run that could not continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// An instant never ended, or the cluster grew beyond its bounds.
    #[error(transparent)]
    Stuck(#[from] Stuck),
}
