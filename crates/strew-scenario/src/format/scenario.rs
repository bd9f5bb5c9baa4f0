//! A scenario as it will be run.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use strew_api::config::FeatureGates;
use strew_api::field::FieldPath;
use strew_api::read::Place;
use strew_model::Span;

use super::existence::Mention;
use super::expectation::Expectation;
use super::node_group::NodeGroup;
use super::timing::{Autoscaler, Timing};
use super::verb::LocatedVerb;

/// What happens to a cluster in virtual time, and what must be true of it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The namespace of targets that name none.
    pub namespace: String,
    /// Notes for people; `story` is what it tells.
    pub annotations: BTreeMap<String, String>,
    /// Each variant runs with so many seeds.
    pub seeds: NonZeroU32,
    /// The gates at second 0, with what is worth saying of them.
    pub feature_gates: FeatureGates,
    /// Nodes made from templates; their names differ.
    pub node_groups: Vec<NodeGroup>,
    /// None: the groups keep their sizes.
    pub autoscaler: Option<Autoscaler>,
    /// How long things take.
    pub timing: Timing,
    /// Numbers put in for `${name}`, as written.
    pub params: BTreeMap<String, serde_json::Number>,
    /// When the run ends, if it is said; never before the last step.
    pub until: Option<Span>,
    /// The first seed; each of the others is one more.
    pub seed: u64,
    /// What must be true after every instant.
    pub always: Vec<Expectation>,
    /// In the order of time.
    pub timeline: Vec<Step>,
    /// What the timeline names and makes, in order.
    pub(super) timeline_mentions: Vec<Mention>,
    /// What is named where no time is known.
    pub(super) always_mentions: Vec<Mention>,
}

/// What is done at a moment, and what must be true after it.
#[derive(Debug, Clone)]
pub struct Step {
    /// What reports call it; `None`: its time.
    pub name: Option<String>,
    /// When, from the start; `None`: when the step before is over, which waits for rest.
    pub at: Option<Span>,
    /// `Some`: the step is over when the cluster is at rest; `None`: as soon as its verbs are done.
    pub rest: Option<Rest>,
    /// In the order written.
    pub verbs: Vec<LocatedVerb>,
    /// What must be true.
    pub expect: Vec<Expectation>,
    /// Its place in the document.
    pub path: FieldPath,
}

/// How long a step waits for the cluster to come to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rest {
    /// The cluster is at rest when nothing was written for so long.
    pub quiet: Span,
    /// The step is over after so long, at rest or not.
    pub within: Span,
}

impl Default for Rest {
    /// Six minutes are longer than anything that a cluster waits for in silence: 5 minutes of a pod on a lost node, and
    /// of a pod that no event has freed.
    fn default() -> Self {
        Self {
            quiet: Span::from_secs(6 * 60),
            within: Span::from_secs(60 * 60),
        }
    }
}

impl Expectation {
    /// How long after its moment it is decided at the latest.
    pub fn waits(&self) -> Span {
        let within = self.within.unwrap_or_default();
        Span(within.0.saturating_add(self.lasts.unwrap_or_default().0))
    }
}

impl Scenario {
    /// The annotation `story`.
    pub fn story(&self) -> Option<&str> {
        self.annotations.get("story").map(String::as_str)
    }

    /// When the run ends at the latest: `until`, or when the last step's expectations are decided.
    pub fn end(&self) -> Span {
        let mut moment = 0_u64;
        let mut last = 0;
        for step in &self.timeline {
            moment = step.at.map_or(moment, |at| at.0);
            moment = moment.saturating_add(step.rest.map_or(0, |rest| rest.within.0));
            let waits = step.expect.iter().map(|e| match e.at_rest {
                true => Rest::default().within.0,
                false => e.waits().0,
            });
            let waits = waits.max();
            last = last.max(moment.saturating_add(waits.unwrap_or(0)));
        }
        self.until.unwrap_or(Span(last))
    }

    /// Notes the places of verbs and expectations.
    pub(super) fn locate(&mut self, mut place: impl FnMut(&FieldPath) -> Place) {
        for step in &mut self.timeline {
            for verb in &mut step.verbs {
                verb.place = Some(place(&verb.path));
            }
            for expectation in &mut step.expect {
                expectation.place = Some(place(&expectation.path));
            }
        }
        for expectation in &mut self.always {
            expectation.place = Some(place(&expectation.path));
        }
    }

    /// Leaves out what comes after a step, by its name. Returns whether there is such a step.
    pub fn end_after(&mut self, name: &str) -> bool {
        let mut steps = self.timeline.iter();
        let Some(last) = steps.position(|step| step.name.as_deref() == Some(name)) else {
            return false;
        };
        self.timeline.truncate(last + 1);
        self.until = None;
        true
    }
}
