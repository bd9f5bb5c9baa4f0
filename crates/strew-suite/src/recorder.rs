//! Records one run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use strew_apiserver::object::{Kind, Object};
use strew_model::Span;
use strew_scenario::format::Step;
use strew_scenario::run::{StepResult, Watcher};
use strew_sim::Simulation;

use crate::decision::{self, Decision};
use crate::host::{Host, Screen};
use crate::log::Log;
use crate::series::Series;
use crate::shown::{Choice, Shown};
use crate::whys;
use strew_view::cluster_state::PodEntry;
use strew_view::moment::Frame;
use strew_view::skews::Skews;
use strew_view::values::{MaxSkew, MomentValues, max_skews};
use strew_view::view::View;

/// The state of the cluster after each step.
pub struct Ledger<'a> {
    frame: Frame,
    choice: Choice,
    /// For programs: one moment per step.
    pub moments: Option<Vec<MomentValues>>,
    /// For people.
    pub screen: Option<Box<dyn Screen + 'a>>,
    /// For the page.
    pub series: Option<Series>,
    /// `None` before the run begins.
    skews: Option<Skews>,
    /// The view at the end of the last step, or at the start.
    last: Option<View>,
    /// The workloads that are shown, chosen after the first step.
    shown: Option<Shown>,
    /// True if the first step is written in full.
    is_in_full: bool,
    /// Uids of the pods of a dump.
    recorded: BTreeSet<Arc<str>>,
    /// Workloads that had some of these pods at the start, each with the number of those on nodes.
    was_there: BTreeMap<usize, usize>,
}

impl<'a> Ledger<'a> {
    /// `given` are the objects of the files: pods among them with a uid belong to a dump.
    pub fn new(frame: Frame, choice: Choice, is_in_full: bool, given: &[Object]) -> Self {
        let pods = given.iter().filter(|object| object.kind() == Kind::Pod);
        let uids = pods.map(|pod| &pod.meta().uid);
        let recorded = uids.filter(|uid| !uid.is_empty()).cloned().collect();
        Self {
            frame,
            choice,
            moments: None,
            screen: None,
            series: None,
            skews: None,
            last: None,
            shown: None,
            is_in_full,
            recorded,
            was_there: BTreeMap::new(),
        }
    }

    fn begin(&mut self, simulation: &Simulation) {
        let start = View::of(strew_scenario::moment(simulation), &mut self.frame, None);
        let world = &start.world;
        let recorded = world.pods.iter();
        let recorded = recorded.filter(|pod| {
            let uid = &world.cluster.pod(pod.pod).uid;
            self.recorded.contains(uid)
        });
        // At the start, all that are on nodes count as placed.
        let bound = |pod: &PodEntry| (pod.workload, start.summaries[pod.workload].placed);
        self.was_there = recorded.map(bound).collect();
        if let Some(screen) = &mut self.screen {
            screen.begin(&start);
        }
        let skews = Skews::new(simulation.server(), &mut self.frame);
        if let Some(series) = &mut self.series {
            series.follow(simulation, &mut self.frame, &skews);
            series.picture(None, simulation, &start, &self.frame, &skews);
        }
        self.skews = Some(skews);
        self.last = Some(start);
    }

    fn instant(&mut self, simulation: &Simulation) {
        let Self { frame, skews, .. } = self;
        if let Some(skews) = skews {
            let counted = skews.observe(simulation.server(), frame);
            if let Some(series) = &mut self.series {
                series.observe(simulation, frame, skews, counted);
            }
        }
    }

    fn step(&mut self, number: usize, step: &Step, result: &StepResult, simulation: &Simulation) {
        let before = self.last.take();
        let mut view = View::of(
            strew_scenario::moment(simulation),
            &mut self.frame,
            before.as_ref(),
        );
        let is_first = self.shown.is_none();
        let shown = match self.shown.take() {
            None => self.choice.of(&view, &self.was_there),
            Some(shown) => self.choice.with_new(shown, &view),
        };
        if let Some(moments) = &mut self.moments {
            moments.push(match is_first && self.is_in_full {
                true => MomentValues::in_full(&view, &shown.workloads),
                false => MomentValues::of(&view, &shown.workloads),
            });
        }
        if let (Some(series), Some(skews)) = (&mut self.series, &self.skews) {
            series.picture(Some(number), simulation, &view, &self.frame, skews);
            let whys = whys::of(&mut view, &shown.workloads);
            whys.into_iter().for_each(|why| series.why(number, why));
        }
        if let (Some(screen), Some(before), Some(skews)) = (&mut self.screen, before, &self.skews) {
            screen.step(step, result, [&before, &view], (skews, simulation), &shown);
        }
        self.shown = Some(shown);
        self.last = Some(view);
    }

    /// The largest skews of the workloads that are shown.
    pub fn max_skews(&self) -> Vec<MaxSkew> {
        match (&self.shown, &self.skews) {
            (Some(shown), Some(skews)) => {
                max_skews(&self.frame.workloads.list, &shown.workloads, skews)
            }
            _ => Vec::new(),
        }
    }
}

/// Watches a run, and ends it on an interrupt.
pub struct Recorder<'a> {
    /// What is around the run.
    pub host: &'a dyn Host,
    /// True if there is no other run.
    pub is_alone: bool,
    /// The log of everything; `None` if it is not wanted.
    pub log: Option<Log>,
    /// True if the log is for the page alone, which has no objects of a large run.
    pub is_for_page: bool,
    /// The results of workloads; `None` if they are not wanted.
    pub ledger: Option<Ledger<'a>>,
    /// The decisions of the schedulers; `None` if they are not wanted.
    pub decisions: Option<Vec<Decision>>,
    /// The present step, for the progress.
    pub step: String,
}

impl Recorder<'_> {
    fn listen(&mut self, simulation: &Simulation) -> ControlFlow<()> {
        if let Some(log) = &mut self.log {
            log.listen(simulation);
        }
        if let Some(ledger) = &mut self.ledger {
            ledger.instant(simulation);
            if let (Some(series), Some(log)) = (&mut ledger.series, &mut self.log)
                && series.is_large(simulation, &ledger.frame, log.n_lines())
                && self.is_for_page
            {
                log.only_story();
            }
        }
        if self.is_alone {
            self.host.show(&self.step, simulation.elapsed());
        }
        match self.host.is_stopped() {
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
        if let Some(ledger) = &mut self.ledger {
            ledger.begin(simulation);
        }
    }

    fn begin_step(&mut self, _number: usize, step: &Step, simulation: &Simulation) {
        self.step = step.name.clone().unwrap_or_else(|| "playing".to_owned());
        if let (Some(log), Some(name)) = (&mut self.log, &step.name) {
            log.step(simulation.elapsed(), name);
        }
        if let Some(skews) = self
            .ledger
            .as_mut()
            .and_then(|ledger| ledger.skews.as_mut())
        {
            skews.begin_step();
        }
    }

    fn step(
        &mut self,
        number: usize,
        step: &Step,
        result: &StepResult,
        simulation: &Simulation,
    ) -> ControlFlow<()> {
        let flow = self.listen(simulation);
        if let Some(ledger) = &mut self.ledger {
            ledger.step(number, step, result, simulation);
        }
        flow
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
