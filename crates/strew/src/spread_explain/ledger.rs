//! The ledger of a WorkloadSpread against the truth.

use serde::Serialize;
use strew_workloadspread::explain::{Entry, RowCheck};
use strew_workloadspread::quota::CannotCount;
use strew_workloadspread::{Row, WsKey};

use super::{Source, Spreads, limit_text, time_text};
use crate::report::API_VERSION;
use crate::scenario::clock;

/// A ledger, row by row: the form for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ledger {
    api_version: &'static str,
    kind: &'static str,
    namespace: String,
    name: String,
    /// The moment that expiries are compared with: the newest in the files, or that of the simulation.
    at: String,
    /// What that moment is.
    #[serde(skip)]
    source: Source,
    /// An older WorkloadSpread that has the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods_belong_to: Option<String>,
    /// Why the pods cannot be counted; then there are no rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    /// Whether every row is as a sync would write it.
    agrees: bool,
    rows: Vec<LedgerRow>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LedgerRow {
    /// Absent: over all revisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    subset: String,
    /// -1: any number.
    max_replicas: i32,
    agrees: bool,
    /// So many pods more than the limit are in the subset.
    #[serde(skip_serializing_if = "is_zero")]
    over_limit: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Counts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<Counts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    open: Vec<Open>,
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
}

/// An entry that waits to be confirmed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Open {
    entry: &'static str,
    pod: String,
    given_up_at: String,
}

/// The ledger of a WorkloadSpread.
pub(crate) fn ledger(spreads: &Spreads, key: &WsKey) -> Ledger {
    let checked = spreads
        .machine
        .check_ledger(spreads.now, key, &mut spreads.patcher());
    let (rows, fault) = match checked {
        Ok(rows) => (rows, None),
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
    Ledger {
        api_version: API_VERSION,
        kind: "WorkloadSpreadExplanation",
        namespace: spreads.namespace(key).to_owned(),
        name: key.name.to_string(),
        at: time_text(spreads.now),
        source: spreads.source,
        pods_belong_to: { spreads.machine.spreads().get(key) }
            .and_then(|ws| ws.status.outranked.as_ref())
            .map(|outranked| outranked.by.to_string()),
        agrees: fault.is_none() && rows.iter().all(RowCheck::agrees),
        fault,
        rows: rows.iter().map(row).collect(),
    }
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

fn row(check: &RowCheck) -> LedgerRow {
    let open = check.open.iter();
    // Each revision has the whole limit: over all of them there may be more while a rollout goes on.
    let truth = check
        .truth
        .as_ref()
        .filter(|_| check.revision.is_some() && check.max >= 0);
    LedgerRow {
        revision: check.revision.as_ref().map(|r| r.to_string()),
        subset: check.subset.to_string(),
        max_replicas: check.max,
        agrees: check.agrees(),
        over_limit: truth.map_or(0, |truth| (truth.replicas - check.max).max(0)),
        status: check.stands.as_ref().map(counts),
        truth: check.truth.as_ref().map(counts),
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
    }
}

fn counts(row: &Row) -> Counts {
    Counts {
        replicas: row.replicas,
        missing_replicas: row.missing,
        creating: row.creating.len(),
        deleting: row.deleting.len(),
        schedulable: row.schedulable.map(|s| s.holds),
        closed_since: row
            .schedulable
            .filter(|s| !s.holds)
            .map(|s| time_text(s.since)),
    }
}

impl Ledger {
    /// Whether the ledger says what the pods say, and no limit is exceeded.
    pub(crate) fn is_right(&self) -> bool {
        self.agrees && self.rows.iter().all(|row| row.over_limit == 0)
    }

    /// For people.
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
            }
            Some(true) => text.push_str(", schedulable"),
            None => {}
        }
        text
    }
}
