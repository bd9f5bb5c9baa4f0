//! Rules for `scheduleStrategy`.

use super::super::annotations;
use super::super::v1beta1::{WorkloadSpread, WorkloadSpreadSpec};
use strew_manifest::field::{FieldError, FieldPath};
use strew_manifest::validation::json;
use strew_workloadspread::CLOSED_FOR;

/// The part of the closing window that a pod needs to try all other subsets.
const MARGIN_S: u64 = 5;

pub(super) fn validate(
    ws: &WorkloadSpread,
    spec: &WorkloadSpreadSpec,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let Some(strategy) = &spec.schedule_strategy else {
        return;
    };
    let path = path.child("scheduleStrategy");
    let kind = strategy.type_.as_deref().unwrap_or_default();
    let at = path.child("type");
    if !["", "Fixed", "Adaptive"].contains(&kind) {
        let detail = "must be Adaptive or Fixed";
        errors.push(FieldError::invalid(at.clone(), kind, detail));
    }
    let Some(adaptive) = &strategy.adaptive else {
        return;
    };
    if kind != "Adaptive" {
        let detail = "must be Adaptive where `adaptive` is set";
        errors.push(FieldError::invalid(at, kind, detail));
    }
    let path = path.child("adaptive");
    let n_others = spec.subsets.len().saturating_sub(1);
    let last = spec.subsets.last();
    if n_others > 0 && last.is_some_and(|last| last.max_replicas.is_some()) {
        let detail = "the last subset must have no maxReplicas: it takes what the others cannot";
        errors.push(FieldError::invalid_raw(
            path.clone(),
            json(adaptive),
            detail,
        ));
    }
    let Some(seconds) = adaptive.reschedule_critical_seconds else {
        return;
    };
    let path = path.child("rescheduleCriticalSeconds");
    let Ok(given) = u64::try_from(seconds) else {
        errors.push(FieldError::invalid_raw(
            path,
            seconds,
            "must not be negative",
        ));
        return;
    };
    if n_others == 0 {
        return;
    }
    // 300 seconds, or the annotation's value: a subset must not reopen before the pod has tried all others.
    let window = annotations::closed_for(&ws.metadata).unwrap_or_default();
    let window_s = window.unwrap_or(CLOSED_FOR).0 / 1_000_000_000;
    let max = window_s.saturating_sub(MARGIN_S) / n_others as u64;
    if given > max {
        let detail = format!(
            "must be at most {max} with {} subsets: an unschedulable pod tries them all while the first is closed for {window_s} s",
            spec.subsets.len()
        );
        let help = format!(
            "annotation {}: \"{}\" closes subsets for longer",
            annotations::WINDOW_SECONDS,
            given
                .saturating_mul(n_others as u64)
                .saturating_add(MARGIN_S)
        );
        errors.push(FieldError::invalid_raw(path, seconds, detail).with_help(help));
    }
}
