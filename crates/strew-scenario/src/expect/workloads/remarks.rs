//! What a person should know of a step whose workloads are rolled out: times without a ready pod, and pods that keep
//! the old template.

use std::collections::BTreeSet;
use std::sync::Arc;

use strew_apiserver::Tables;
use strew_manifest::finding::Finding;
use strew_manifest::read::Severity;
use strew_model::Span;
use strew_view::time_text::time_text;

use super::replicas::Replicas;
use super::{KINDS, ShortBefore, name};
use crate::expect::availability::{Availability, Record};

/// The workloads with pods of an old template that wait for their deletion, by uid.
pub(in crate::expect) fn waiting_for_deletion(tables: &Tables) -> BTreeSet<Arc<str>> {
    let all = KINDS.iter().flat_map(|kind| tables.all_of(kind));
    let waiting = all.filter(|object| {
        Replicas::of(object).is_some_and(|replicas| old_template("", &replicas).is_some())
    });
    waiting
        .map(|object| Arc::clone(&object.meta().uid))
        .collect()
}

/// Remarks about every workload that was not short at second 0 (`before`). Pods that waited for their deletion when the
/// step began (`waiting`) were told of then.
pub(in crate::expect) fn of_rollout(
    tables: &Tables,
    [before, waiting]: [&ShortBefore; 2],
    availability: &Availability,
    now: Span,
) -> Vec<Finding> {
    let mut remarks = Vec::new();
    for object in KINDS.iter().flat_map(|kind| tables.all_of(kind)) {
        let (key, uid) = (object.key(), &object.meta().uid);
        let Some(replicas) = Replicas::of(&object).filter(|_| !before.contains(uid)) else {
            continue;
        };
        let is_new = !waiting.contains(uid);
        remarks.extend(old_template(&name(&key), &replicas).filter(|_| is_new));
        let record = availability.of(uid);
        remarks.extend(record.and_then(|record| without_ready(&name(&key), record, now)));
    }
    remarks
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
        time_text(none_for)
    );
    let finding = Finding::new(severity, "none-ready", message);
    let finding = finding.about(name).with_number("seconds", seconds);
    Some(finding.with_number("wanted", record.wanted.into()))
}
