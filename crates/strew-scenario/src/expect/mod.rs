//! Judges the expectations of a scenario.
//!
//! Reading order: this file (a claim and its verdict), [`present`] (the cluster that is judged), [`subject`] (which pods
//! are meant), [`spread`], [`pods`], [`object`], [`events`], [`removed`], [`placement`], [`availability`] (ready pods
//! over time), [`workloads`], [`expression`].

pub mod availability;
pub mod events;
pub mod expression;
pub mod object;
pub mod placement;
pub mod pods;
pub mod present;
pub mod removed;
pub mod spread;
pub mod subject;
pub mod workloads;

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Budget, Object};
use strew_cel::Program;
use strew_manifest::advice::Advice;
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;
use strew_model::Span;
use strew_scheduler::Profile;
use strew_view::ground::Ground;

use availability::{Availability, Preemption};
use expression::Views;
pub use present::Present;
use workloads::{Exceeded, LossOf};

use crate::format::{Claim, Expectation, ObjectTarget, Step, Verb};
use crate::run::Plan;
use crate::story::STORY;

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is true.
    Yes,
    /// It is false.
    No,
    /// Nothing is there yet that could be judged, such as pods on nodes.
    Nothing,
    /// It could not be judged: its expression ended in an error, or its numbers leave pods out.
    Unknown,
}

/// The answer to a claim, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub answer: Answer,
    /// What was found; empty if there is nothing to add.
    pub why: String,
    /// Pods by domain; `None` if the claim counts none.
    pub counts: Option<spread::ByDomain>,
    /// What a person should know, whether the claim holds or not.
    pub findings: Vec<Finding>,
}

impl Verdict {
    pub(crate) fn new(holds: bool, why: impl Into<String>) -> Self {
        match holds {
            true => Self::of(Answer::Yes, why),
            false => Self::of(Answer::No, why),
        }
    }

    pub(crate) fn of(answer: Answer, why: impl Into<String>) -> Self {
        Self {
            answer,
            why: why.into(),
            counts: None,
            findings: Vec::new(),
        }
    }

    /// True if the claim was judged, and is true.
    pub fn holds(&self) -> bool {
        self.answer == Answer::Yes
    }

    /// Adds findings.
    pub(crate) fn with_findings(self, findings: Vec<Finding>) -> Self {
        Self { findings, ..self }
    }

    /// The verdict of a claim that only warns: it holds, and what broke it is a warning.
    fn into_warning(mut self) -> Self {
        if self.holds() {
            return self;
        }
        if self.findings.is_empty() {
            let warning = Finding::new(Severity::Warning, "expectation", self.why.clone());
            self.findings.push(warning);
        }
        for finding in &mut self.findings {
            finding.severity = finding.severity.max(Severity::Warning);
            let is_kept = finding.advice == Some(Advice::Keep);
            if finding.code == workloads::CONSTRAINT_EXCEEDED && !is_kept {
                finding.advise(Some(Advice::NotMoved));
            }
        }
        self.answer = Answer::Yes;
        self
    }

    /// Adds the counts that the verdict was made from.
    pub(crate) fn counted(self, counts: spread::ByDomain) -> Self {
        Self {
            counts: Some(counts),
            ..self
        }
    }

    /// The verdict on the opposite claim. What could not be judged is no success of that either.
    fn negated(mut self) -> Self {
        self.answer = match self.answer {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Nothing => Answer::Nothing,
            Answer::Unknown => Answer::Unknown,
        };
        if self.why.is_empty() && self.answer == Answer::No {
            "what must not hold does".clone_into(&mut self.why);
        }
        self
    }
}

/// The objects at the end of the previous step; `None` if no claim compares with them.
pub type Before = Option<Arc<Tables>>;

/// Judges the claims of one run.
pub struct Judge {
    programs: Vec<Option<Arc<Program>>>,
    views: Views,
    /// The objects at the end of the last step; `None` if no claim compares with them.
    before: Before,
    compares: bool,
    /// Which domains count, for these profiles. Built by the first claim that needs it, and again when the profiles
    /// change, as feature gates change them.
    ground: Option<(Vec<Profile>, Ground)>,
    /// The objects of a dump beside which something new comes, by uid.
    recorded: BTreeSet<Arc<str>>,
    short_before: workloads::ShortBefore,
    exceeded_before: workloads::ExceededBefore,
    /// What was exceeded at the end of the last step in which a claim asked, and in this one, if one has.
    exceeded_last: workloads::ExceededBefore,
    exceeded_this: Option<workloads::ExceededBefore>,
    /// The subjects of lasting remarks that were true when the step began, by uid.
    lasting_before: BTreeSet<Arc<str>>,
    /// The pods of subsets when the step began.
    subsets_before: workloads::SubsetPods,
    /// What the last judged claim about a loss found, for the facts of its step.
    losses: Vec<LossOf>,
    exceeded: Vec<Exceeded>,
    /// `Some` if the cluster did not come to rest in the step: how long it would have to be silent.
    restless: Option<Span>,
    /// True if the Scenario is the built-in story.
    is_built_in: bool,
    /// True if a verb of this step, or of one before, takes nodes or pods away.
    takes_away: bool,
    /// `None` if no claim asks for pods over time.
    availability: Option<Availability>,
    /// The number of claims of `always`.
    n_always: usize,
    /// The uids of the budgets that a claim of `always` judges so far.
    budgets_due: BTreeSet<Arc<str>>,
}

/// The facts of a step that its claims do not state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StepFacts {
    /// What a loss did to each workload, the worst first; empty unless a claim asks for it.
    pub losses: Vec<LossOf>,
    /// The hard constraints that pods exceed at rest; empty unless a claim asks for them.
    pub exceeded: Vec<Exceeded>,
    /// The pods that were deleted to make room for others; empty unless a claim asks whether workloads have their pods.
    pub preemptions: Vec<Preemption>,
}

impl Judge {
    /// Creates the judge of one run of the plan. Call it before the first step: it records what is short at second 0.
    pub fn new(plan: &Plan, present: &dyn Present) -> Self {
        let expectations = || crate::run::plan::expectations(&plan.scenario);
        let compares = expectations().any(|e| match &e.claim {
            Claim::Removed(_) => true,
            Claim::Placement(claim) => claim.moved_max.is_some(),
            _ => false,
        });
        let is_of_workloads = |e: &Expectation| {
            matches!(
                e.claim,
                Claim::RolledOut(_) | Claim::WithinBudget(_) | Claim::Survives(_)
            )
        };
        let is_over_time =
            |e: &Expectation| matches!(e.claim, Claim::RolledOut(_) | Claim::Survives(_));
        let judges_workloads =
            plan.scenario.expects_nothing() || expectations().any(is_of_workloads);
        let recorded = workloads::recorded(plan.objects(), &plan.scenario);
        let short_before = match judges_workloads {
            true => workloads::short_before(present.server(), present.profiles(), &recorded),
            false => workloads::ShortBefore::new(),
        };
        let availability = expectations()
            .any(is_over_time)
            .then(|| Availability::new(present.server()));
        let expressions = expectations().filter_map(|e| match &e.claim {
            Claim::Cel(text) => Some(text.as_str()),
            _ => None,
        });
        let asks_for_constraints =
            expectations().any(|e| matches!(e.claim, Claim::WithinConstraints(_)));
        let mut judge = Self {
            programs: plan.programs.clone(),
            views: Views::new(expressions),
            before: None,
            compares,
            ground: None,
            recorded,
            short_before,
            exceeded_before: Default::default(),
            exceeded_last: Default::default(),
            exceeded_this: None,
            lasting_before: BTreeSet::new(),
            subsets_before: Default::default(),
            losses: Vec::new(),
            exceeded: Vec::new(),
            restless: None,
            is_built_in: plan.scenario.story() == Some(STORY),
            takes_away: false,
            availability,
            n_always: plan.scenario.always.len(),
            budgets_due: BTreeSet::new(),
        };
        if asks_for_constraints {
            let ground = judge.ground(present);
            judge.exceeded_before = workloads::exceeded_now(present.server(), ground);
        }
        judge
    }

    /// Which domains count at present.
    fn ground(&mut self, present: &dyn Present) -> &mut Ground {
        let server = present.server();
        let (names, profiles) = (present.names(), present.profiles());
        self.ground.take_if(|(of, _)| *of != profiles);
        let begin = || (profiles.to_vec(), Ground::new(server, names, profiles));
        let (_, ground) = self.ground.get_or_insert_with(begin);
        ground.follow(server);
        ground
    }

    /// Begins this step; none of its verbs is done.
    pub fn begin_step(&mut self, present: &dyn Present, step: &Step) {
        self.restless = None;
        self.takes_away |= step.verbs.iter().any(|verb| takes_away(&verb.verb));
        let Some(availability) = &mut self.availability else {
            return;
        };
        let server = present.server();
        self.lasting_before = workloads::lasting(server.tables());
        self.subsets_before = workloads::subset_pods(server.tables());
        self.losses.clear();
        self.exceeded.clear();
        if let Some(exceeded) = self.exceeded_this.take() {
            self.exceeded_last = exceeded;
        }
        availability.begin_step(server, present.elapsed());
    }

    /// The verbs of the step are done, and nothing else has happened since; these nodes are lost.
    pub fn verbs_done(&mut self, present: &dyn Present, lost: &BTreeSet<Arc<str>>) {
        if let Some(availability) = &mut self.availability {
            availability.verbs_done(present.server(), lost, present.elapsed());
        }
    }

    /// Takes in an instant. Call it at the end of each one that changes something.
    pub fn observe(&mut self, present: &dyn Present) {
        if let Some(availability) = &mut self.availability {
            availability.observe(present.server(), present.elapsed());
        }
    }

    /// The facts of the step so far that its claims do not state.
    pub fn facts(&mut self) -> StepFacts {
        let preemptions = self.availability.as_ref().map(Availability::preemptions);
        StepFacts {
            losses: std::mem::take(&mut self.losses),
            exceeded: std::mem::take(&mut self.exceeded),
            preemptions: preemptions.unwrap_or_default().to_vec(),
        }
    }

    /// The cluster did not come to rest: it was never silent for so long.
    pub fn no_rest(&mut self, quiet: Span) {
        self.restless = Some(quiet);
    }

    /// From now on claims of `always` judge the present budgets, also those that never had their pods: the cluster has
    /// come to rest, or the run is over.
    pub fn judge_all_budgets(&mut self, present: &dyn Present) {
        let budgets = present.server().tables().of::<Budget>();
        let uids = budgets.iter().map(|budget| Arc::clone(&budget.meta.uid));
        self.budgets_due.extend(uids);
    }

    /// Ends a step: later claims compare with the objects as they are now.
    pub fn end_step(&mut self, present: &dyn Present) {
        if self.compares {
            self.before = Some(Arc::new(present.server().tables().clone()));
        }
    }

    /// The objects that claims compare with.
    pub fn before(&self) -> Before {
        self.before.clone()
    }

    /// Judges whether the API server creates the pods that workloads ask for.
    pub fn created(&self, present: &dyn Present) -> Verdict {
        let profiles = present.profiles();
        workloads::created(present.server(), profiles, &self.short_before)
    }

    /// Judges a claim on the present objects, compared with `before`. `program` is the index of the expectation among
    /// all of the plan's, of which those of `always` are the first.
    pub fn judge(
        &mut self,
        present: &dyn Present,
        expectation: &Expectation,
        program: usize,
        before: &Before,
    ) -> Verdict {
        let verdict = match &expectation.claim {
            Claim::Spread(claim) => {
                let ground = self.ground(present);
                spread::judge(present.server().tables(), ground, claim)
            }
            Claim::Pods(claim) => pods::judge(present, claim),
            Claim::Object(partial) => object::judge(present, partial),
            Claim::Events(claim) => events::judge(present, claim),
            Claim::Removed(claim) => removed::judge(present, claim, before.as_deref()),
            Claim::Placement(claim) => placement::judge(present, claim, before.as_deref()),
            Claim::RolledOut(of) => self.rolled_out(present, of.as_ref()),
            Claim::Survives(_) if !self.takes_away => Verdict::of(
                Answer::Nothing,
                "no verb so far takes nodes or pods away, so there is nothing to survive",
            ),
            Claim::Survives(of) => match &self.availability {
                Some(availability) => {
                    let leave = [&self.short_before, &self.recorded];
                    let (verdict, losses) =
                        workloads::survives(present, of.as_ref(), leave, availability);
                    self.losses = losses;
                    verdict
                }
                None => Verdict::new(false, "no pod was followed"),
            },
            Claim::WithinConstraints(of) => {
                let before = std::mem::take(&mut self.exceeded_before);
                let availability = self.availability.take();
                let last = std::mem::take(&mut self.exceeded_last);
                // A constraint that was exceeded when the step began is not the scale-down's.
                let is_by_scale_down = |object: &Object, by: &str| {
                    let record = availability.as_ref();
                    let record = record.and_then(|all| all.of(&object.meta().uid));
                    let is_smaller = record.is_some_and(|record| record.wanted < record.before);
                    is_smaller && !last.contains(&(object.key(), by.to_owned()))
                };
                // The built-in story asks for it of whatever files there are.
                let is_built_in = self.is_built_in;
                let server = present.server();
                let ground = self.ground(present);
                let (verdict, exceeded) = workloads::within_constraints(
                    server,
                    ground,
                    of.as_ref(),
                    &before,
                    is_by_scale_down,
                );
                let nothing = match exceeded.is_empty() && !is_built_in {
                    true => workloads::unconstrained(server.tables(), ground, of.as_ref()),
                    false => None,
                };
                let verdict = nothing.map_or(verdict, |why| Verdict::of(Answer::Nothing, why));
                self.exceeded_before = before;
                self.exceeded_last = last;
                let keys = exceeded.iter().map(|one| (one.of.clone(), one.by.clone()));
                self.exceeded_this = Some(keys.collect());
                self.availability = availability;
                self.exceeded = exceeded;
                verdict
            }
            Claim::WithinBudget(of) => {
                let tables = present.server().tables();
                let is_always = program < self.n_always;
                if is_always {
                    let met = workloads::budgets_met(tables);
                    self.budgets_due.extend(met);
                }
                let only = is_always.then_some(&self.budgets_due);
                workloads::within_budget(tables, of.as_ref(), &self.short_before, only)
            }
            Claim::Cel(_) => match self.programs.get(program).and_then(Option::as_deref) {
                Some(program) => self.views.judge(present, program),
                None => Verdict::of(Answer::Unknown, "the expression was not compiled"),
            },
        };
        let verdict = match expectation.is_negated {
            true => verdict.negated(),
            false => verdict,
        };
        match expectation.warns {
            true => verdict.into_warning(),
            false => verdict,
        }
    }

    fn rolled_out(&self, present: &dyn Present, of: Option<&ObjectTarget>) -> Verdict {
        let Some(availability) = &self.availability else {
            return Verdict::new(false, "no pod was followed");
        };
        let (server, before) = (present.server(), &self.short_before);
        let profiles = present.profiles();
        let restless = self.restless.map(|quiet| (present.elapsed(), quiet));
        let leave = [before, &self.recorded];
        let verdict = workloads::rolled_out(server, profiles, of, leave, (availability, restless));
        match of {
            Some(_) => verdict,
            None => verdict.with_findings(workloads::of_rollout(
                server.tables(),
                [before, &self.lasting_before],
                &self.subsets_before,
                availability,
                present.elapsed(),
            )),
        }
    }
}

/// True for a verb that takes nodes or pods away from workloads.
fn takes_away(verb: &Verb) -> bool {
    matches!(
        verb,
        Verb::Lose(_) | Verb::Shift(_) | Verb::Drain { .. } | Verb::Delete(_) | Verb::Taint(_)
    )
}
