//! The result as text.

use std::fmt::Write;
use std::time::Duration;

use strew_manifest::printable::printable_line;
use strew_manifest::read::Severity;
use strew_model::Span;
use strew_scenario::expect::spread::ByDomain;

use super::decision;
use crate::context::Context;
use crate::diagnostics::say_note;
use crate::terminal;
use crate::text::{Bar, count, draw, drawn, time_text, widest};
use strew_suite::host::Written;
use strew_suite::remarks::RemarkSum;
use strew_suite::standing::{Answer, Judged};
use strew_suite::suite::Suite;
use strew_suite::summary::{
    BREACHES_MAX, Breach, ReadSum, Result, RowSum, ScenarioSum, ShapeSum, Summary, VariantSum,
};
use strew_suite::verdicts::{self, StepVerdict, Told};
use strew_view::natural_order::natural_order;

/// The number of domains that are drawn.
const BARS_MAX: usize = 12;

/// The number of different counts that are shown per expectation.
const SHAPES_MAX: usize = 3;

/// The number of breaches of an expectation that are shown with commands; a summary has more.
const COMMANDS_MAX: usize = 10;

/// `-o name`: the values of `--variant`; for the built-in story its workloads.
pub(super) fn names(suites: &[Suite], answer: &Answer) -> String {
    let mut names = String::new();
    for (suite, kept) in suites.iter().zip(&answer.kept) {
        if suite.is_story {
            let shown = kept.iter().filter_map(|runs| written(runs));
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

/// The run of a variant that is written step by step; `None` if none is.
fn shown(kept: &[Judged]) -> Option<&Judged> {
    kept.iter().find(|judged| judged.run.written.is_some())
}

/// The text of that run.
fn written(kept: &[Judged]) -> Option<&Written> {
    shown(kept)?.run.written.as_ref()
}

/// The number of findings that the head of the story lists.
const TOLD_MAX: usize = 8;

/// The built-in story: the worst of all seeds, one of them step by step, and the verdicts on the steps.
fn story(
    out: &mut String,
    summary: &Summary,
    variant: &VariantSum,
    shown: &Judged,
    context: &Context,
) {
    let Some(written) = &shown.run.written else {
        return;
    };
    let styles = &context.terminal.styles;
    let n_told = heads(out, summary, context);
    if !context.quiet {
        if n_told > 0 {
            out.push('\n');
        }
        if variant.n_played() > 1 {
            let (dim, seed) = (styles.dim, shown.run.seed);
            let seeds = count(size(variant.n_played()), "seed");
            let _ = writeln!(out, "{dim}{seeds} played; shown: seed {seed}{dim:#}\n");
        }
        out.push_str(&written.steps);
    }
    out.push_str(&written.summary);
    read_line(out, summary, context);
    let steps = verdicts::steps(variant);
    let steps = steps.iter().map(|step| {
        let style = match step {
            StepVerdict { failed: 1.., .. } => styles.bad,
            StepVerdict { reached: 0, .. }
            | StepVerdict { open: 1.., .. }
            | StepVerdict { warned: 1.., .. } => styles.warning,
            _ => styles.good,
        };
        let aside = match step.failed > 0 && !step.decides {
            true => ", not in --fail-on",
            false => "",
        };
        format!("{} {style}{}{style:#}{aside}", step.name, step.word())
    });
    let steps: Vec<String> = steps.collect();
    if !steps.is_empty() {
        let _ = writeln!(out, "steps: {}", steps.join(", "));
    }
    if variant.result() == Result::NotJudged {
        let bad = styles.bad;
        let _ = writeln!(out, "{bad}{NOT_JUDGED}{bad:#}");
    }
}

/// What a person should know of all seeds, the worst first; with `-q` only what failed. Returns how many there are.
fn heads(out: &mut String, summary: &Summary, context: &Context) -> usize {
    let styles = &context.terminal.styles;
    let least = match context.quiet {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let mut told = verdicts::told_once(summary);
    told.retain(|told| told.finding.severity <= least);
    for Told { finding, again, .. } in told.iter().take(TOLD_MAX) {
        let (mark, style) = match finding.severity {
            Severity::Error => ("✗", styles.bad),
            _ => ("!", styles.warning),
        };
        let message = printable_line(&finding.message);
        let again = match again.as_slice() {
            [] => String::new(),
            steps => format!("; likewise {}", steps.join(", ")),
        };
        let _ = writeln!(out, "{style}{mark}{style:#} {message}{again}");
        if let Some(help) = finding.help.as_ref().filter(|_| !context.quiet) {
            let hint = styles.hint;
            let _ = writeln!(out, "  {hint}hint{hint:#}: {help}");
        }
    }
    if told.len() > TOLD_MAX {
        let _ = writeln!(out, "… {} more", told.len() - TOLD_MAX);
    }
    told.len()
}

/// What is told of a variant of which nothing was decided.
const NOT_JUDGED: &str = "nothing was judged: --until ends each run before that";

/// Prints the notes about the start of each run that is shown step by step.
pub(super) fn say_notes(answer: &Answer, context: &Context) {
    let shown = answer.variants().filter_map(|(_, kept)| written(kept));
    for note in shown.flat_map(|written| &written.notes) {
        say_note(note, context);
    }
}

/// The whole text; with `-q` only what failed, and the last line.
pub(super) fn write(answer: &Answer, took: Duration, context: &Context) -> String {
    let mut out = String::new();
    let only = match answer.summary.scenarios.as_slice() {
        [scenario] if scenario.built_in && !answer.is_interrupted => answer.variants().next(),
        _ => None,
    };
    let shown = only.and_then(|(variant, kept)| Some((variant, shown(kept)?)));
    match shown {
        Some((variant, judged)) => story(&mut out, &answer.summary, variant, judged, context),
        None => {
            let paper = Paper {
                context,
                n_commands: 1,
            };
            paper.scenarios(&mut out, &answer.summary, &answer.kept);
            read_line(&mut out, &answer.summary, context);
            last_line(&mut out, &answer.summary, Some(took), context);
            if answer.is_interrupted {
                let bad = context.terminal.styles.bad;
                let left = answer.n_wanted.saturating_sub(n_played(&answer.summary));
                let left = count(size(left), "run");
                let _ = writeln!(out, "{bad}interrupted{bad:#}: {left} not played to the end");
            }
        }
    }
    warned(&mut out, &answer.summary, context);
    drawn(out, &context.terminal)
}

/// Why the command fails although every step holds. The warnings themselves were written when the files were read.
fn warned(out: &mut String, summary: &Summary, context: &Context) {
    let n = summary.n_warnings();
    if summary.fails_on_warnings && n > 0 {
        let bad = context.terminal.styles.bad;
        let n = count(n, "warning");
        let _ = writeln!(out, "{bad}failed{bad:#}: {n} (--fail-on warnings)");
    }
}

/// How much of several files was read; of one file, everybody sees it.
fn read_line(out: &mut String, summary: &Summary, context: &Context) {
    let all = || {
        summary
            .scenarios
            .iter()
            .filter_map(|scenario| scenario.read)
    };
    let sum = |of: fn(ReadSum) -> u64| all().map(of).fold(0, u64::saturating_add);
    let (n_files, n_objects) = (sum(|read| read.files), sum(|read| read.objects));
    if n_files > 1 && !context.quiet {
        let files = count(size(n_files), "file");
        let objects = count(size(n_objects), "object");
        let _ = writeln!(out, "read: {files}, {objects}");
    }
}

/// The same for a summary, with the commands for more of the breaches.
pub(super) fn of_summary(summary: &Summary, context: &Context) -> String {
    let mut out = String::new();
    let paper = Paper {
        context,
        n_commands: COMMANDS_MAX,
    };
    // Nothing was read here: a summary is the only place where they are.
    let shown = summary.remarks();
    for finding in shown
        .iter()
        .filter(|f| f.is_warning_or_worse() && !context.quiet)
    {
        let _ = writeln!(out, "{}", printable_line(&finding.line()));
    }
    paper.scenarios(&mut out, summary, &[]);
    last_line(&mut out, summary, None, context);
    warned(&mut out, summary, context);
    drawn(out, &context.terminal)
}

fn n_played(summary: &Summary) -> u64 {
    let played = summary.variants().map(VariantSum::n_played);
    played.fold(0, u64::saturating_add)
}

/// A number as a length.
fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

struct Paper<'a> {
    context: &'a Context,
    /// The number of breaches of a row that are shown with commands.
    n_commands: usize,
}

impl Paper<'_> {
    /// `kept` has runs by scenario and variant, or is empty.
    fn scenarios(&self, out: &mut String, summary: &Summary, kept: &[Vec<Vec<Judged>>]) {
        if self.context.quiet {
            heads(out, summary, self.context);
            return;
        }
        for (number, scenario) in summary.scenarios.iter().enumerate() {
            let kept = kept.get(number).map_or(&[][..], Vec::as_slice);
            self.scenario(out, scenario, kept);
        }
    }

    fn scenario(&self, out: &mut String, scenario: &ScenarioSum, kept: &[Vec<Judged>]) {
        let title = self.context.terminal.styles.title;
        let name = match scenario.name.as_str() {
            "" => &scenario.file,
            name => name,
        };
        let _ = write!(out, "{title}{name}{title:#}");
        if let Some(story) = &scenario.story {
            let _ = write!(out, ": {story}");
        }
        out.push('\n');
        for (number, variant) in scenario.variants.iter().enumerate() {
            let kept = kept.get(number).map_or(&[][..], Vec::as_slice);
            self.variant(out, variant, kept);
        }
        out.push('\n');
    }

    fn variant(&self, out: &mut String, variant: &VariantSum, kept: &[Judged]) {
        let styles = &self.context.terminal.styles;
        let result = variant.result();
        let style = match result {
            Result::Broken | Result::BrokeNowhere | Result::NotJudged => styles.bad,
            Result::Unknown => styles.warning,
            _ => styles.good,
        };
        let _ = writeln!(
            out,
            "{}: {style}{}{style:#}",
            variant.name,
            result_text(variant)
        );
        if let Some(written) = written(kept) {
            let seed = shown(kept).map_or(0, |judged| judged.run.seed);
            let dim = styles.dim;
            let _ = writeln!(out, "\n{dim}seed {seed}{dim:#}");
            out.push_str(&written.steps);
            out.push_str(&written.summary);
            if !written.verdicts.is_empty() {
                let _ = writeln!(out, "steps: {}", written.verdicts.join(", "));
            }
        }
        let shows = |row: &&RowSum| {
            written(kept).is_none() || row.broken + row.open > 0 || row.warnings().next().is_some()
        };
        let in_time = in_time(&variant.rows);
        let rows = || in_time.iter().copied().filter(shows);
        let width = widest(rows().map(RowSum::when));
        let is_verbose = self.context.verbose > 0;
        let broken = rows().filter(|row| row.broken > 0);
        let earliest = broken.filter_map(|row| Some(row.first.as_ref()?.at)).min();
        let first = kept.first();
        let mut decisions = first.map_or(&[][..], |judged| &judged.run.decisions);
        if let Some(judged) = first.filter(|_| !decisions.is_empty()) {
            let dim = styles.dim;
            let _ = writeln!(
                out,
                "      {dim}decisions of seed {}{dim:#}",
                judged.run.seed
            );
        }
        let n_runs = variant.n_played();
        for row in rows() {
            if row.when.is_some() {
                let began = row.began.map(|began| began.at);
                decisions = decision::write(out, decisions, began, &self.context.terminal);
            }
            self.row(out, row, width, n_runs);
            if let Some(breach) = &row.first {
                self.breach(out, row, breach);
                // If a breach is expected, only the earliest example is shown in full.
                if result.is_red() || is_verbose || earliest.is_none_or(|at| at >= breach.at) {
                    self.cause(out, variant, row, breach);
                }
            }
        }
        decision::write(out, decisions, None, &self.context.terminal);
    }

    fn row(&self, out: &mut String, row: &RowSum, width: usize, n_runs: u64) {
        let styles = &self.context.terminal.styles;
        let (mark, style) = match row {
            RowSum { broken: 1.., .. } => ("✗", styles.bad),
            RowSum { verb: true, .. } => ("·", styles.dim),
            row if row.warnings().next().is_some() => ("!", styles.warning),
            RowSum { held: 1.., .. } => ("✓", styles.good),
            _ => ("?", styles.warning),
        };
        let n_reached = row.n_reached();
        let _ = write!(
            out,
            "  {style}{mark}{style:#} {:width$}  {}",
            row.when(),
            row_text(row, n_reached)
        );
        if !row.verb || row.broken > 0 {
            if n_runs > 1 {
                let _ = write!(out, ": held in {} of {n_reached}", row.held);
            }
            if row.open > 0 {
                let _ = write!(out, ", {} not decided", row.open);
            }
        }
        if n_reached == 0 {
            out.push_str(" (not reached)");
        }
        if row.broken > 0 && !row.decides {
            out.push_str(" (not in --fail-on)");
        }
        out.push('\n');
        for RemarkSum {
            seeds,
            first,
            finding,
        } in row.warnings()
        {
            let (warning, message) = (styles.warning, printable_line(&finding.message));
            let seeds = verdicts::seeds_text(*seeds, n_reached, *first);
            let _ = writeln!(
                out,
                "{:INDENT$}{warning}warning{warning:#}: {message}{seeds}",
                ""
            );
        }
        // Then it does not test the step.
        if row.held_at_once > 0 && row.held_at_once == row.held && row.broken == 0 {
            let dim = styles.dim;
            let _ = writeln!(
                out,
                "      {dim}held before the step too, and says nothing of it: atRest: true waits for its effect, for: 15m asks that it stays so{dim:#}"
            );
        }
    }

    /// The time of the first breach, what was found, and what was expected.
    fn breach(&self, out: &mut String, row: &RowSum, breach: &Breach) {
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
        if !row.verb {
            let _ = writeln!(out, "{:INDENT$}expected: {}", "", row.text);
        }
    }

    /// The event before it, and the command that plays it again.
    fn cause(&self, out: &mut String, variant: &VariantSum, row: &RowSum, breach: &Breach) {
        if let Some(cause) = &breach.cause {
            let _ = writeln!(out, "{:INDENT$}just before: {cause}", "");
        }
        let hint = self.context.terminal.styles.hint;
        let others = row.seeds_broken.iter().copied();
        let others = others.filter(|at| at.seed != breach.seed);
        let told = std::iter::once(breach.moment()).chain(others);
        for at in told.take(self.n_commands) {
            let again = variant.again(self.context.program, at);
            let _ = writeln!(out, "{:INDENT$}{hint}again{hint:#}: {again}", "");
        }
        let n_more = size(row.broken).saturating_sub(self.n_commands);
        if self.n_commands > 1 && n_more > 0 {
            let more = count(n_more, "more seed");
            let _ = writeln!(
                out,
                "{:INDENT$}… {more} (-o summary lists up to {BREACHES_MAX})",
                ""
            );
        }
    }
}

/// The indentation of lines below a row.
const INDENT: usize = 6;

/// Rows in the order of time: claims of `always` first, and broken ones before the steps after their breach.
fn in_time(rows: &[RowSum]) -> Vec<&RowSum> {
    let is_late = |row: &&RowSum| row.when.is_none() && row.broken > 0;
    let (mut late, mut ordered): (Vec<&RowSum>, Vec<&RowSum>) = rows.iter().partition(is_late);
    let first_at = |row: &RowSum| row.first.as_ref().map(|breach| breach.at);
    late.sort_by_key(|row| first_at(row));
    for row in late.into_iter().rev() {
        let at = first_at(row);
        let began = |other: &RowSum| other.began.map(|began| began.at);
        let is_after = |other: &&RowSum| began(other).is_some() && began(other) > at;
        let place = ordered.iter().position(is_after);
        ordered.insert(place.unwrap_or(ordered.len()), row);
    }
    ordered
}

/// What was found; for counts, which are drawn below, only the sum.
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

/// The claim; for counts, the counts that were found.
fn row_text(row: &RowSum, n_reached: u64) -> String {
    match &row.counted {
        Some(counted) if !row.shapes.is_empty() => {
            format!("{counted} {}", shapes(row, n_reached))
        }
        _ => row.text.clone(),
    }
}

/// `4/4/4 skew 0`, or `own 4, elastic 6`; for several seeds with the number of seeds of each.
fn shapes(row: &RowSum, n_reached: u64) -> String {
    let shapes = row.shapes.iter();
    let mut shapes: Vec<(String, u64)> = shapes.map(|s| (shape(s), s.seeds)).collect();
    // The sort is stable: equally frequent ones stay in order.
    shapes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    if let [(only, n)] = shapes.as_slice()
        && *n == n_reached
    {
        return only.clone();
    }
    let told = shapes.iter().take(SHAPES_MAX);
    let mut told: Vec<String> = told.map(|(shape, n)| format!("{shape} in {n}")).collect();
    let rest = shapes.iter().skip(SHAPES_MAX).map(|(_, n)| n).sum::<u64>() + row.other_shapes;
    if rest > 0 {
        told.push(format!("others in {rest}"));
    }
    told.join(", ")
}

fn shape(shape: &ShapeSum) -> String {
    if !shape.domains.is_empty() {
        let each = shape.domains.iter();
        let each = each.map(|(domain, n)| format!("{domain} {n}"));
        return each.collect::<Vec<_>>().join(", ");
    }
    let n_domains: usize = shape.counts.iter().map(|(_, n)| *n as usize).sum();
    let each = shape.counts.iter();
    let numbers: Vec<String> = match n_domains {
        0..=BARS_MAX => {
            let each = each.flat_map(|&(pods, n)| (0..n).map(move |_| pods.to_string()));
            each.collect()
        }
        _ => each.map(|(pods, n)| format!("{n}x{pods}")).collect(),
    };
    format!("{} skew {}", numbers.join("/"), shape.skew)
}

pub(super) fn result_text(variant: &VariantSum) -> String {
    let n = variant.n_played();
    let seeds = match n {
        1 => "1 seed".to_owned(),
        n => format!("{n} seeds"),
    };
    let broken = variant.broken;
    match variant.result() {
        Result::Held => format!("held in {} of {seeds}", n.saturating_sub(broken)),
        Result::Broken => format!("broke in {broken} of {seeds}"),
        Result::BrokeAsItMust => format!("broke in {broken} of {seeds}, as it must"),
        Result::BrokeAsItMay => format!("broke in {broken} of {seeds}, as it may"),
        Result::BrokeNowhere => format!("must break, and held in all of {seeds}"),
        Result::Unknown => format!("must break; not yet in {seeds}"),
        Result::NotJudged => NOT_JUDGED.to_owned(),
    }
}

/// `60 runs (3 variants × 20 seeds): 40 held, 20 broke as they must (gate-off); 3h20m of virtual time in 1.2s`
fn last_line(out: &mut String, summary: &Summary, took: Option<Duration>, context: &Context) {
    let styles = &context.terminal.styles;
    let n_runs = n_played(summary);
    let _ = write!(out, "{}", count(size(n_runs), "run"));
    out.push_str(&product(summary));
    let mut parts = Vec::new();
    let broken = summary.variants().map(|variant| variant.broken);
    let unjudged = summary.variants();
    let unjudged = unjudged.filter(|v| v.result() == Result::NotJudged);
    let n_unjudged = unjudged.map(VariantSum::n_played).sum::<u64>();
    let n_broken = broken.fold(0, u64::saturating_add);
    let n_held = n_runs.saturating_sub(n_broken).saturating_sub(n_unjudged);
    parts.push(format!("{n_held} held"));
    if n_unjudged > 0 {
        let bad = styles.bad;
        parts.push(format!("{bad}{n_unjudged} not judged{bad:#}"));
    }
    let told = [
        (Result::BrokeAsItMust, styles.good, "broke as they must"),
        (Result::BrokeAsItMay, styles.good, "broke as they may"),
        (Result::Broken, styles.bad, "broke"),
    ];
    for (result, style, words) in told {
        let which = || summary.variants().filter(|v| v.result() == result);
        let n = which().map(|v| v.broken).fold(0, u64::saturating_add);
        if n > 0 {
            let names: Vec<&str> = which().map(|v| v.name.as_str()).collect();
            parts.push(format!(
                "{style}{n} {words}{style:#} ({})",
                names.join(", ")
            ));
        }
    }
    let nowhere = summary.variants();
    let nowhere = nowhere.filter(|v| v.result() == Result::BrokeNowhere);
    let nowhere: Vec<&str> = nowhere.map(|v| v.name.as_str()).collect();
    if !nowhere.is_empty() {
        let bad = styles.bad;
        let names = nowhere.join(", ");
        parts.push(format!("{bad}nothing broke where it must{bad:#} ({names})"));
    }
    let times = summary.variants().map(|v| v.virtual_milliseconds);
    let time = times.fold(0, u64::saturating_add);
    let time = Span(time.saturating_mul(NANOS_PER_MILLISECOND));
    let took = took.map_or(String::new(), |took| {
        format!(" in {:.1}s", took.as_secs_f64())
    });
    let dim = styles.dim;
    let _ = writeln!(
        out,
        ": {}{dim}; {} of virtual time{took}{dim:#}",
        parts.join(", "),
        time_text(time),
    );
}

const NANOS_PER_MILLISECOND: u64 = 1_000_000;

/// ` (3 variants × 20 seeds)`, if there is one such product.
fn product(summary: &Summary) -> String {
    let mut seeds: Vec<u64> = summary.variants().map(|v| v.seeds.count).collect();
    let variants = count(seeds.len(), "variant");
    seeds.dedup();
    let scenarios = match summary.scenarios.len() {
        1 => String::new(),
        n => format!("{n} scenarios, "),
    };
    match seeds.as_slice() {
        [n] => format!(" ({scenarios}{variants} × {})", count(size(*n), "seed")),
        _ => format!(" ({scenarios}{variants})"),
    }
}
