//! Decides one placement: candidates, filters, prioritizers, selection; repeated until the result is stable.
//!
//! Source: spec/placement §2.1 to §2.7, §3.7.

use std::borrow::Cow;
use std::sync::Arc;

use fixedbitset::FixedBitSet;
use strew_model::{Instant, Interner, Span, Symbol};

use crate::decisions::replicas::{self, Parts};
use crate::explain::trace::Trace;
use crate::facts::cluster::TaintEffect;
use crate::facts::placement::{PlacementFact, Rebalance};
use crate::filter::predicate::{ClusterPredicate, passing};
use crate::filter::taint::{Tolerance, tolerance};
use crate::hub::ledger::Others;
use crate::hub::{Candidates, ClusterIdx, Hub};
use crate::plan::{Plan, Problem, Selection};
use crate::prioritize::prioritizer::{Prioritizer, Scoring};
use crate::select::even_spread::{EvenSpread, Ground, Request};
use crate::select::measure::{self, SpreadReport};
use crate::select::plain;

/// The largest number of runs until the result must be stable.
const RUNS_MAX: usize = 8;

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// Success.
    Success,
    /// Success, with a warning.
    Warning(Problem),
    /// The specification is invalid: no cluster was selected.
    Misconfigured(Problem),
}

/// A selected cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// Its name.
    pub cluster: Symbol,
    /// The prioritizers' sum.
    pub score: i64,
    /// Its row.
    pub idx: ClusterIdx,
}

/// The decision on a placement.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The candidates.
    pub candidates: Candidates,
    /// The result.
    pub code: Code,
    /// The selected clusters, in the order of selection.
    pub picks: Vec<Pick>,
    /// The number of clusters missing to the number asked for.
    pub unscheduled: usize,
    /// The replicas of each selected cluster; `None` if no replicas are divided.
    pub parts: Option<Parts>,
    /// How even the selection is; `None` without spread constraints, or if an error prevented a selection.
    pub spread: Option<SpreadReport>,
    /// The time at which the result may change without an input; `None`: never.
    pub later: Option<Instant>,
    /// The number of runs until the result was stable; 0 if an error prevented a selection.
    pub runs: usize,
    /// All scored clusters, by name.
    pub scored: Vec<(Symbol, i64)>,
}

/// Decides a placement that holds the clusters `current`.
pub fn schedule(
    hub: &Hub,
    now: Instant,
    placement: &PlacementFact,
    cel: &dyn ClusterPredicate,
) -> Schedule {
    let plan = Plan::of(&placement.spec, &hub.names);
    let candidates = hub.candidates(placement);
    scheduled(
        hub,
        now,
        placement,
        &plan,
        cel,
        Known::nothing(candidates),
        None,
    )
}

/// What is known before a run.
pub(crate) struct Known<'a> {
    /// The candidates.
    pub(crate) candidates: Candidates,
    /// The candidates that pass the predicates, by name; `None` if they must be computed.
    pub(crate) passed: Option<&'a [ClusterIdx]>,
}

impl Known<'_> {
    /// A subset of the candidates.
    pub(crate) fn nothing(candidates: Candidates) -> Self {
        Self {
            candidates,
            passed: None,
        }
    }
}

/// Decides a placement whose specification is checked already. `trace` records every number.
pub(crate) fn scheduled<'a>(
    hub: &'a Hub,
    now: Instant,
    placement: &'a PlacementFact,
    plan: &'a Plan,
    cel: &dyn ClusterPredicate,
    known: Known<'a>,
    mut trace: Option<&mut Trace>,
) -> Schedule {
    let mut schedule = Schedule {
        candidates: known.candidates,
        code: Code::Success,
        picks: Vec::new(),
        parts: None,
        unscheduled: 0,
        spread: None,
        later: None,
        runs: 0,
        scored: Vec::new(),
    };
    let passing = || match known.passed {
        Some(passed) => Ok(Cow::Borrowed(passed)),
        None => passing(hub, placement, cel, &schedule.candidates.clusters).map(Cow::Owned),
    };
    let any = !schedule.candidates.clusters.is_empty();
    let filtered = filtered(plan, any, passing, &mut trace);
    let (passed, selection) = match filtered {
        Ok(filtered) => filtered,
        Err(problem) => {
            schedule.code = Code::Misconfigured(problem);
            return schedule;
        }
    };
    let pipeline = Pipeline::new(hub, now, placement, selection, passed);
    let (mut run, decided, runs) = pipeline.settled();
    schedule.runs = runs;
    if let Some(trace) = trace {
        // The first run with this result has the reason: in later runs the result keeps itself.
        let first = pipeline.run(&decided, &mut None, Some(trace));
        run.picks = first.picks;
        run.priors = first.priors;
        run.passing = first.passing;
    }
    pipeline.publish(run, &mut schedule);
    schedule
}

/// The clusters that pass the predicates, and how they are selected; or the first error, in the order of the rules.
/// `any` is true if there are candidates.
fn filtered<'p>(
    plan: &'p Plan,
    any: bool,
    passing: impl FnOnce() -> Result<Cow<'p, [ClusterIdx]>, Problem>,
    trace: &mut Option<&mut Trace>,
) -> Result<(Cow<'p, [ClusterIdx]>, &'p Selection), Problem> {
    plan.number.clone()?;
    let mut passed = Cow::default();
    if any {
        plan.predicates.clone()?;
        passed = passing()?;
    }
    if let Some(trace) = trace {
        trace.passed_predicates = Some(passed.to_vec());
    }
    if !passed.is_empty() {
        plan.tolerations.clone()?;
    }
    match &plan.selection {
        Ok(selection) => Ok((passed, selection)),
        Err(problem) => Err(problem.clone()),
    }
}

/// What stays the same in all runs of one decision.
struct Pipeline<'a> {
    hub: &'a Hub,
    now: Instant,
    placement: &'a PlacementFact,
    selection: &'a Selection,
    /// Clusters that pass the predicates, by name.
    passed: Cow<'a, [ClusterIdx]>,
    /// By [`ClusterIdx`]: true if the stored decisions name the cluster.
    stored: FixedBitSet,
    others: Option<Others>,
}

/// Clusters that pass all filters.
struct Passing {
    /// By name.
    clusters: Arc<[ClusterIdx]>,
    /// Positions of clusters whose taints are tolerated for a time, with its end.
    tolerated: Arc<[(u32, Instant)]>,
    /// True if the result depends on the present decisions: some cluster has a taint that only affects new decisions.
    wavers: bool,
}

/// What stays the same in all runs over the same clusters.
struct Base<'a> {
    passing: Passing,
    /// By position: the sum of all prioritizers except Steady.
    priors: Vec<i64>,
    warning: Option<Problem>,
    later: Option<Instant>,
    ground: Option<Ground<'a>>,
}

/// One run.
struct Run {
    /// Clusters that pass all filters, by name.
    passing: Arc<[ClusterIdx]>,
    /// By position in `passing`: the prioritizers' sum.
    priors: Vec<i64>,
    /// Positions in `passing`, in the order of selection.
    picks: Vec<u32>,
    unscheduled: usize,
    spread: Option<SpreadReport>,
    warning: Option<Problem>,
    /// The time at which the result may change, without the tolerations of clusters that are neither held nor picked.
    later: Option<Instant>,
    /// Positions in `passing` of clusters whose taints are tolerated for a time, with its end.
    tolerated: Arc<[(u32, Instant)]>,
}

impl Run {
    fn selected(&self) -> Vec<ClusterIdx> {
        let mut selected: Vec<u32> = self.picks.clone();
        selected.sort_unstable();
        selected
            .into_iter()
            .map(|p| self.passing[p as usize])
            .collect()
    }
}

impl<'a> Pipeline<'a> {
    fn new(
        hub: &'a Hub,
        now: Instant,
        placement: &'a PlacementFact,
        selection: &'a Selection,
        passed: Cow<'a, [ClusterIdx]>,
    ) -> Self {
        let owner = (placement.namespace, Some(placement.name));
        let balances = selection.weights.weight(Prioritizer::Balance) != 0;
        Self {
            hub,
            now,
            placement,
            selection,
            passed,
            stored: decided(hub, placement),
            others: balances.then(|| hub.ledger.others(owner)),
        }
    }

    /// The run to publish, the decisions that the first run with this result assumed, and the number of runs.
    fn settled(&self) -> (Run, FixedBitSet, usize) {
        let mut runs: Vec<(Vec<ClusterIdx>, Run, FixedBitSet)> = Vec::new();
        let mut decided = self.stored.clone();
        let mut base = None;
        loop {
            let run = self.run(&decided, &mut base, None);
            let selected = run.selected();
            let is_decided = |c: &&ClusterIdx| decided.contains(c.index());
            let held = || self.passed.iter().filter(is_decided).count();
            let stands = selected.iter().all(|c| is_decided(&c)) && held() == selected.len();
            if !self.selection.settles() || stands {
                let n = runs.len() + 1;
                let before = runs.pop().filter(|(earlier, ..)| *earlier == selected);
                return (run, before.map_or(decided, |(_, _, first)| first), n);
            }
            let set: FixedBitSet = bits(self.hub, selected.iter().copied());
            let again = runs.iter().position(|(earlier, ..)| *earlier == selected);
            runs.push((selected, run, decided));
            if let Some(first) = again {
                let n = runs.len();
                let (run, decided) = self.least_change(runs.drain(first..));
                return (run, decided, n);
            }
            if runs.len() == RUNS_MAX {
                break;
            }
            decided = set;
        }
        let (_, run, decided) = runs.pop().expect("there was a run");
        (run, decided, RUNS_MAX)
    }

    /// If results repeat in a circle: the one nearest to the stored decisions, then the first by names.
    fn least_change(
        &self,
        cycle: impl Iterator<Item = (Vec<ClusterIdx>, Run, FixedBitSet)>,
    ) -> (Run, FixedBitSet) {
        let key = |selected: &[ClusterIdx]| {
            let set = bits(self.hub, selected.iter().copied());
            let changes = set.symmetric_difference(&self.stored).count();
            let name = |&c: &ClusterIdx| self.hub.names.text(self.hub.name(c)).to_owned();
            (changes, selected.iter().map(name).collect::<Vec<_>>())
        };
        let best = cycle.min_by_key(|(selected, ..)| key(selected));
        let (_, run, decided) = best.expect("a cycle has members");
        (run, decided)
    }

    /// Filters the remaining clusters, scores and selects. `decided` takes the role of the present decisions.
    fn run(
        &self,
        decided: &FixedBitSet,
        base: &mut Option<Base<'a>>,
        mut trace: Option<&mut Trace>,
    ) -> Run {
        let wavers = |base: &Base<'_>| base.passing.wavers;
        if base.as_ref().is_none_or(wavers) {
            let passing = self.tolerating(decided);
            let is_same = |base: &Base<'_>| base.passing.clusters == passing.clusters;
            match base {
                Some(base) if is_same(base) => base.passing = passing,
                _ => *base = Some(self.base(passing, decided, &mut trace)),
            }
        }
        let Some(base) = base else {
            unreachable!("it was just made");
        };
        let mut run = Run {
            priors: base.priors.clone(),
            picks: Vec::new(),
            unscheduled: 0,
            spread: None,
            warning: base.warning.clone(),
            later: base.later,
            tolerated: Arc::clone(&base.passing.tolerated),
            passing: Arc::clone(&base.passing.clusters),
        };
        self.steady(decided, &mut run, &mut trace);
        let asked = self.placement.spec.number_of_clusters;
        let asked = asked.map(|n| usize::try_from(n).unwrap_or(0));
        let n = asked.unwrap_or(run.passing.len());
        match &base.ground {
            None => run.picks = plain::best(&run.priors, n),
            Some(ground) => self.spread(ground, n, &mut run, &mut trace),
        }
        run.unscheduled = asked.map_or(0, |n| n - run.picks.len());
        if let Some(trace) = trace {
            trace.passing = Some(run.passing.to_vec());
            trace.priors.clone_from(&run.priors);
            trace.picks.clone_from(&run.picks);
        }
        run
    }

    fn tolerating(&self, decided: &FixedBitSet) -> Passing {
        let (mut clusters, mut tolerated) = (Vec::with_capacity(self.passed.len()), Vec::new());
        let mut wavers = false;
        for &idx in &*self.passed {
            if self.hub.is_tainted(idx) {
                let Some(cluster) = self.hub.cluster(idx) else {
                    continue;
                };
                wavers |= cluster
                    .taints
                    .iter()
                    .any(|t| t.effect == TaintEffect::NoSelectIfNew);
                let held = decided.contains(idx.index());
                let tolerations = &self.placement.spec.tolerations;
                match tolerance(cluster, tolerations, held, self.now) {
                    Tolerance::Refused(_) => continue,
                    Tolerance::Until(Some(until)) => tolerated.push((clusters.len() as u32, until)),
                    Tolerance::Until(None) => {}
                }
            }
            clusters.push(idx);
        }
        Passing {
            clusters: clusters.into(),
            tolerated: tolerated.into(),
            wavers,
        }
    }

    fn base(
        &self,
        passing: Passing,
        decided: &FixedBitSet,
        trace: &mut Option<&mut Trace>,
    ) -> Base<'a> {
        let clusters = Arc::clone(&passing.clusters);
        let mut base = Base {
            priors: vec![0; clusters.len()],
            passing,
            warning: None,
            later: None,
            ground: None,
        };
        let all = self.selection.weights.prioritizers.iter();
        for &(prioritizer, weight) in all.filter(|(p, _)| *p != Prioritizer::Steady) {
            let scores = self.scoring(decided).score(prioritizer, &clusters);
            add(&mut base.priors, weight, &scores.values);
            if !scores.expired.is_empty() {
                base.warning = Some(self.expired(prioritizer, &scores.expired));
            }
            let after = scores.until.map(|until| until + Span(1));
            base.later = base.later.into_iter().chain(after).min();
            if let Some(trace) = trace {
                trace.scores.push((prioritizer, weight, scores.values));
            }
        }
        if !self.selection.levels.is_empty() {
            let Selection { levels, weights } = self.selection;
            let asked = self.placement.spec.number_of_clusters;
            let (hub, weight) = (self.hub, weights.spread);
            base.ground = Some(Ground::of(levels, weight, asked, hub, &clusters));
        }
        base
    }

    /// The only prioritizer that reads the present decisions.
    fn steady(&self, decided: &FixedBitSet, run: &mut Run, trace: &mut Option<&mut Trace>) {
        let weight = self.selection.weights.weight(Prioritizer::Steady);
        if weight == 0 {
            return;
        }
        let scores = self.scoring(decided);
        let scores = scores.score(Prioritizer::Steady, &run.passing);
        add(&mut run.priors, weight, &scores.values);
        if let Some(trace) = trace {
            trace
                .scores
                .push((Prioritizer::Steady, weight, scores.values));
        }
    }

    fn scoring<'s>(&'s self, decided: &'s FixedBitSet) -> Scoring<'s> {
        Scoring {
            hub: self.hub,
            now: self.now,
            others: self.others.as_ref(),
            decided,
        }
    }

    fn expired(&self, prioritizer: Prioritizer, clusters: &[ClusterIdx]) -> Problem {
        let names = &self.hub.names;
        let mut message = "AddOnPlacementScores".to_owned();
        if let Prioritizer::AddOn(add_on) = prioritizer {
            for &idx in clusters {
                let cluster = names.text(self.hub.name(idx));
                message += &format!(" {cluster}/{}", names.text(add_on.resource));
            }
        }
        message += " expired";
        Problem::new(&prioritizer.name(names).to_string(), message)
    }

    fn spread(&self, ground: &Ground<'_>, n: usize, run: &mut Run, trace: &mut Option<&mut Trace>) {
        let survives = |place: usize| self.stored.contains(run.passing[place].index());
        let keeps = self.placement.spec.rebalance == Rebalance::Never;
        let request = Request {
            weight: self.selection.weights.spread,
            n,
            asks: self.placement.spec.number_of_clusters.is_some(),
            priors: &run.priors,
            kept: keeps.then_some(&survives as &dyn Fn(usize) -> bool),
        };
        let mut selector = EvenSpread::new(ground, request);
        match trace {
            None => selector.run(|_, _| {}),
            Some(trace) => selector.run(|selector, step| trace.step(selector, step)),
        }
        let report = measure::of(&selector, n, &self.hub.names);
        if let Some(trace) = trace {
            trace.end(&selector);
        }
        let picks = std::mem::take(&mut selector.picks);
        drop(selector);
        run.picks = picks;
        run.spread = Some(report);
    }

    fn publish(&self, run: Run, schedule: &mut Schedule) {
        let name = |place: u32| {
            let idx = run.passing[place as usize];
            (idx, self.hub.name(idx), run.priors[place as usize])
        };
        let pick = |&place: &u32| {
            let (idx, cluster, score) = name(place);
            Pick {
                cluster,
                score,
                idx,
            }
        };
        schedule.picks = run.picks.iter().map(pick).collect();
        let scored = (0..run.passing.len() as u32).map(name);
        schedule.scored = scored.map(|(_, cluster, score)| (cluster, score)).collect();
        schedule.unscheduled = run.unscheduled;
        if let Ok(Some(division)) = &self.placement.spec.replicas {
            schedule.parts = Some(replicas::divide(
                self.hub,
                self.now,
                division,
                &schedule.picks,
            ));
        }
        let later = run.later.into_iter().chain(self.intolerance(&run));
        let parts = schedule.parts.as_ref().and_then(|parts| parts.until);
        schedule.later = later.chain(parts.map(|until| until + Span(1))).min();
        schedule.spread = run.spread;
        if let Some(warning) = run.warning {
            schedule.code = Code::Warning(warning);
        }
    }

    /// The end of the first toleration that matters: of clusters that are held or picked; with spread constraints, of
    /// all that pass, because a topology that vanishes changes the limits of the others.
    fn intolerance(&self, run: &Run) -> Option<Instant> {
        let all = !self.selection.levels.is_empty();
        let mut picked = FixedBitSet::with_capacity(run.passing.len());
        picked.extend(run.picks.iter().map(|&place| place as usize));
        let matters = |&&(place, _): &&(u32, Instant)| {
            let place = place as usize;
            let is_held = self.stored.contains(run.passing[place].index());
            all || is_held || picked.contains(place)
        };
        let ends = run.tolerated.iter().filter(matters);
        ends.map(|&(_, until)| until).min()
    }
}

/// Adds weighted scores to sums, position by position.
fn add(priors: &mut [i64], weight: i32, scores: &[Option<i64>]) {
    for (prior, score) in priors.iter_mut().zip(scores) {
        let weighted = i64::from(weight).saturating_mul(score.unwrap_or(0));
        *prior = prior.saturating_add(weighted);
    }
}

/// By [`ClusterIdx`]: the clusters in a placement's decisions.
pub(crate) fn decided(hub: &Hub, placement: &PlacementFact) -> FixedBitSet {
    let objects = hub.ledger.of(placement.namespace, placement.name);
    let named = objects.flat_map(|object| object.decisions.iter());
    bits(hub, named.filter_map(|decision| hub.find(decision.cluster)))
}

fn bits(hub: &Hub, clusters: impl Iterator<Item = ClusterIdx>) -> FixedBitSet {
    let mut bits = FixedBitSet::with_capacity(hub.rows());
    clusters.for_each(|idx| bits.insert(idx.index()));
    bits
}

/// The text of the event `ScoreUpdate`: `name:score ` by name, cut to fit the largest number of characters.
pub(crate) fn score_text(scored: &[(Symbol, i64)], names: &Interner) -> Arc<str> {
    const LENGTH_MAX: usize = 1000;
    let mut text = String::new();
    for &(cluster, score) in scored {
        let entry = format!("{}:{score} ", names.text(cluster));
        if text.len() + entry.len() > LENGTH_MAX {
            text += "......";
            break;
        }
        text += &entry;
    }
    text.into()
}
