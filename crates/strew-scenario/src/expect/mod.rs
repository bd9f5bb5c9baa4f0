//! Judges the expectations of a scenario.
//!
//! Reading order: this file (a claim and its verdict), [`subject`] (which pods are meant), [`spread`], [`pods`],
//! [`object`], [`events`], [`removed`], [`placement`], [`workloads`], [`expression`].

pub mod events;
pub mod expression;
pub mod object;
pub mod placement;
pub mod pods;
pub mod removed;
pub mod spread;
pub mod subject;
pub mod workloads;

use std::sync::Arc;

use strew_apiserver::Tables;
use strew_cel::Program;
use strew_scheduler::Profile;
use strew_sim::{Blueprint, Simulation};
use strew_view::ground::Ground;

use expression::Views;

use crate::format::{Claim, Expectation};
use crate::run::Plan;

/// Whether a claim is true, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// True if the claim holds.
    pub holds: bool,
    /// What was found; empty if there is nothing to add.
    pub why: String,
    /// Pods by domain; `None` if the claim counts none.
    pub counts: Option<spread::ByDomain>,
}

impl Verdict {
    pub(crate) fn new(holds: bool, why: impl Into<String>) -> Self {
        Self {
            holds,
            why: why.into(),
            counts: None,
        }
    }

    /// Adds the counts that the verdict was made from.
    pub(crate) fn counted(self, counts: spread::ByDomain) -> Self {
        Self {
            counts: Some(counts),
            ..self
        }
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
    short_before: workloads::ShortBefore,
}

impl Judge {
    /// Creates the judge of one run of the plan. Call it before the first step: it records what is short at second 0.
    pub fn new(plan: &Plan, simulation: &Simulation) -> Self {
        let expectations = || crate::run::plan::expectations(&plan.scenario);
        let compares = expectations().any(|e| match &e.claim {
            Claim::Removed(_) => true,
            Claim::Placement(claim) => claim.moved_max.is_some(),
            _ => false,
        });
        let is_of_workloads =
            |e: &Expectation| matches!(e.claim, Claim::RolledOut(_) | Claim::WithinBudget(_));
        let judges_workloads =
            plan.scenario.expects_nothing() || expectations().any(is_of_workloads);
        let short_before = match judges_workloads {
            true => workloads::short_before(
                simulation.server(),
                &simulation.blueprint().profiles,
                plan.objects(),
            ),
            false => workloads::ShortBefore::new(),
        };
        Self {
            programs: plan.programs.clone(),
            views: Views::default(),
            before: None,
            compares,
            ground: None,
            short_before,
        }
    }

    /// Ends a step: later claims compare with the objects as they are now.
    pub fn end_step(&mut self, simulation: &Simulation) {
        if self.compares {
            self.before = Some(Arc::new(simulation.server().tables().clone()));
        }
    }

    /// The objects that claims compare with.
    pub fn before(&self) -> Before {
        self.before.clone()
    }

    /// Judges whether the API server creates the pods that workloads ask for.
    pub fn created(&self, simulation: &Simulation) -> Verdict {
        let profiles = &simulation.blueprint().profiles;
        workloads::created(simulation.server(), profiles, &self.short_before)
    }

    /// Judges a claim on the present objects, compared with `before`. `program` is the index of the expectation among
    /// all of the plan's.
    pub fn judge(
        &mut self,
        simulation: &Simulation,
        expectation: &Expectation,
        program: usize,
        before: &Before,
    ) -> Verdict {
        let verdict = match &expectation.claim {
            Claim::Spread(claim) => {
                let server = simulation.server();
                let Blueprint {
                    names, profiles, ..
                } = simulation.blueprint();
                self.ground.take_if(|(of, _)| of != profiles);
                let begin = || (profiles.clone(), Ground::new(server, names, profiles));
                let (_, ground) = self.ground.get_or_insert_with(begin);
                ground.follow(server, |_, _| {});
                spread::judge(server.tables(), ground, claim)
            }
            Claim::Pods(claim) => pods::judge(simulation, &simulation.blueprint().profiles, claim),
            Claim::Object(partial) => object::judge(simulation, partial),
            Claim::Events(claim) => events::judge(simulation, claim),
            Claim::Removed(claim) => removed::judge(simulation, claim, before.as_deref()),
            Claim::Placement(claim) => placement::judge(simulation, claim, before.as_deref()),
            Claim::RolledOut(of) => workloads::rolled_out(
                simulation.server(),
                &simulation.blueprint().profiles,
                of.as_ref(),
                &self.short_before,
            ),
            Claim::WithinBudget(of) => workloads::within_budget(
                simulation.server().tables(),
                of.as_ref(),
                &self.short_before,
            ),
            Claim::Cel(_) => match self.programs.get(program).and_then(Option::as_deref) {
                Some(program) => self.views.judge(simulation, program),
                None => Verdict::new(false, "the expression was not compiled"),
            },
        };
        match expectation.is_negated {
            true => Verdict {
                holds: !verdict.holds,
                ..verdict
            },
            false => verdict,
        }
    }
}
