//! Why a Placement got its clusters: the filters, the scores, the counts before each pick, and the verdicts on the
//! other clusters. Source: the OCM spread proposal, "Implementation Example"; spec/placement §2.11, §3.7.

use std::collections::BTreeMap;

use strew_manifest::ocm::SpreadConstraintsTerm;
use strew_wire::placement::debug::{DebugResult, PickResult, SelectedCount};

use super::text::{Look, ROWS_MAX, folded, more, shown_value};
use crate::explain_text::Page;
use crate::explain_text::table::{Cell, Table, Tone};
use crate::text::count;

/// The number of picks that are shown in full; `-o wide` shows more.
const PICKS_MAX: usize = 10;

/// The number of names in a list.
const NAMES_MAX: usize = 12;

/// `terms`: the spread constraints.
pub(super) fn write(
    result: &DebugResult,
    terms: &[SpreadConstraintsTerm],
    look: &Look<'_>,
    page: &mut Page,
) {
    filters(result, page);
    scores(result, look, page);
    picks(result, terms, look, page);
    groups(result, page);
    replicas(result, look, page);
    others(result, look, page);
}

/// The number of topologies in use, if it is bounded.
fn groups(result: &DebugResult, page: &mut Page) {
    let groups = &result.groups;
    if groups.is_empty() {
        return;
    }
    page.heading("Topologies in use");
    let mut table = Table::default();
    let keys = groups.iter().map(|group| Cell::plain(&group.topology_key));
    table.column("KEY", false, keys);
    let used = groups.iter().map(|group| {
        let is_short = group.min_groups.is_some_and(|min| group.used < min);
        Cell::of(group.used, if is_short { Tone::Bad } else { Tone::Plain })
    });
    table.column("USED", true, used);
    let bounds = groups.iter().map(|group| Cell::number(group.min_groups));
    table.column("MIN GROUPS", true, bounds);
    let bounds = groups.iter().map(|group| Cell::number(group.max_groups));
    table.column("MAX GROUPS", true, bounds);
    table.write(2, page);
}

/// The number that each cluster's part of the replicas is computed from.
fn replicas(result: &DebugResult, look: &Look<'_>, page: &mut Page) {
    let parts = &result.replicas;
    if parts.is_empty() {
        return;
    }
    let total: u64 = parts.iter().map(|part| u64::from(part.replicas)).sum();
    let over = count(parts.len(), "cluster");
    page.heading(&format!("{total} replicas over {over}"));
    let max = look.rows(ROWS_MAX);
    let mut table = Table::default();
    let shown = || parts.iter().take(max);
    table.column(
        "CLUSTER",
        false,
        shown().map(|part| Cell::plain(&part.cluster_name)),
    );
    table.column("WEIGHT", true, shown().map(|part| Cell::plain(part.weight)));
    table.column(
        "REPLICAS",
        true,
        shown().map(|part| Cell::plain(part.replicas)),
    );
    table.write(2, page);
    more(2, parts.len(), max, page);
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
    let max = look.rows(ROWS_MAX);
    let sums = || result.aggregated_scores.iter().take(max);
    let mut table = Table::default();
    table.column(
        "CLUSTER",
        false,
        sums().map(|sum| Cell::plain(&sum.cluster_name)),
    );
    for p in &result.prioritize_results {
        let scores = sums().map(|sum| Cell::number(p.scores.get(&sum.cluster_name)));
        table.column(format!("{}×{}", p.name, p.weight), true, scores);
    }
    table.column("SUM", true, sums().map(|sum| Cell::plain(sum.score)));
    table.write(2, page);
    more(2, result.aggregated_scores.len(), max, page);
}

/// The selected count table before each pick, with each cluster's scores.
fn picks(result: &DebugResult, terms: &[SpreadConstraintsTerm], look: &Look<'_>, page: &mut Page) {
    let picks = &result.selector_results;
    let max = look.rows(PICKS_MAX);
    let sums = result.aggregated_scores.iter();
    let priors: BTreeMap<&str, i64> = sums.map(|s| (&*s.cluster_name, s.score)).collect();
    for (i, pick) in picks.iter().enumerate().take(max) {
        page.heading(&format!("Pick {}: {}", i + 1, pick.picked));
        counts(pick, look, page);
        finals(result, pick, terms, &priors, look, page);
        let max = look.rows(ROWS_MAX);
        for (cluster, key) in pick.excluded.iter().take(max) {
            let word = page.paint.bad("excluded");
            let sum = pick.limits.get(cluster).map(|limit| &limit.sum);
            let sum = sum.or(pick.groups.get(cluster)).map_or("", String::as_str);
            page.line(2, &format!("{word} {cluster}: {key}: {sum}"));
        }
        more(2, pick.excluded.len(), max, page);
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
    let max = look.rows(ROWS_MAX);
    let each = |text: &dyn Fn(&SelectedCount) -> String| -> Vec<Cell> {
        let tone = |row: &SelectedCount| match row.selected {
            0 => Tone::Dim,
            _ => Tone::Plain,
        };
        let rows = rows.iter().take(max);
        rows.map(|row| Cell::of(text(row), tone(row))).collect()
    };
    let dash = || "-".to_owned();
    let mut table = Table::default();
    let tuple = |row: &SelectedCount| {
        let values = row.topology.iter().map(|v| shown_value(v));
        let rest = std::iter::repeat_n("*", depth - row.topology.len());
        let values: Vec<&str> = values.chain(rest).collect();
        format!("({})", values.join(", "))
    };
    table.column("TOPOLOGY TUPLE", false, each(&tuple));
    table.column(
        "SELECTED COUNT",
        true,
        each(&|row| row.selected.to_string()),
    );
    if weighted {
        let weight = |row: &SelectedCount| row.weight.map_or_else(dash, |w| w.to_string());
        table.column("WEIGHT", true, each(&weight));
        let load = |row: &SelectedCount| row.load.clone().unwrap_or_else(dash);
        table.column("LOAD", true, each(&load));
    }
    table.write(2, page);
    more(2, rows.len(), max, page);
}

fn finals(
    result: &DebugResult,
    pick: &PickResult,
    terms: &[SpreadConstraintsTerm],
    priors: &BTreeMap<&str, i64>,
    look: &Look<'_>,
    page: &mut Page,
) {
    let mut best: Vec<(&String, i64)> = pick.total.iter().map(|(name, &n)| (name, n)).collect();
    // The sort is stable: equal ones stay by name.
    best.sort_by_key(|&(_, total)| std::cmp::Reverse(total));
    let max = look.rows(ROWS_MAX / 2);
    let each = |cell: &dyn Fn(&String) -> Cell| -> Vec<Cell> {
        best.iter().take(max).map(|(name, _)| cell(name)).collect()
    };
    let number = |of: &dyn Fn(&String) -> Option<i64>| {
        each(&|name| Cell::plain(of(name).unwrap_or_default()))
    };
    let mut table = Table::default();
    let name = |name: &String| match *name == pick.picked {
        true => Cell::of(name, Tone::Good),
        false => Cell::plain(name),
    };
    table.column("CLUSTER", false, each(&name));
    for (i, term) in terms.iter().enumerate() {
        let level = |name: &String| pick.scores.get(name)?.get(i).copied();
        table.column(term.topology_key.to_uppercase(), true, number(&level));
    }
    let of = |scores: &BTreeMap<String, i64>| number(&|name| scores.get(name).copied());
    table.column("SPREAD", true, of(&pick.combined));
    let normalized = format!("NORMALIZED×{}", result.spread_weight);
    table.column(normalized, true, of(&pick.normalized));
    let prior = |name: &String| priors.get(&**name).copied();
    table.column("PRIORITIZERS", true, number(&prior));
    table.column("FINAL", true, of(&pick.total));
    page.line(0, "");
    table.write(2, page);
    more(2, best.len(), max, page);
}

/// The verdicts on the clusters that were not selected, by reason.
fn others(result: &DebugResult, look: &Look<'_>, page: &mut Page) {
    if result.not_selected.is_empty() {
        return;
    }
    page.heading("Why not the others");
    let max = look.rows(NAMES_MAX);
    for others in &result.not_selected {
        page.line(2, &format!("{} ({})", others.message, others.count));
        let names: Vec<&str> = others.clusters.iter().map(String::as_str).collect();
        page.wrapped(4, &folded(&names, max));
    }
}
