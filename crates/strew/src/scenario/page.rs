//! The page of `--html`: the verdicts on all variants and seeds, and one run of each variant in full.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::text::result_text;
use crate::failure::Failure;
use crate::html;
use strew_suite::clock::clock;
use strew_suite::report::report;
use strew_suite::standing::{Answer, Judged};
use strew_suite::suite::Suite;
use strew_suite::summary::{RowSum, SeedAt, VariantSum};
use strew_suite::work::Work;

/// The number of broken seeds per variant whose breach is shown.
const BREACHES_MAX: usize = 100;

/// The data of the page. It shows the first broken seed of a red variant, and the first seed of any other.
///
/// # Errors
/// A run could not be repeated.
pub(super) fn data(
    work: &Work<'_>,
    suites: &[Suite],
    answer: &Answer,
    program: &str,
) -> Result<String, Failure> {
    let mut report = report(suites, answer);
    let mut runs = html::Runs::default();
    let mut verdicts = Vec::new();
    let scenarios = answer.summary.scenarios.iter().zip(&answer.kept);
    for (s, (scenario, kept)) in scenarios.enumerate() {
        for (c, (variant, kept)) in scenario.variants.iter().zip(kept).enumerate() {
            let place = shown(variant, kept);
            // Only the run that is shown.
            let told = &mut report.scenarios[s].variants[c].runs;
            told.truncate(place + 1);
            told.drain(..place.min(told.len()));
            let seed = kept.get(place).map(|judged| judged.run.seed);
            verdicts.push(verdict(&scenario.name, variant, seed, program));
            let Some(judged) = kept.get(place) else {
                continue;
            };
            // The broken seed is known only after all runs: it is played again with its log.
            let again = match judged.run.tape {
                Some(_) => None,
                None => Some(work.again(s, c, judged.run.seed)?),
            };
            let tape = again.as_ref().map_or(&judged.run.tape, |run| &run.tape);
            if let Some(tape) = tape {
                runs.add(tape).map_err(Failure::outside)?;
            }
        }
    }
    runs.finish(&report, &verdicts).map_err(Failure::outside)
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

/// The verdict on a variant: as text, by step, and by seed. `shown`: the seed of the run in full.
fn verdict(scenario: &str, variant: &VariantSum, shown: Option<u64>, program: &str) -> Value {
    let broken = breaches(&variant.rows);
    let told = broken.iter().take(BREACHES_MAX).map(|(seed, (row, at))| {
        let first = row.first.as_ref().filter(|first| first.seed == *seed);
        json!({
            "seed": seed,
            "at": clock(at.at),
            "text": row.text,
            "why": first.map(|first| &first.why),
            "again": variant.again(program, *at),
        })
    });
    json!({
        "scenario": scenario,
        "variant": variant.name,
        "must": variant.must.name(),
        "state": variant.result().name(),
        "result": result_text(variant),
        "red": variant.result().is_red(),
        "shown": shown,
        "played": variant.n_played(),
        "nBroken": variant.broken,
        "steps": steps(&variant.rows),
        "broken": told.collect::<Vec<_>>(),
    })
}

/// The first breach of each broken seed, as far as the rows name the seeds.
fn breaches(rows: &[RowSum]) -> BTreeMap<u64, (&RowSum, SeedAt)> {
    let mut first: BTreeMap<u64, (&RowSum, SeedAt)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.decides) {
        for &moment in &row.seeds_broken {
            let known = first.entry(moment.seed).or_insert((row, moment));
            if moment.at < known.1.at {
                *known = (row, moment);
            }
        }
    }
    first
}

/// For each step with expectations: the seeds in which one of them broke, or was not decided.
fn steps(rows: &[RowSum]) -> Vec<Value> {
    let mut names: Vec<Option<&str>> = Vec::new();
    for row in rows {
        let name = row.when.as_deref();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let step = |name: Option<&str>| {
        let rows = || rows.iter().filter(move |row| row.when.as_deref() == name);
        let seeds = rows().flat_map(|row| &row.seeds_broken);
        let seeds: BTreeSet<u64> = seeds.map(|moment| moment.seed).collect();
        let most = |of: fn(&RowSum) -> u64| rows().map(of).max().unwrap_or(0);
        // The rows name a thousand seeds at most.
        let broken = most(|row| row.broken).max(seeds.len() as u64);
        json!({"when": name, "broken": broken, "open": most(|row| row.open)})
    };
    names.into_iter().map(step).collect()
}
