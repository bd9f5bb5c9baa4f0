//! The result for programs: kind `SimulationReport`, versioned, without any wall-clock time.

use std::collections::BTreeMap;

use serde::Serialize;
use strew_scenario::expect::spread::{ByDomain, skew};
use strew_scenario::format::{Expectation, Verdict};
use strew_scenario::run::{Outcome, Refused};

use super::Question;
use super::clock::clock;
use super::standing::{Answer, Judged, Result, Standing, State, state};
use super::suite::{Cast, Suite};
use crate::report::{API_VERSION, MaxSkew, WorkloadReport};
use crate::version;

/// `SimulationReport` of scenarios.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report<'a> {
    api_version: &'static str,
    kind: &'static str,
    kubernetes: &'static str,
    compat: &'static str,
    summary: Summary,
    scenarios: Vec<ScenarioReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    /// Played to their end.
    runs: usize,
    held: usize,
    broken: usize,
    /// Whether something is wrong: the exit code is 1.
    red: bool,
    interrupted: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ScenarioReport<'a> {
    file: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    story: Option<String>,
    variants: Vec<VariantReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VariantReport<'a> {
    name: String,
    /// `hold`, `fail` or `mayFail`.
    must: &'static str,
    result: &'static str,
    seeds: Vec<u64>,
    broken: usize,
    runs: Vec<RunReport<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunReport<'a> {
    seed: u64,
    held: bool,
    ended: String,
    always: Vec<ExpectationReport>,
    steps: Vec<StepReport<'a>>,
    max_skew: &'a [MaxSkew],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StepReport<'a> {
    at: String,
    verbs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<RefusedReport>,
    workloads: &'a [WorkloadReport],
    expectations: Vec<ExpectationReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefusedReport {
    verb: String,
    why: String,
    breach: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExpectationReport {
    text: String,
    held: bool,
    /// The run was ended before it was decided.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    open: bool,
    at: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spread: Option<SpreadReport>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpreadReport {
    counts: BTreeMap<String, u32>,
    skew: u32,
}

/// The report on all scenarios.
pub(super) fn report<'a>(
    question: &Question<'_>,
    suites: &[Suite],
    answer: &'a Answer<'_>,
) -> Report<'a> {
    let standings = || answer.casts.iter().flatten();
    let runs = standings().map(|s| s.runs.len()).sum();
    let broken = standings().map(|s| s.n_broken).sum();
    let each = suites.iter().zip(&answer.casts);
    Report {
        api_version: API_VERSION,
        kind: "SimulationReport",
        kubernetes: version::KUBERNETES,
        compat: question.world.scheduling.compat.name(),
        summary: Summary {
            runs,
            held: runs - broken,
            broken,
            red: answer.is_red,
            interrupted: answer.is_interrupted,
        },
        scenarios: each.map(|(suite, s)| scenario(suite, s)).collect(),
    }
}

fn scenario<'a>(suite: &Suite, standings: &'a [Standing<'_>]) -> ScenarioReport<'a> {
    let each = suite.variants.iter().zip(standings);
    ScenarioReport {
        file: suite.file.clone(),
        name: suite.name.clone(),
        story: suite.story.clone(),
        variants: each.map(|(cast, s)| variant(cast, s)).collect(),
    }
}

fn variant<'a>(cast: &Cast, standing: &'a Standing<'_>) -> VariantReport<'a> {
    VariantReport {
        name: cast.variant.name.clone(),
        must: match cast.variant.verdict {
            Verdict::MustHold => "hold",
            Verdict::MustFail => "fail",
            Verdict::MayFail => "mayFail",
        },
        result: Result::name(standing.result),
        seeds: cast.seeds.clone(),
        broken: standing.n_broken,
        runs: standing
            .runs
            .iter()
            .map(|judged| run(cast, judged))
            .collect(),
    }
}

fn run<'a>(cast: &Cast, judged: &'a Judged) -> RunReport<'a> {
    let scenario = &cast.variant.scenario;
    let played = &judged.run.played;
    let steps = scenario.timeline.iter().zip(&played.steps);
    let steps = steps.enumerate().map(|(number, (step, result))| {
        let each = step.expect.iter().zip(&result.expectations);
        let of = |(claim, outcome): (&Expectation, &Outcome)| {
            let state = state(claim, outcome, step.at, played.ended, scenario.end());
            expectation(outcome, state)
        };
        StepReport {
            at: clock(step.at),
            verbs: step.verbs.iter().map(|verb| verb.text.clone()).collect(),
            refused: result.refused.iter().map(refused).collect(),
            workloads: judged.run.workloads.get(number).map_or(&[], Vec::as_slice),
            expectations: each.map(of).collect(),
        }
    });
    let always = played.always.iter().map(|outcome| {
        let state = match outcome.held {
            true => State::Held,
            false => State::Broken,
        };
        expectation(outcome, state)
    });
    RunReport {
        seed: judged.run.seed,
        held: !judged.is_broken,
        ended: clock(played.ended),
        always: always.collect(),
        steps: steps.collect(),
        max_skew: &judged.run.max_skew,
    }
}

fn refused(refused: &Refused) -> RefusedReport {
    RefusedReport {
        verb: refused.text.clone(),
        why: refused.why.clone(),
        breach: refused.is_breach,
    }
}

fn expectation(outcome: &Outcome, state: State) -> ExpectationReport {
    ExpectationReport {
        text: outcome.text.clone(),
        held: state == State::Held,
        open: state == State::Open,
        at: clock(outcome.at),
        why: outcome.why.clone(),
        cause: outcome.cause.clone(),
        spread: outcome.counts.as_ref().map(spread),
    }
}

fn spread(counts: &ByDomain) -> SpreadReport {
    SpreadReport {
        counts: counts.clone(),
        skew: skew(counts),
    }
}
