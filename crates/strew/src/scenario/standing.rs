//! What is right, and what is not: expectations over all seeds of a variant, variants, all of them.

use std::collections::BTreeMap;

use strew_api::read::Place;
use strew_model::Span;
use strew_scenario::expect::spread::{self, ByDomain};
use strew_scenario::format::{Claim, Counts, Expectation, SpreadClaim, Verdict};
use strew_scenario::run::Outcome;
use strew_view::natural_order::natural_order;

use super::clock::clock;
use super::suite::{Cast, Suite};
use super::work::{Run, Runs};

/// What came of everything.
pub(super) struct Answer<'a> {
    /// By scenario and variant.
    pub(super) casts: Vec<Vec<Standing<'a>>>,
    pub(super) is_red: bool,
    pub(super) is_interrupted: bool,
    /// Runs that were to be played.
    pub(super) n_wanted: usize,
}

/// What came of a variant.
pub(super) struct Standing<'a> {
    pub(super) runs: Vec<Judged>,
    pub(super) result: Result,
    /// What must always hold first, then step by step.
    pub(super) rows: Vec<Row<'a>>,
    pub(super) n_broken: usize,
}

/// A run that was played to its end.
pub(super) struct Judged {
    pub(super) run: Run,
    pub(super) is_broken: bool,
}

/// A variant's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Result {
    Held,
    Broken,
    BrokeAsItMust,
    /// It must break, and did in no seed.
    BrokeNowhere,
    /// It may break, and did.
    BrokeAsItMay,
    /// It must break, and was not played to the end of all its seeds.
    Unknown,
}

impl Result {
    pub(super) fn is_red(self) -> bool {
        matches!(self, Self::Broken | Self::BrokeNowhere)
    }

    /// For programs.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Broken => "broken",
            Self::BrokeAsItMust => "brokeAsItMust",
            Self::BrokeNowhere => "brokeNowhere",
            Self::BrokeAsItMay => "brokeAsItMay",
            Self::Unknown => "unknown",
        }
    }
}

/// An expectation, or a verb that was refused, over all seeds.
pub(super) struct Row<'a> {
    pub(super) moment: Moment,
    /// When its step began in the first run that came so far.
    pub(super) began: Option<Span>,
    pub(super) text: String,
    /// Where that is written.
    pub(super) place: Option<Place>,
    /// None: a verb.
    pub(super) expectation: Option<&'a Expectation>,
    pub(super) n_held: usize,
    /// Seeds whose run was ended before it was decided.
    pub(super) n_open: usize,
    pub(super) n_broken: usize,
    /// Seeds in which it held right after the verbs of its step, before these had an effect.
    pub(super) n_at_once: usize,
    /// Every seed in which it broke.
    pub(super) seeds_broken: Vec<u64>,
    /// Whether a breach of it is one of the run: `--fail-on` may name other steps.
    pub(super) decides: bool,
    /// What was counted, by how many seeds.
    pub(super) shapes: BTreeMap<Shape, usize>,
    pub(super) breach: Option<Breach>,
}

/// What was counted in a seed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// By domain: the expectation says which is to have how many.
    Named(Vec<(String, u32)>),
    /// Largest first, and the skew: which domain has how many does not matter.
    Sorted(Vec<u32>, u32),
}

impl Shape {
    /// Domains that are named.
    const NAMED_MAX: usize = 12;

    fn of(row: &Row<'_>, counts: &ByDomain) -> Self {
        let claim = row.expectation.map(|expectation| &expectation.claim);
        let is_named = matches!(
            claim,
            Some(Claim::Spread(SpreadClaim {
                counts: Some(Counts::Exact(_)),
                ..
            }))
        );
        if is_named && counts.len() <= Self::NAMED_MAX {
            let named = counts.iter().map(|(domain, n)| (domain.clone(), *n));
            let mut named: Vec<(String, u32)> = named.collect();
            named.sort_by(|a, b| natural_order(&a.0, &b.0));
            return Self::Named(named);
        }
        let mut sorted: Vec<u32> = counts.values().copied().collect();
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        Self::Sorted(sorted, spread::skew(counts))
    }
}

/// When a row is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Moment {
    /// After every instant.
    Always,
    /// At a step of this time.
    At(Span),
    /// At a step that is called so.
    Step(String),
}

impl Moment {
    /// As a row begins.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Always => "always".to_owned(),
            Self::At(at) => clock(*at),
            Self::Step(name) => name.clone(),
        }
    }
}

/// The first breach, by seed.
pub(super) struct Breach {
    pub(super) seed: u64,
    pub(super) at: Span,
    pub(super) why: String,
    pub(super) cause: Option<String>,
    pub(super) counts: Option<ByDomain>,
}

/// Whether an expectation held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Held,
    Broken,
    /// The run was ended before its deadline.
    Open,
}

/// Judges all runs; `is_cut`: they were ended early, as was asked; `fail_on`: only these steps decide, if any are named.
pub(super) fn judge<'a>(
    suites: &'a [Suite],
    runs: Runs,
    is_cut: bool,
    fail_on: &[String],
) -> Answer<'a> {
    let mut answer = Answer {
        casts: Vec::new(),
        is_red: false,
        is_interrupted: false,
        n_wanted: 0,
    };
    for (suite, runs) in suites.iter().zip(runs) {
        let mut standings = Vec::new();
        for (cast, runs) in suite.variants.iter().zip(runs) {
            answer.n_wanted += runs.len();
            let is_whole = !is_cut && runs.iter().all(Option::is_some);
            answer.is_interrupted |= runs.iter().any(Option::is_none);
            let standing = standing(cast, runs.into_iter().flatten(), is_whole, fail_on);
            answer.is_red |= standing.result.is_red();
            standings.push(standing);
        }
        answer.casts.push(standings);
    }
    answer
}

fn standing<'a>(
    cast: &'a Cast,
    runs: impl Iterator<Item = Run>,
    is_whole: bool,
    fail_on: &[String],
) -> Standing<'a> {
    let mut rows = rows(cast, fail_on);
    let mut judged = Vec::new();
    let mut n_broken = 0;
    for run in runs {
        let is_broken = add(cast, &mut rows, &run);
        n_broken += usize::from(is_broken);
        judged.push(Judged { run, is_broken });
    }
    let result = match (cast.variant.verdict, n_broken) {
        (Verdict::MustHold | Verdict::MayFail, 0) => Result::Held,
        (Verdict::MustHold, _) => Result::Broken,
        (Verdict::MayFail, _) => Result::BrokeAsItMay,
        (Verdict::MustFail, 0) if is_whole => Result::BrokeNowhere,
        (Verdict::MustFail, 0) => Result::Unknown,
        (Verdict::MustFail, _) => Result::BrokeAsItMust,
    };
    Standing {
        runs: judged,
        result,
        rows,
        n_broken,
    }
}

fn rows<'a>(cast: &'a Cast, fail_on: &[String]) -> Vec<Row<'a>> {
    let scenario = &cast.variant.scenario;
    let row = |moment: &Moment, text: &str, place, expectation| Row {
        moment: moment.clone(),
        began: None,
        text: text.to_owned(),
        place,
        expectation,
        n_held: 0,
        n_open: 0,
        n_broken: 0,
        n_at_once: 0,
        seeds_broken: Vec::new(),
        decides: match moment {
            Moment::Step(name) => fail_on.is_empty() || fail_on.contains(name),
            Moment::At(_) => fail_on.is_empty(),
            Moment::Always => true,
        },
        shapes: BTreeMap::new(),
        breach: None,
    };
    let always = scenario.always.iter();
    let always = always.map(|e| row(&Moment::Always, &e.text, e.place, Some(e)));
    let mut rows: Vec<Row<'_>> = always.collect();
    for (number, step) in scenario.timeline.iter().enumerate() {
        let moment = match (&step.name, step.at) {
            (Some(name), _) => Moment::Step(name.clone()),
            (None, Some(at)) => Moment::At(at),
            (None, None) => Moment::Step(format!("step {}", number + 1)),
        };
        rows.extend(
            step.verbs
                .iter()
                .map(|v| row(&moment, &v.text, v.place, None)),
        );
        let expect = step.expect.iter();
        rows.extend(expect.map(|e| row(&moment, &e.text, e.place, Some(e))));
    }
    rows
}

/// Adds what came of a run; whether it is broken.
fn add(cast: &Cast, rows: &mut [Row<'_>], run: &Run) -> bool {
    let scenario = &cast.variant.scenario;
    let mut is_broken = false;
    let mut place = 0;
    for outcome in &run.played.always {
        is_broken |= add_outcome(&mut rows[place], outcome, run.seed);
        place += 1;
    }
    for (step, result) in scenario.timeline.iter().zip(&run.played.steps) {
        for verb in &step.verbs {
            let refused = result.refused.iter().find(|r| r.text == verb.text);
            let row = &mut rows[place];
            row.began.get_or_insert(result.began);
            place += 1;
            match refused {
                None => row.n_held += 1,
                Some(refused) => {
                    row.n_broken += usize::from(refused.is_breach);
                    row.seeds_broken
                        .extend(refused.is_breach.then_some(run.seed));
                    is_broken |= refused.is_breach && row.decides;
                    row.breach.get_or_insert_with(|| Breach {
                        seed: run.seed,
                        at: result.began,
                        why: refused.why.clone(),
                        cause: None,
                        counts: None,
                    });
                }
            }
        }
        for outcome in &result.expectations {
            rows[place].began.get_or_insert(result.began);
            is_broken |= add_outcome(&mut rows[place], outcome, run.seed);
            place += 1;
        }
    }
    is_broken
}

impl State {
    /// Of an expectation that was played.
    pub(super) fn of(outcome: &Outcome) -> Self {
        match (outcome.held, outcome.is_open) {
            (true, _) => Self::Held,
            (false, true) => Self::Open,
            (false, false) => Self::Broken,
        }
    }
}

fn add_outcome(row: &mut Row<'_>, outcome: &Outcome, seed: u64) -> bool {
    let state = State::of(outcome);
    if let Some(counts) = &outcome.counts {
        let shape = Shape::of(row, counts);
        *row.shapes.entry(shape).or_default() += 1;
    }
    row.n_at_once += usize::from(outcome.held_at_once);
    match state {
        State::Held => row.n_held += 1,
        State::Open => row.n_open += 1,
        State::Broken => {
            row.n_broken += 1;
            row.seeds_broken.push(seed);
            row.breach.get_or_insert_with(|| Breach {
                seed,
                at: outcome.at,
                why: outcome.why.clone(),
                cause: outcome.cause.clone(),
                counts: outcome.counts.clone(),
            });
        }
    }
    state == State::Broken && row.decides
}
