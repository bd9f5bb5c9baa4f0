//! The page of `--html`: the verdicts on all variants and seeds, and one run of each variant in full.

use serde_json::{Value, json};

use super::text::result_text;
use crate::failure::Failure;
use crate::html;
use strew_suite::clock::clock;
use strew_suite::report::report;
use strew_suite::standing::{Answer, Judged};
use strew_suite::suite::Suite;
use strew_suite::summary::VariantSum;
use strew_suite::work::Tape;
use strew_suite::work::Work;

/// The number of broken seeds per variant whose breach is shown.
const BREACHES_MAX: usize = 100;

/// The data of the page. It shows the first broken seed of a red variant, and the first seed of any other.
///
/// # Errors
/// A run could not be repeated.
pub(super) fn data(work: &Work<'_>, suites: &[Suite], answer: &Answer) -> Result<String, Failure> {
    let report = report(suites, answer);
    let mut report = serde_json::to_value(&report).map_err(Failure::outside)?;
    let mut tapes: Vec<Tape> = Vec::new();
    let mut verdicts = Vec::new();
    let scenarios = answer.summary.scenarios.iter().zip(&answer.kept);
    for (s, (scenario, kept)) in scenarios.enumerate() {
        for (c, (variant, kept)) in scenario.variants.iter().zip(kept).enumerate() {
            let place = shown(variant, kept);
            let runs = &mut report["scenarios"][s]["variants"][c]["runs"];
            *runs = match runs.get_mut(place) {
                Some(run) => json!([run.take()]),
                None => json!([]),
            };
            verdicts.push(verdict(&scenario.name, variant, kept, place));
            let Some(judged) = kept.get(place) else {
                continue;
            };
            // The broken seed is known only after all runs: it is played again with its log.
            let again = match judged.run.tape {
                Some(_) => None,
                None => Some(work.again(s, c, judged.run.seed)?),
            };
            let tape = again.as_ref().map_or(&judged.run.tape, |run| &run.tape);
            tapes.extend(tape.clone());
        }
    }
    html::runs(&report, &verdicts, &tapes).map_err(Failure::outside)
}

/// The index of the run that is shown: the one that is written step by step, if one is.
fn shown(variant: &VariantSum, kept: &[Judged]) -> usize {
    let written = kept.iter().position(|judged| judged.run.written.is_some());
    if let Some(written) = written {
        return written;
    }
    let mut runs = kept.iter();
    let broken = runs.position(|judged| judged.is_broken);
    broken.filter(|_| variant.result().is_red()).unwrap_or(0)
}

/// The verdict on a variant: as text, and by seed.
fn verdict(scenario: &str, variant: &VariantSum, kept: &[Judged], shown: usize) -> Value {
    let broken = kept.iter().filter(|judged| judged.is_broken);
    let broken: Vec<Value> = broken.take(BREACHES_MAX).map(breach).collect();
    json!({
        "scenario": scenario,
        "variant": variant.name,
        "result": result_text(variant),
        "red": variant.result().is_red(),
        "shown": kept.get(shown).map(|judged| judged.run.seed),
        "broken": broken,
    })
}

/// The first breach of a run.
fn breach(judged: &Judged) -> Value {
    let played = &judged.run.played;
    let refused = played.steps.iter().find_map(|step| {
        let refused = step.refused.iter().find(|refused| refused.is_breach)?;
        Some((step.began, &refused.text, &refused.why))
    });
    let outcome = played.first_breach();
    let outcome = outcome.map(|(_, outcome)| (outcome.at, &outcome.text, &outcome.why));
    let first = [refused, outcome].into_iter().flatten();
    let first = first.min_by_key(|(at, ..)| *at);
    json!({
        "seed": judged.run.seed,
        "at": first.map(|(at, ..)| clock(at)),
        "text": first.map(|(_, text, _)| text),
        "why": first.map(|(.., why)| why),
    })
}
