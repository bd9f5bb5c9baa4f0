//! The report of runs.

use strew_model::Span;
use strew_scenario::expect::availability::Preemption;
use strew_scenario::expect::spread::{ByDomain, skew};
use strew_scenario::expect::workloads::LossOf;
use strew_scenario::format::Step;
use strew_scenario::run::{ExpectationOutcome, Refused, StepResult, StepState};
use strew_view::values::MomentValues;

use super::{
    API_VERSION, BudgetReport, CountedReport, ExpectationReport, KIND, LossReport, PreemptedReport,
    RefusedReport, Report, RunReport, ScenarioReport, StepReport, Summary, VariantReport,
};
use crate::clock::clock;
use crate::standing::{Answer, Judged, State};
use crate::suite::{Cast, Suite};
use crate::summary::{ScenarioSum, VariantSum};
use crate::verdicts;

/// The report on all scenarios: the summary, with each run that was kept.
pub fn report<'a>(suites: &[Suite], answer: &'a Answer) -> Report<'a> {
    let sum = &answer.summary;
    let runs = sum.variants().map(VariantSum::n_played).sum();
    let broken = sum.variants().map(|variant| variant.broken).sum();
    let each = suites.iter().zip(&sum.scenarios).zip(&answer.kept);
    Report {
        api_version: API_VERSION,
        kind: KIND,
        kubernetes: &sum.kubernetes,
        compat: &sum.compat,
        summary: Summary {
            runs,
            held: runs.saturating_sub(broken),
            broken,
            red: sum.is_red(),
            warnings: sum.n_warnings(),
            interrupted: answer.is_interrupted,
        },
        findings: { sum.findings.iter().cloned() }
            .chain(verdicts::findings(sum))
            .collect(),
        scenarios: each
            .map(|((suite, sum), kept)| scenario(suite, sum, kept))
            .collect(),
    }
}

fn scenario<'a>(
    suite: &Suite,
    sum: &'a ScenarioSum,
    kept: &'a [Vec<Judged>],
) -> ScenarioReport<'a> {
    let each = suite.variants.iter().zip(&sum.variants).zip(kept);
    ScenarioReport {
        file: &sum.file,
        name: &sum.name,
        story: sum.story.as_deref(),
        read: sum.read,
        variants: each
            .map(|((cast, sum), kept)| variant(cast, sum, kept))
            .collect(),
    }
}

fn variant<'a>(cast: &Cast, sum: &'a VariantSum, kept: &'a [Judged]) -> VariantReport<'a> {
    VariantReport {
        name: &sum.name,
        must: sum.must.name(),
        result: sum.result().name(),
        seeds: cast.seeds.iter().collect(),
        broken: sum.broken,
        runs: kept.iter().map(|judged| run(cast, judged)).collect(),
    }
}

fn run<'a>(cast: &Cast, judged: &'a Judged) -> RunReport<'a> {
    let scenario = &cast.variant.scenario;
    let played = &judged.run.played;
    let steps = scenario.timeline.iter().zip(&played.steps);
    let steps = steps.enumerate().map(|(number, (scheduled, result))| {
        step(scheduled, result, judged.run.moments.get(number))
    });
    RunReport {
        seed: judged.run.seed,
        held: !judged.is_broken,
        ended: clock(played.ended),
        always: played.always.iter().map(expectation).collect(),
        steps: steps.collect(),
        max_skew: &judged.run.max_skew,
    }
}

fn step<'a>(step: &Step, result: &StepResult, moment: Option<&'a MomentValues>) -> StepReport<'a> {
    let outcomes = result.expectations.iter();
    let of = |state: State| outcomes.clone().filter(move |o| State::of(o) == state);
    let refused = result.refused.iter().filter(|refused| refused.is_breach);
    let refused = refused.map(|refused| format!("{}: {}", refused.text, refused.why));
    let broken = of(State::Broken).map(|outcome| format!("{}: {}", outcome.text, outcome.why));
    let undecided = of(State::Open).map(|outcome| format!("{}: not decided", outcome.text));
    let mut why: Vec<String> = refused.chain(broken).collect();
    let is_open = of(State::Open).next().is_some() || result.state == StepState::Cut;
    let verdict = match (why.is_empty(), is_open) {
        (false, _) => "broken",
        (true, true) => "open",
        (true, false) => "held",
    };
    why.extend(undecided);
    StepReport {
        name: step.name.clone(),
        began: clock(result.began),
        ended: clock(result.ended),
        state: match result.state {
            StepState::Done => "done",
            StepState::AtRest => "atRest",
            StepState::NotAtRest => "notAtRest",
            StepState::Cut => "cut",
        },
        verdict,
        why,
        verbs: step.verbs.iter().map(|verb| verb.text.clone()).collect(),
        chosen: result.chosen.clone(),
        refused: result.refused.iter().map(self::refused).collect(),
        expectations: result.expectations.iter().map(expectation).collect(),
        findings: { result.expectations.iter() }
            .flat_map(|outcome| outcome.findings.clone())
            .collect(),
        losses: result.facts.losses.iter().map(loss).collect(),
        preempted: result.facts.preemptions.iter().map(preempted).collect(),
        moment,
    }
}

fn loss(of: &LossOf) -> LossReport {
    let LossOf {
        name,
        loss,
        missing,
        is_recorded,
        ..
    } = of;
    let seconds = |span: Span| span.0 / 1_000_000_000;
    let budgets = loss.budgets.iter().map(|budget| BudgetReport {
        name: budget.name.clone(),
        healthy: budget.healthy,
        asks: budget.asks,
    });
    LossReport {
        of: name.clone(),
        verdict: loss.verdict().name(),
        wanted: loss.wanted,
        before: loss.before,
        ready: loss.ready,
        fewest: loss.fewest,
        seconds_short: seconds(loss.short_for),
        seconds_none: seconds(loss.none_for),
        budgets: budgets.collect(),
        cause: missing
            .as_ref()
            .map_or_else(String::new, ToString::to_string),
        of_dump: *is_recorded,
    }
}

fn preempted(preemption: &Preemption) -> PreemptedReport {
    let victim = &preemption.victim;
    PreemptedReport {
        at: clock(preemption.at),
        pod: victim.name.to_string(),
        namespace: victim.namespace.to_string(),
        of: preemption.victim_text(),
        by: preemption.by_text(),
    }
}

fn refused(refused: &Refused) -> RefusedReport {
    RefusedReport {
        verb: refused.text.clone(),
        why: refused.why.clone(),
        breach: refused.is_breach,
    }
}

fn expectation(outcome: &ExpectationOutcome) -> ExpectationReport {
    let state = State::of(outcome);
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

fn spread(counts: &ByDomain) -> CountedReport {
    CountedReport {
        counts: counts.clone(),
        skew: skew(counts),
    }
}
