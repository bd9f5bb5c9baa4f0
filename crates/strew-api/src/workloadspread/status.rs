//! Converts the status between the wire and the machines.
//!
//! A status that was edited by hand is accepted: times before 1970 become 1970, conditions of other types are ignored,
//! and the reader has removed values of a wrong type. The controller's next sync corrects it.
//!
//! Source: spec/workloadspread §2.3.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use strew_model::Instant;
use strew_workloadspread::facts::status::{Outranked, Webhook, WebhookCondition, whole_second};
use strew_workloadspread::{Entries, Row, Schedulable, Status};

use super::v1beta1::{SubsetStatus, WorkloadSpreadStatus};

/// The type of the condition about a subset's pods.
pub const SCHEDULABLE: &str = "Schedulable";

/// The type of the condition about the webhook. It is strew's own and stands in every row over all revisions, because
/// Kruise's definition has no conditions of the whole WorkloadSpread, and the API server would refuse them.
pub const WEBHOOK_READY: &str = "WebhookReady";

/// Reason and message of that condition, and of the event, if the webhook is not registered.
pub(super) const NOT_REGISTERED: (&str, &str) = (
    "WebhookNotRegistered",
    "no replica of strew webhook is ready, so it is not registered: new pods are created in no subset",
);

/// Reason and message if the webhook stays registered.
pub(super) const NOT_READY: (&str, &str) = (
    "WebhookNotReady",
    "no replica of strew webhook is ready, and it stays registered: new pods of controllers are refused",
);

/// The type of the condition about a subset's patch, strew's own, in the row over all revisions.
pub const PATCH_APPLIED: &str = "PatchApplied";

/// Its reason if it is False.
const SELECTOR_LABEL: &str = "SelectorLabel";

/// The message of that condition, and of the event.
pub(super) fn not_applied(subset: &str) -> String {
    format!(
        "the patch of subset {subset} is not applied: it changes labels by which a controller finds its pods, which would make others without end"
    )
}

/// The type of the condition about pods that an older WorkloadSpread owns, strew's own, in every row over all
/// revisions.
pub const OWNS_PODS: &str = "OwnsPods";

/// Its reason if it is False.
const OLDER: &str = "OlderWorkloadSpread";

/// The message of that condition, and of the event. It ends with the name, from which the condition is read back.
pub(super) fn outranked(by: &str) -> String {
    format!("{OUTRANKED}{by}")
}

const OUTRANKED: &str =
    "pods that this WorkloadSpread names belong to an older one, as long as there are both: ";

/// The ledger in a status.
pub fn fact(wire: &WorkloadSpreadStatus) -> Status {
    let versioned = wire.versioned_subset_statuses.iter().flatten();
    Status {
        observed_generation: wire.observed_generation.unwrap_or(0),
        overall: rows(wire.subset_statuses.as_deref().unwrap_or_default()),
        versioned: versioned
            .map(|(revision, wire)| (revision.as_str().into(), rows(wire)))
            .collect(),
        webhook: wire.subset_statuses.iter().flatten().find_map(webhook),
        unpatched: { wire.subset_statuses.iter() }
            .flatten()
            .filter_map(unpatched)
            .collect(),
        outranked: wire.subset_statuses.iter().flatten().find_map(outranked_of),
    }
}

/// The status with a ledger.
pub fn wire(fact: &Status) -> WorkloadSpreadStatus {
    let versioned: BTreeMap<String, Vec<SubsetStatus>> = fact
        .versioned
        .iter()
        .map(|(revision, rows)| (revision.to_string(), rows.iter().map(row_wire).collect()))
        .collect();
    let overall = fact.overall.iter().map(|row| {
        let mut wire = row_wire(row);
        if let Some(webhook) = fact.webhook {
            let conditions = wire.conditions.get_or_insert_default();
            conditions.push(webhook_wire(webhook));
        }
        if let Some(since) = fact.unpatched.get(&row.name) {
            let conditions = wire.conditions.get_or_insert_default();
            conditions.push(unpatched_wire(&row.name, *since));
        }
        if let Some(outranked) = &fact.outranked {
            let conditions = wire.conditions.get_or_insert_default();
            conditions.push(outranked_wire(outranked));
        }
        wire
    });
    let overall: Vec<SubsetStatus> = overall.collect();
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

/// A status that is neither `True` nor `False` does not close the subset.
fn schedulable(condition: &Condition) -> Schedulable {
    Schedulable {
        holds: condition.status != "False",
        since: whole_second(instant(&condition.last_transition_time)),
    }
}

/// The webhook's condition in a row; `None` if there is none, or strew did not write it.
fn webhook(row: &SubsetStatus) -> Option<WebhookCondition> {
    let mut conditions = row.conditions.iter().flatten();
    let condition = conditions.find(|c| c.type_ == WEBHOOK_READY && c.status == "False")?;
    let reasons = [
        (NOT_REGISTERED.0, Webhook::NotRegistered),
        (NOT_READY.0, Webhook::NotReady),
    ];
    let (_, why) = { reasons.into_iter() }.find(|(reason, _)| condition.reason == *reason)?;
    Some(WebhookCondition {
        why,
        since: whole_second(instant(&condition.last_transition_time)),
    })
}

/// The subset whose patch is not applied, and since when.
fn unpatched(row: &SubsetStatus) -> Option<(Arc<str>, Instant)> {
    let mut conditions = row.conditions.iter().flatten();
    let condition = conditions.find(|c| c.type_ == PATCH_APPLIED && c.status == "False")?;
    let since = whole_second(instant(&condition.last_transition_time));
    Some((row.name.as_str().into(), since))
}

fn unpatched_wire(subset: &str, since: Instant) -> Condition {
    Condition {
        type_: PATCH_APPLIED.to_owned(),
        status: "False".to_owned(),
        reason: SELECTOR_LABEL.to_owned(),
        message: not_applied(subset),
        last_transition_time: time(since),
        observed_generation: None,
    }
}

/// The older WorkloadSpread that a row names.
fn outranked_of(row: &SubsetStatus) -> Option<Outranked> {
    let mut conditions = row.conditions.iter().flatten();
    let condition = conditions.find(|c| c.type_ == OWNS_PODS && c.status == "False")?;
    Some(Outranked {
        by: condition.message.strip_prefix(OUTRANKED)?.into(),
        since: whole_second(instant(&condition.last_transition_time)),
    })
}

fn outranked_wire(fact: &Outranked) -> Condition {
    Condition {
        type_: OWNS_PODS.to_owned(),
        status: "False".to_owned(),
        reason: OLDER.to_owned(),
        message: outranked(&fact.by),
        last_transition_time: time(fact.since),
        observed_generation: None,
    }
}

fn webhook_wire(webhook: WebhookCondition) -> Condition {
    let (reason, message) = match webhook.why {
        Webhook::NotReady => NOT_READY,
        _ => NOT_REGISTERED,
    };
    Condition {
        type_: WEBHOOK_READY.to_owned(),
        status: "False".to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: time(webhook.since),
        observed_generation: None,
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

/// A time of the wire; times before 1970 become 1970.
pub(super) fn instant(time: &Time) -> Instant {
    let nanos = time.0.as_nanosecond().max(0);
    Instant(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn time(moment: Instant) -> Time {
    let seconds = i64::try_from(moment.secs()).unwrap_or(i64::MAX);
    Time(Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX))
}

/// A time in the API's format: RFC 3339, whole seconds.
pub fn time_text(moment: Instant) -> String {
    crate::request::time(moment)
}
