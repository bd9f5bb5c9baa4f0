//! Reduces a failing story while it still fails.

use strew_model::time::Span;

use super::play::{Parts, play};
use super::settings;
use super::story::{Action, Event, Story, Worker, Workload};
use crate::auditor::Rule;
use crate::limits::MachineLimits;

/// The most runs spent on reducing one story.
const LIVES_MAX: u32 = 1500;

/// A story of a world.
pub(super) trait Reducible: Clone + PartialEq {
    /// What its events do.
    type Action;
    /// Its events.
    fn events(&mut self) -> &mut Vec<Event<Self::Action>>;
    /// The settings of its machines.
    fn limits(&mut self) -> &mut MachineLimits;
}

impl Reducible for Story {
    type Action = Action;

    fn events(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    fn limits(&mut self) -> &mut MachineLimits {
        &mut self.limits
    }
}

/// The smallest story found that breaks the same rule.
pub fn shrink(story: &Story, rule: Rule, parts: &Parts) -> Story {
    let breaks = |story: &Story| play(story, parts).breaks(rule);
    smallest(
        story,
        &breaks,
        &[
            Shrinking::events,
            Shrinking::workloads,
            Shrinking::nodes,
            Shrinking::details,
            Shrinking::settings,
            Shrinking::times,
        ],
    )
}

/// The smallest story found for which `breaks` is true, as it is for this one. The steps each try to make it smaller.
pub(super) fn smallest<'a, S: Reducible>(
    story: &S,
    breaks: &'a dyn Fn(&S) -> bool,
    steps: &[fn(&mut Shrinking<'a, S>)],
) -> S {
    let mut shrinking = Shrinking {
        best: story.clone(),
        breaks,
        lives: 0,
    };
    loop {
        let before = shrinking.best.clone();
        steps.iter().for_each(|step| step(&mut shrinking));
        if shrinking.best == before || shrinking.lives >= LIVES_MAX {
            return shrinking.best;
        }
    }
}

pub(super) struct Shrinking<'a, S> {
    pub(super) best: S,
    breaks: &'a dyn Fn(&S) -> bool,
    lives: u32,
}

impl<S: Reducible> Shrinking<'_, S> {
    /// Keeps the best story with a change, if it still breaks the rule.
    pub(super) fn with(&mut self, change: impl FnOnce(&mut S)) -> bool {
        let mut smaller = self.best.clone();
        change(&mut smaller);
        if self.lives >= LIVES_MAX || smaller == self.best {
            return false;
        }
        self.lives += 1;
        let is_as_bad = (self.breaks)(&smaller);
        if is_as_bad {
            self.best = smaller;
        }
        is_as_bad
    }

    /// Removes events: halves, quarters, …, single ones.
    pub(super) fn events(&mut self) {
        let mut size = self.best.events().len().div_ceil(2);
        while size > 0 {
            let mut first = 0;
            while first < self.best.events().len() {
                let end = (first + size).min(self.best.events().len());
                if !self.with(|story| drop(story.events().drain(first..end))) {
                    first += size;
                }
            }
            size /= 2;
        }
    }

    /// Sets production's settings: for all machines, else one by one.
    pub(super) fn settings(&mut self) {
        self.with(|story| *story.limits() = MachineLimits::production());
        for restore in settings::restorers() {
            self.with(|story| restore(story.limits()));
        }
    }
}

impl Shrinking<'_, Story> {
    fn workloads(&mut self) {
        for i in (0..self.best.world.spreads.len()).rev() {
            self.with(|story| drop(story.world.spreads.remove(i)));
        }
        for i in 0..self.best.world.spreads.len() {
            self.with(|story| story.world.spreads[i].takes_others = false);
            self.with(|story| story.world.spreads[i].is_whole = false);
        }
        self.with(|story| story.world.registration = None);
        self.with(|story| {
            if let Some(plan) = &mut story.world.registration {
                plan.n_guards = 1;
                plan.lag = Span(0);
            }
        });
        self.with(|story| story.world.n_webhooks = story.world.n_webhooks.min(1));
        for i in (0..self.best.world.workloads.len()).rev() {
            self.with(|story| {
                let gone = story.world.workloads.remove(i);
                story.world.spreads.retain(|s| s.of != gone.name);
                story
                    .events
                    .retain(|e| e.action.subject() != Some(&gone.name));
            });
        }
    }

    fn nodes(&mut self) {
        for i in (0..self.best.world.nodes.len()).rev() {
            self.with(|story| {
                let gone = story.world.nodes.remove(i);
                story
                    .events
                    .retain(|e| e.action.subject() != Some(&gone.name));
            });
        }
    }

    /// Simplifies nodes and workloads.
    fn details(&mut self) {
        self.with(|story| story.world.elects = false);
        self.with(|story| story.world.quota = None);
        self.with(|story| story.world.group = None);
        for i in 0..self.best.world.nodes.len() {
            self.with(|story| story.world.nodes[i].is_tainted = false);
            self.with(|story| story.world.nodes[i].is_cordoned = false);
            self.with(|story| {
                story.world.nodes[i].cpu = 4000;
                story.world.nodes[i].pods = 110;
            });
        }
        let simpler: [fn(&mut Workload); 12] = [
            |w| w.spread.clear(),
            |w| w.spread.truncate(1),
            |w| w.anti = None,
            |w| w.budget = None,
            |w| w.is_zone_aware = false,
            |w| w.keeps_spread = false,
            |w| w.scaling = None,
            |w| w.priority = 0,
            |w| w.has_port = false,
            |w| w.tolerates = false,
            |w| w.worker = Worker::ReplicaSet,
            |w| w.cpu = 0,
        ];
        for i in 0..self.best.world.workloads.len() {
            for change in simpler {
                self.with(|story| change(&mut story.world.workloads[i]));
            }
            while self.best.world.workloads[i].replicas > 0
                && self.with(|story| story.world.workloads[i].replicas -= 1)
            {}
        }
    }

    /// Ends the faults earlier, and moves events to round times.
    fn times(&mut self) {
        const SECOND: u64 = 1_000_000_000;
        let last = self.best.events.last().map_or(0, |event| event.at.0);
        self.with(|story| story.calm = Span(last + SECOND).min(story.calm));
        for i in 0..self.best.events.len() {
            self.with(|story| {
                let at = &mut story.events[i].at;
                *at = Span(at.0 - at.0 % SECOND);
            });
        }
    }
}
