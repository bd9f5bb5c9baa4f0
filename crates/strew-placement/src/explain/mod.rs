//! Why a placement holds the clusters it holds, and not others.
//!
//! Explaining runs the code that decides once more, with a `trace` looking on. The answer is typed: what each filter
//! let pass, what each prioritizer gave, the table of selected counts before each pick with every cluster's scores (the
//! OCM spread proposal, "Implementation Example"), and for every candidate what became of it. Its form on the wire is
//! another crate's. Source: spec/placement §2.11, §3.7, "Reporting".

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

/// How much an explanation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The selected clusters with their numbers, and the topologies: a few bytes for each. `filters`, `picks` and
    /// `verdicts` are empty, scores are those of selected clusters.
    Outline,
    /// Every number of every candidate: megabytes for a large fleet.
    Everything,
}

/// A decision with its reasons.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The decision.
    pub schedule: Schedule,
    /// What each filter let pass, in their order; names accumulate as upstream's do.
    pub filters: Vec<FilterResult>,
    /// What each prioritizer gave.
    pub prioritizers: Vec<PrioritizerResult>,
    /// The sums, highest first, then by name.
    pub aggregated: Vec<(Symbol, i64)>,
    /// The selector's picks, at most the first 200, and fewer of many clusters; empty without spread constraints.
    pub picks: Vec<PickReport>,
    /// Every candidate by name, and what became of it.
    pub verdicts: Vec<(Symbol, Verdict)>,
    /// Each topology, parents before their children; empty without spread constraints.
    pub topologies: Vec<TopologyReport>,
    /// The selected clusters, in the order of selection.
    pub selected: Vec<SelectedCluster>,
    /// The weight of the spread policy: what normalized scores are multiplied with; 0 without spread constraints.
    pub spread_weight: i32,
}

/// What a selected cluster was selected with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelectedCluster {
    /// Which cluster.
    pub cluster: Symbol,
    /// Its topology, an index into [`Explanation::topologies`]; `None` where it stands in none.
    pub topology: Option<u32>,
    /// The prioritizers' sum.
    pub prior: i64,
    /// How empty its topologies were when it was picked, -100 to 100; 0 without spread constraints.
    pub normalized: i64,
    /// What decided: the prioritizers' sum, and the weighted `normalized` added.
    pub score: i64,
}

/// A topology, and how many clusters were selected in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopologyReport {
    /// Its values, from the first term down.
    pub tuple: Vec<Symbol>,
    /// Selected clusters in it and below.
    pub selected: i32,
    /// Clusters that are eligible, selected ones included.
    pub clusters: u32,
    /// Its weight among its siblings; `None` where its term has no weights.
    pub weight: Option<u32>,
}

/// What a filter let pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterResult {
    /// `Predicate`, or `Predicate,TaintToleration`.
    pub name: &'static str,
    /// By name; of the last filter in the order of selection: picks first, then the others, best first.
    pub clusters: Vec<Symbol>,
}

/// What a prioritizer gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrioritizerResult {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: i32,
    /// Scores by name of cluster; those without a score are left out.
    pub scores: Vec<(Symbol, i64)>,
}

/// One pick of the selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickReport {
    /// The selected count table before the pick: tuples of values.
    pub counts: Vec<(Vec<Symbol>, i32)>,
    /// Clusters that a rule excludes from this pick, the key whose rule it is, and the rule.
    pub excluded: Vec<(Symbol, Symbol, Exclusion)>,
    /// The scores of the others.
    pub scores: Vec<ClusterScore>,
    /// Which one is picked.
    pub picked: Symbol,
}

/// The scores of a cluster before a pick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterScore {
    /// Which cluster.
    pub cluster: Symbol,
    /// By level, 0 to 63.
    pub levels: Vec<i64>,
    /// All levels combined.
    pub spread: i64,
    /// That on the scale of -100 to 100.
    pub normalized: i64,
    /// Weighted, and the prioritizers' sum added.
    pub total: i64,
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Selected, as the so-and-so-manieth (from 0).
    Selected(usize),
    /// No predicate matches it.
    NoPredicate,
    /// This taint is not tolerated.
    Taint(ClusterTaint),
    /// This taint was tolerated for so many seconds, which are over.
    ToleratedBefore(ClusterTaint, i64),
    /// It lacks the key of a hard term.
    LacksTopologyKey(Symbol),
    /// Its topology under this key has weight 0.
    TopologyWithoutWeight(Symbol),
    /// This rule of the key excluded it: from the last pick, or, where fewer were found than asked for, from any other.
    Excluded(Symbol, Exclusion),
    /// It might have been taken, but enough others were better.
    NotNeeded,
    /// The specification makes no sense: nobody was selected.
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

/// Decides a placement and tells why. Nothing is changed: also for placements that do not exist.
pub fn explain(
    hub: &Hub,
    now: Instant,
    placement: &PlacementFact,
    cel: &dyn ClusterPredicate,
) -> Explanation {
    with_detail(hub, now, placement, cel, Detail::Everything)
}

/// The same, as much as is asked for.
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
    // All lists are by name, one a part of the other: each is walked once.
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
