//! The result for people.

use std::fmt::Write;
use std::time::Duration;

use strew_model::Span;
use strew_scenario::expect::spread::ByDomain;
use strew_scenario::format::{Claim, SpreadClaim, Subject};

use super::Question;
use super::arguments::Until;
use super::decision;
use super::replay::replay;
use super::screen::Written;
use super::standing::{Answer, Breach, Moment, Result, Row, Shape, Standing};
use super::suite::{Cast, Suite};
use crate::arguments::Context;
use crate::simulate::say_note;
use crate::terminal;
use crate::text::{Bar, count, draw, drawn, short_key, time_text};
use strew_view::natural_order::natural_order;

/// Domains that are drawn.
const BARS_MAX: usize = 12;

/// Different counts that are told of an expectation.
const SHAPES_MAX: usize = 3;

/// `-o name`: what `--variant` takes; of the built-in story its workloads.
pub(super) fn names(suites: &[Suite], answer: &Answer<'_>) -> String {
    let mut names = String::new();
    for (suite, standings) in suites.iter().zip(&answer.casts) {
        if suite.is_story {
            let shown = standings.iter().filter_map(written);
            names.extend(
                shown
                    .flat_map(|shown| &shown.names)
                    .map(|name| format!("{name}\n")),
            );
            continue;
        }
        let scenario = &suite.name;
        let variants = suite.variants.iter();
        names.extend(variants.map(|cast| format!("scenario/{scenario} {}\n", cast.variant.name)));
    }
    names
}

/// What was written of a variant's first run.
fn written<'a>(standing: &'a Standing<'_>) -> Option<&'a Written> {
    standing.runs.first()?.run.written.as_ref()
}

/// Tells what a reader should know of the start of each run that is shown step by step.
pub(super) fn say_notes(answer: &Answer<'_>, context: &Context) {
    let shown = answer.casts.iter().flatten().filter_map(written);
    for note in shown.flat_map(|written| &written.notes) {
        say_note(note, context);
    }
}

/// Everything; the last line only if nobody wants more.
pub(super) fn write(
    question: &Question<'_>,
    suites: &[Suite],
    answer: &Answer<'_>,
    took: Duration,
    context: &Context,
) -> String {
    let mut out = String::new();
    let only = match (suites, answer.casts.as_slice()) {
        ([suite], [standings]) if suite.is_story => standings.first(),
        _ => None,
    };
    let only = only.filter(|standing| standing.runs.len() == 1 && !answer.is_interrupted);
    match only.and_then(written) {
        // One life needs no sum of lives.
        Some(written) => {
            if !context.global.quiet {
                out.push_str(&written.steps);
            }
            out.push_str(&written.summary);
        }
        None => {
            if !context.global.quiet {
                let paper = Paper { question, context };
                for (suite, standings) in suites.iter().zip(&answer.casts) {
                    paper.suite(&mut out, suite, standings);
                }
            }
            last_line(&mut out, suites, answer, took, context);
        }
    }
    drawn(out, &context.terminal)
}

struct Paper<'a> {
    question: &'a Question<'a>,
    context: &'a Context,
}

impl Paper<'_> {
    fn suite(&self, out: &mut String, suite: &Suite, standings: &[Standing<'_>]) {
        let title = self.context.terminal.styles.title;
        let name = match suite.name.as_str() {
            "" => &suite.file,
            name => name,
        };
        let _ = write!(out, "{title}{name}{title:#}");
        if let Some(story) = &suite.story {
            let _ = write!(out, ": {story}");
        }
        out.push('\n');
        for (cast, standing) in suite.variants.iter().zip(standings) {
            self.cast(out, suite, cast, standing);
        }
        out.push('\n');
    }

    fn cast(&self, out: &mut String, suite: &Suite, cast: &Cast, standing: &Standing<'_>) {
        let styles = &self.context.terminal.styles;
        let style = match standing.result {
            Result::Broken | Result::BrokeNowhere => styles.bad,
            Result::Unknown => styles.warning,
            _ => styles.good,
        };
        let _ = writeln!(
            out,
            "{}: {style}{}{style:#}",
            cast.variant.name,
            result_text(standing)
        );
        if let Some(written) = written(standing) {
            let seed = standing.runs.first().map_or(0, |judged| judged.run.seed);
            let dim = styles.dim;
            let _ = writeln!(out, "\n{dim}seed {seed}{dim:#}");
            out.push_str(&written.steps);
            let _ = writeln!(out, "{}", written.summary.trim_end());
        }
        let shows = |row: &&Row<'_>| written(standing).is_none() || row.n_broken + row.n_open > 0;
        let in_time = in_time(&standing.rows);
        let rows = || in_time.iter().copied().filter(shows);
        let times = rows().map(|row| row.moment.text().chars().count());
        let width = times.max().unwrap_or(0);
        let is_verbose = self.context.global.verbose > 0;
        let broken = rows().filter(|row| row.n_broken > 0);
        let earliest = broken.filter_map(|row| Some(row.breach.as_ref()?.at)).min();
        let first = standing.runs.first();
        let mut decisions = first.map_or(&[][..], |judged| &judged.run.decisions);
        if let Some(judged) = first.filter(|_| !decisions.is_empty()) {
            let dim = styles.dim;
            let _ = writeln!(
                out,
                "      {dim}decisions of seed {}{dim:#}",
                judged.run.seed
            );
        }
        for row in rows() {
            if row.moment != Moment::Always {
                decisions = decision::write(out, decisions, row.began, &self.context.terminal);
            }
            self.row(out, row, width, standing.runs.len());
            if let Some(breach) = &row.breach {
                self.breach(out, row, breach);
                // Where it is right that something breaks, the earliest example in full will do.
                if standing.result.is_red()
                    || is_verbose
                    || earliest.is_none_or(|at| at >= breach.at)
                {
                    self.cause(out, suite, cast, breach);
                }
            }
        }
        decision::write(out, decisions, None, &self.context.terminal);
    }

    fn row(&self, out: &mut String, row: &Row<'_>, width: usize, n_runs: usize) {
        let styles = &self.context.terminal.styles;
        let (mark, style) = match row {
            Row { n_broken: 1.., .. } => ("✗", styles.bad),
            Row {
                expectation: None, ..
            } => ("·", styles.dim),
            Row { n_held: 1.., .. } => ("✓", styles.good),
            _ => ("?", styles.warning),
        };
        let n_reached = row.n_held + row.n_broken + row.n_open;
        let _ = write!(
            out,
            "  {style}{mark}{style:#} {:width$}  {}",
            row.moment.text(),
            row_text(row, n_reached)
        );
        if row.expectation.is_some() || row.n_broken > 0 {
            if n_runs > 1 {
                let _ = write!(out, ": held in {} of {n_reached}", row.n_held);
            }
            if row.n_open > 0 {
                let _ = write!(out, ", {} not decided", row.n_open);
            }
        }
        if n_reached == 0 {
            out.push_str(" (not reached)");
        }
        if row.n_broken > 0 && !row.decides {
            out.push_str(" (not in --fail-on)");
        }
        out.push('\n');
        // It says nothing of the step then.
        if row.n_at_once > 0 && row.n_at_once == row.n_held && row.n_broken == 0 {
            let dim = styles.dim;
            let _ = writeln!(
                out,
                "      {dim}held before the step too, and says nothing of it: atRest: true waits for its effect, for: 15m asks that it stays so{dim:#}"
            );
        }
    }

    /// When it broke first, what was found, and what was expected.
    fn breach(&self, out: &mut String, row: &Row<'_>, breach: &Breach) {
        let _ = writeln!(
            out,
            "{:INDENT$}seed {} at {}: {}",
            "",
            breach.seed,
            time_text(breach.at),
            arithmetic(breach)
        );
        if let Some(counts) = &breach.counts {
            bars(out, counts, INDENT, &self.context.terminal);
        }
        if row.expectation.is_some() {
            let _ = writeln!(out, "{:INDENT$}expected: {}", "", row.text);
        }
    }

    /// What happened at that moment, and what plays it again.
    fn cause(&self, out: &mut String, suite: &Suite, cast: &Cast, breach: &Breach) {
        if let Some(cause) = &breach.cause {
            let _ = writeln!(out, "{:INDENT$}just before: {cause}", "");
        }
        let again = replay(
            self.context.program,
            self.question,
            suite,
            cast,
            breach.seed,
            Some(&Until::At(breach.at)),
        );
        let hint = self.context.terminal.styles.hint;
        let _ = writeln!(out, "{:INDENT$}{hint}again{hint:#}: {again}", "");
    }
}

/// Of what stands below a row.
const INDENT: usize = 6;

/// Rows in the order of time: what must always hold first, and what of it broke before the steps after its breach.
fn in_time<'r, 'a>(rows: &'r [Row<'a>]) -> Vec<&'r Row<'a>> {
    let is_late = |row: &&Row<'_>| row.moment == Moment::Always && row.n_broken > 0;
    let (mut late, mut ordered): (Vec<&Row<'_>>, Vec<&Row<'_>>) = rows.iter().partition(is_late);
    late.sort_by_key(|row| row.breach.as_ref().map(|breach| breach.at));
    for row in late.into_iter().rev() {
        let at = row.breach.as_ref().map(|breach| breach.at);
        let is_after = |other: &&Row<'_>| other.began.is_some() && other.began > at;
        let place = ordered.iter().position(is_after);
        ordered.insert(place.unwrap_or(ordered.len()), row);
    }
    ordered
}

/// What was found; of counts, which are drawn below, only the sum.
fn arithmetic(breach: &Breach) -> &str {
    match (&breach.counts, breach.why.rfind("skew ")) {
        (Some(_), Some(at)) => &breach.why[at..],
        _ => &breach.why,
    }
}

fn bars(out: &mut String, counts: &ByDomain, indent: usize, terminal: &terminal::Terminal) {
    let mut domains: Vec<(&str, u32)> = counts.iter().map(|(d, n)| (&**d, *n)).collect();
    domains.sort_by(|a, b| natural_order(a.0, b.0));
    let all = domains.iter().take(BARS_MAX).map(|(name, n)| Bar {
        name,
        count: i32::try_from(*n).unwrap_or(i32::MAX),
        more: 0,
    });
    draw(out, &all.collect::<Vec<_>>(), indent, terminal);
    if domains.len() > BARS_MAX {
        let more = count(domains.len() - BARS_MAX, "more domain");
        let _ = writeln!(out, "{:indent$}… {more}", "");
    }
}

/// What is claimed; of counts, those that were found.
fn row_text(row: &Row<'_>, n_reached: usize) -> String {
    let claim = row.expectation.map(|expectation| &expectation.claim);
    match claim {
        Some(Claim::Spread(claim)) if !row.shapes.is_empty() => {
            format!("{} {}", spread_text(claim), shapes(row, n_reached))
        }
        _ => row.text.clone(),
    }
}

fn spread_text(claim: &SpreadClaim) -> String {
    let of = match &claim.of {
        Subject::Workload(target) => target.name.clone(),
        Subject::Selector { namespace, .. } => format!("pods of {namespace}"),
    };
    format!("{of} by {}", short_key(&claim.by))
}

/// `4/4/4 skew 0`, or `own 4, elastic 6`; of several seeds how many had which.
fn shapes(row: &Row<'_>, n_reached: usize) -> String {
    let mut shapes: Vec<(String, usize)> = row
        .shapes
        .iter()
        .map(|(counted, n)| (shape(counted), *n))
        .collect();
    // A stable sort: equally frequent ones stay in order.
    shapes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    if let [(only, n)] = shapes.as_slice()
        && *n == n_reached
    {
        return only.clone();
    }
    let told = shapes.iter().take(SHAPES_MAX);
    let mut told: Vec<String> = told.map(|(shape, n)| format!("{shape} in {n}")).collect();
    if shapes.len() > SHAPES_MAX {
        let rest: usize = shapes[SHAPES_MAX..].iter().map(|(_, n)| n).sum();
        told.push(format!("others in {rest}"));
    }
    told.join(", ")
}

fn shape(shape: &Shape) -> String {
    let (counts, skew) = match shape {
        Shape::Named(counts) => {
            let each = counts.iter().map(|(domain, n)| format!("{domain} {n}"));
            return each.collect::<Vec<_>>().join(", ");
        }
        Shape::Sorted(counts, skew) => (counts, skew),
    };
    let numbers: Vec<String> = match counts.len() {
        0..=BARS_MAX => counts.iter().map(u32::to_string).collect(),
        _ => counts
            .chunk_by(|a, b| a == b)
            .map(|group| format!("{}x{}", group.len(), group[0]))
            .collect(),
    };
    format!("{} skew {skew}", numbers.join("/"))
}

pub(super) fn result_text(standing: &Standing<'_>) -> String {
    let n = standing.runs.len();
    let seeds = match n {
        1 => "1 seed".to_owned(),
        n => format!("{n} seeds"),
    };
    let broken = standing.n_broken;
    match standing.result {
        Result::Held => format!("held in {} of {seeds}", n - broken),
        Result::Broken => format!("broke in {broken} of {seeds}"),
        Result::BrokeAsItMust => format!("broke in {broken} of {seeds}, as it must"),
        Result::BrokeAsItMay => format!("broke in {broken} of {seeds}, as it may"),
        Result::BrokeNowhere => format!("must break, and held in all of {seeds}"),
        Result::Unknown => format!("must break; not yet in {seeds}"),
    }
}

/// `60 runs (3 variants × 20 seeds): 40 held, 20 broke as they must (gate-off); 3h20m of virtual time in 1.2s`
fn last_line(
    out: &mut String,
    suites: &[Suite],
    answer: &Answer<'_>,
    took: Duration,
    context: &Context,
) {
    let styles = &context.terminal.styles;
    let standings = || {
        let casts = suites.iter().flat_map(|suite| &suite.variants);
        casts.zip(answer.casts.iter().flatten())
    };
    let n_runs: usize = standings().map(|(_, s)| s.runs.len()).sum();
    let _ = write!(out, "{}", count(n_runs, "run"));
    out.push_str(&product(suites));
    let mut parts = Vec::new();
    let n_held: usize = standings().map(|(_, s)| s.runs.len() - s.n_broken).sum();
    parts.push(format!("{n_held} held"));
    let told = [
        (Result::BrokeAsItMust, styles.good, "broke as they must"),
        (Result::BrokeAsItMay, styles.good, "broke as they may"),
        (Result::Broken, styles.bad, "broke"),
    ];
    for (result, style, words) in told {
        let which = || standings().filter(|(_, s)| s.result == result);
        let n: usize = which().map(|(_, s)| s.n_broken).sum();
        if n > 0 {
            let names: Vec<&str> = which().map(|(c, _)| c.variant.name.as_str()).collect();
            parts.push(format!(
                "{style}{n} {words}{style:#} ({})",
                names.join(", ")
            ));
        }
    }
    let nowhere = standings().filter(|(_, s)| s.result == Result::BrokeNowhere);
    let nowhere: Vec<&str> = nowhere.map(|(c, _)| c.variant.name.as_str()).collect();
    if !nowhere.is_empty() {
        let bad = styles.bad;
        let names = nowhere.join(", ");
        parts.push(format!("{bad}nothing broke where it must{bad:#} ({names})"));
    }
    let runs = standings().flat_map(|(_, s)| &s.runs);
    let virtual_time = runs.fold(0_u64, |sum, judged| {
        sum.saturating_add(judged.run.played.ended.0)
    });
    let dim = styles.dim;
    let _ = writeln!(
        out,
        ": {}{dim}; {} of virtual time in {:.1}s{dim:#}",
        parts.join(", "),
        time_text(Span(virtual_time)),
        took.as_secs_f64()
    );
    if answer.is_interrupted {
        let bad = styles.bad;
        let left = count(answer.n_wanted - n_runs, "run");
        let _ = writeln!(out, "{bad}interrupted{bad:#}: {left} not played to the end");
    }
}

/// ` (3 variants × 20 seeds)`, where it is one.
fn product(suites: &[Suite]) -> String {
    let casts: Vec<&Cast> = suites.iter().flat_map(|suite| &suite.variants).collect();
    let mut seeds: Vec<usize> = casts.iter().map(|cast| cast.seeds.len()).collect();
    seeds.dedup();
    let scenarios = match suites.len() {
        1 => String::new(),
        n => format!("{n} scenarios, "),
    };
    let variants = count(casts.len(), "variant");
    match seeds.as_slice() {
        [n] => format!(" ({scenarios}{variants} × {})", count(*n, "seed")),
        _ => format!(" ({scenarios}{variants})"),
    }
}
