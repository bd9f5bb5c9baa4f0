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
use strew_workloadspread::facts::status::{
    Outranked, RolloutMisfit, Webhook, WebhookCondition, whole_second,
};
use strew_workloadspread::{Entries, Misfit, Row, Schedulable, Status};

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

/// The type of the condition about rollouts: of strew alone, in the row over all revisions.
pub const ROLLOUT_FITS: &str = "RolloutFits";

/// Its reasons, where it is False, and its messages. Between the last two stands a number.
const STUCK: (&str, &str) = (
    "OldPodsHoldNodes",
    "a rollout does not go on: its new pods wait for nodes of this subset that old ones hold, and no old one goes before a new one is ready. Let maxUnavailable be 1; before the next one, annotate the WorkloadSpread with strew.dev/limit-scope: workload",
);
const NO_ROOM: (&str, &str) = (
    "OldPodsHoldLimits",
    "no rollout goes on: old pods fill all subsets, new ones are held back, and no old one goes before a new one is ready. Let maxUnavailable be 1, or leave out maxReplicas of the last subset",
);
const SHORT: (&str, &str, &str) = (
    "SurgePassesBy",
    "after a rollout this subset may have ",
    " pods less than before: new ones pass it by while old ones fill it. Let fewer pods surge, or annotate the WorkloadSpread with strew.dev/move-back-seconds",
);

/// Reason and message of that condition.
fn misfit_text(what: Misfit) -> (&'static str, String) {
    match what {
        Misfit::Stuck => (STUCK.0, STUCK.1.to_owned()),
        Misfit::NoRoom => (NO_ROOM.0, NO_ROOM.1.to_owned()),
        Misfit::Short(pods) => (SHORT.0, format!("{}{pods}{}", SHORT.1, SHORT.2)),
    }
}

/// The message of that condition.
pub fn misfit(what: Misfit) -> String {
    misfit_text(what).1
}

fn misfit_of(row: &SubsetStatus) -> Option<(Arc<str>, RolloutMisfit)> {
    let mut conditions = row.conditions.iter().flatten();
    let condition = conditions.find(|c| c.type_ == ROLLOUT_FITS && c.status == "False")?;
    let what = match condition.reason.as_str() {
        reason if reason == STUCK.0 => Misfit::Stuck,
        reason if reason == NO_ROOM.0 => Misfit::NoRoom,
        reason if reason == SHORT.0 => {
            let message = condition.message.strip_prefix(SHORT.1)?;
            Misfit::Short(message.strip_suffix(SHORT.2)?.parse().ok()?)
        }
        _ => return None,
    };
    let since = whole_second(instant(&condition.last_transition_time));
    Some((row.name.as_str().into(), RolloutMisfit { what, since }))
}

fn misfit_wire(fact: RolloutMisfit) -> Condition {
    let (reason, message) = misfit_text(fact.what);
    Condition {
        type_: ROLLOUT_FITS.to_owned(),
        status: "False".to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: time(fact.since),
        observed_generation: None,
    }
}

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
        misfits: { wire.subset_statuses.iter() }
            .flatten()
            .filter_map(misfit_of)
            .collect(),
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
        if let Some(misfit) = fact.misfits.get(&row.name) {
            let conditions = wire.conditions.get_or_insert_default();
            conditions.push(misfit_wire(*misfit));
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
