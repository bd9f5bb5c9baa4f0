//! One line per WorkloadSpread: its subsets by name, with their pods, limits and deletion costs.

use std::collections::BTreeMap;

use strew_workloadspread::explain::{Membership, RowCheck};
use strew_workloadspread::{UNLIMITED, WorkloadSpread};

use super::Spreads;
use super::ledger::costs_text;

/// A WorkloadSpread at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its namespace.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
    /// Kind and name of its target.
    pub(crate) target: Option<(String, String)>,
    /// The pods of its subsets.
    pub(crate) text: String,
}

/// All WorkloadSpreads whose pods can be counted, by name.
pub(crate) fn lines(spreads: &Spreads) -> Vec<Line> {
    let machine = &spreads.machine;
    let mut lines: Vec<Line> = machine
        .spreads()
        .iter()
        .filter_map(|ws| line(spreads, ws))
        .collect();
    lines.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    lines
}

fn line(spreads: &Spreads, ws: &WorkloadSpread) -> Option<Line> {
    let machine = &spreads.machine;
    let checks = machine.check_ledger(spreads.now, &ws.key, &mut spreads.patcher());
    let checks = checks.ok()?;
    let pods = machine.explain_pods(&ws.key, &mut spreads.patcher()).ok()?;
    let mut costs: Vec<BTreeMap<i32, usize>> = vec![BTreeMap::new(); ws.spec.subsets.len()];
    let mut n_orphans = 0;
    for (_, standing) in pods.iter().filter(|(pod, _)| pod.is_active()) {
        let place = match standing.subset {
            Membership::Marked(place) | Membership::Adopted(place, _) => place,
            Membership::Orphan => {
                n_orphans += 1;
                continue;
            }
        };
        if let (Some((cost, _)), Some(costs)) = (standing.cost, costs.get_mut(place)) {
            *costs.entry(cost).or_default() += 1;
        }
    }
    let overall = checks.iter().filter(|check| check.revision.is_none());
    let mut parts: Vec<String> = overall
        .zip(&costs)
        .map(|(check, costs)| subset_text(check, over_limit(&checks, &check.subset), costs))
        .collect();
    if n_orphans > 0 {
        parts.push(format!("{n_orphans} in no subset"));
    }
    let names = machine.names();
    let text = |symbol| names.text(symbol).to_owned();
    Some(Line {
        namespace: spreads.namespace(&ws.key).to_owned(),
        name: ws.key.name.to_string(),
        target: ws.spec.target.map(|t| (text(t.kind), text(t.name))),
        text: parts.join("; "),
    })
}

/// The number of pods of a subset beyond its limit, over all revisions.
fn over_limit(checks: &[RowCheck], subset: &str) -> i32 {
    let rows = checks.iter().filter(|check| *check.subset == *subset);
    let counted = rows.filter(|check| check.revision.is_some() && check.max != UNLIMITED);
    let over =
        counted.filter_map(|check| Some((check.truth.as_ref()?.replicas - check.max).max(0)));
    over.sum()
}

/// `own 4 of at most 4 (deletion cost 200)`.
fn subset_text(check: &RowCheck, n_over: i32, costs: &BTreeMap<i32, usize>) -> String {
    let Some(truth) = &check.truth else {
        return format!("{}: its limit cannot be used", check.subset);
    };
    let mut text = format!("{} {}", check.subset, truth.replicas);
    if check.max != UNLIMITED {
        text.push_str(&format!(" of at most {}", check.max));
    }
    let mut notes = Vec::new();
    if n_over > 0 {
        notes.push(format!("✗ {n_over} too many"));
    }
    if truth.is_closed() {
        notes.push("closed".to_owned());
    }
    let costs = costs_text(costs);
    if !costs.is_empty() {
        notes.push(costs);
    }
    if !notes.is_empty() {
        text.push_str(&format!(" ({})", notes.join(", ")));
    }
    text
}
