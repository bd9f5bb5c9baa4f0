//! The status, between the wire and the machines.
//!
//! Whatever somebody wrote into a status by hand is read: times before 1970 are 1970, conditions of other types are
//! passed over, and what is not of its type was taken out by the reader. The controller's next sync puts it right.
//!
//! Source: spec/workloadspread §2.3.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use strew_model::Instant;
use strew_workloadspread::facts::status::whole_second;
use strew_workloadspread::{Entries, Row, Schedulable, Status};

use super::v1beta1::{SubsetStatus, WorkloadSpreadStatus};

/// The type of the one condition.
pub const SCHEDULABLE: &str = "Schedulable";

/// The ledger that a status holds.
pub fn fact(wire: &WorkloadSpreadStatus) -> Status {
    let versioned = wire.versioned_subset_statuses.iter().flatten();
    Status {
        observed_generation: wire.observed_generation.unwrap_or(0),
        overall: rows(wire.subset_statuses.as_deref().unwrap_or_default()),
        versioned: versioned
            .map(|(revision, wire)| (revision.as_str().into(), rows(wire)))
            .collect(),
    }
}

/// The status that holds a ledger.
pub fn wire(fact: &Status) -> WorkloadSpreadStatus {
    let versioned: BTreeMap<String, Vec<SubsetStatus>> = fact
        .versioned
        .iter()
        .map(|(revision, rows)| (revision.to_string(), rows.iter().map(row_wire).collect()))
        .collect();
    let overall: Vec<SubsetStatus> = fact.overall.iter().map(row_wire).collect();
    WorkloadSpreadStatus {
        observed_generation: Some(fact.observed_generation).filter(|seen| *seen != 0),
        subset_statuses: Some(overall).filter(|rows| !rows.is_empty()),
        versioned_subset_statuses: Some(versioned).filter(|rows| !rows.is_empty()),
    }
}

fn rows(wire: &[SubsetStatus]) -> Vec<Row> {
    let row = |wire: &SubsetStatus| {
        let conditions = wire.conditions.iter().flatten();
        let mut conditions = conditions.filter(|c| c.type_ == SCHEDULABLE);
        Row {
            name: wire.name.as_str().into(),
            replicas: wire.replicas,
            missing: wire.missing_replicas,
            creating: entries(wire.creating_pods.as_ref()),
            deleting: entries(wire.deleting_pods.as_ref()),
            schedulable: conditions.next().map(schedulable),
        }
    };
    wire.iter().map(row).collect()
}

/// A status that is neither `True` nor `False` closes nothing.
fn schedulable(condition: &Condition) -> Schedulable {
    Schedulable {
        holds: condition.status != "False",
        since: whole_second(instant(&condition.last_transition_time)),
    }
}

fn entries(wire: Option<&BTreeMap<String, Time>>) -> Entries {
    let wire = wire.into_iter().flatten();
    let each = wire.map(|(key, time)| (key.as_str().into(), whole_second(instant(time))));
    each.collect()
}

fn row_wire(row: &Row) -> SubsetStatus {
    let condition = |schedulable: Schedulable| Condition {
        type_: SCHEDULABLE.to_owned(),
        status: if schedulable.holds { "True" } else { "False" }.to_owned(),
        reason: schedulable.reason().to_owned(),
        message: String::new(),
        last_transition_time: time(schedulable.since),
        observed_generation: None,
    };
    SubsetStatus {
        name: row.name.to_string(),
        replicas: row.replicas,
        missing_replicas: row.missing,
        creating_pods: entries_wire(&row.creating),
        deleting_pods: entries_wire(&row.deleting),
        conditions: row.schedulable.map(|s| vec![condition(s)]),
    }
}

fn entries_wire(entries: &Entries) -> Option<BTreeMap<String, Time>> {
    let each = entries.iter();
    let wire: BTreeMap<String, Time> = each
        .map(|(key, since)| (key.to_string(), time(*since)))
        .collect();
    Some(wire).filter(|wire| !wire.is_empty())
}

/// A moment of the wire; before 1970 is 1970.
pub(super) fn instant(time: &Time) -> Instant {
    let nanos = time.0.as_nanosecond().max(0);
    Instant(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn time(moment: Instant) -> Time {
    let seconds = i64::try_from(moment.secs()).unwrap_or(i64::MAX);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// A moment as the API writes it: RFC 3339, whole seconds.
pub fn time_text(moment: Instant) -> String {
    crate::request::time(moment)
}
