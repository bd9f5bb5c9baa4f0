//! The results of Placements as text.

use std::collections::{BTreeMap, BTreeSet};

use strew_model::{Interner, Symbol};
use strew_placement::explain::SelectedCluster;
use strew_placement::facts::placement::PlacementFact;
use strew_placement::facts::status::{Condition, ConditionType};

use super::decide::{Decided, Outcome};
use super::difference::Difference;
use super::fleet::Fleet;
use super::what_if::Changed;
use super::{help, summary, why};
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

/// The number of rows of a table; more are shortened unless the look is wide.
pub(super) const ROWS_MAX: usize = 40;

/// The number of Placements that are shown one by one; of more, only those that are not as asked for, or move.
const PLACEMENTS_MAX: usize = 20;

/// The content.
pub(super) struct Told<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) outcome: &'a Outcome,
    /// The change that was asked about.
    pub(super) changed: Option<&'a Changed>,
    /// By Placement: the difference from the previous clusters; `None` if there were none.
    pub(super) differences: &'a [Option<Difference>],
}

/// All that is shown.
pub(super) fn write(
    told: &Told<'_>,
    is_shown: &dyn Fn(&PlacementFact) -> bool,
    look: &Look<'_>,
) -> String {
    let mut page = page(look);
    let outcome = told.outcome;
    if let Some(changed) = told.changed {
        asked(changed, &outcome.names, &mut page);
    }
    let shown = outcome.decided.iter().zip(told.differences);
    let shown = shown.filter(|(d, _)| is_shown(&d.fact));
    let shown: Vec<(&Decided, Option<&Difference>)> = shown
        .map(|(decided, difference)| (decided, difference.as_ref()))
        .collect();
    summary::write(outcome, &shown, &mut page);
    let folds = shown.len() > PLACEMENTS_MAX && !look.wide && !look.explain;
    let mut left = 0;
    for (decided, difference) in shown {
        let is_plain =
            !summary::is_trouble(decided) && !difference.is_some_and(Difference::changes);
        if folds && is_plain {
            left += 1;
            continue;
        }
        if !page.text.is_empty() {
            page.line(0, "");
        }
        placement(told, decided, difference, look, &mut page);
        if look.explain
            && !decided.fact.ignored
            && let Some(why) = outcome.why(decided, told.fleet)
        {
            let keys = keys(outcome, decided);
            why::write(&why, &keys, look, &mut page);
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

fn asked(changed: &Changed, names: &Interner, page: &mut Page) {
    let words = changed.words.join(", ");
    let touched: BTreeSet<&str> = changed.touched.keys().map(|&c| names.text(c)).collect();
    let touched: Vec<&str> = touched.into_iter().collect();
    let title = match (changed.is_loss, changed.words.len()) {
        (true, 1) => format!("What if {words} is lost"),
        (true, _) => format!("What if {words} are lost"),
        (false, _) => format!("What if {words}"),
    };
    let title = page.paint.bold(&title);
    if touched.is_empty() {
        return page.line(0, &title);
    }
    page.line(0, &format!("{title} ({})", count(touched.len(), "cluster")));
    page.wrapped(2, &folded(&touched, 20));
}

/// The first names of a list.
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
    told: &Told<'_>,
    decided: &Decided,
    difference: Option<&Difference>,
    look: &Look<'_>,
    page: &mut Page,
) {
    let outcome = told.outcome;
    let asked = told.changed.is_some();
    head(outcome, decided, difference.filter(|_| asked), page);
    if decided.fact.ignored {
        let text = "left alone: it is being deleted, or disabled by its annotation";
        return page.line(2, text);
    }
    conditions(decided, page);
    if !asked {
        for help in help::of(decided, told.fleet, &outcome.names) {
            page.wrapped(4, &format!("{}: {help}", page.paint.dim("help")));
        }
    }
    if let Some(difference) = difference {
        moved(difference, asked, look, page);
    }
    clusters(outcome, decided, look, page);
    topologies(outcome, decided, difference, page);
    groups(outcome, decided, page);
}

fn head(outcome: &Outcome, decided: &Decided, difference: Option<&Difference>, page: &mut Page) {
    let title = page
        .paint
        .bold(&format!("Placement {}", outcome.label(decided)));
    let asked = decided.fact.spec.number_of_clusters;
    let got = |n: usize| match asked {
        Some(asked) => format!("{n} of {asked}"),
        None => n.to_string(),
    };
    let n = decided.clusters().count();
    let text = match difference {
        Some(difference) => {
            let before = difference.gone.len() + difference.stay.len();
            format!("{} → {} clusters", got(before), got(n))
        }
        None => {
            let noun = match (n, asked) {
                (1, None) => "cluster",
                _ => "clusters",
            };
            format!("{} {noun}", got(n))
        }
    };
    let text = match (decided.is_misconfigured(), decided.is_short()) {
        (false, false) => page.paint.good(&text),
        _ => page.paint.bad(&text),
    };
    page.line(0, &format!("{title}: {text}"));
}

/// The ones with a message that is not plain.
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
        let is_empty =
            kind == ConditionType::SpreadSatisfied && decided.clusters().next().is_none();
        if is_good && is_empty && decided.is_short() {
            // The condition is that of a Placement without clusters: it says nothing good.
            page.line(2, "· nothing is spread: no cluster was selected");
            continue;
        }
        page_condition(condition, is_good, page);
    }
    let code = decided.why.as_ref().map(|why| &why.schedule.code);
    if let Some(strew_placement::Code::Warning(problem)) = code {
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
    // A CEL expression comes with its marked text.
    lines.for_each(|line| page.line(4, line));
}

/// What moves, and why. `asked`: after a change; otherwise compared with the stored decisions.
fn moved(difference: &Difference, asked: bool, look: &Look<'_>, page: &mut Page) {
    if !difference.changes() {
        let text = match asked {
            true => "nothing moves",
            false => "as stored: nothing moves",
        };
        return page.line(2, text);
    }
    let words = difference.words();
    match asked {
        true => page.line(2, &words),
        false => page.line(2, &format!("against the stored decisions: {words}")),
    }
    let max = if look.wide { usize::MAX } else { ROWS_MAX };
    for moved in difference.gone.iter().take(max) {
        let why = match moved.reason {
            None => "moved away",
            Some("anyway") => "moves without the change, too",
            Some(reason) => reason,
        };
        let sign = page.paint.bad("-");
        let place = moved.topology.join("/");
        let line = format!("{sign} {}  {place}  {why}", moved.cluster_name);
        page.line(4, line.trim_end());
    }
    for moved in difference.new.iter().take(max) {
        let why = match moved.reason {
            Some("anyway") => "comes without the change, too",
            other => other.unwrap_or_default(),
        };
        let sign = page.paint.good("+");
        let place = moved.topology.join("/");
        let line = format!("{sign} {}  {place}  {why}", moved.cluster_name);
        page.line(4, line.trim_end());
    }
    let (gone, new) = (difference.gone.len(), difference.new.len());
    let left = gone.saturating_sub(max) + new.saturating_sub(max);
    if left > 0 {
        page.line(4, &format!("… and {left} more; -o wide shows all"));
    }
    let changes = &difference.replicas;
    for change in changes.iter().take(max) {
        let (before, after) = (change.before, change.after);
        let line = format!("~ {}  {before} → {after} replicas", change.cluster_name);
        page.line(4, &line);
    }
    if changes.len() > max {
        let left = changes.len() - max;
        page.line(4, &format!("… and {left} more; -o wide shows all"));
    }
}

/// The topology of a selected cluster.
fn tuple_of(decided: &Decided, cluster: Symbol) -> Option<&[Symbol]> {
    let why = decided.why.as_ref()?;
    let selected = why.selected.iter().find(|s| s.cluster == cluster)?;
    let topology = why.topologies.get(selected.topology? as usize)?;
    Some(&topology.tuple)
}

/// The keys of the spread constraints.
pub(super) fn keys<'o>(outcome: &'o Outcome, decided: &Decided) -> Vec<&'o str> {
    let terms = decided.fact.spec.spread.iter();
    terms.map(|term| outcome.names.text(term.key)).collect()
}

fn clusters(outcome: &Outcome, decided: &Decided, look: &Look<'_>, page: &mut Page) {
    let rows: Vec<(Symbol, u32)> = decided.clusters().collect();
    let (false, Some(why)) = (rows.is_empty(), &decided.why) else {
        return;
    };
    let keys = keys(outcome, decided);
    let text = |symbol: Symbol| outcome.names.text(symbol);
    let groups = rows.last().is_some_and(|&(_, group)| group > 0);
    let prioritizers: &[_] = match look.wide {
        true => &why.prioritizers,
        false => &[],
    };
    let spreads = look.wide && why.spread_weight != 0;
    let mut header = vec![("CLUSTER".to_owned(), false)];
    header.extend(keys.iter().map(|key| (key.to_uppercase(), false)));
    header.extend(
        prioritizers
            .iter()
            .map(|p| (format!("{}×{}", p.name, p.weight), true)),
    );
    if spreads {
        header.push((format!("Spread×{}", why.spread_weight), true));
    }
    header.push(("SCORE".to_owned(), true));
    let replicas = decided.replicas();
    let parts = why.schedule.parts.iter().flat_map(|parts| &parts.clusters);
    let weights: BTreeMap<Symbol, i64> = parts.map(|part| (part.cluster, part.weight)).collect();
    let weighs = look.wide && !weights.is_empty();
    if weighs {
        header.push(("REPLICA WEIGHT".to_owned(), true));
    }
    if replicas.is_some() {
        header.push(("REPLICAS".to_owned(), true));
    }
    if groups {
        header.push(("GROUP".to_owned(), true));
    }
    let mut table = Table::new(header);
    let selected: BTreeMap<Symbol, &SelectedCluster> =
        why.selected.iter().map(|s| (s.cluster, s)).collect();
    let given: Vec<BTreeMap<Symbol, i64>> = prioritizers
        .iter()
        .map(|p| p.scores.iter().copied().collect())
        .collect();
    let max = if look.wide { usize::MAX } else { ROWS_MAX };
    for &(cluster, group) in rows.iter().take(max) {
        let mut cells = vec![Cell::plain(text(cluster))];
        let selected = selected.get(&cluster);
        let topology = selected.and_then(|s| why.topologies.get(s.topology? as usize));
        cells.extend((0..keys.len()).map(|i| {
            let value = topology.and_then(|topology| topology.tuple.get(i));
            value.map_or_else(|| Cell::of("<none>", Tone::Dim), |&v| Cell::plain(text(v)))
        }));
        let number = |n: Option<i64>| n.map_or_else(|| Cell::of("-", Tone::Dim), Cell::plain);
        cells.extend(
            given
                .iter()
                .map(|scores| number(scores.get(&cluster).copied())),
        );
        if spreads {
            cells.push(number(selected.map(|s| s.normalized)));
        }
        cells.push(number(selected.map(|s| s.score)));
        if weighs {
            cells.push(number(weights.get(&cluster).copied()));
        }
        if let Some(replicas) = &replicas {
            cells.push(number(replicas.get(&cluster).map(|&n| i64::from(n))));
        }
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

/// The counts of topologies, before and after if something moves.
fn topologies(
    outcome: &Outcome,
    decided: &Decided,
    difference: Option<&Difference>,
    page: &mut Page,
) {
    let reports = decided.why.as_ref().map_or(&[][..], |why| &why.topologies);
    if reports.is_empty() || decided.is_misconfigured() {
        return;
    }
    let text = |&value: &Symbol| outcome.names.text(value).to_owned();
    // A parent's tuple is a prefix of its children's.
    let mut rows: BTreeMap<Vec<String>, (usize, i32, u32, Option<u32>)> = BTreeMap::new();
    for report in reports {
        let tuple = report.tuple.iter().map(text).collect();
        rows.insert(tuple, (0, report.selected, report.clusters, report.weight));
    }
    let replicas = decided.replicas().map(|replicas| {
        let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for (&cluster, &n) in &replicas {
            let tuple = tuple_of(decided, cluster).unwrap_or_default();
            let tuple: Vec<String> = tuple.iter().map(text).collect();
            for depth in 1..=tuple.len() {
                *sums.entry(tuple[..depth].to_vec()).or_default() += u64::from(n);
            }
        }
        sums
    });
    let compared = difference.filter(|difference| difference.moves());
    for change in compared
        .iter()
        .flat_map(|difference| &difference.topologies)
    {
        let lost = (0, 0, 0, None);
        rows.entry(change.topology.clone()).or_insert(lost).0 = change.before;
    }
    let weighted = rows.values().any(|row| row.3.is_some());
    let mut header = vec![("TOPOLOGY", false)];
    if weighted {
        header.push(("WEIGHT", true));
    }
    if compared.is_some() {
        header.push(("BEFORE", true));
    }
    header.extend([("SELECTED", true), ("CLUSTERS", true)]);
    if replicas.is_some() {
        header.push(("REPLICAS", true));
    }
    let mut table = Table::new(header);
    for (tuple, (before, selected, clusters, weight)) in rows {
        let value = tuple.last().map_or("", String::as_str);
        let indent = "  ".repeat(tuple.len().saturating_sub(1));
        let tone = if selected == 0 {
            Tone::Dim
        } else {
            Tone::Plain
        };
        let mut cells = vec![Cell::of(format!("{indent}{}", shown_value(value)), tone)];
        if weighted {
            let weight = weight.map_or_else(|| "-".to_owned(), |weight| weight.to_string());
            cells.push(Cell::of(weight, tone));
        }
        if compared.is_some() {
            cells.push(Cell::of(before, tone));
        }
        cells.extend([Cell::of(selected, tone), Cell::of(clusters, tone)]);
        if let Some(replicas) = &replicas {
            cells.push(Cell::of(replicas.get(&tuple).copied().unwrap_or(0), tone));
        }
        table.row(cells);
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
fn groups(outcome: &Outcome, decided: &Decided, page: &mut Page) {
    let groups = &decided.fact.status.groups;
    let is_plain = groups.len() == 1 && outcome.names.text(groups[0].name).is_empty();
    if is_plain || groups.is_empty() {
        return;
    }
    let text = |symbol: Symbol| outcome.names.text(symbol);
    let why = decided.why.as_ref();
    let spread = why.is_some_and(|why| !why.topologies.is_empty());
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
            let mut counts = BTreeMap::<String, usize>::new();
            for (cluster, _) in decided.clusters().filter(|&(_, g)| g == group.index) {
                let tuple = tuple_of(decided, cluster).unwrap_or_default();
                let values: Vec<&str> = tuple.iter().map(|&value| text(value)).collect();
                *counts.entry(values.join("/")).or_default() += 1;
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
