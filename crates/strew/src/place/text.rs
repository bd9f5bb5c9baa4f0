//! The results of Placements as text.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use strew_placement::facts::status::ConditionType;
use strew_view::fleet::is_good;
use strew_wire::placement::debug::{Explained, Selected};

use super::decide::Decided;
use super::difference::{Difference, Moved};
use super::fleet::Fleet;
use super::summary::{self, got};
use super::what_if::Changed;
use super::{help, why};
use crate::explain_text::Page;
use crate::explain_text::paint::Paint;
use crate::explain_text::table::{Cell, Table, Tone};
use crate::terminal::{self, Terminal};
use crate::text::count;

/// The amount of text.
pub(super) struct Look<'a> {
    pub(super) terminal: &'a Terminal,
    /// All rows, with each prioritizer's scores.
    pub(super) wide: bool,
    /// With explanations.
    pub(super) explain: bool,
}

impl Look<'_> {
    /// The number of rows of a table that has at most `max` unless all are asked for.
    pub(super) fn rows(&self, max: usize) -> usize {
        if self.wide { usize::MAX } else { max }
    }
}

/// The number of rows of a table; more are shortened unless the look is wide.
pub(super) const ROWS_MAX: usize = 40;

/// The number of Placements that are shown one by one; of more, only those that are not as asked for, or move.
const PLACEMENTS_MAX: usize = 20;

/// A Placement with the difference from its previous clusters, if it had any.
pub(super) type Shown<'a> = (&'a Decided, Option<&'a Difference>);

/// All that is shown. `changed`: the change that was asked about.
pub(super) fn write(
    shown: &[Shown<'_>],
    fleet: &Fleet,
    changed: Option<&Changed>,
    look: &Look<'_>,
) -> String {
    let mut page = page(look);
    if let Some(changed) = changed {
        asked(changed, &mut page);
    }
    summary::write(shown, &mut page);
    let folds = shown.len() > PLACEMENTS_MAX && !look.wide && !look.explain;
    let mut left = 0;
    // Made at most once, where a Placement matches nothing.
    let cel = LazyCell::new(|| fleet.selectors());
    for &(decided, difference) in shown {
        let view = &decided.view;
        let is_plain = !view.is_trouble() && !difference.is_some_and(Difference::changes);
        if folds && is_plain {
            left += 1;
            continue;
        }
        if !page.text.is_empty() {
            page.line(0, "");
        }
        head(decided, difference.filter(|_| changed.is_some()), &mut page);
        if view.is_ignored() {
            let text = "left alone: it is being deleted, or disabled by its annotation";
            page.line(2, text);
            continue;
        }
        conditions(decided, &mut page);
        if changed.is_none() {
            let short = decided.shortage.clone();
            for help in short.into_iter().chain(help::of(view, fleet, &cel)) {
                page.wrapped(4, &format!("{}: {help}", page.paint.dim("help")));
            }
        }
        if let Some(difference) = difference {
            moved(difference, changed.is_some(), look, &mut page);
        }
        if let Some(why) = &decided.why {
            clusters(decided, why, look, &mut page);
            topologies(decided, why, difference, &mut page);
            groups(decided, why, &mut page);
            if look.explain {
                why::write(&why.result, view.terms(), look, &mut page);
            }
        }
    }
    if left > 0 {
        page.line(0, "");
        let text = format!("… and {left} more as asked for; -o wide or -n NAMESPACE shows them");
        page.line(0, &text);
    }
    finished(page, look)
}

/// An empty page.
pub(super) fn page(look: &Look<'_>) -> Page {
    Page {
        text: String::new(),
        // The output stream removes the styles if they are not wanted.
        paint: Paint::new(true),
        width: look.terminal.width,
    }
}

/// The text of a page.
pub(super) fn finished(page: Page, look: &Look<'_>) -> String {
    match look.terminal.unicode {
        true => page.text,
        false => terminal::ascii(&page.text),
    }
}

/// Says how many rows are left out.
pub(super) fn more(indent: usize, n: usize, max: usize, page: &mut Page) {
    if n > max {
        let left = n - max;
        page.line(indent, &format!("… and {left} more; -o wide shows all"));
    }
}

fn asked(changed: &Changed, page: &mut Page) {
    let touched: Vec<&str> = changed.touched.keys().map(String::as_str).collect();
    let title = page.paint.bold(&format!("What if {}", changed.asked()));
    if touched.is_empty() {
        return page.line(0, &title);
    }
    page.line(0, &format!("{title} ({})", count(touched.len(), "cluster")));
    page.wrapped(2, &folded(&touched, 20));
}

/// The first names of a list.
pub(super) fn folded(names: &[&str], max: usize) -> String {
    let shown = names[..names.len().min(max)].join(", ");
    match names.len().saturating_sub(max) {
        0 => shown,
        left => format!("{shown} … and {left} more"),
    }
}

fn head(decided: &Decided, difference: Option<&Difference>, page: &mut Page) {
    let view = &decided.view;
    let title = page.paint.bold(&format!("Placement {}", view.label()));
    let n = view.clusters().count();
    let text = match difference {
        Some(difference) => {
            let before = difference.gone.len() + difference.stay.len();
            format!("{} → {} clusters", got(view, before), got(view, n))
        }
        None if n == 1 && view.wanted().is_none() => "1 cluster".to_owned(),
        None => format!("{} clusters", got(view, n)),
    };
    let text = match view.is_misconfigured() || view.is_short() {
        false => page.paint.good(&text),
        true => page.paint.bad(&text),
    };
    page.line(0, &format!("{title}: {text}"));
}

/// The ones with a message that is not plain.
fn conditions(decided: &Decided, page: &mut Page) {
    let view = &decided.view;
    let is_empty = view.clusters().next().is_none();
    let kinds = [
        ConditionType::Misconfigured,
        ConditionType::Satisfied,
        ConditionType::SpreadSatisfied,
    ];
    for kind in kinds {
        let Some(condition) = view.condition(kind) else {
            continue;
        };
        match kind {
            ConditionType::Misconfigured if is_good(condition) => {}
            ConditionType::SpreadSatisfied if is_good(condition) && is_empty && view.is_short() => {
                // The condition is that of a Placement without clusters: it says nothing good.
                page.line(2, "· nothing is spread: no cluster was selected");
            }
            ConditionType::Satisfied if !is_good(condition) && !view.is_trouble() => {
                // It asks for none: OCM's condition is False, and nothing is wrong.
                page.line(
                    2,
                    &format!("· no cluster is asked for ({})", condition.reason),
                );
            }
            _ => page_condition(condition, page),
        }
    }
    let warning = decided.why.as_ref().and_then(|why| why.warning.as_ref());
    if let Some(warning) = warning {
        let mark = page.paint.bad("!");
        page.line(2, &format!("{mark} {warning}"));
    }
}

fn page_condition(condition: &Condition, page: &mut Page) {
    let mark = match is_good(condition) {
        true => page.paint.good("✓"),
        false => page.paint.bad("✗"),
    };
    let (kind, reason) = (&condition.type_, &condition.reason);
    let mut lines = condition.message.lines();
    let first = lines.next().unwrap_or_default();
    page.line(2, &format!("{mark} {kind} {reason}: {first}"));
    // A CEL expression comes with its marked text.
    lines.for_each(|line| page.line(4, line));
}

/// What moves, and why. `asked`: after a change; otherwise compared with the stored decisions.
fn moved(difference: &Difference, asked: bool, look: &Look<'_>, page: &mut Page) {
    let words = match (asked, difference.changes()) {
        (true, true) => difference.words(),
        (false, true) => format!("against the stored decisions: {}", difference.words()),
        (true, false) => "nothing moves".to_owned(),
        (false, false) => "as stored: nothing moves".to_owned(),
    };
    page.line(2, &words);
    let max = look.rows(ROWS_MAX);
    let line = |moved: &Moved, sign: &str, why: &str| {
        let place = moved.topology.join("/");
        let line = format!("{sign} {}  {place}  {why}", moved.cluster_name);
        line.trim_end().to_owned()
    };
    let (gone, new) = (&difference.gone, &difference.new);
    for moved in gone.iter().take(max) {
        let why = match moved.reason {
            None => "moved away",
            Some("anyway") => "moves without the change, too",
            Some(reason) => reason,
        };
        page.line(4, &line(moved, &page.paint.bad("-"), why));
    }
    for moved in new.iter().take(max) {
        let why = match moved.reason {
            Some("anyway") => "comes without the change, too",
            other => other.unwrap_or_default(),
        };
        page.line(4, &line(moved, &page.paint.good("+"), why));
    }
    let left = gone.len().saturating_sub(max) + new.len().saturating_sub(max);
    more(4, left, 0, page);
    for change in difference.replicas.iter().take(max) {
        let (before, after) = (change.before, change.after);
        let line = format!("~ {}  {before} → {after} replicas", change.cluster_name);
        page.line(4, &line);
    }
    more(4, difference.replicas.len(), max, page);
}

/// The selected clusters by name.
fn by_name(why: &Explained) -> BTreeMap<&str, &Selected> {
    let selected = why.selected.iter();
    selected.map(|s| (s.cluster_name.as_str(), s)).collect()
}

fn clusters(decided: &Decided, why: &Explained, look: &Look<'_>, page: &mut Page) {
    let view = &decided.view;
    let rows: Vec<(&str, u32)> = view.clusters().collect();
    if rows.is_empty() {
        return;
    }
    let max = look.rows(ROWS_MAX);
    let each = |cell: &dyn Fn(&str) -> Cell| -> Vec<Cell> {
        rows.iter().take(max).map(|(name, _)| cell(name)).collect()
    };
    let (selected, result) = (by_name(why), &why.result);
    let number =
        |of: fn(&Selected) -> i64| each(&|name| Cell::number(selected.get(name).map(|s| of(s))));
    let mut table = Table::default();
    table.column("CLUSTER", false, each(&|name| Cell::plain(name)));
    for (i, term) in view.terms().iter().enumerate() {
        let value = |name: &str| match selected.get(name).and_then(|s| s.topology.get(i)) {
            Some(value) => Cell::plain(value),
            None => Cell::of("<none>", Tone::Dim),
        };
        table.column(term.topology_key.to_uppercase(), false, each(&value));
    }
    if look.wide {
        for p in &result.prioritize_results {
            let score = |name: &str| Cell::number(p.scores.get(name));
            table.column(format!("{}×{}", p.name, p.weight), true, each(&score));
        }
        if result.spread_weight != 0 {
            let title = format!("Spread×{}", result.spread_weight);
            table.column(title, true, number(|selected| selected.normalized));
        }
    }
    table.column("SCORE", true, number(|selected| selected.score));
    if look.wide && !result.replicas.is_empty() {
        let parts = result.replicas.iter();
        let weights: BTreeMap<&str, i64> = parts
            .map(|part| (&*part.cluster_name, part.weight))
            .collect();
        let weight = |name: &str| Cell::number(weights.get(name));
        table.column("REPLICA WEIGHT", true, each(&weight));
    }
    if let Some(replicas) = view.replicas() {
        let part = |name: &str| Cell::number(replicas.get(name));
        table.column("REPLICAS", true, each(&part));
    }
    if rows.last().is_some_and(|&(_, group)| group > 0) {
        let groups = rows.iter().take(max).map(|(_, group)| Cell::plain(group));
        table.column("GROUP", true, groups);
    }
    page.line(0, "");
    table.write(2, page);
    more(2, rows.len(), max, page);
}

/// The counts of a topology.
#[derive(Default)]
struct Counts {
    before: usize,
    selected: i32,
    clusters: u32,
    weight: Option<u32>,
    replicas: u64,
}

/// The counts of topologies, before and after if something moves.
fn topologies(
    decided: &Decided,
    why: &Explained,
    difference: Option<&Difference>,
    page: &mut Page,
) {
    let reports = &why.result.topologies;
    if reports.is_empty() || decided.view.is_misconfigured() {
        return;
    }
    // A parent's values are a prefix of its children's.
    let mut rows: BTreeMap<&[String], Counts> = BTreeMap::new();
    for report in reports {
        let counts = Counts {
            selected: report.selected,
            clusters: report.clusters,
            weight: report.weight,
            ..Counts::default()
        };
        rows.insert(&report.topology, counts);
    }
    let compared = difference.filter(|difference| difference.moves());
    for change in compared
        .iter()
        .flat_map(|difference| &difference.topologies)
    {
        rows.entry(&change.topology).or_default().before = change.before;
    }
    let (replicas, selected) = (decided.view.replicas(), by_name(why));
    for (cluster, n) in replicas.iter().flatten() {
        let topology = selected.get(cluster.as_str());
        let topology = topology.map_or(&[][..], |selected| &selected.topology);
        for depth in 1..=topology.len() {
            if let Some(row) = rows.get_mut(&topology[..depth]) {
                row.replicas += u64::from(*n);
            }
        }
    }
    let each = |text: &dyn Fn(&[String], &Counts) -> String| -> Vec<Cell> {
        let tone = |counts: &Counts| match counts.selected {
            0 => Tone::Dim,
            _ => Tone::Plain,
        };
        let rows = rows.iter();
        rows.map(|(topology, counts)| Cell::of(text(topology, counts), tone(counts)))
            .collect()
    };
    let mut table = Table::default();
    let name = |topology: &[String], _: &Counts| {
        let value = topology.last().map_or("", String::as_str);
        let indent = "  ".repeat(topology.len().saturating_sub(1));
        format!("{indent}{}", shown_value(value))
    };
    table.column("TOPOLOGY", false, each(&name));
    if rows.values().any(|row| row.weight.is_some()) {
        let dash = || "-".to_owned();
        let weight = |_: &[String], row: &Counts| row.weight.map_or_else(dash, |w| w.to_string());
        table.column("WEIGHT", true, each(&weight));
    }
    if compared.is_some() {
        table.column("BEFORE", true, each(&|_, row| row.before.to_string()));
    }
    table.column("SELECTED", true, each(&|_, row| row.selected.to_string()));
    table.column("CLUSTERS", true, each(&|_, row| row.clusters.to_string()));
    if replicas.is_some() {
        table.column("REPLICAS", true, each(&|_, row| row.replicas.to_string()));
    }
    page.line(0, "");
    table.write(2, page);
}

/// An empty value counts as a value.
pub(super) fn shown_value(value: &str) -> &str {
    match value {
        "" => "\"\"",
        value => value,
    }
}

/// Decision groups, unless there is only the one without a name.
fn groups(decided: &Decided, why: &Explained, page: &mut Page) {
    let groups = decided.view.groups();
    let is_plain = groups
        .iter()
        .all(|group| group.decision_group_name.is_empty());
    if groups.is_empty() || (is_plain && groups.len() == 1) {
        return;
    }
    let mut table = Table::default();
    let index = groups
        .iter()
        .map(|group| Cell::plain(group.decision_group_index));
    table.column("GROUP", true, index);
    let names = groups
        .iter()
        .map(|group| match group.decision_group_name.as_str() {
            "" => Cell::of("<rest>", Tone::Dim),
            name => Cell::plain(name),
        });
    table.column("NAME", false, names);
    let clusters = groups.iter().map(|group| Cell::plain(group.cluster_count));
    table.column("CLUSTERS", true, clusters);
    if !why.result.topologies.is_empty() {
        let selected = by_name(why);
        let spread = groups.iter().map(|group| {
            let mut counts = BTreeMap::<String, usize>::new();
            let clusters = decided.view.clusters();
            for (cluster, _) in
                clusters.filter(|&(_, g)| i64::from(g) == i64::from(group.decision_group_index))
            {
                let topology = selected.get(cluster).map(|s| s.topology.join("/"));
                *counts.entry(topology.unwrap_or_default()).or_default() += 1;
            }
            let counts = counts.iter().map(|(place, n)| format!("{place} {n}"));
            Cell::plain(counts.collect::<Vec<_>>().join(", "))
        });
        table.column("TOPOLOGIES", false, spread);
    }
    page.line(0, "");
    table.write(2, page);
}
