//! What came of the steps over all seeds: the worst first, each as a finding.

use strew_manifest::advice::Advice;
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;
use strew_view::loss::LossVerdict;

use crate::summary::{Must, RowSum, ScenarioSum, Summary, VariantSum};
use strew_view::words::count;

/// The result of a step over all seeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepVerdict<'a> {
    /// The name or the time of the step.
    pub name: &'a str,
    /// The number of seeds in which it failed.
    pub failed: u64,
    /// The number of seeds with a warning; at most that of one warning is known.
    pub warned: u64,
    /// The number of seeds that reached it.
    pub reached: u64,
    /// The number of seeds that were ended before it was decided.
    pub open: u64,
    /// True if its failure fails the run.
    pub decides: bool,
}

/// The steps of a variant that expect something, in their order.
pub fn steps(variant: &VariantSum) -> Vec<StepVerdict<'_>> {
    let mut steps: Vec<StepVerdict<'_>> = Vec::new();
    for row in variant
        .rows
        .iter()
        .filter(|row| !row.verb || row.broken > 0)
    {
        let Some(name) = row.when.as_deref() else {
            continue;
        };
        let of_row = StepVerdict {
            name,
            failed: row.broken,
            warned: row.warnings().map(|remark| remark.seeds).max().unwrap_or(0),
            reached: row.n_reached(),
            open: row.open,
            decides: row.decides,
        };
        match steps.iter_mut().find(|step| step.name == name) {
            Some(step) => {
                step.failed = step.failed.max(of_row.failed);
                step.warned = step.warned.max(of_row.warned);
                step.reached = step.reached.max(of_row.reached);
                step.open = step.open.max(of_row.open);
            }
            None => steps.push(of_row),
        }
    }
    steps
}

/// A finding of a step.
pub struct Told<'a> {
    /// The finding, with its step and seeds.
    pub finding: Finding,
    /// The step, and the claim.
    pub row: &'a RowSum,
    /// Later steps with the same failure: workloads that are not rolled out mostly stay so.
    pub again: Vec<&'a str>,
}

/// True for a warning about a played step that no known change of a manifest alone prevents. Every format shows it, and
/// `--fail-on warnings` does not count it: a pipeline that is always red is no longer read.
pub fn is_unavoidable(finding: &Finding) -> bool {
    matches!(finding.advice, Some(Advice::Keep | Advice::NotMoved))
        || finding.code == LossVerdict::Degraded.code() && finding.help.is_none()
}

/// What a person should know of the steps of all scenarios, the worst first.
pub fn findings(summary: &Summary) -> Vec<Finding> {
    told(summary).into_iter().map(|told| told.finding).collect()
}

/// The same, for people: a claim that fails again in later steps is told once.
pub fn told_once(summary: &Summary) -> Vec<Told<'_>> {
    let mut once: Vec<Told<'_>> = Vec::new();
    for told in told(summary) {
        let is_failure = told.finding.code == EXPECTATION;
        let known = once.iter_mut().find(|known| {
            is_failure && known.finding.code == EXPECTATION && known.row.text == told.row.text
        });
        match known {
            Some(known) => known.again.push(told.row.when()),
            None => once.push(told),
        }
    }
    once
}

/// The rule of a broken expectation without findings of its own.
const EXPECTATION: &str = "expectation";

fn told(summary: &Summary) -> Vec<Told<'_>> {
    let mut all = Vec::new();
    for scenario in &summary.scenarios {
        for variant in scenario.variants.iter().filter(|v| v.must == Must::Hold) {
            for row in &variant.rows {
                let findings = of_row(summary, scenario, variant, row).into_iter();
                all.extend(findings.map(|finding| Told {
                    finding,
                    row,
                    again: Vec::new(),
                }));
            }
        }
    }
    all.sort_by_key(|told| told.finding.severity);
    all
}

/// The findings of a row, with the step before the message and the seeds behind it.
fn of_row(
    summary: &Summary,
    scenario: &ScenarioSum,
    variant: &VariantSum,
    row: &RowSum,
) -> Vec<Finding> {
    let reached = row.n_reached();
    let mut remarks: Vec<(Finding, u64, u64)> = row
        .remarks
        .iter()
        .map(|remark| (remark.finding.clone(), remark.seeds, remark.first))
        .collect();
    let has_error = |(finding, ..): &(Finding, u64, u64)| finding.severity == Severity::Error;
    if let Some(breach) = row.first.as_ref().filter(|_| row.broken > 0)
        && !remarks.iter().any(has_error)
    {
        let message = match breach.why.as_str() {
            "" => row.text.clone(),
            why if scenario.built_in => why.to_owned(),
            why => format!("{}: {why}", row.text),
        };
        let error = Finding::new(Severity::Error, EXPECTATION, message);
        remarks.push((error, row.broken, breach.seed));
    }
    let is_alone = summary.scenarios.len() == 1 && scenario.variants.len() == 1;
    let prefix = match is_alone {
        true => String::new(),
        false => format!("{}/{} ", scenario.name, variant.name),
    };
    let each = remarks.into_iter();
    each.map(|(mut finding, seeds, first)| {
        if finding.severity == Severity::Error && !row.decides {
            finding.severity = Severity::Warning;
        }
        let seeds_text = seeds_text(seeds, reached, first);
        finding.message = format!("{prefix}{}: {}{seeds_text}", row.when(), finding.message);
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        finding
            .with_number("seeds", number(seeds))
            .with_number("seedsPlayed", number(reached))
            .with_number("firstSeed", number(first))
    })
    .collect()
}

/// ` (12 of 20 seeds, first: seed 1)`; empty if there is one seed.
pub fn seeds_text(seeds: u64, reached: u64, first: u64) -> String {
    match (seeds, reached) {
        (_, 0 | 1) => String::new(),
        (seeds, reached) if seeds == reached => format!(" (all {reached} seeds)"),
        (seeds, reached) => format!(" ({seeds} of {reached} seeds, first: seed {first})"),
    }
}

impl StepVerdict<'_> {
    /// `ok`, `failed (12 of 20 seeds)`, `not played` where each run was ended before it.
    pub fn word(&self) -> String {
        let of = |n: u64| match (n, self.reached) {
            (_, 0 | 1) => String::new(),
            (n, reached) if n == reached => format!(" (all {reached} seeds)"),
            (n, reached) => {
                let seeds = count(usize::try_from(reached).unwrap_or(usize::MAX), "seed");
                format!(" ({n} of {seeds})")
            }
        };
        match self {
            Self { failed: 1.., .. } => format!("failed{}", of(self.failed)),
            Self { reached: 0, .. } => "not played".to_owned(),
            Self { open: 1.., .. } => "open".to_owned(),
            Self { warned: 1.., .. } => format!("warned{}", of(self.warned)),
            _ => "ok".to_owned(),
        }
    }
}
