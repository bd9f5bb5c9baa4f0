//! What Placements got, for people.

use std::collections::{BTreeMap, BTreeSet};

use strew_model::Symbol;
use strew_placement::explain::TopologyReport;
use strew_placement::facts::status::{Condition, ConditionType};

use super::decide::{Decided, Outcome};
use super::fleet::Fleet;
use super::what_if::Loss;
use super::why;
use crate::explain_text::Page;
use crate::explain_text::paint::Paint;
use crate::explain_text::table::{Cell, Table, Tone};
use crate::terminal::{self, Terminal};
use crate::text::count;

/// How much is shown, and how.
pub(super) struct Look<'a> {
    pub(super) terminal: &'a Terminal,
    /// Everything, with each prioritizer's scores.
    pub(super) wide: bool,
    /// Why, too.
    pub(super) explain: bool,
}

/// Rows of a table; more is folded unless the look is wide.
pub(super) const ROWS_MAX: usize = 40;

/// All that is shown.
pub(super) fn write(
    fleet: &Fleet,
    before: &Outcome,
    after: Option<&Outcome>,
    loss: Option<&Loss>,
    is_shown: &dyn Fn(&str) -> bool,
    look: &Look<'_>,
) -> String {
    let mut page = Page {
        text: String::new(),
        // The stream takes it off where it is not wanted.
        paint: Paint::new(true),
        width: look.terminal.width,
    };
    let outcome = after.unwrap_or(before);
    if let Some(loss) = loss {
        lost(fleet, loss, &mut page);
    }
    let shown = outcome.decided.iter().enumerate();
    let shown = shown.filter(|(_, d)| is_shown(outcome.names.text(d.fact.namespace)));
    for (i, decided) in shown {
        if !page.text.is_empty() {
            page.line(0, "");
        }
        let old = after.map(|_| &before.decided[i]);
        placement(outcome, decided, old, loss, look, &mut page);
        if look.explain && !decided.fact.ignored {
            let keys = keys(outcome, decided);
            why::write(&outcome.why(decided, fleet), &keys, look, &mut page);
        }
    }
    match look.terminal.unicode {
        true => page.text,
        false => terminal::ascii(&page.text),
    }
}

fn lost(fleet: &Fleet, loss: &Loss, page: &mut Page) {
    let words = loss.words.join(", ");
    let names: BTreeSet<&str> = loss.clusters.iter().map(|&c| fleet.names.text(c)).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let title = page.paint.bold(&format!(
        "What if {words} {} lost",
        if loss.words.len() == 1 { "is" } else { "are" }
    ));
    page.line(0, &format!("{title} ({})", count(names.len(), "cluster")));
    page.wrapped(2, &folded(&names, 20));
}

/// Names, the first few of many.
pub(super) fn folded(names: &[&str], max: usize) -> String {
    let shown = names
        .iter()
        .take(max)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(max) {
        0 => shown,
        left => format!("{shown} … and {left} more"),
    }
}

fn placement(
    outcome: &Outcome,
    decided: &Decided,
    old: Option<&Decided>,
    loss: Option<&Loss>,
    look: &Look<'_>,
    page: &mut Page,
) {
    head(outcome, decided, old, page);
    if decided.fact.ignored {
        let text = "left alone: it is being deleted, or disabled by its annotation";
        return page.line(2, text);
    }
    conditions(decided, page);
    if let Some(old) = old {
        moved(outcome, old, decided, loss, look, page);
    }
    clusters(outcome, decided, look, page);
    topologies(outcome, decided, page);
    groups(outcome, decided, page);
}

fn head(outcome: &Outcome, decided: &Decided, old: Option<&Decided>, page: &mut Page) {
    let title = page
        .paint
        .bold(&format!("Placement {}", outcome.label(decided)));
    let got = |decided: &Decided| {
        let n = decided.clusters().count();
        match decided.fact.spec.number_of_clusters {
            Some(asked) => format!("{n} of {asked}"),
            None => n.to_string(),
        }
    };
    let text = match old {
        Some(old) => format!("{} → {} clusters", got(old), got(decided)),
        None => {
            let n = decided.clusters().count();
            let noun = match (n, decided.fact.spec.number_of_clusters) {
                (1, None) => "cluster",
                _ => "clusters",
            };
            format!("{} {noun}", got(decided))
        }
    };
    let text = match (decided.is_misconfigured(), decided.is_short()) {
        (false, false) => page.paint.good(&text),
        _ => page.paint.bad(&text),
    };
    page.line(0, &format!("{title}: {text}"));
}

/// Those that say something that is not plain.
fn conditions(decided: &Decided, page: &mut Page) {
    let kinds = [
        ConditionType::Misconfigured,
        ConditionType::Satisfied,
        ConditionType::SpreadSatisfied,
    ];
    for kind in kinds {
        let Some(condition) = decided.condition(kind) else {
            continue;
        };
        let is_good = condition.status != (kind == ConditionType::Misconfigured);
        if is_good && kind == ConditionType::Misconfigured {
            continue;
        }
        page_condition(condition, is_good, page);
    }
    if let strew_placement::Code::Warning(problem) = &decided.explanation.schedule.code {
        let mark = page.paint.bad("!");
        page.line(
            2,
            &format!("{mark} {}: {}", problem.plugin, problem.message),
        );
    }
}

fn page_condition(condition: &Condition, is_good: bool, page: &mut Page) {
    let mark = match is_good {
        true => page.paint.good("✓"),
        false => page.paint.bad("✗"),
    };
    let (kind, reason) = (condition.kind.name(), condition.reason.name());
    let mut lines = condition.message.lines();
    let first = lines.next().unwrap_or_default();
    page.line(2, &format!("{mark} {kind} {reason}: {first}"));
    // A CEL expression comes with its picture.
    lines.for_each(|line| page.line(4, line));
}

/// What moved, and why it had to.
fn moved(
    outcome: &Outcome,
    old: &Decided,
    new: &Decided,
    loss: Option<&Loss>,
    look: &Look<'_>,
    page: &mut Page,
) {
    let set =
        |decided: &Decided| -> BTreeSet<Symbol> { decided.clusters().map(|(c, _)| c).collect() };
    let (was, is) = (set(old), set(new));
    let sorted = |symbols: Vec<Symbol>| {
        let mut names: Vec<(&str, Symbol)> = symbols
            .into_iter()
            .map(|s| (outcome.names.text(s), s))
            .collect();
        names.sort_unstable();
        names
    };
    let gone = sorted(was.difference(&is).copied().collect());
    let new_ones = sorted(is.difference(&was).copied().collect());
    if gone.is_empty() && new_ones.is_empty() {
        return page.line(2, "nothing moves");
    }
    let stay = was.intersection(&is).count();
    let words = format!("{} gone, {} new, {stay} stay", gone.len(), new_ones.len());
    page.line(2, &words);
    let places_old = tuples(outcome, old);
    let places_new = tuples(outcome, new);
    let max = if look.wide { usize::MAX } else { ROWS_MAX };
    let is_lost = |c: Symbol| loss.is_some_and(|loss| loss.clusters.contains(&c));
    for &(name, cluster) in gone.iter().take(max) {
        let why = if is_lost(cluster) {
            "lost"
        } else {
            "moved away"
        };
        let place = places_old.get(&cluster).cloned().unwrap_or_default();
        let sign = page.paint.bad("-");
        page.line(4, format!("{sign} {name}  {place}  {why}").trim_end());
    }
    for &(name, cluster) in new_ones.iter().take(max) {
        let place = places_new.get(&cluster).cloned().unwrap_or_default();
        let sign = page.paint.good("+");
        page.line(4, format!("{sign} {name}  {place}").trim_end());
    }
    let left = gone.len().saturating_sub(max) + new_ones.len().saturating_sub(max);
    if left > 0 {
        page.line(4, &format!("… and {left} more; -o wide shows all"));
    }
}

/// The topology of each cluster, `us-east/us-east-1a`.
fn tuples(outcome: &Outcome, decided: &Decided) -> BTreeMap<Symbol, String> {
    let text = |tuple: &[Symbol]| {
        let values: Vec<&str> = tuple.iter().map(|&v| outcome.names.text(v)).collect();
        values.join("/")
    };
    let tuples = decided.explanation.tuples.iter();
    tuples
        .map(|(cluster, tuple)| (*cluster, text(tuple)))
        .collect()
}

/// The keys of the spread constraints.
pub(super) fn keys<'o>(outcome: &'o Outcome, decided: &Decided) -> Vec<&'o str> {
    let terms = decided.fact.spec.spread.iter();
    terms.map(|term| outcome.names.text(term.key)).collect()
}

fn clusters(outcome: &Outcome, decided: &Decided, look: &Look<'_>, page: &mut Page) {
    let rows: Vec<(Symbol, u32)> = decided.clusters().collect();
    if rows.is_empty() {
        return;
    }
    let keys = keys(outcome, decided);
    let text = |symbol: Symbol| outcome.names.text(symbol);
    let groups = rows.last().is_some_and(|&(_, group)| group > 0);
    let prioritizers: &[_] = match look.wide {
        true => &decided.explanation.prioritizers,
        false => &[],
    };
    let mut header = vec![("CLUSTER".to_owned(), false)];
    header.extend(keys.iter().map(|key| (key.to_uppercase(), false)));
    header.extend(
        prioritizers
            .iter()
            .map(|p| (format!("{}×{}", p.name, p.weight), true)),
    );
    header.push(("SCORE".to_owned(), true));
    if groups {
        header.push(("GROUP".to_owned(), true));
    }
    let mut table = Table::new(header);
    let tuples: BTreeMap<Symbol, &Vec<Symbol>> = decided
        .explanation
        .tuples
        .iter()
        .map(|(c, t)| (*c, t))
        .collect();
    let scores: BTreeMap<Symbol, i64> = decided.explanation.aggregated.iter().copied().collect();
    let given: Vec<BTreeMap<Symbol, i64>> = prioritizers
        .iter()
        .map(|p| p.scores.iter().copied().collect())
        .collect();
    let max = if look.wide { usize::MAX } else { ROWS_MAX };
    for &(cluster, group) in rows.iter().take(max) {
        let mut cells = vec![Cell::plain(text(cluster))];
        let tuple = tuples.get(&cluster).copied();
        cells.extend((0..keys.len()).map(|i| {
            let value = tuple.and_then(|tuple| tuple.get(i));
            value.map_or_else(|| Cell::of("<none>", Tone::Dim), |&v| Cell::plain(text(v)))
        }));
        let number = |n: Option<&i64>| n.map_or_else(|| Cell::of("-", Tone::Dim), Cell::plain);
        cells.extend(given.iter().map(|scores| number(scores.get(&cluster))));
        cells.push(number(scores.get(&cluster)));
        if groups {
            cells.push(Cell::plain(group));
        }
        table.row(cells);
    }
    page.line(0, "");
    table.write(2, page);
    if rows.len() > max {
        let left = rows.len() - max;
        page.line(2, &format!("… and {left} more; -o wide shows all"));
    }
}

fn topologies(outcome: &Outcome, decided: &Decided, page: &mut Page) {
    let mut reports: Vec<&TopologyReport> = decided.explanation.topologies.iter().collect();
    if reports.is_empty() || decided.is_misconfigured() {
        return;
    }
    let texts = |report: &TopologyReport| -> Vec<&str> {
        report
            .tuple
            .iter()
            .map(|&v| outcome.names.text(v))
            .collect()
    };
    // A parent's tuple is the beginning of its children's.
    reports.sort_by(|a, b| texts(a).cmp(&texts(b)));
    let header = [("TOPOLOGY", false), ("SELECTED", true), ("CLUSTERS", true)];
    let mut table = Table::new(header.into());
    for report in reports {
        let value = texts(report).last().copied().unwrap_or_default();
        let indent = "  ".repeat(report.tuple.len().saturating_sub(1));
        let tone = if report.selected == 0 {
            Tone::Dim
        } else {
            Tone::Plain
        };
        table.row(vec![
            Cell::of(format!("{indent}{}", shown_value(value)), tone),
            Cell::of(report.selected, tone),
            Cell::of(report.clusters, tone),
        ]);
    }
    page.line(0, "");
    table.write(2, page);
}

/// An empty value is a value.
pub(super) fn shown_value(value: &str) -> &str {
    match value {
        "" => "\"\"",
        value => value,
    }
}

/// Decision groups, where there is more than the one without a name.
fn groups(outcome: &Outcome, decided: &Decided, page: &mut Page) {
    let groups = &decided.fact.status.groups;
    let is_plain = groups.len() == 1 && outcome.names.text(groups[0].name).is_empty();
    if is_plain || groups.is_empty() {
        return;
    }
    let text = |symbol: Symbol| outcome.names.text(symbol);
    let places = tuples(outcome, decided);
    let spread = !decided.explanation.topologies.is_empty();
    let mut header = vec![
        ("GROUP".to_owned(), true),
        ("NAME".to_owned(), false),
        ("CLUSTERS".to_owned(), true),
    ];
    if spread {
        header.push(("TOPOLOGIES".to_owned(), false));
    }
    let mut table = Table::new(header);
    for group in groups {
        let name = match text(group.name) {
            "" => Cell::of("<rest>", Tone::Dim),
            name => Cell::plain(name),
        };
        let mut cells = vec![Cell::plain(group.index), name, Cell::plain(group.clusters)];
        if spread {
            let mut counts = BTreeMap::<&str, usize>::new();
            for (cluster, _) in decided.clusters().filter(|&(_, g)| g == group.index) {
                *counts
                    .entry(places.get(&cluster).map_or("", String::as_str))
                    .or_default() += 1;
            }
            let counts: Vec<String> = counts
                .iter()
                .map(|(place, n)| format!("{place} {n}"))
                .collect();
            cells.push(Cell::plain(counts.join(", ")));
        }
        table.row(cells);
    }
    page.line(0, "");
    table.write(2, page);
}
