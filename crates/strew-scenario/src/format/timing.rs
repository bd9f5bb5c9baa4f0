//! How long things take, and how often the autoscaler runs.

use strew_model::Span;

use super::diagnostics;
use super::problems::Problems;
use super::value::{At, Fields};
use super::vocabulary::{AUTOSCALER, EXPANDERS, SPAN_RANGE, TIMING};

/// Durations; an absent one takes the simulation's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// From a pod's binding until it runs.
    pub pod_start: Option<SpanRange>,
    /// From a pod's deletion until it is gone.
    pub pod_stop: Option<SpanRange>,
    /// How long the pods of Jobs run.
    pub pod_run: Option<SpanRange>,
    /// From the request for a new node to its readiness.
    pub node_boot: Option<SpanRange>,
    /// The duration of a status write of the webhook for WorkloadSpreads.
    pub status_write: Option<SpanRange>,
}

/// A range of durations, bounds included; `min <= max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanRange {
    /// The lower bound.
    pub min: Span,
    /// The upper bound.
    pub max: Span,
}

/// The cluster autoscaler. Source of the defaults: spec/controllers §11, §12.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Autoscaler {
    /// The time between two runs.
    pub scan_every: Span,
    /// Which group grows.
    pub expander: Expander,
    /// A node is removed after it was unneeded for this long.
    pub unneeded: Span,
    /// No node is removed for this long after one was added.
    pub delay_after_add: Span,
    /// No node is removed for this long after a removal failed.
    pub delay_after_failure: Span,
    /// A new node that takes longer is given up.
    pub provision: Span,
    /// A node is removed after it was not ready for this long.
    pub unready: Span,
}

/// Which of several groups grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expander {
    /// The group that leaves the least unused.
    LeastWaste,
    /// The group that takes the most pods.
    MostPods,
    /// A random group.
    Random,
}

const MINUTE: u64 = 60;

impl Default for Autoscaler {
    fn default() -> Self {
        Self {
            scan_every: Span::from_secs(10),
            expander: Expander::LeastWaste,
            unneeded: Span::from_secs(10 * MINUTE),
            delay_after_add: Span::from_secs(10 * MINUTE),
            delay_after_failure: Span::from_secs(3 * MINUTE),
            provision: Span::from_secs(15 * MINUTE),
            unready: Span::from_secs(20 * MINUTE),
        }
    }
}

/// In the order of [`EXPANDERS`].
const EXPANDER_OF: [Expander; 3] = [Expander::LeastWaste, Expander::MostPods, Expander::Random];

pub(super) fn autoscaler(at: &At<'_>, problems: &mut Problems) -> Autoscaler {
    let default = Autoscaler::default();
    let Some(fields) = at.fields(&AUTOSCALER, problems) else {
        return default;
    };
    let mut span = |name, default| {
        let given = fields.get(name).and_then(|at| at.span(problems));
        given.unwrap_or(default)
    };
    let read = Autoscaler {
        scan_every: span("scanEvery", default.scan_every),
        expander: default.expander,
        unneeded: span("unneeded", default.unneeded),
        delay_after_add: span("delayAfterAdd", default.delay_after_add),
        delay_after_failure: span("delayAfterFailure", default.delay_after_failure),
        provision: span("provision", default.provision),
        unready: span("unready", default.unready),
    };
    if read.scan_every == Span(0) {
        // A loop without a pause would stop the virtual time.
        problems.add(&fields.path().child("scanEvery"), diagnostics::no_time());
    }
    let expander = fields.get("expander");
    let expander = expander.and_then(|at| at.choice(EXPANDERS, problems));
    Autoscaler {
        expander: expander.map_or(default.expander, |index| EXPANDER_OF[index]),
        ..read
    }
}

pub(super) fn timing(at: &At<'_>, problems: &mut Problems) -> Timing {
    let Some(fields) = at.fields(&TIMING, problems) else {
        return Timing::default();
    };
    Timing {
        pod_start: span_range(&fields, "podStart", problems),
        pod_stop: span_range(&fields, "podStop", problems),
        pod_run: span_range(&fields, "podRun", problems),
        node_boot: span_range(&fields, "nodeBoot", problems),
        status_write: span_range(&fields, "statusWrite", problems),
    }
}

fn span_range(
    fields: &Fields<'_>,
    name: &'static str,
    problems: &mut Problems,
) -> Option<SpanRange> {
    let at = fields.get(name)?;
    let fields = at.fields(&SPAN_RANGE, problems)?;
    let min = fields.required("min", problems);
    let min = min.and_then(|at| at.span(problems));
    let max = fields.required("max", problems)?.span(problems)?;
    let min = min?;
    if min > max {
        let error = diagnostics::reversed(&diagnostics::span(min), &diagnostics::span(max));
        let (low, high) = (at.path.child("min"), at.path.child("max"));
        problems.add_pair(&low, error, &high, "no more than this");
        return None;
    }
    Some(SpanRange { min, max })
}
