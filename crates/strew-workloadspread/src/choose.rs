//! Chooses the subset of a new pod from the rows of its revision, with reasons.
//!
//! Source: spec/workloadspread §4.3, §4.4, §4.8.

use std::rc::Rc;
use std::sync::Arc;

use strew_model::{Holds, Instant, Marks, Symbol};
use strew_scheduler::Unfit;

use crate::facts::spec::{MaxReplicas, Spec, Subset};
use crate::facts::status::{Row, Status, UNLIMITED};
use crate::facts::workload::WorkloadFact;
use crate::quota::{self, Total};

/// A subset with the finding about it.
#[derive(Debug, Clone)]
pub struct SubsetFinding {
    /// The subset.
    pub subset: Arc<str>,
    /// The finding.
    pub finding: Finding,
}

/// The finding about a subset.
#[derive(Debug, Clone)]
pub enum Finding {
    /// No room: the subset has this number of pods, admitted ones included.
    Full {
        /// Its pods, admitted ones included.
        expected: i64,
    },
    /// It is closed since pods of it were unschedulable.
    Closed {
        /// Since this time.
        since: Instant,
    },
    /// None of its nodes takes the pod now.
    NoNode(Rc<Unfit>),
    /// The ordinal is not below the sum of the limits so far (StatefulSets).
    Ordinal {
        /// The pod's ordinal.
        ordinal: i64,
        /// The sum of the limits so far.
        threshold: i64,
    },
    /// The subset is chosen.
    Taken(Ground),
}

/// Why a subset was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// It is the only one and has no limit: no ledger is kept.
    OnlyOne,
    /// The ledger has the pod already: an earlier request was answered, or the pod is being deleted.
    Known,
    /// It has fewer pods than its minimum.
    BelowMinimum {
        /// Its pods, admitted ones included.
        expected: i64,
        /// The minimum.
        min: u32,
    },
    /// It is the first subset with room.
    Room {
        /// `missingReplicas` before this pod.
        missing: i32,
    },
    /// It is the first subset with room, and this node takes the pod now.
    Node {
        /// `missingReplicas` before this pod.
        missing: i32,
        /// The node.
        node: Symbol,
        /// True if the node is virtual and takes any number of pods.
        is_virtual: bool,
    },
    /// It is the first subset with room. Whether a node takes the pod is unknown, because the bound of work was
    /// reached.
    RoomUnasked {
        /// `missingReplicas` before this pod.
        missing: i32,
    },
    /// No subset with room has a node that takes the pod: the first subset with room, where the pod waits.
    Fallback {
        /// `missingReplicas` before this pod.
        missing: i32,
    },
    /// The ordinal is below the sum of the limits so far (StatefulSets).
    Ordinal {
        /// The pod's ordinal.
        ordinal: i64,
        /// The sum of the limits so far.
        threshold: i64,
    },
}

/// A choice with its reasons, in the order in which subsets were examined. If the last step is not [`Finding::Taken`],
/// the pod is admitted unchanged.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The findings, subset by subset.
    pub steps: Vec<SubsetFinding>,
    /// The index of the subset among the rows, or for StatefulSets among the subsets; `None` if no subset was chosen.
    pub place: Option<usize>,
}

impl Choice {
    /// Why the subset was chosen; `None` if none was.
    pub fn ground(&self) -> Option<&Ground> {
        let taken = |s: &SubsetFinding| matches!(s.finding, Finding::Taken(_));
        match self.steps.iter().find(|s| taken(s)).map(|s| &s.finding) {
            Some(Finding::Taken(ground)) => Some(ground),
            _ => None,
        }
    }

    fn note(&mut self, subset: &Arc<str>, finding: Finding) {
        let subset = Arc::clone(subset);
        self.steps.push(SubsetFinding { subset, finding });
    }

    fn take(&mut self, place: usize, subset: &Arc<str>, ground: Ground) {
        self.note(subset, Finding::Taken(ground));
        self.place = Some(place);
    }
}

/// Whether a node of a subset takes a pod now.
#[derive(Debug, Clone)]
pub enum Fit {
    /// This node takes it.
    Node {
        /// The node.
        node: Symbol,
        /// True if it is virtual and takes any number of pods.
        is_virtual: bool,
    },
    /// No node takes it.
    None(Rc<Unfit>),
    /// Unknown: the bound of work was reached.
    Unknown,
}

/// Answers whether a node of a subset takes the pod now.
pub type AskFit<'a> = &'a mut dyn FnMut(&Arc<str>) -> Fit;

/// The rows of a revision that has none yet (spec/workloadspread §4.3, step 1).
pub fn first_rows(spec: &Spec, total: Total) -> Vec<Row> {
    let row = |s: &Subset| {
        let missing = quota::scaled_or_zero(s.max_replicas, total);
        Row::new(s.name.clone(), missing)
    };
    spec.subsets.iter().map(row).collect()
}

/// True if a row whose limit is a percentage is not up to date with the total.
pub fn lags(rows: &[Row], spec: &Spec, total: Total) -> bool {
    rows.iter()
        .any(|row| refreshed(row, spec, total) != row.missing)
}

/// Updates rows whose limit is a percentage to the total: a change by an autoscaler takes effect at once, not only
/// after the next sync (spec/workloadspread §5.10). The rows are sufficient for that: limit minus admitted pods.
pub fn refresh(rows: &mut [Row], spec: &Spec, total: Total) {
    for row in rows {
        row.missing = refreshed(row, spec, total);
    }
}

fn refreshed(row: &Row, spec: &Spec, total: Total) -> i32 {
    let subset = spec.subsets.iter().find(|s| s.name == row.name);
    match subset.and_then(|s| s.max_replicas) {
        Some(max @ MaxReplicas::Percent(_)) => {
            quota::missing_in(row, quota::scaled_or_zero(Some(max), total))
        }
        _ => row.missing,
    }
}

/// Chooses among the rows of a revision. `fit` is called in order for rows with room, only if the strategy simulates
/// scheduling; its argument is the row's subset.
pub fn choose(
    spec: &Spec,
    status: &Status,
    rows: &[Row],
    pod: Option<&str>,
    mut fit: Option<AskFit<'_>>,
) -> Choice {
    let mut choice = Choice::default();
    if let Some((place, row)) = pod.and_then(|pod| known(rows, pod)) {
        choice.take(place, &row.name, Ground::Known);
        return choice;
    }
    let below = rows.iter().enumerate().find_map(|(place, row)| {
        let min = spec
            .place(&row.name)
            .map_or(0, |at| spec.subsets[at].min_replicas);
        let expected = row.expected();
        (status.is_open(row) && expected < i64::from(min)).then_some((place, expected, min))
    });
    if let Some((place, expected, min)) = below {
        let ground = Ground::BelowMinimum { expected, min };
        choice.take(place, &rows[place].name, ground);
        return choice;
    }
    let mut first_with_room = None;
    for (place, row) in rows.iter().enumerate() {
        if !status.is_open(row) {
            choice.note(&row.name, passed_over(status, row));
            continue;
        }
        let missing = row.missing;
        first_with_room.get_or_insert(place);
        let answer = fit.as_mut().map(|fit| fit(&row.name));
        let ground = match answer {
            None => Ground::Room { missing },
            Some(Fit::Node { node, is_virtual }) => Ground::Node {
                missing,
                node,
                is_virtual,
            },
            Some(Fit::Unknown) => Ground::RoomUnasked { missing },
            Some(Fit::None(unfit)) => {
                choice.note(&row.name, Finding::NoNode(unfit));
                continue;
            }
        };
        choice.take(place, &row.name, ground);
        return choice;
    }
    if let Some(place) = first_with_room {
        let missing = rows[place].missing;
        choice.take(place, &rows[place].name, Ground::Fallback { missing });
    }
    choice
}

/// Why a row has no room; `None` if it has.
fn passed_over(status: &Status, row: &Row) -> Finding {
    if !status.is_closed(row) {
        let expected = row.expected();
        return Finding::Full { expected };
    }
    let overall = status.overall_row(&row.name).and_then(|r| r.schedulable);
    let closed = [row.schedulable, overall].into_iter().flatten();
    let since = closed.filter(|s| !s.holds).map(|s| s.since).max();
    let since = since.unwrap_or_default();
    Finding::Closed { since }
}

fn known<'a>(rows: &'a [Row], pod: &str) -> Option<(usize, &'a Row)> {
    rows.iter().enumerate().find(|(_, row)| row.knows(pod))
}

/// Chooses for a pod of a StatefulSet: its ordinal is compared with the running sum of limits. Closed subsets do not
/// add to the sum, so later ones move up (spec/workloadspread §4.4).
pub fn choose_by_ordinal(spec: &Spec, status: &Status, total: Total, ordinal: i64) -> Choice {
    let mut threshold: i64 = 0;
    let mut choice = Choice::default();
    for (place, subset) in spec.subsets.iter().enumerate() {
        let closed = status.overall_row(&subset.name).and_then(|r| r.schedulable);
        if let Some(closed) = closed.filter(|s| !s.holds) {
            let since = closed.since;
            choice.note(&subset.name, Finding::Closed { since });
            continue;
        }
        let max = match quota::scaled_or_zero(subset.max_replicas, total) {
            UNLIMITED => i32::MAX,
            max => max,
        };
        threshold = threshold.saturating_add(i64::from(max));
        if ordinal < threshold {
            choice.take(place, &subset.name, Ground::Ordinal { ordinal, threshold });
            return choice;
        }
        choice.note(&subset.name, Finding::Ordinal { ordinal, threshold });
    }
    choice
}

/// The number of pods of its StatefulSet before a pod, by the number after the last `-` of its name: counted from
/// `start`, without reserved numbers. -1 if the name has no number.
pub fn ordinal(pod: &str, target: Option<&WorkloadFact>) -> i64 {
    let digits = pod.rsplit_once('-').map_or("", |(_, digits)| digits);
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let number = is_number.then(|| digits.parse::<i32>().ok()).flatten();
    let Some(number) = number.map(i64::from) else {
        return -1;
    };
    let first = target.map_or(0, |target| target.first_ordinal);
    number - first - target.map_or(0, |target| target.n_reserved(first, number))
}

// === the symbols in it ===

impl Holds for Choice {
    fn mark(&self, marks: &mut Marks) {
        for step in &self.steps {
            match &step.finding {
                Finding::NoNode(unfit) => unfit.mark(marks),
                Finding::Taken(Ground::Node { node, .. }) => node.mark(marks),
                Finding::Full { .. }
                | Finding::Closed { .. }
                | Finding::Ordinal { .. }
                | Finding::Taken(_) => {}
            }
        }
    }
}
