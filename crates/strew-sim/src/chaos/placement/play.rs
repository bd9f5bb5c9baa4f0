//! Runs and judges a hub's story, and reduces a failing one.

use strew_model::time::Span;

use super::story::{HubAction, HubStory, PlacementPlan};
use super::{acts, manifests};
use crate::auditor::Rule;
use crate::chaos::play::{Going, Life, Parts, QUIET, Verdict, caught};
use crate::chaos::shrink::{Reducible, Shrinking, smallest};
use crate::chaos::story::Event;
use crate::limits::MachineLimits;
use crate::placement::Diligence;

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
        let ended = live(&mut life, story);
        life.end(ended)
    })
}

fn live(life: &mut Life, story: &HubStory) -> Going {
    let storm = (&*story.events, story.calm);
    life.storm(storm, HubAction::fault, |sim, action| {
        acts::act(sim, story, action)
    })?;
    life.rest(QUIET)?;
    life.sim.audit_rest();
    life.verdict()
}

impl Reducible for HubStory {
    type Action = HubAction;

    fn events(&mut self) -> &mut Vec<Event<HubAction>> {
        &mut self.events
    }

    fn limits(&mut self) -> &mut MachineLimits {
        &mut self.limits
    }
}

/// The smallest story found that breaks the same rule.
pub fn shrink(story: &HubStory, rule: Rule, parts: &Parts, diligence: Diligence) -> HubStory {
    let breaks = |story: &HubStory| play(story, parts, diligence).breaks(rule);
    smallest(
        story,
        &breaks,
        &[
            Shrinking::events,
            Shrinking::objects,
            Shrinking::details,
            Shrinking::settings,
        ],
    )
}

impl Shrinking<'_, HubStory> {
    fn objects(&mut self) {
        for i in (0..self.best.placements.len()).rev() {
            self.with(|story| drop(story.placements.remove(i)));
        }
        for i in (0..self.best.clusters.len()).rev() {
            self.with(|story| drop(story.clusters.remove(i)));
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
