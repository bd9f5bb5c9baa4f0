//! What a person should know of a step whose workloads are rolled out: times without a ready pod, and pods that keep
//! the old template.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_apiserver::object::{Key, Object, Stored, WorkloadSpread};
use strew_manifest::finding::Finding;
use strew_manifest::kruise::v1beta1::SubsetStatus;
use strew_manifest::read::Severity;
use strew_model::Span;
use strew_view::time_text::length_text;
use strew_wire::workloadspread::status::PATCH_APPLIED;

use super::replicas::Replicas;
use super::{ShortBefore, name, replicated};
use crate::expect::availability::{Availability, Record};

/// A patch of a WorkloadSpread that its pods do not get.
pub const PATCH_NOT_APPLIED: &str = "patch-not-applied";

/// The pods of each subset of each WorkloadSpread, by its uid.
pub(in crate::expect) type SubsetPods = BTreeMap<Arc<str>, Vec<(String, i32)>>;

/// A subset with room that has fewer pods than before, although the workload has no fewer.
const SHORT_AFTER_ROLLOUT: &str = "short-after-rollout";

/// What a remark is about that is made once and not again in each later step, by uid: workloads with pods of an old
/// template that wait for their deletion, and WorkloadSpreads with a patch that is not applied.
pub(in crate::expect) fn lasting(tables: &Tables) -> BTreeSet<Arc<str>> {
    let waiting = replicated(tables).filter(|object| {
        Replicas::of(object).is_some_and(|replicas| {
            old_template("", &replicas).is_some() || is_nowhere(object, &replicas)
        })
    });
    let waiting = waiting.map(|object| Arc::clone(&object.meta().uid));
    let spreads = tables.of::<WorkloadSpread>().iter();
    let unpatched = spreads.filter(|spread| unpatched(spread).next().is_some());
    let unpatched = unpatched.map(|spread| Arc::clone(&spread.meta.uid));
    waiting.chain(unpatched).collect()
}

/// The pods of subsets at present.
pub(in crate::expect) fn subset_pods(tables: &Tables) -> SubsetPods {
    let spreads = tables.of::<WorkloadSpread>().iter();
    let pods = |spread: &WorkloadSpread| {
        let rows = spread.status.subset_statuses.iter().flatten();
        rows.map(|row| (row.name.clone(), row.replicas)).collect()
    };
    spreads
        .map(|spread| (Arc::clone(&spread.meta.uid), pods(spread)))
        .collect()
}

/// The subsets with room that a rollout left with fewer pods than before: its new pods went to later ones, and stay.
fn passed_by(spread: &WorkloadSpread, before: &[(String, i32)]) -> Vec<Finding> {
    let rows = || spread.status.subset_statuses.iter().flatten();
    let had: i64 = before.iter().map(|(_, pods)| i64::from(*pods)).sum();
    if rows().map(|row| i64::from(row.replicas)).sum::<i64>() < had {
        return Vec::new();
    }
    let name = spread_name(spread);
    // The last one is passed by for none; one without limit always has room.
    let n_earlier = rows().count().saturating_sub(1);
    let short = rows()
        .take(n_earlier)
        .filter(|row| row.missing_replicas != 0)
        .filter_map(|row| {
            let (_, had) = before.iter().find(|(subset, _)| *subset == row.name)?;
            (row.replicas < *had).then_some((row, *had))
        });
    let finding = |(row, had): (&SubsetStatus, i32)| {
        let (subset, pods) = (&row.name, row.replicas);
        let message = format!(
            "{name}: subset {subset} has {pods} of the {had} pods that it had before: new ones went to later subsets while old ones were there, and stay there"
        );
        Finding::new(Severity::Warning, SHORT_AFTER_ROLLOUT, message)
            .about(name.clone())
            .with_number("before", had.into())
            .with_number("pods", pods.into())
            .with_help(
                "strew.dev/move-back-seconds brings them back (under Adaptive with disableSimulationSchedule: true); docs/workloadspread.md, Rollouts, has other ways",
            )
    };
    short.map(finding).collect()
}

/// `workloadspread/web`.
fn spread_name(spread: &WorkloadSpread) -> String {
    name(&Key {
        kind: WorkloadSpread::KIND,
        name: spread.meta.name.clone(),
    })
}

/// Remarks about every workload that was not short at second 0 (`before`), and about WorkloadSpreads, whose subsets had
/// `subsets` pods when the step began. Lasting remarks that were true then (`known`) were made then.
pub(in crate::expect) fn of_rollout(
    tables: &Tables,
    [before, known]: [&ShortBefore; 2],
    subsets: &SubsetPods,
    availability: &Availability,
    now: Span,
) -> Vec<Finding> {
    let mut remarks = Vec::new();
    for object in replicated(tables) {
        let (key, uid) = (object.key(), &object.meta().uid);
        let Some(replicas) = Replicas::of(&object).filter(|_| !before.contains(uid)) else {
            continue;
        };
        let is_new = !known.contains(uid);
        remarks.extend(old_template(&name(&key), &replicas).filter(|_| is_new));
        if is_new && is_nowhere(&object, &replicas) {
            remarks.push(nowhere(&name(&key)));
        }
        let record = availability.of(uid);
        remarks.extend(record.and_then(|record| without_ready(&name(&key), record, now)));
    }
    for spread in tables.of::<WorkloadSpread>().iter() {
        let before = subsets.get(&spread.meta.uid).map_or(&[][..], Vec::as_slice);
        remarks.extend(passed_by(spread, before));
    }
    let spreads = tables.of::<WorkloadSpread>().iter();
    let spreads = spreads.filter(|spread| !known.contains(&spread.meta.uid));
    remarks.extend(spreads.flat_map(|spread| {
        let name = spread_name(spread);
        let of_row = unpatched(spread).map(move |why| {
            let message = format!("{name}: {why}");
            Finding::new(Severity::Warning, PATCH_NOT_APPLIED, message).about(name.clone())
        });
        of_row.collect::<Vec<_>>()
    }));
    remarks
}

/// Why patches of a WorkloadSpread are not applied, from the conditions of its subsets.
pub fn unpatched(spread: &WorkloadSpread) -> impl Iterator<Item = &str> {
    let rows = spread.status.subset_statuses.iter().flatten();
    let conditions = rows.flat_map(|row| row.conditions.iter().flatten());
    let unpatched = conditions.filter(|c| c.type_ == PATCH_APPLIED && c.status == "False");
    unpatched.map(|condition| condition.message.as_str())
}

/// `OnDelete`: pods get the new template only when they are deleted, which no step does.
fn old_template(name: &str, replicas: &Replicas) -> Option<Finding> {
    let (updated, to_be) = replicas.updated.filter(|(n, to_be)| n < to_be)?;
    replicas.waits_for_deletion.then(|| {
        let message = format!(
            "{name}: {updated} of {to_be} pods have the new template: updateStrategy OnDelete waits until a pod is deleted"
        );
        Finding::new(Severity::Note, "not-updated", message)
            .about(name)
            .with_number("updated", updated.into())
            .with_number("pods", to_be.into())
    })
}

/// True for a DaemonSet that its controller has looked at, and that no node matches.
fn is_nowhere(object: &Object, replicas: &Replicas) -> bool {
    matches!(object, Object::DaemonSet(_)) && replicas.is_observed && replicas.wanted == 0
}

fn nowhere(name: &str) -> Finding {
    let message = format!("{name}: no node matches it, and it has no pods");
    Finding::new(Severity::Note, "no-node", message).about(name)
}

/// A workload that had ready pods before the step, and none for a while.
fn without_ready(name: &str, record: &Record, now: Span) -> Option<Finding> {
    let none_for = record.none_for(now);
    if record.before == 0 || none_for == Span::default() {
        return None;
    }
    // One pod can be no better, unless its successor starts first.
    let severity = match record.wanted {
        0 | 1 => Severity::Note,
        _ => Severity::Warning,
    };
    let seconds = i64::try_from(none_for.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let message = format!(
        "{name}: 0 of {} ready for {}",
        record.wanted,
        length_text(none_for)
    );
    let finding = Finding::new(severity, "none-ready", message);
    let finding = finding.about(name).with_number("seconds", seconds);
    Some(finding.with_number("wanted", record.wanted.into()))
}
