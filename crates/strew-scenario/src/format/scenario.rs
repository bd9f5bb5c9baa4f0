//! A scenario, read and checked.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use strew_manifest::field::FieldPath;
use strew_manifest::read::Place;
use strew_model::Span;
use strew_wire::config::FeatureGates;

use super::existence::Mention;
use super::expectation::Expectation;
use super::node_group::NodeGroup;
use super::timing::{Autoscaler, Timing};
use super::verb::LocatedVerb;

/// The changes of a cluster in virtual time, and what must be true of it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// The namespace of targets that name none.
    pub namespace: String,
    /// Notes for readers; the note `story` describes the scenario.
    pub annotations: BTreeMap<String, String>,
    /// The number of seeds that each variant runs with.
    pub seeds: NonZeroU32,
    /// The gates at second 0, with notes about them.
    pub feature_gates: FeatureGates,
    /// Nodes made from templates; the names of the groups differ.
    pub node_groups: Vec<NodeGroup>,
    /// `None`: the groups keep their sizes.
    pub autoscaler: Option<Autoscaler>,
    /// How long things take.
    pub timing: Timing,
    /// The numbers for `${name}`, as written.
    pub params: BTreeMap<String, serde_json::Number>,
    /// The end of the run, if given; never before the last step.
    pub until: Option<Span>,
    /// The first seed; further runs count up from it.
    pub seed: u64,
    /// What must be true after every instant.
    pub always: Vec<Expectation>,
    /// The steps, in the order of time.
    pub timeline: Vec<Step>,
    /// The objects that the timeline names and makes, in order.
    pub(super) timeline_mentions: Vec<Mention>,
    /// What expectations of `always` name, which have no time.
    pub(super) always_mentions: Vec<Mention>,
}

/// Verbs at one moment, and what must be true after them.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its name in reports; `None`: its time is used.
    pub name: Option<String>,
    /// The time since the start; `None`: when the previous step ends, which then waits for rest.
    pub at: Option<Span>,
    /// `Some`: the step ends when the cluster is at rest; `None`: right after its verbs.
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
    /// The cluster is at rest after this long without a write.
    pub quiet: Span,
    /// The step ends after this long, at rest or not.
    pub within: Span,
}

impl Default for Rest {
    /// Six minutes are longer than any silent wait in a cluster: 5 minutes for a pod on a lost node, and 5 minutes for
    /// a pod in the unschedulable queue that no event has moved.
    fn default() -> Self {
        Self {
            quiet: Span::from_secs(6 * 60),
            within: Span::from_secs(60 * 60),
        }
    }
}

impl Expectation {
    /// The longest time from the step until the expectation is decided.
    pub fn waits(&self) -> Span {
        let within = self.within.unwrap_or_default();
        Span(within.0.saturating_add(self.lasts.unwrap_or_default().0))
    }
}

impl Scenario {
    /// The value of the annotation `story`.
    pub fn story(&self) -> Option<&str> {
        self.annotations.get("story").map(String::as_str)
    }

    /// The latest end of the run: `until`, or when the expectations of the last step are decided.
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

    /// True if it has no expectation. Its last step is then judged by [`POD_CREATION`](crate::run::POD_CREATION).
    pub fn expects_nothing(&self) -> bool {
        let mut steps = self.timeline.iter();
        self.always.is_empty() && steps.all(|step| step.expect.is_empty())
    }

    /// Sets the places of verbs and expectations.
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

    /// Drops the steps after the step of this name. Returns false if there is no such step.
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
