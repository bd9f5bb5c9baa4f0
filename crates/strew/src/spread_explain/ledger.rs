//! The ledger of a WorkloadSpread, compared with the pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use strew_model::Span;
use strew_wire::workloadspread::status;
use strew_workloadspread::explain::{Entry, Membership, PodStanding, RowCheck};
use strew_workloadspread::quota::CannotCount;
use strew_workloadspread::{Pod, Row, WorkloadSpread, WsKey};

use super::{Source, Spreads, limit_text, time_text};
use crate::text::count;
use strew_suite::clock::clock;
use strew_suite::report::API_VERSION;

/// A ledger, row by row, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ledger {
    api_version: &'static str,
    kind: &'static str,
    namespace: String,
    name: String,
    /// The moment that expiries are compared with: the newest in the files, or that of the simulation.
    at: String,
    /// The origin of that moment.
    #[serde(skip)]
    source: Source,
    /// An older WorkloadSpread that has the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods_belong_to: Option<String>,
    /// Why the pods cannot be counted; then there are no rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// Whether a sync would change no row.
    agrees: bool,
    rows: Vec<LedgerRow>,
    /// Active pods that are in no subset.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    in_no_subset: Vec<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LedgerRow {
    /// Absent: over all revisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    subset: String,
    /// -1: no limit.
    max_replicas: i32,
    agrees: bool,
    /// The number of pods beyond the limit of the subset.
    #[serde(skip_serializing_if = "is_zero", default)]
    over_limit: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<Counts>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    open: Vec<Open>,
    /// The number of active pods that should have each deletion cost.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    deletion_costs: BTreeMap<i32, usize>,
    /// Active pods whose deletion cost is not the right one.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    costs_to_write: Vec<String>,
    /// Active pods whose missing marker the next sync writes.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    unmarked: Vec<String>,
    /// What a rollout does with the subset.
    #[serde(skip_serializing_if = "Option::is_none")]
    rollout: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    replicas: i32,
    missing_replicas: i32,
    creating: usize,
    deleting: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedulable: Option<bool>,
    /// Since when the subset takes no pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_since: Option<String>,
    /// When it takes pods again, if none waits for one of its nodes then.
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_until: Option<String>,
}

/// An entry without a matching pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Open {
    entry: &'static str,
    pod: String,
    given_up_at: String,
}

/// The ledger of a WorkloadSpread.
pub(crate) fn ledger(spreads: &Spreads, key: &WsKey) -> Ledger {
    let machine = &spreads.machine;
    let checked = machine.check_ledger(spreads.now, key, &mut spreads.patcher());
    let (checks, fault) = match checked {
        Ok(checks) => (checks, None),
        Err(CannotCount::Path(path)) => (
            Vec::new(),
            Some(format!(
                "the target has no integer at {path:?}, which the filter names"
            )),
        ),
        Err(CannotCount::Selector) => (
            Vec::new(),
            Some("the selector of the filter does not parse".to_owned()),
        ),
    };
    let ws = machine.spreads().get(key);
    let pods = machine.explain_pods(key, &mut spreads.patcher());
    let pods = pods.unwrap_or_default();
    let active = || pods.iter().filter(|(pod, _)| pod.is_active());
    let orphans = active().filter(|(_, standing)| standing.subset == Membership::Orphan);
    let mut rows: Vec<LedgerRow> = checks.iter().map(|check| row(check, ws)).collect();
    for (check, row) in checks.iter().zip(&mut rows) {
        for (pod, standing) in active() {
            let (place, is_unmarked) = match &standing.subset {
                Membership::Marked(place) => (*place, false),
                Membership::Adopted(place, _) => (*place, true),
                Membership::Orphan => continue,
            };
            let subset = ws.and_then(|ws| ws.spec.subsets.get(place));
            let is_of_row = subset.is_some_and(|subset| subset.name == check.subset);
            let is_counted = check.revision.as_ref() == Some(&standing.revision);
            if is_of_row && is_counted {
                row.add(pod, standing, is_unmarked);
            }
        }
    }
    Ledger {
        api_version: API_VERSION,
        kind: "WorkloadSpreadExplanation",
        namespace: spreads.namespace(key).to_owned(),
        name: key.name.to_string(),
        at: time_text(spreads.now),
        source: spreads.source,
        pods_belong_to: ws
            .and_then(|ws| ws.status.outranked.as_ref())
            .map(|outranked| outranked.by.to_string()),
        agrees: fault.is_none() && checks.iter().all(RowCheck::agrees),
        fault,
        rows,
        in_no_subset: orphans.map(|(pod, _)| pod.name.to_string()).collect(),
    }
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

fn row(check: &RowCheck, ws: Option<&Arc<WorkloadSpread>>) -> LedgerRow {
    let open = check.open.iter();
    // Each revision has the whole limit: over all of them there may be more during a rollout.
    let truth = check
        .truth
        .as_ref()
        .filter(|_| check.revision.is_some() && check.max >= 0);
    let closed_for = ws.and_then(|ws| ws.spec.strategy.reschedules());
    let closed_for = closed_for.map(|(_, closed_for)| closed_for);
    let misfit = ws.and_then(|ws| ws.status.misfits.get(&check.subset));
    LedgerRow {
        revision: check.revision.as_ref().map(|r| r.to_string()),
        subset: check.subset.to_string(),
        max_replicas: check.max,
        agrees: check.agrees(),
        over_limit: truth.map_or(0, |truth| (truth.replicas - check.max).max(0)),
        status: check.stands.as_ref().map(|row| counts(row, closed_for)),
        truth: check.truth.as_ref().map(|row| counts(row, closed_for)),
        open: open
            .map(|(entry, pod, until)| Open {
                entry: match entry {
                    Entry::Creating => "creating",
                    Entry::Deleting => "deleting",
                },
                pod: pod.to_string(),
                given_up_at: time_text(*until),
            })
            .collect(),
        deletion_costs: BTreeMap::new(),
        costs_to_write: Vec::new(),
        unmarked: Vec::new(),
        rollout: misfit
            .filter(|_| check.revision.is_none())
            .map(|misfit| status::misfit(misfit.what)),
    }
}

impl LedgerRow {
    /// Adds one of its pods.
    fn add(&mut self, pod: &Pod, standing: &PodStanding, is_unmarked: bool) {
        let name = || pod.name.to_string();
        if let Some((cost, _)) = standing.cost {
            *self.deletion_costs.entry(cost).or_default() += 1;
            let stands = standing.cost_stands.as_deref();
            if stands.is_none_or(|text| text != cost.to_string()) {
                self.costs_to_write.push(name());
            }
        }
        if is_unmarked {
            self.unmarked.push(name());
        }
    }

    /// The lines about its pods.
    fn pods_text(&self) -> String {
        let mut text = String::new();
        let mut line = |what: &str| text.push_str(&format!("      {what}\n"));
        if !self.deletion_costs.is_empty() {
            let to_write = match self.costs_to_write.as_slice() {
                [] => String::new(),
                pods => format!("; not written yet: {}", some_of(pods)),
            };
            line(&format!("{}{to_write}", costs_text(&self.deletion_costs)));
        }
        if !self.unmarked.is_empty() {
            let pods = some_of(&self.unmarked);
            line(&format!(
                "without a marker, which the next sync writes: {pods}"
            ));
        }
        text
    }
}

/// The number of deletion costs that are listed.
const COSTS_MAX: usize = 3;

/// `deletion cost 200`, or `deletion costs 200 (4 pods), -100 (2 pods)`; of many costs the least and the greatest.
pub(super) fn costs_text(costs: &BTreeMap<i32, usize>) -> String {
    let ends = costs.first_key_value().zip(costs.last_key_value());
    match ends {
        None => String::new(),
        Some(((only, _), _)) if costs.len() == 1 => format!("deletion cost {only}"),
        Some(((least, _), (greatest, _))) if costs.len() > COSTS_MAX => {
            format!("deletion costs {least} to {greatest}")
        }
        Some(_) => {
            let each = costs.iter().rev();
            let each = each.map(|(cost, n)| format!("{cost} ({})", count(*n, "pod")));
            format!("deletion costs {}", each.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The number of pods that are named.
const PODS_MAX: usize = 5;

/// The first few names.
fn some_of(pods: &[String]) -> String {
    let named = pods.iter().take(PODS_MAX).map(String::as_str);
    let named = named.collect::<Vec<_>>().join(", ");
    match pods.len().saturating_sub(PODS_MAX) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn counts(row: &Row, closed_for: Option<Span>) -> Counts {
    let closed = row.schedulable.filter(|s| !s.holds).map(|s| s.since);
    Counts {
        replicas: row.replicas,
        missing_replicas: row.missing,
        creating: row.creating.len(),
        deleting: row.deleting.len(),
        schedulable: row.schedulable.map(|s| s.holds),
        closed_since: closed.map(time_text),
        closed_until: closed
            .zip(closed_for)
            .map(|(since, closed_for)| time_text(since + closed_for)),
    }
}

impl Ledger {
    /// True if the ledger matches the pods, and no limit is exceeded.
    pub(crate) fn is_right(&self) -> bool {
        self.agrees && self.rows.iter().all(|row| row.over_limit == 0)
    }

    /// The form for people.
    pub(crate) fn text(&self) -> String {
        let verdict = match (&self.fault, self.agrees) {
            (Some(fault), _) => format!("pods cannot be counted: {fault}"),
            (None, true) if !self.is_right() => {
                "the ledger says what the pods say, and a subset has more than its limit".to_owned()
            }
            (None, true) => "the ledger says what the pods say".to_owned(),
            (None, false) => "the ledger differs from what the pods say".to_owned(),
        };
        let mut text = format!(
            "WorkloadSpread {}/{}: {verdict}\n",
            self.namespace, self.name
        );
        if let Some(other) = &self.pods_belong_to {
            text.push_str(&format!(
                "  pods that it names belong to WorkloadSpread {other}, which is older: one of the two has to go\n"
            ));
        }
        let mut last: Option<&Option<String>> = None;
        for row in &self.rows {
            if last != Some(&row.revision) {
                text.push_str(&match &row.revision {
                    Some(revision) => format!("\nrevision {revision}\n"),
                    None => "\nover all revisions\n".to_owned(),
                });
                last = Some(&row.revision);
            }
            let is_right = row.agrees && row.over_limit == 0;
            let mark = if is_right { '✓' } else { '✗' };
            let limit = limit_text(row.max_replicas);
            text.push_str(&format!("  {mark} {}, limit {limit}: ", row.subset));
            text.push_str(&match (&row.status, &row.truth) {
                (Some(status), Some(truth)) if status == truth => status.text(),
                (status, truth) => format!(
                    "status says {}; the pods say {}",
                    text_of(status.as_ref()),
                    text_of(truth.as_ref())
                ),
            });
            if row.over_limit > 0 {
                text.push_str(&format!(": {} too many", row.over_limit));
            }
            text.push('\n');
            for open in &row.open {
                let Open {
                    entry,
                    pod,
                    given_up_at,
                } = open;
                text.push_str(&format!("      {entry} {pod}, given up at {given_up_at}\n"));
            }
            text.push_str(&row.pods_text());
            if let Some(rollout) = &row.rollout {
                text.push_str(&format!("      {rollout}\n"));
            }
        }
        if !self.in_no_subset.is_empty() {
            let pods = some_of(&self.in_no_subset);
            text.push_str(&format!("\nin no subset: {pods}\n"));
        }
        let what = match self.source {
            Source::Files => "the newest moment in the files".to_owned(),
            Source::Cluster => "the newest moment in the cluster".to_owned(),
            Source::Simulation(span) => format!("{} after the start", clock(span)),
        };
        text.push_str(&format!("\n(as of {}, {what})\n", self.at));
        text
    }
}

fn text_of(counts: Option<&Counts>) -> String {
    counts.map_or("nothing".to_owned(), Counts::text)
}

impl Counts {
    fn text(&self) -> String {
        let room = match self.missing_replicas {
            -1 => "room for any number".to_owned(),
            missing => format!("room for {missing}"),
        };
        let pods = if self.replicas == 1 { "pod" } else { "pods" };
        let mut text = format!("{} {pods}, {room}", self.replicas);
        if self.creating > 0 {
            text.push_str(&format!(", {} on their way in", self.creating));
        }
        if self.deleting > 0 {
            text.push_str(&format!(", {} on their way out", self.deleting));
        }
        match self.schedulable {
            Some(false) => {
                let since = self.closed_since.as_deref().unwrap_or_default();
                text.push_str(&format!(", closed since {since}"));
                if let Some(until) = &self.closed_until {
                    text.push_str(&format!(" until {until}"));
                }
            }
            Some(true) => text.push_str(", schedulable"),
            None => {}
        }
        text
    }
}
