//! Why a Placement got these clusters: the filters, the scores, the counts before each pick, and what became of the
//! others. Source: seed 003, "Implementation Example"; spec/placement §2.11, §3.7.

use std::collections::BTreeMap;

use strew_model::Symbol;
use strew_placement::explain::{PickReport, Verdict, sum};
use strew_placement::facts::cluster::{ClusterTaint, TaintEffect};

use super::decide::{Decided, Outcome};
use super::text::{Look, ROWS_MAX, folded, keys, shown_value};
use crate::explain_text::Page;
use crate::explain_text::table::{Cell, Table, Tone};
use crate::text::count;

/// Picks told in full; more are told with `-o wide`.
const PICKS_MAX: usize = 10;

/// Names in a list.
const NAMES_MAX: usize = 12;

pub(super) fn write(outcome: &Outcome, decided: &Decided, look: &Look<'_>, page: &mut Page) {
    filters(outcome, decided, page);
    scores(outcome, decided, look, page);
    picks(outcome, decided, look, page);
    others(outcome, decided, look, page);
}

fn filters(outcome: &Outcome, decided: &Decided, page: &mut Page) {
    let explanation = &decided.explanation;
    let candidates = &explanation.schedule.candidates;
    let sets: Vec<&str> = candidates
        .eligible
        .iter()
        .map(|&s| outcome.names.text(s))
        .collect();
    let n = candidates.clusters.len();
    page.heading("Which clusters come into question");
    let of = match sets.is_empty() {
        true => "no set is bound".to_owned(),
        false => format!("in {}", folded(&sets, NAMES_MAX)),
    };
    page.line(2, &format!("{} {of}", count(n, "cluster")));
    let words = ["match the predicates", "tolerated by taints"];
    for (filter, words) in explanation.filters.iter().zip(words) {
        page.line(2, &format!("{} {words}", filter.clusters.len()));
    }
    if explanation.schedule.runs > 1 {
        let text = format!(
            "decided {} times, until the result stood",
            explanation.schedule.runs
        );
        page.line(2, &text);
    }
}

/// What the prioritizers gave, the best first.
fn scores(outcome: &Outcome, decided: &Decided, look: &Look<'_>, page: &mut Page) {
    let explanation = &decided.explanation;
    if explanation.aggregated.is_empty() {
        return;
    }
    page.heading("Scores of the prioritizers");
    let mut header = vec![("CLUSTER".to_owned(), false)];
    let titles = explanation.prioritizers.iter();
    header.extend(titles.map(|p| (format!("{}×{}", p.name, p.weight), true)));
    header.push(("SUM".to_owned(), true));
    let mut table = Table::new(header);
    let given: Vec<BTreeMap<Symbol, i64>> = explanation
        .prioritizers
        .iter()
        .map(|p| p.scores.iter().copied().collect())
        .collect();
    let max = if look.wide { usize::MAX } else { ROWS_MAX };
    for &(cluster, total) in explanation.aggregated.iter().take(max) {
        let mut cells = vec![Cell::plain(outcome.names.text(cluster))];
        cells.extend(given.iter().map(|scores| match scores.get(&cluster) {
            Some(score) => Cell::plain(score),
            None => Cell::of("-", Tone::Dim),
        }));
        cells.push(Cell::plain(total));
        table.row(cells);
    }
    table.write(2, page);
    more(explanation.aggregated.len(), max, page);
}

fn more(n: usize, max: usize, page: &mut Page) {
    if n > max {
        let left = n - max;
        page.line(2, &format!("… and {left} more; -o wide shows all"));
    }
}

/// The selected count table before each pick, and each cluster's scores.
fn picks(outcome: &Outcome, decided: &Decided, look: &Look<'_>, page: &mut Page) {
    let picks = &decided.explanation.picks;
    let max = if look.wide { usize::MAX } else { PICKS_MAX };
    let priors: BTreeMap<Symbol, i64> = decided.explanation.aggregated.iter().copied().collect();
    for (i, pick) in picks.iter().enumerate().take(max) {
        let name = outcome.names.text(pick.picked);
        page.heading(&format!("Pick {}: {name}", i + 1));
        counts(outcome, pick, page);
        finals(outcome, decided, pick, &priors, look, page);
        for (cluster, key, check) in pick.excluded.iter().take(ROWS_MAX) {
            let cluster = outcome.names.text(*cluster);
            let key = outcome.names.text(*key);
            let word = page.paint.bad("excluded");
            page.line(2, &format!("{word} {cluster}: {key}: {}", sum(*check)));
        }
        more(pick.excluded.len(), ROWS_MAX, page);
    }
    let selected = decided.explanation.schedule.picks.len();
    if selected > picks.len().min(max) && !picks.is_empty() {
        let left = selected - picks.len().min(max);
        let tail = match look.wide {
            true => "which are not told one by one",
            false => "-o wide tells of the first 200",
        };
        page.heading(&format!("… and {left} more picks; {tail}"));
    }
}

fn counts(outcome: &Outcome, pick: &PickReport, page: &mut Page) {
    let texts =
        |tuple: &[Symbol]| -> Vec<&str> { tuple.iter().map(|&v| outcome.names.text(v)).collect() };
    let mut rows: Vec<(Vec<&str>, i32)> = pick.counts.iter().map(|(t, n)| (texts(t), *n)).collect();
    rows.sort_unstable();
    let depth = rows.iter().map(|(tuple, _)| tuple.len()).max().unwrap_or(0);
    let header = [("TOPOLOGY TUPLE", false), ("SELECTED COUNT", true)];
    let mut table = Table::new(header.into());
    for (tuple, n) in rows.iter().take(ROWS_MAX) {
        let values = tuple.iter().map(|v| shown_value(v));
        let rest = std::iter::repeat_n("*", depth - tuple.len());
        let values: Vec<&str> = values.chain(rest).collect();
        let tone = if *n == 0 { Tone::Dim } else { Tone::Plain };
        table.row(vec![
            Cell::of(format!("({})", values.join(", ")), tone),
            Cell::of(n, tone),
        ]);
    }
    table.write(2, page);
    more(rows.len(), ROWS_MAX, page);
}

fn finals(
    outcome: &Outcome,
    decided: &Decided,
    pick: &PickReport,
    priors: &BTreeMap<Symbol, i64>,
    look: &Look<'_>,
    page: &mut Page,
) {
    let mut header = vec![("CLUSTER".to_owned(), false)];
    let keys = keys(outcome, decided);
    header.extend(keys.iter().map(|key| (key.to_uppercase(), true)));
    let titles = ["SPREAD", "NORMALIZED", "PRIORITIZERS", "FINAL"];
    header.extend(titles.map(|title| (title.to_owned(), true)));
    let mut table = Table::new(header);
    let mut scores: Vec<_> = pick.scores.iter().collect();
    let name = |cluster: Symbol| outcome.names.text(cluster);
    scores.sort_by(|a, b| {
        b.total
            .cmp(&a.total)
            .then_with(|| name(a.cluster).cmp(name(b.cluster)))
    });
    let max = if look.wide { usize::MAX } else { ROWS_MAX / 2 };
    for score in scores.iter().take(max) {
        let tone = if score.cluster == pick.picked {
            Tone::Good
        } else {
            Tone::Plain
        };
        let mut cells = vec![Cell::of(name(score.cluster), tone)];
        cells.extend(score.levels.iter().map(Cell::plain));
        cells.extend([score.spread, score.normalized].map(Cell::plain));
        cells.push(Cell::plain(
            priors.get(&score.cluster).copied().unwrap_or(0),
        ));
        cells.push(Cell::plain(score.total));
        table.row(cells);
    }
    page.line(0, "");
    table.write(2, page);
    more(scores.len(), max, page);
}

/// What became of those that were not selected, by reason.
fn others(outcome: &Outcome, decided: &Decided, look: &Look<'_>, page: &mut Page) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for (cluster, verdict) in &decided.explanation.verdicts {
        let Some(reason) = reason(outcome, verdict) else {
            continue;
        };
        let name = outcome.names.text(*cluster);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    page.heading("Why not the others");
    reasons.sort();
    let max = if look.wide { usize::MAX } else { NAMES_MAX };
    for (reason, names) in reasons {
        page.line(2, &format!("{} ({})", reason, names.len()));
        page.wrapped(4, &folded(&names, max));
    }
}

fn reason(outcome: &Outcome, verdict: &Verdict) -> Option<String> {
    let text = |symbol: Symbol| outcome.names.text(symbol);
    Some(match verdict {
        Verdict::Selected(_) => return None,
        Verdict::NoPredicate => "no predicate matches".to_owned(),
        Verdict::Taint(taint) => format!("taint {} is not tolerated", taint_text(outcome, taint)),
        Verdict::LacksTopologyKey(key) => format!("lacks the topology key {}", text(*key)),
        Verdict::TopologyWithoutWeight(key) => format!("its {} has weight 0", text(*key)),
        Verdict::MaxSkew(key, check) => {
            format!("excluded by the limit of {}: {}", text(*key), sum(*check))
        }
        Verdict::NotNeeded => "others were better, and enough".to_owned(),
        Verdict::Undecided => "the Placement is misconfigured".to_owned(),
    })
}

fn taint_text(outcome: &Outcome, taint: &ClusterTaint) -> String {
    let text = |symbol: Symbol| outcome.names.text(symbol);
    let effect = match taint.effect {
        TaintEffect::NoSelect => "NoSelect",
        TaintEffect::PreferNoSelect => "PreferNoSelect",
        TaintEffect::NoSelectIfNew => "NoSelectIfNew",
    };
    match text(taint.value) {
        "" => format!("{}:{effect}", text(taint.key)),
        value => format!("{}={value}:{effect}", text(taint.key)),
    }
}
