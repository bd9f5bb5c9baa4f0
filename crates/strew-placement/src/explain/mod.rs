//! Explains why a placement holds its clusters, and not others.
//!
//! An explanation runs the deciding code again, with a `trace` that records every number. It is typed: the clusters
//! that each filter passes, the scores of each prioritizer, the table of selected counts before each pick with every
//! cluster's scores (the OCM spread proposal, "Implementation Example"), and a verdict for every candidate. Another
//! crate has its wire format. Source: spec/placement §2.11, §3.7, "Reporting".

pub(crate) mod trace;

use std::cmp::Reverse;
use std::fmt;

use strew_model::{Instant, Symbol};
use strew_spread::{SkewCheck, limit::Minimum};

use trace::{KeptOut, StepTrace, Trace};

use crate::facts::cluster::ClusterTaint;
use crate::facts::placement::PlacementFact;
use crate::filter::predicate::ClusterPredicate;
use crate::filter::taint::{Tolerance, tolerance, tolerated_before};
use crate::hub::{ClusterIdx, Hub};
use crate::plan::Plan;
use crate::schedule::{Known, Schedule, decided, scheduled};
use crate::select::measure::Exclusion;

/// The detail of an explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The selected clusters with their numbers, and the topologies: a few bytes each. `filters`, `picks` and
    /// `verdicts` are empty; only selected clusters have scores.
    Outline,
    /// Every number of every candidate: megabytes for a large fleet.
    Everything,
}

/// A decision with its reasons.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The decision.
    pub schedule: Schedule,
    /// The clusters that each filter passes, in the order of the filters. Names accumulate, as upstream's do.
    pub filters: Vec<FilterResult>,
    /// The scores of each prioritizer.
    pub prioritizers: Vec<PrioritizerResult>,
    /// The sums of scores, highest first, then by name.
    pub aggregated: Vec<(Symbol, i64)>,
    /// The selector's picks: at most the first 200, fewer for large fleets. Empty without spread constraints.
    pub picks: Vec<PickReport>,
    /// Every candidate by name, with its verdict.
    pub verdicts: Vec<(Symbol, Verdict)>,
    /// All topologies, parents before their children; empty without spread constraints.
    pub topologies: Vec<TopologyReport>,
    /// The selected clusters, in the order of selection.
    pub selected: Vec<SelectedCluster>,
    /// The weight of the spread policy, which normalized scores are multiplied with; 0 without spread constraints.
    pub spread_weight: i32,
}

/// The numbers of a selected cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedCluster {
    /// The cluster.
    pub cluster: Symbol,
    /// Its topology, an index into [`Explanation::topologies`]; `None` if it is in none.
    pub topology: Option<u32>,
    /// The sum of the prioritizers' scores.
    pub prior: i64,
    /// How empty its topologies were when it was picked, from -100 to 100; 0 without spread constraints.
    pub normalized: i64,
    /// The deciding score: the prioritizers' sum plus the weighted `normalized`.
    pub score: i64,
}

/// A topology with its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyReport {
    /// Its values, from the first term down.
    pub tuple: Vec<Symbol>,
    /// The selected clusters in it and below.
    pub selected: i32,
    /// The eligible clusters in it, selected ones included.
    pub clusters: u32,
    /// Its weight among its siblings; `None` if its term has no weights.
    pub weight: Option<u32>,
    /// `None` if it is compared with nothing: its weight is 0, or `maxGroups` closes it.
    pub measured: Option<Measured>,
}

/// The skew of a topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Its selected clusters less the minimum.
    pub skew: i64,
    /// The count that it is compared with: that of its emptiest sibling, or with weights its own share of that one's.
    pub minimum: i32,
}

/// The result of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterResult {
    /// `Predicate`, or `Predicate,TaintToleration`.
    pub name: &'static str,
    /// By name; for the last filter in the order of selection: picks first, then the other clusters, best first.
    pub clusters: Vec<Symbol>,
}

/// The result of a prioritizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrioritizerResult {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: i32,
    /// Scores by name of cluster. Clusters without a score are missing.
    pub scores: Vec<(Symbol, i64)>,
}

/// One pick of the selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickReport {
    /// The selected count table before the pick: tuples of values.
    pub counts: Vec<(Vec<Symbol>, i32)>,
    /// The clusters that a rule excludes from this pick, each with the key of the rule and the rule.
    pub excluded: Vec<(Symbol, Symbol, Exclusion)>,
    /// The scores of the other clusters.
    pub scores: Vec<ClusterScore>,
    /// The cluster that is picked.
    pub picked: Symbol,
}

/// The scores of a cluster before a pick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterScore {
    /// The cluster.
    pub cluster: Symbol,
    /// By level, 0 to 63.
    pub levels: Vec<i64>,
    /// All levels combined.
    pub spread: i64,
    /// The combined score on the scale of -100 to 100.
    pub normalized: i64,
    /// The weighted normalized score plus the prioritizers' sum.
    pub total: i64,
}

/// The verdict on a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is selected, at this position (from 0).
    Selected(usize),
    /// No predicate matches it.
    NoPredicate,
    /// This taint is not tolerated.
    Taint(ClusterTaint),
    /// This taint was tolerated for this number of seconds, which are over.
    ToleratedBefore(ClusterTaint, i64),
    /// It lacks the key of a hard term.
    LacksTopologyKey(Symbol),
    /// Its topology under this key has weight 0.
    TopologyWithoutWeight(Symbol),
    /// This rule of the key excluded it: from the last pick; if fewer clusters were found than asked for, from any
    /// pick.
    Excluded(Symbol, Exclusion),
    /// It was eligible, but enough other clusters were better.
    NotNeeded,
    /// The specification is invalid: no cluster was selected.
    Undecided,
}

/// The sum of a limit, for clusters.
pub fn sum(check: SkewCheck) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let minimum = match check.minimum {
            Minimum::Emptiest(count) => count,
            Minimum::TooFewDomains { .. } => 0,
        };
        let sign = if check.allowed() { "<=" } else { ">" };
        let SkewCheck {
            there, max_skew, ..
        } = check;
        let skew = check.skew();
        write!(
            f,
            "{there} there + 1 this cluster - {minimum} in the emptiest topology = {skew} {sign} maxSkew {max_skew}"
        )
    })
}

/// Decides a placement and explains the decision. Changes nothing; the placement need not exist.
pub fn explain(
    hub: &Hub,
    now: Instant,
    placement: &PlacementFact,
    cel: &dyn ClusterPredicate,
) -> Explanation {
    with_detail(hub, now, placement, cel, Detail::Everything)
}

/// As [`explain`], with the given detail.
pub fn with_detail(
    hub: &Hub,
    now: Instant,
    placement: &PlacementFact,
    cel: &dyn ClusterPredicate,
    detail: Detail,
) -> Explanation {
    let plan = Plan::of(&placement.spec, &hub.names);
    let mut trace = Trace::new(detail);
    let known = Known::nothing(hub.candidates(placement));
    let schedule = scheduled(hub, now, placement, &plan, cel, known, Some(&mut trace));
    let passing = trace.passing.as_deref().unwrap_or_default();
    let name = |place: u32| hub.name(passing[place as usize]);
    let mut order: Vec<u32> = match detail {
        Detail::Everything => (0..passing.len() as u32).collect(),
        Detail::Outline => trace.picks.clone(),
    };
    order.sort_by_key(|&place| (Reverse(trace.priors[place as usize]), place));
    let aggregated = order
        .iter()
        .map(|&p| (name(p), trace.priors[p as usize]))
        .collect();
    let mut shown = order.clone();
    shown.sort_unstable();
    let prioritizer = |(prioritizer, weight, values): &(_, i32, Vec<Option<i64>>)| {
        let prioritizer: crate::prioritize::prioritizer::Prioritizer = *prioritizer;
        let scores = shown.iter();
        PrioritizerResult {
            name: prioritizer.name(&hub.names).to_string(),
            weight: *weight,
            scores: scores
                .filter_map(|&p| Some((name(p), values[p as usize]?)))
                .collect(),
        }
    };
    let spreads = plan.selection.as_ref().ok();
    let spreads = spreads.filter(|selection| !selection.levels.is_empty());
    let mut explanation = Explanation {
        filters: Vec::new(),
        prioritizers: trace.scores.iter().map(prioritizer).collect(),
        aggregated,
        picks: trace.steps.iter().map(|step| pick(step, &name)).collect(),
        verdicts: Vec::new(),
        topologies: trace.topologies.clone(),
        selected: selected(&trace, &name),
        spread_weight: spreads.map_or(0, |selection| selection.weights.spread),
        schedule,
    };
    match detail {
        Detail::Everything => {
            explanation.filters = filters(hub, &trace, &order);
            let schedule = &explanation.schedule;
            explanation.verdicts = verdicts(hub, now, placement, schedule, &trace);
        }
        Detail::Outline => {
            explanation.schedule.scored = Vec::new();
            explanation.schedule.candidates.clusters = Default::default();
        }
    }
    explanation
}

fn selected(trace: &Trace, name: &impl Fn(u32) -> Symbol) -> Vec<SelectedCluster> {
    let each = trace.picks.iter().enumerate();
    let selected = each.map(|(i, &place)| {
        let prior = trace.priors[place as usize];
        let decisive = trace.decisive.get(i);
        let node = trace.nodes.get(place as usize);
        SelectedCluster {
            cluster: name(place),
            topology: node.and_then(|node| node.checked_sub(1)),
            prior,
            normalized: decisive.map_or(0, |d| d.normalized),
            score: decisive.map_or(prior, |d| d.total),
        }
    });
    selected.collect()
}

fn filters(hub: &Hub, trace: &Trace, order: &[u32]) -> Vec<FilterResult> {
    let name = |&idx: &ClusterIdx| hub.name(idx);
    let mut filters = Vec::new();
    if let Some(passed) = &trace.passed_predicates {
        filters.push(FilterResult {
            name: "Predicate",
            clusters: passed.iter().map(name).collect(),
        });
    }
    if let Some(passing) = &trace.passing {
        let others = order.iter().filter(|place| !trace.picks.contains(place));
        let places = trace.picks.iter().chain(others);
        filters.push(FilterResult {
            name: "Predicate,TaintToleration",
            clusters: places
                .map(|&place| name(&passing[place as usize]))
                .collect(),
        });
    }
    filters
}

fn pick(step: &StepTrace, name: &impl Fn(u32) -> Symbol) -> PickReport {
    let excluded = step.excluded.iter();
    let score = |scored: &trace::Scored| ClusterScore {
        cluster: name(scored.place),
        levels: scored.levels.clone(),
        spread: scored.raw,
        normalized: scored.normalized,
        total: scored.total,
    };
    PickReport {
        counts: step.counts.clone(),
        excluded: excluded
            .map(|&(place, key, exclusion)| (name(place), key, exclusion))
            .collect(),
        scores: step.scored.iter().map(score).collect(),
        picked: name(step.pick),
    }
}

fn verdicts(
    hub: &Hub,
    now: Instant,
    placement: &PlacementFact,
    schedule: &Schedule,
    trace: &Trace,
) -> Vec<(Symbol, Verdict)> {
    let held = decided(hub, placement);
    let passing = trace.passing.as_deref();
    let mut rank = vec![None; passing.map_or(0, <[_]>::len)];
    for (i, &place) in trace.picks.iter().enumerate() {
        rank[place as usize] = Some(i);
    }
    let of_passing = |place: usize| match (rank[place], trace.kept_out.get(place)) {
        (Some(rank), _) => Verdict::Selected(rank),
        (None, Some(Some(KeptOut::Lacks(key)))) => Verdict::LacksTopologyKey(*key),
        (None, Some(Some(KeptOut::Weightless(key)))) => Verdict::TopologyWithoutWeight(*key),
        (None, Some(Some(KeptOut::Excluded(key, by)))) => Verdict::Excluded(*key, *by),
        (None, _) => Verdict::NotNeeded,
    };
    // All lists are sorted by name, and each is a part of the previous one: each is walked once.
    let (mut next_passed, mut next_passing) = (0, 0);
    let passed = trace.passed_predicates.as_deref();
    let verdict = |&idx: &ClusterIdx| {
        let advance = |list: &[ClusterIdx], next: &mut usize| {
            let here = list.get(*next) == Some(&idx);
            *next += usize::from(here);
            here
        };
        let name = hub.name(idx);
        let Some(passed) = passed else {
            return (name, Verdict::Undecided);
        };
        if !advance(passed, &mut next_passed) {
            return (name, Verdict::NoPredicate);
        }
        let Some(passing) = passing else {
            return (name, Verdict::Undecided);
        };
        if advance(passing, &mut next_passing) {
            return (name, of_passing(next_passing - 1));
        }
        let cluster = hub.cluster(idx);
        let tolerations = &placement.spec.tolerations;
        let taken = cluster.map(|c| tolerance(c, tolerations, held.contains(idx.index()), now));
        match taken {
            Some(Tolerance::Refused(taint)) => match tolerated_before(taint, tolerations, now) {
                Some(seconds) => (name, Verdict::ToleratedBefore(taint.clone(), seconds)),
                None => (name, Verdict::Taint(taint.clone())),
            },
            _ => (name, Verdict::NotNeeded),
        }
    };
    schedule.candidates.clusters.iter().map(verdict).collect()
}
