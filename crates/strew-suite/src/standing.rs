//! Adds runs up, expectation by expectation, as they end.

use std::collections::BTreeMap;

use strew_manifest::read::Severity;
use strew_model::Span;
use strew_scenario::format::{
    Claim, Counts, Expectation, ExpectedResult, SpreadClaim, Step, Subject, Verb,
};
use strew_scenario::run::{ExpectationOutcome, POD_CREATION};

use crate::clock::clock;
use crate::options::Options;
use crate::ready::Ready;
use crate::replay;
use crate::report::API_VERSION;
use crate::seeds::Seeds;
use crate::suite::{Cast, Suite};
use crate::summary::{
    Breach, KIND, LineAndColumn, Must, RemarkSum, RowSum, ScenarioSum, SeedAt, Summary, VariantSum,
};
use crate::work::Run;
use strew_view::words::short_key;

/// The results of everything.
pub struct Answer {
    /// All runs in sum.
    pub summary: Summary,
    /// Runs that are kept for output, by scenario and variant, in the order of their seeds.
    pub kept: Vec<Vec<Vec<Judged>>>,
    /// True if some run was not played to its end.
    pub is_interrupted: bool,
    /// The number of runs to play.
    pub n_wanted: u64,
}

impl Answer {
    /// Each variant, with its kept runs.
    pub fn variants(&self) -> impl Iterator<Item = (&VariantSum, &[Judged])> {
        let kept = self.kept.iter().flatten().map(Vec::as_slice);
        self.summary.variants().zip(kept)
    }
}

/// A completed run.
pub struct Judged {
    /// The run.
    pub run: Run,
    /// True if it fails its variant.
    pub is_broken: bool,
}

/// The state of an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It held.
    Held,
    /// It did not.
    Broken,
    /// The run was ended before its deadline.
    Open,
}

impl State {
    /// The state of an outcome.
    pub fn of(outcome: &ExpectationOutcome) -> Self {
        match (outcome.held, outcome.is_open) {
            (true, _) => Self::Held,
            (false, true) => Self::Open,
            (false, false) => Self::Broken,
        }
    }
}

/// Adds runs up as they end, in any order.
pub struct Standings {
    summary: Summary,
    kept: Vec<Vec<BTreeMap<u64, Judged>>>,
}

impl Standings {
    /// Without runs.
    pub fn new(options: &Options, ready: &Ready) -> Self {
        let suites = &ready.suites;
        let scenario = |suite: &Suite| ScenarioSum {
            file: suite.file.clone(),
            name: suite.name.clone(),
            story: suite.story.clone(),
            built_in: suite.is_story,
            read: Some(suite.read),
            variants: suite
                .variants
                .iter()
                .map(|cast| variant(options, suite, cast))
                .collect(),
        };
        let kept = suites.iter().map(|suite| {
            let casts = suite.variants.iter();
            casts.map(|_| BTreeMap::new()).collect()
        });
        let summary = Summary {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            strew: crate::build(),
            kubernetes: crate::KUBERNETES.to_owned(),
            compat: options.scheduling.compat.name().to_owned(),
            inputs: ready.inputs.clone(),
            command: replay::line(&replay::whole(options)),
            // A single shard is complete.
            shard: options.shard.filter(|shard| shard.of.get() > 1),
            first_file: ready.first_file.clone(),
            fails_on_warnings: options.play.fails_on_warnings(),
            findings: ready.findings.clone(),
            scenarios: suites.iter().map(scenario).collect(),
        };
        Self {
            summary,
            kept: kept.collect(),
        }
    }

    /// Adds a completed run; drops it unless it is kept.
    pub fn add(&mut self, [suite, cast]: [usize; 2], of: &Cast, run: Run, is_kept: bool) {
        let scenario = self.summary.scenarios.get_mut(suite);
        let Some(variant) = scenario.and_then(|scenario| scenario.variants.get_mut(cast)) else {
            return;
        };
        let is_broken = add(of, &mut variant.rows, &run);
        variant.broken = variant.broken.saturating_add(u64::from(is_broken));
        variant.add_played(Seeds::new(run.seed, 1));
        let time = &mut variant.virtual_milliseconds;
        *time = time.saturating_add(run.played.ended.0 / NANOS_PER_MILLISECOND);
        let kept = self.kept.get_mut(suite).and_then(|kept| kept.get_mut(cast));
        if let Some(kept) = kept.filter(|_| is_kept) {
            kept.insert(run.seed, Judged { run, is_broken });
        }
    }

    /// The seed of a variant that is shown: the first that broke, else the first with a warning, else `first`.
    pub fn shown(&self, [suite, cast]: [usize; 2], first: u64) -> u64 {
        let scenario = self.summary.scenarios.get(suite);
        let variant = scenario.and_then(|scenario| scenario.variants.get(cast));
        let rows = || variant.into_iter().flat_map(|variant| &variant.rows);
        let broken = rows().filter(|row| row.decides && row.broken > 0);
        let broken = broken
            .filter_map(|row| Some(row.first.as_ref()?.seed))
            .min();
        let is_told = |remark: &&RemarkSum| remark.finding.severity <= Severity::Warning;
        let warned = || rows().flat_map(|row| &row.remarks).filter(is_told);
        let warned = || warned().map(|remark| remark.first).min();
        broken.or_else(warned).unwrap_or(first)
    }

    /// Shows this run of a variant in place of the others.
    pub fn show(&mut self, [suite, cast]: [usize; 2], of: &Cast, run: Run) {
        let kept = self.kept.get_mut(suite).and_then(|kept| kept.get_mut(cast));
        let Some(kept) = kept else {
            return;
        };
        for other in kept.values_mut() {
            other.run.moments.clear();
            other.run.written = None;
        }
        let mut rows = rows(of, &[]);
        let is_broken = add(of, &mut rows, &run);
        kept.insert(run.seed, Judged { run, is_broken });
    }

    /// The results of all runs.
    pub fn finish(self, n_wanted: u64) -> Answer {
        let n_played = self.summary.variants().map(VariantSum::n_played);
        let in_order = |runs: BTreeMap<u64, Judged>| runs.into_values().collect();
        let of_suite =
            |casts: Vec<BTreeMap<u64, Judged>>| casts.into_iter().map(in_order).collect();
        Answer {
            is_interrupted: n_played.sum::<u64>() < n_wanted,
            n_wanted,
            summary: self.summary,
            kept: self.kept.into_iter().map(of_suite).collect(),
        }
    }
}

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

fn variant(options: &Options, suite: &Suite, cast: &Cast) -> VariantSum {
    VariantSum {
        name: cast.variant.name.clone(),
        must: match cast.variant.expected {
            ExpectedResult::MustHold => Must::Hold,
            ExpectedResult::MustFail => Must::Fail,
            ExpectedResult::MayFail => Must::MayFail,
        },
        seeds: cast.sweep,
        played: Vec::new(),
        broken: 0,
        cut: options.play.until.is_some(),
        virtual_milliseconds: 0,
        replay: replay::of_variant(options, suite, cast),
        rows: rows(cast, &options.play.deciding_steps()),
    }
}

/// `fail_on`: only these steps decide, if any are named.
fn rows(cast: &Cast, fail_on: &[&str]) -> Vec<RowSum> {
    let scenario = &cast.variant.scenario;
    let of_expectation = |when: Option<&str>, expectation: &Expectation| RowSum {
        counted: match &expectation.claim {
            Claim::Spread(claim) => Some(counted(claim)),
            _ => None,
        },
        by_domain: matches!(
            &expectation.claim,
            Claim::Spread(SpreadClaim {
                counts: Some(Counts::Exact(_)),
                ..
            })
        ),
        place: expectation.place.map(LineAndColumn::of),
        ..row(when, &expectation.text)
    };
    let always = scenario.always.iter();
    let mut rows: Vec<RowSum> = always.map(|e| of_expectation(None, e)).collect();
    for (number, step) in scenario.timeline.iter().enumerate() {
        let when = when(number, step);
        let decides = match &step.name {
            Some(name) => fail_on.is_empty() || fail_on.contains(&name.as_str()),
            None => fail_on.is_empty() || (step.at.is_none() && fail_on.contains(&when.as_str())),
        };
        let verbs = step.verbs.iter().map(|verb| RowSum {
            verb: true,
            place: verb.place.map(LineAndColumn::of),
            ..row(Some(&when), &verb.text)
        });
        let expect = step.expect.iter().map(|e| of_expectation(Some(&when), e));
        let is_last = number + 1 == scenario.timeline.len();
        let implied = is_last && scenario.expects_nothing();
        let implied = implied.then(|| row(Some(&when), POD_CREATION));
        let of_step = verbs
            .chain(expect)
            .chain(implied)
            .map(|row| RowSum { decides, ..row });
        rows.extend(of_step);
    }
    rows
}

/// The beginning of a row of a step.
fn when(number: usize, step: &Step) -> String {
    match (&step.name, step.at) {
        (Some(name), _) => name.clone(),
        (None, Some(at)) => clock(at),
        (None, None) => format!("step {}", number + 1),
    }
}

fn row(when: Option<&str>, text: &str) -> RowSum {
    RowSum {
        when: when.map(str::to_owned),
        text: text.to_owned(),
        verb: false,
        counted: None,
        by_domain: false,
        place: None,
        decides: true,
        began: None,
        held: 0,
        open: 0,
        broken: 0,
        held_at_once: 0,
        shapes: Vec::new(),
        other_shapes: 0,
        first: None,
        seeds_broken: Vec::new(),
        remarks: Vec::new(),
    }
}

/// `web by zone`
fn counted(claim: &SpreadClaim) -> String {
    let of = match &claim.of {
        Subject::Workload(target) => target.name.clone(),
        Subject::Selector { namespace, .. } => format!("pods of {namespace}"),
    };
    format!("{of} by {}", short_key(&claim.by))
}

/// Adds the results of a run. Returns true if it is broken.
fn add(cast: &Cast, rows: &mut [RowSum], run: &Run) -> bool {
    let scenario = &cast.variant.scenario;
    // A variant that must fail is not met by a claim that nothing is known about.
    let must_fail = cast.variant.expected == ExpectedResult::MustFail;
    let counts = |outcome: &ExpectationOutcome| !(must_fail && outcome.is_unknown);
    let mut is_broken = false;
    let mut place = 0;
    for outcome in &run.played.always {
        is_broken |= add_outcome(&mut rows[place], outcome, run.seed) && counts(outcome);
        place += 1;
    }
    for (step, result) in scenario.timeline.iter().zip(&run.played.steps) {
        let began = at(run.seed, result.began);
        for verb in &step.verbs {
            let refused = result.refused.iter().find(|r| r.text == verb.text);
            let row = &mut rows[place];
            row.add_began(began);
            place += 1;
            let Some(refused) = refused else {
                row.held += 1;
                continue;
            };
            match refused.is_breach {
                true => {
                    row.broken += 1;
                    row.add_broken(at(run.seed, refused.at));
                    is_broken |= row.decides && (!must_fail || is_outcome(&verb.verb));
                }
                false => row.held += 1,
            }
            row.add_first(Breach {
                seed: run.seed,
                at: refused.at,
                why: refused.why.clone(),
                cause: None,
                counts: None,
            });
        }
        for outcome in &result.expectations {
            rows[place].add_began(began);
            is_broken |= add_outcome(&mut rows[place], outcome, run.seed) && counts(outcome);
            place += 1;
        }
    }
    is_broken
}

/// True if a refusal is the cluster's judgement on what the verb brings. That of another verb, such as a patch of a field
/// that is not there, is a mistake of the scenario: it is no proof that a variant fails as it must.
fn is_outcome(verb: &Verb) -> bool {
    matches!(verb, Verb::Apply(_) | Verb::Create(_) | Verb::Drain { .. })
}

fn at(seed: u64, at: Span) -> SeedAt {
    SeedAt { seed, at }
}

fn add_outcome(row: &mut RowSum, outcome: &ExpectationOutcome, seed: u64) -> bool {
    let state = State::of(outcome);
    if let Some(counts) = &outcome.counts {
        let skew = strew_scenario::expect::spread::skew(counts);
        row.add_counts(counts, skew);
    }
    row.held_at_once += u64::from(outcome.held_at_once);
    row.add_findings(seed, &outcome.findings);
    match state {
        State::Held => row.held += 1,
        State::Open => row.open += 1,
        State::Broken => {
            row.broken += 1;
            row.add_broken(at(seed, outcome.at));
            row.add_first(Breach {
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
