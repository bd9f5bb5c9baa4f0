//! Whether what a scenario expects is so.
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
    /// Whether it is as expected.
    pub holds: bool,
    /// What was found, where that is worth saying.
    pub why: String,
    /// Pods by domain, where those were counted.
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

    /// The same, found in these counts.
    pub(crate) fn counted(self, counts: spread::ByDomain) -> Self {
        Self {
            counts: Some(counts),
            ..self
        }
    }
}

/// What was there at the end of a step.
pub type Before = Option<Arc<Tables>>;

/// Judges the claims of one life.
pub struct Judge {
    programs: Vec<Option<Arc<Program>>>,
    views: Views,
    /// What was there at the end of the last step, if some claim compares with it.
    before: Before,
    compares: bool,
    /// From the first claim on that asks which domains count, with the profiles that it asks by: feature gates change
    /// them.
    ground: Option<(Vec<Profile>, Ground)>,
    short_before: workloads::ShortBefore,
}

impl Judge {
    /// A judge of a plan's claims about a life of it, of which nothing was played yet.
    pub fn new(plan: &Plan, simulation: &Simulation) -> Self {
        let expectations = || crate::run::plan::expectations(&plan.scenario);
        let compares = expectations().any(|e| match &e.claim {
            Claim::Removed(_) => true,
            Claim::Placement(claim) => claim.moved_max.is_some(),
            _ => false,
        });
        let is_of_workloads =
            |e: &Expectation| matches!(e.claim, Claim::RolledOut(_) | Claim::WithinBudget(_));
        let short_before = match expectations().any(is_of_workloads) {
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

    /// A step is over: later claims compare with it.
    pub fn end_step(&mut self, simulation: &Simulation) {
        if self.compares {
            self.before = Some(Arc::new(simulation.server().tables().clone()));
        }
    }

    /// What claims compare with now.
    pub fn before(&self) -> Before {
        self.before.clone()
    }

    /// Judges a claim as things are, compared with what was `before`; `program` is its place among all claims.
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
