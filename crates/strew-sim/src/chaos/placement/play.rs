//! Runs and judges a hub's story, and reduces a failing one.

use std::ops::ControlFlow;

use strew_model::time::Span;

use super::story::{HubStory, PlacementPlan};
use super::{acts, manifests};
use crate::auditor::Rule;
use crate::chaos::play::{Going, Life, Parts, QUIET, Verdict, caught};
use crate::chaos::settings;
use crate::limits::MachineLimits;
use crate::placement::Diligence;

/// The most runs spent on reducing one story.
const LIVES_MAX: u32 = 1500;

/// Plays a story until the first violation; `diligence` says how the controller carries out its decisions.
pub fn play(story: &HubStory, parts: &Parts, diligence: Diligence) -> Verdict {
    caught(|| {
        let mut life = Life::begin(
            (story.seed, story.limits),
            manifests::of(story),
            false,
            None,
            parts,
        );
        life.sim.set_diligence(diligence);
        let violations = match live(&mut life, story) {
            ControlFlow::Break(violations) => violations,
            ControlFlow::Continue(()) => Vec::new(),
        };
        life.end(violations)
    })
}

fn live(life: &mut Life, story: &HubStory) -> Going {
    for event in story.events.iter().filter(|event| event.at < story.calm) {
        life.until(event.at)?;
        if let Some(kind) = event.action.fault() {
            *life.figures.faults.entry(kind).or_default() += 1;
        }
        let answer = acts::act(&mut life.sim, story, &event.action);
        life.figures.ask(answer);
    }
    life.until(story.calm)?;
    life.sim.calm();
    life.rest(QUIET)?;
    life.sim.audit_rest();
    life.verdict()
}

/// The smallest story found that breaks the same rule.
pub fn shrink(story: &HubStory, rule: Rule, parts: &Parts, diligence: Diligence) -> HubStory {
    let mut shrinking = Shrinking {
        best: story.clone(),
        rule,
        parts,
        diligence,
        lives: 0,
    };
    loop {
        let before = shrinking.best.clone();
        shrinking.events();
        shrinking.objects();
        shrinking.details();
        shrinking.settings();
        if shrinking.best == before || shrinking.lives >= LIVES_MAX {
            return shrinking.best;
        }
    }
}

struct Shrinking<'a> {
    best: HubStory,
    rule: Rule,
    parts: &'a Parts,
    diligence: Diligence,
    lives: u32,
}

impl Shrinking<'_> {
    /// Keeps the best story with a change, if it still breaks the rule.
    fn with(&mut self, change: impl FnOnce(&mut HubStory)) -> bool {
        let mut smaller = self.best.clone();
        change(&mut smaller);
        if self.lives >= LIVES_MAX || smaller == self.best {
            return false;
        }
        self.lives += 1;
        let verdict = play(&smaller, self.parts, self.diligence);
        let is_as_bad = verdict.violations.iter().any(|v| v.rule == self.rule);
        if is_as_bad {
            self.best = smaller;
        }
        is_as_bad
    }

    /// Removes events: halves, quarters, …, single ones.
    fn events(&mut self) {
        let mut size = self.best.events.len().div_ceil(2);
        while size > 0 {
            let mut first = 0;
            while first < self.best.events.len() {
                let end = (first + size).min(self.best.events.len());
                if !self.with(|story| drop(story.events.drain(first..end))) {
                    first += size;
                }
            }
            size /= 2;
        }
    }

    fn objects(&mut self) {
        for i in (0..self.best.placements.len()).rev() {
            self.with(|story| drop(story.placements.remove(i)));
        }
        for i in (0..self.best.clusters.len()).rev() {
            self.with(|story| drop(story.clusters.remove(i)));
        }
    }

    /// Sets production's settings: for all machines, else one by one.
    fn settings(&mut self) {
        self.with(|story| story.limits = MachineLimits::production());
        for restore in settings::restorers() {
            self.with(|story| restore(&mut story.limits));
        }
    }

    /// Simplifies placements, and ends the faults earlier.
    fn details(&mut self) {
        let simpler: [fn(&mut PlacementPlan); 7] = [
            |p| p.terms.clear(),
            |p| p.has_add_on = false,
            |p| p.has_cpu = false,
            |p| p.is_by_score = false,
            |p| p.tolerates = None,
            |p| p.steady = 1,
            |p| p.has_canaries = false,
        ];
        for i in 0..self.best.placements.len() {
            for change in simpler {
                self.with(|story| change(&mut story.placements[i]));
            }
        }
        let last = self.best.events.last().map_or(0, |event| event.at.0);
        let soon = Span(last + Span::from_secs(1).0);
        self.with(|story| story.calm = soon.min(story.calm));
    }
}
