//! A scenario as it will be run.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use strew_api::config::FeatureGates;
use strew_api::field::FieldPath;
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
    /// What must be true after every instant.
    pub always: Vec<Expectation>,
    /// In the order of time.
    pub timeline: Vec<Step>,
    /// What the timeline names and makes, in order.
    pub(super) timeline_mentions: Vec<Mention>,
    /// What is named where no time is known.
    pub(super) always_mentions: Vec<Mention>,
}

/// A moment, what is done then, and what must be true after it.
#[derive(Debug, Clone)]
pub struct Step {
    /// When, from the start.
    pub at: Span,
    /// In the order written.
    pub verbs: Vec<LocatedVerb>,
    /// What must be true.
    pub expect: Vec<Expectation>,
    /// Its place in the document.
    pub path: FieldPath,
}

impl Scenario {
    /// The annotation `story`.
    pub fn story(&self) -> Option<&str> {
        self.annotations.get("story").map(String::as_str)
    }

    /// When the run ends: `until`, or when the last step's expectations are decided.
    pub fn end(&self) -> Span {
        let decided = |step: &Step| {
            let waits = step.expect.iter().map(|expectation| {
                let within = expectation.within.unwrap_or_default();
                let lasts = expectation.lasts.unwrap_or_default();
                within.0.saturating_add(lasts.0)
            });
            step.at.0.saturating_add(waits.max().unwrap_or(0))
        };
        let last = self.timeline.iter().map(decided).max();
        self.until.unwrap_or(Span(last.unwrap_or(0)))
    }
}
