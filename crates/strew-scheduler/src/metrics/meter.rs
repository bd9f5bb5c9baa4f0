//! Measurements of an engine's decisions.

use std::borrow::Cow;
use std::collections::BTreeMap;

use strew_cluster::NodeIdx;
use strew_model::{Holds, Marks, Symbol};

use super::catalogue;
use super::family::{Family, Info, Kind, Value};
use super::histogram::Histogram;
use super::{Point, SUCCESS, Status, Stopwatch};
use crate::cycle::Cycle;
use crate::plugins::pod_topology_spread::{HardConstraint, filter::verdict};
use crate::profile::PluginId;
use crate::scoring::Scores;
use crate::status::{Refusal, Unfit};

/// One of this many decisions is measured in detail. Source: kube-scheduler's `pluginMetricsSamplePercent`, 10.
const SAMPLE_EVERY: u64 = 10;

/// The most rejected nodes whose plugin is determined, in a decision that found a node.
const REJECTED_NODES_MAX: usize = 128;

/// The most counted pairs, because every user who creates pods can invent topology keys.
const REJECTIONS_MAX: usize = 256;

/// How many nodes each plugin rejected first, with the topology key of the spread constraint, or none.
pub(crate) type Rejections = BTreeMap<(PluginId, Symbol), u64>;

/// The measurements of one engine's decisions.
pub(crate) struct Meter {
    clock: Stopwatch,
    /// When the last point ended.
    lap: u64,
    decisions: u64,
    /// True if this decision is measured in detail; false between decisions.
    sampled: bool,
    points: BTreeMap<(Point, Status), Histogram>,
    plugins: BTreeMap<(PluginId, Point), Histogram>,
    evaluations: BTreeMap<(PluginId, Point), u64>,
    unschedulable: Rejections,
    scheduled: Rejections,
    chosen: BTreeMap<PluginId, Histogram>,
    ranges: BTreeMap<PluginId, Histogram>,
    /// The weighted scores of this decision, if it is measured in detail.
    scores: Vec<(PluginId, Vec<i32>)>,
}

fn of(info: &'static Info) -> Histogram {
    match info.kind {
        Kind::Histogram(buckets) => Histogram::new(buckets),
        _ => unreachable!("{} is a histogram in the catalogue", info.name),
    }
}

// === what decisions do with it ===

impl Meter {
    pub(crate) fn new(clock: Stopwatch) -> Self {
        Self {
            clock,
            lap: 0,
            decisions: 0,
            sampled: false,
            points: BTreeMap::new(),
            plugins: BTreeMap::new(),
            evaluations: BTreeMap::new(),
            unschedulable: Rejections::new(),
            scheduled: Rejections::new(),
            chosen: BTreeMap::new(),
            ranges: BTreeMap::new(),
            scores: Vec::new(),
        }
    }

    /// A decision begins.
    pub(crate) fn begin(&mut self) {
        self.decisions += 1;
        self.sampled = self.decisions % SAMPLE_EVERY == 1;
        self.scores.clear();
        self.lap = (self.clock)();
    }

    /// A decision ends.
    pub(crate) fn end(&mut self) {
        self.sampled = false;
    }

    /// A point ends, and the next one begins.
    pub(crate) fn passed(&mut self, point: Point, status: Status) {
        let now = (self.clock)();
        let histogram = self.points.entry((point, status));
        histogram
            .or_insert_with(|| of(&catalogue::EXTENSION_POINT_DURATION))
            .observe(now.saturating_sub(self.lap));
        self.lap = now;
    }

    /// The clock's reading, in a decision that is measured in detail.
    pub(crate) fn read(&self) -> Option<u64> {
        self.sampled.then(self.clock)
    }

    /// A plugin was evaluated since `begun`, if that was read.
    pub(crate) fn asked(&mut self, plugin: PluginId, point: Point, begun: Option<u64>) {
        if let Some(begun) = begun {
            let took = (self.clock)().saturating_sub(begun);
            let histogram = self.plugins.entry((plugin, point));
            histogram
                .or_insert_with(|| of(&catalogue::PLUGIN_EXECUTION_DURATION))
                .observe(took);
        }
    }

    /// Filters have evaluated this many nodes.
    pub(crate) fn filtered(&mut self, cx: Cycle<'_>, nodes: usize) {
        let skipped = cx.skipped_filters();
        let filters = cx.profile.filters.iter();
        for &plugin in filters.filter(|plugin| !skipped.contains(plugin)) {
            *self.evaluations.entry((plugin, Point::Filter)).or_default() += nodes as u64;
        }
    }

    /// A score plugin was evaluated since `begun`: its scores of these nodes, before the weight.
    pub(crate) fn said(
        &mut self,
        (plugin, weight): (PluginId, i32),
        begun: Option<u64>,
        said: &Scores,
        scores: &[i32],
        nodes: usize,
    ) {
        if matches!(said, Scores::None) {
            return;
        }
        self.asked(plugin, Point::Score, begun);
        *self.evaluations.entry((plugin, Point::Score)).or_default() += nodes as u64;
        if !self.sampled {
            return;
        }
        let weighted = match said {
            Scores::None => return,
            Scores::Same(score) => vec![weight * score; nodes],
            Scores::Each => scores.iter().map(|score| weight * score).collect(),
        };
        self.scores.push((plugin, weighted));
    }

    /// The node at this index among the scored ones is chosen.
    pub(crate) fn chose(&mut self, place: usize) {
        let size = |score: i32| u64::try_from(score).unwrap_or(0);
        for (plugin, scores) in self.scores.drain(..) {
            let Some(&chosen) = scores.get(place) else {
                continue;
            };
            let highest = scores.iter().max().copied().unwrap_or(chosen);
            let lowest = scores.iter().min().copied().unwrap_or(chosen);
            let histogram = self.chosen.entry(plugin);
            histogram
                .or_insert_with(|| of(&catalogue::SCORE_CHOSEN))
                .observe(size(chosen));
            let histogram = self.ranges.entry(plugin);
            histogram
                .or_insert_with(|| of(&catalogue::SCORE_RANGE))
                .observe(size(highest.saturating_sub(lowest)));
        }
    }

    /// No node takes the pod; returns how many nodes each plugin rejected.
    pub(crate) fn refused(&mut self, cx: Cycle<'_>, unfit: &Unfit) -> Rejections {
        let mut rejections = Rejections::new();
        if let Unfit::EveryNode(refusals) = unfit {
            for (node, refusal) in refusals.iter() {
                *rejections.entry(by(cx, node, refusal)).or_default() += 1;
            }
        }
        self.refused_alike(&rejections);
        rejections
    }

    /// No node takes the pod, for the same reasons as the previous one.
    pub(crate) fn refused_alike(&mut self, rejections: &Rejections) {
        for (&key, &nodes) in rejections {
            count(&mut self.unschedulable, key, nodes);
        }
    }

    /// A node was found: determines which plugins rejected others, if the decision is measured in detail.
    pub(crate) fn placed(&mut self, cx: Cycle<'_>) {
        if !self.sampled {
            return;
        }
        let order = cx.cluster.node_order();
        let step = order.len().div_ceil(REJECTED_NODES_MAX).max(1);
        for &node in order.iter().step_by(step) {
            if let Some(refusal) = cx.first_refusal(node) {
                count(&mut self.scheduled, by(cx, node, &refusal), 1);
            }
        }
    }
}

/// Counts; beyond a number of topology keys, new ones are counted without their name.
fn count(rejections: &mut Rejections, key: (PluginId, Symbol), nodes: u64) {
    let full = rejections.len() >= REJECTIONS_MAX && !rejections.contains_key(&key);
    let key = if full {
        (key.0, Symbol::default())
    } else {
        key
    };
    *rejections.entry(key).or_default() += nodes;
}

/// The rejection of a node: the plugin, and the topology key of the first hard constraint that fails there.
impl Holds for Meter {
    fn mark(&self, marks: &mut Marks) {
        for (_, key) in self.unschedulable.keys().chain(self.scheduled.keys()) {
            key.mark(marks);
        }
    }
}

fn by(cx: Cycle<'_>, node: NodeIdx, refusal: &Refusal) -> (PluginId, Symbol) {
    let is_refused = |constraint: &&HardConstraint| {
        let tally = cx.cluster.tally(constraint.tally);
        !verdict(cx.cluster, constraint, tally, node).allowed()
    };
    let is_spread = refusal.plugin == PluginId::PodTopologySpread;
    let constraints = is_spread.then_some(&cx.plan.spread.hard);
    let key = constraints.and_then(|hard| hard.iter().find(is_refused));
    let key = key.map(|constraint| cx.cluster.column(constraint.key).key());
    (refusal.plugin, key.unwrap_or_default())
}

// === readings ===

/// The families that the engines' meters fill together.
pub(crate) struct Measured {
    pub(crate) points: Family,
    plugins: Family,
    evaluations: Family,
    rejections: Family,
    chosen: Family,
    ranges: Family,
    /// Over all profiles, since the metric has no label for them.
    of_plugins: BTreeMap<(PluginId, Point), Histogram>,
}

impl Measured {
    pub(crate) fn new() -> Self {
        Self {
            points: Family::new(&catalogue::EXTENSION_POINT_DURATION),
            plugins: Family::new(&catalogue::PLUGIN_EXECUTION_DURATION),
            evaluations: Family::new(&catalogue::PLUGIN_EVALUATION),
            rejections: Family::new(&catalogue::FILTER_REJECTIONS),
            chosen: Family::new(&catalogue::SCORE_CHOSEN),
            ranges: Family::new(&catalogue::SCORE_RANGE),
            of_plugins: BTreeMap::new(),
        }
    }

    /// Adds the measurements of one engine; `text` resolves symbols.
    pub(crate) fn add(&mut self, meter: &Meter, profile: &str, text: impl Fn(Symbol) -> String) {
        let profile = || Cow::Owned(profile.to_owned());
        for (&(point, status), histogram) in &meter.points {
            let labels = [point.name().into(), status.into(), profile()];
            self.points.push(labels, Value::histogram(histogram));
        }
        for (&key, histogram) in &meter.plugins {
            let sum = self.of_plugins.entry(key);
            sum.or_insert_with(|| of(&catalogue::PLUGIN_EXECUTION_DURATION))
                .add(histogram);
        }
        for (&(plugin, point), &count) in &meter.evaluations {
            let labels = [plugin.name().into(), point.name().into(), profile()];
            self.evaluations.push(labels, Value::Count(count));
        }
        let results = [
            ("unschedulable", &meter.unschedulable),
            ("scheduled", &meter.scheduled),
        ];
        for (result, rejections) in results {
            for (&(plugin, key), &nodes) in rejections {
                let labels = [
                    plugin.name().into(),
                    text(key).into(),
                    result.into(),
                    profile(),
                ];
                self.rejections.push(labels, Value::Count(nodes));
            }
        }
        let scores = [
            (&mut self.chosen, &meter.chosen),
            (&mut self.ranges, &meter.ranges),
        ];
        for (family, histograms) in scores {
            for (plugin, histogram) in histograms {
                let labels = [plugin.name().into(), profile()];
                family.push(labels, Value::histogram(histogram));
            }
        }
    }

    pub(crate) fn families(mut self) -> [Family; 6] {
        for (&(plugin, point), histogram) in &self.of_plugins {
            let labels = [plugin.name().into(), point.name().into(), SUCCESS.into()];
            self.plugins.push(labels, Value::histogram(histogram));
        }
        [
            self.points,
            self.plugins,
            self.evaluations,
            self.rejections,
            self.chosen,
            self.ranges,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strew_model::Interner;

    /// Keys that anybody can think of do not make as many series.
    #[test]
    fn topology_keys_are_counted_without_their_name_past_a_bound() {
        let mut names = Interner::new();
        let mut rejections = Rejections::new();
        let plugin = PluginId::PodTopologySpread;
        for i in 0..REJECTIONS_MAX + 5 {
            let key = names.intern(&format!("example.com/key-{i}"));
            count(&mut rejections, (plugin, key), 1);
            count(&mut rejections, (plugin, key), 1);
        }
        assert_eq!(rejections.len(), REJECTIONS_MAX + 1);
        assert_eq!(rejections[&(plugin, Symbol::default())], 10);
    }
}
