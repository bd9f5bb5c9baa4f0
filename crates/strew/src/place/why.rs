//! Why a Placement got its clusters: the filters, the scores, the counts before each pick, and the verdicts on the
//! other clusters. Source: the OCM spread proposal, "Implementation Example"; spec/placement §2.11, §3.7.

use std::collections::BTreeMap;

use strew_wire::placement::debug::{DebugResult, PickResult};

use super::text::{Look, ROWS_MAX, folded, shown_value};
use crate::explain_text::Page;
use crate::explain_text::table::{Cell, Table, Tone};
use crate::text::count;

/// The number of picks that are shown in full; `-o wide` shows more.
const PICKS_MAX: usize = 10;

/// The number of names in a list.
const NAMES_MAX: usize = 12;

/// `keys`: the keys of the spread constraints.
pub(super) fn write(result: &DebugResult, keys: &[&str], look: &Look<'_>, page: &mut Page) {
    filters(result, page);
    scores(result, look, page);
    picks(result, keys, look, page);
    groups(result, page);
    replicas(result, look, page);
    others(result, look, page);
}

/// The number of topologies in use, if it is bounded.
fn groups(result: &DebugResult, page: &mut Page) {
    if result.groups.is_empty() {
        return;
    }
    page.heading("Topologies in use");
    let mut table = Table::new(
        [
            ("KEY", false),
            ("USED", true),
            ("MIN GROUPS", true),
            ("MAX GROUPS", true),
        ]
        .into(),
    );
    for groups in &result.groups {
        let bound = |bound: Option<u32>| match bound {
            Some(n) => Cell::plain(n),
            None => Cell::of("-", Tone::Dim),
        };
        let is_short = groups.min_groups.is_some_and(|min| groups.used < min);
        let tone = if is_short { Tone::Bad } else { Tone::Plain };
        table.row(vec![
            Cell::plain(&groups.topology_key),
            Cell::of(groups.used, tone),
            bound(groups.min_groups),
            bound(groups.max_groups),
        ]);
    }
    table.write(2, page);
}

/// The number that each cluster's part of the replicas is computed from.
fn replicas(result: &DebugResult, look: &Look<'_>, page: &mut Page) {
    if result.replicas.is_empty() {
        return;
    }
    let total: u64 = result.replicas.iter().map(|r| u64::from(r.replicas)).sum();
    let over = count(result.replicas.len(), "cluster");
    page.heading(&format!("{total} replicas over {over}"));
    let header = [("CLUSTER", false), ("WEIGHT", true), ("REPLICAS", true)];
    let mut table = Table::new(header.into());
    let max = rows_max(look, ROWS_MAX);
    for part in result.replicas.iter().take(max) {
        table.row(vec![
            Cell::plain(&part.cluster_name),
            Cell::plain(part.weight),
            Cell::plain(part.replicas),
        ]);
    }
    table.write(2, page);
    more(result.replicas.len(), max, page);
}

/// The number of rows of a table.
fn rows_max(look: &Look<'_>, max: usize) -> usize {
    if look.wide { usize::MAX } else { max }
}

fn filters(result: &DebugResult, page: &mut Page) {
    let sets: Vec<&str> = result.cluster_sets.iter().map(String::as_str).collect();
    page.heading("Which clusters come into question");
    let of = match sets.is_empty() {
        true => "no set is bound".to_owned(),
        false => format!("in {}", folded(&sets, NAMES_MAX)),
    };
    page.line(2, &format!("{} {of}", count(result.candidates, "cluster")));
    for warning in &result.warnings {
        let mark = page.paint.bad("!");
        page.line(2, &format!("{mark} {warning}"));
    }
    let words = ["match the predicates", "tolerated by taints"];
    for (filter, words) in result.filtered_pipeline_results.iter().zip(words) {
        page.line(2, &format!("{} {words}", filter.filtered_clusters.len()));
    }
    if result.runs > 1 {
        let runs = result.runs;
        let text = format!(
            "decided {runs} times, until the result stood; the numbers are those of the first time with this result"
        );
        page.wrapped(2, &text);
    }
}

/// The prioritizers' scores, the best first.
fn scores(result: &DebugResult, look: &Look<'_>, page: &mut Page) {
    if result.aggregated_scores.is_empty() {
        return;
    }
    page.heading("Scores of the prioritizers");
    let mut header = vec![("CLUSTER".to_owned(), false)];
    let prioritizers = &result.prioritize_results;
    let titles = prioritizers.iter();
    header.extend(titles.map(|p| (format!("{}×{}", p.name, p.weight), true)));
    header.push(("SUM".to_owned(), true));
    let mut table = Table::new(header);
    let max = rows_max(look, ROWS_MAX);
    for sum in result.aggregated_scores.iter().take(max) {
        let name = &sum.cluster_name;
        let mut cells = vec![Cell::plain(name)];
        cells.extend(prioritizers.iter().map(|p| match p.scores.get(name) {
            Some(score) => Cell::plain(score),
            None => Cell::of("-", Tone::Dim),
        }));
        cells.push(Cell::plain(sum.score));
        table.row(cells);
    }
    table.write(2, page);
    more(result.aggregated_scores.len(), max, page);
}

fn more(n: usize, max: usize, page: &mut Page) {
    if n > max {
        let left = n - max;
        page.line(2, &format!("… and {left} more; -o wide shows all"));
    }
}

/// The selected count table before each pick, with each cluster's scores.
fn picks(result: &DebugResult, keys: &[&str], look: &Look<'_>, page: &mut Page) {
    let picks = &result.selector_results;
    let max = rows_max(look, PICKS_MAX);
    let sums = result.aggregated_scores.iter();
    let priors: BTreeMap<&str, i64> = sums.map(|s| (&*s.cluster_name, s.score)).collect();
    for (i, pick) in picks.iter().enumerate().take(max) {
        page.heading(&format!("Pick {}: {}", i + 1, pick.picked));
        counts(pick, look, page);
        finals(result, pick, keys, &priors, look, page);
        let max = rows_max(look, ROWS_MAX);
        for (cluster, key) in pick.excluded.iter().take(max) {
            let word = page.paint.bad("excluded");
            let sum = pick.limits.get(cluster).map(|limit| &limit.sum);
            let sum = sum.or(pick.groups.get(cluster)).map_or("", String::as_str);
            page.line(2, &format!("{word} {cluster}: {key}: {sum}"));
        }
        more(pick.excluded.len(), max, page);
    }
    let selected = result.selected_clusters.len();
    let told = picks.len().min(max);
    if selected > told && !picks.is_empty() {
        let tail = match told == picks.len() {
            true => "which are not told one by one".to_owned(),
            false => format!("-o wide tells of the first {}", picks.len()),
        };
        let left = selected - told;
        page.heading(&format!("… and {left} more picks; {tail}"));
    }
}

fn counts(pick: &PickResult, look: &Look<'_>, page: &mut Page) {
    let rows = &pick.counts;
    let depth = rows.iter().map(|row| row.topology.len()).max().unwrap_or(0);
    let weighted = rows.iter().any(|row| row.weight.is_some());
    let mut header = vec![("TOPOLOGY TUPLE", false), ("SELECTED COUNT", true)];
    if weighted {
        header.extend([("WEIGHT", true), ("LOAD", true)]);
    }
    let mut table = Table::new(header);
    let max = rows_max(look, ROWS_MAX);
    for row in rows.iter().take(max) {
        let values = row.topology.iter().map(|v| shown_value(v));
        let rest = std::iter::repeat_n("*", depth - row.topology.len());
        let values: Vec<&str> = values.chain(rest).collect();
        let tone = match row.selected {
            0 => Tone::Dim,
            _ => Tone::Plain,
        };
        let mut cells = vec![
            Cell::of(format!("({})", values.join(", ")), tone),
            Cell::of(row.selected, tone),
        ];
        if weighted {
            let weight = row.weight.map_or_else(|| "-".to_owned(), |w| w.to_string());
            let load = row.load.as_deref().unwrap_or("-");
            cells.extend([Cell::of(weight, tone), Cell::of(load, tone)]);
        }
        table.row(cells);
    }
    table.write(2, page);
    more(rows.len(), max, page);
}

fn finals(
    result: &DebugResult,
    pick: &PickResult,
    keys: &[&str],
    priors: &BTreeMap<&str, i64>,
    look: &Look<'_>,
    page: &mut Page,
) {
    let mut header = vec![("CLUSTER".to_owned(), false)];
    header.extend(keys.iter().map(|key| (key.to_uppercase(), true)));
    let normalized = format!("NORMALIZED×{}", result.spread_weight);
    let titles = ["SPREAD", &normalized, "PRIORITIZERS", "FINAL"];
    header.extend(titles.map(|title| (title.to_owned(), true)));
    let mut table = Table::new(header);
    let mut best: Vec<(&String, i64)> = pick.total.iter().map(|(name, &n)| (name, n)).collect();
    // The sort is stable: equal ones stay by name.
    best.sort_by_key(|&(_, total)| std::cmp::Reverse(total));
    let max = rows_max(look, ROWS_MAX / 2);
    for &(name, total) in best.iter().take(max) {
        let tone = if *name == pick.picked {
            Tone::Good
        } else {
            Tone::Plain
        };
        let of = |scores: &BTreeMap<String, i64>| scores.get(name).copied().unwrap_or(0);
        let mut cells = vec![Cell::of(name, tone)];
        let levels = pick.scores.get(name).into_iter().flatten();
        cells.extend(levels.map(Cell::plain));
        cells.extend([&pick.combined, &pick.normalized].map(|s| Cell::plain(of(s))));
        cells.push(Cell::plain(priors.get(&**name).copied().unwrap_or(0)));
        cells.push(Cell::plain(total));
        table.row(cells);
    }
    page.line(0, "");
    table.write(2, page);
    more(best.len(), max, page);
}

/// The verdicts on the clusters that were not selected, by reason.
fn others(result: &DebugResult, look: &Look<'_>, page: &mut Page) {
    if result.not_selected.is_empty() {
        return;
    }
    page.heading("Why not the others");
    let max = rows_max(look, NAMES_MAX);
    for others in &result.not_selected {
        page.line(2, &format!("{} ({})", others.message, others.count));
        let names: Vec<&str> = others.clusters.iter().map(String::as_str).collect();
        page.wrapped(4, &folded(&names, max));
    }
}
