//! What is kept of one run.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use strew_model::Span;
use strew_scenario::format::Step;
use strew_scenario::run::Watcher;
use strew_sim::Simulation;

use super::decision::{self, Decision};
use super::log::Log;
use crate::report::{self, MaxSkew, WorkloadReport};
use strew_view::moment::Frame;
use strew_view::skews::Skews;
use strew_view::view::View;

/// Workloads by step, and their largest skews.
pub(super) struct Ledger {
    pub(super) frame: Frame,
    pub(super) steps: Vec<Vec<WorkloadReport>>,
    /// `None` before the run begins.
    pub(super) skews: Option<Skews>,
}

/// Listens to a run, and ends it when somebody wants that.
pub(super) struct Recorder<'a> {
    pub(super) interrupt: &'a AtomicBool,
    /// All that happens, if somebody wants to read it.
    pub(super) log: Option<Log>,
    /// What workloads come to, if the report tells it.
    pub(super) ledger: Option<Ledger>,
    /// What the schedulers decide, if somebody wants to read it.
    pub(super) decisions: Option<Vec<Decision>>,
}

impl Ledger {
    /// The largest skews of all workloads.
    pub(super) fn max_skews(&self) -> Vec<MaxSkew> {
        let all = &self.frame.workloads.list;
        let places: Vec<usize> = (0..all.len()).collect();
        let skews = self.skews.as_ref();
        skews.map_or_else(Vec::new, |skews| report::max_skews(all, &places, skews))
    }
}

impl Recorder<'_> {
    fn listen(&mut self, simulation: &Simulation) -> ControlFlow<()> {
        if let Some(log) = &mut self.log {
            log.listen(simulation);
        }
        if let Some(ledger) = &mut self.ledger {
            let server = simulation.server();
            let Ledger { frame, skews, .. } = ledger;
            match skews {
                Some(skews) => skews.observe(server, frame),
                None => *skews = Some(Skews::new(server, frame)),
            }
        }
        match self.interrupt.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Watcher for Recorder<'_> {
    fn begin(&mut self, simulation: &mut Simulation) {
        if let Some(log) = &mut self.log {
            log.follow(simulation);
        }
    }

    fn step(&mut self, _number: usize, _step: &Step, simulation: &Simulation) -> ControlFlow<()> {
        if let Some(ledger) = &mut self.ledger {
            let view = View::of(strew_scenario::moment(simulation), &mut ledger.frame, None);
            let all: Vec<usize> = (0..view.world.workloads.len()).collect();
            ledger.steps.push(report::workloads(&view, &all));
        }
        self.listen(simulation)
    }

    fn instant(&mut self, simulation: &Simulation) -> ControlFlow<()> {
        self.listen(simulation)
    }

    fn verb(&mut self, at: Span, text: &str, refused: Option<&str>) {
        if let Some(log) = &mut self.log {
            log.verb(at, text, refused);
        }
    }

    fn end(&mut self, simulation: &Simulation) {
        if let Some(decisions) = &mut self.decisions {
            *decisions = decision::all(simulation);
        }
    }
}
