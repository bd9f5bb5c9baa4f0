//! Metrics of the controller of WorkloadSpreads and of their ledgers.
//!
//! Source: spec/workloadspread §5.10.

use strew_runtime::workloadspread::Spreads;
use strew_scheduler::metrics::{Family, Value};
use strew_workloadspread::controller::Counters;
use strew_workloadspread::{Row, SpreadController, WorkloadSpread};

/// The number of subsets with series of their own; further ones are only counted.
const SUBSETS_MAX: usize = 2000;

strew_scheduler::catalogue! {
    SYNCS = "strew_workloadspread_syncs_total", Counter, ["result"],
        "Syncs of a WorkloadSpread, by result: success, or error (retried)";
    STATUS_WRITES = "strew_workloadspread_status_writes_total", Counter, [],
        "Status writes of the controller; those of the webhook are in strew_webhook_status_writes_total";
    CONFLICTS = "strew_workloadspread_conflicts_total", Counter, [],
        "Requests of the controller refused because the object had changed";
    DRIFT = "strew_workloadspread_ledger_drift_total", Counter, [],
        "Places by which the controller corrected missingReplicas: grows when pods come or go without a review, and when totals or limits change";
    ADOPTED = "strew_workloadspread_adopted_pods_total", Counter, [],
        "Existing pods put into a subset by the node they run on";
    COSTS = "strew_workloadspread_deletion_costs_total", Counter, [],
        "Deletion costs written to pods";
    TIMEOUTS = "strew_workloadspread_timeouts_total", Counter, ["what"],
        "Ledger entries that expired: creating (the admitted pod did not appear), deleting (the pod stayed)";
    RESCHEDULED = "strew_workloadspread_rescheduled_pods_total", Counter, [],
        "Pods deleted because they were unschedulable in their subset";
    REOPENED = "strew_workloadspread_reopened_subsets_total", Counter, [],
        "Closed subsets that were opened again";
    REPLICAS = "strew_workloadspread_replicas", Gauge, ["namespace", "workloadspread", "subset"],
        "Active pods of a subset, over all revisions";
    MISSING = "strew_workloadspread_missing_replicas", Gauge, ["namespace", "workloadspread", "subset"],
        "How many more pods a subset takes; -1 without a limit";
    CLOSED = "strew_workloadspread_closed", Gauge, ["namespace", "workloadspread", "subset"],
        "1 while a subset is closed because pods were unschedulable there";
    ENTRIES = "strew_workloadspread_entries", Gauge, ["what"],
        "Entries of all ledgers: creating (admitted, not seen yet), deleting (deletion reviewed, pod still there)";
    LEFT_OUT = "strew_workloadspread_subsets_left_out", Gauge, [],
        "Subsets without series: those past 2000";
    HELD = "strew_workloadspread_waiting", Gauge, [],
        "WorkloadSpreads that wait for the discovery of their target's kind, or for a list of pods";
    PENDING = "strew_workloadspread_effects_pending", Gauge, [],
        "Requests to the API server without a result yet";
}

/// All metrics of the controller; `waiting`: the number of requests without an outcome.
pub(in crate::controller) fn families(spreads: &Spreads, waiting: usize) -> Vec<Family> {
    let (machine, held) = (spreads.machine(), spreads.n_held());
    let mut families = done(machine.counters());
    families.extend(ledgers(machine));
    families.push(Family::of(&HELD, Value::number(held)));
    families.push(Family::of(&PENDING, Value::number(waiting)));
    families
}

fn done(counters: &Counters) -> Vec<Family> {
    let one = |info, count| Family::of(info, Value::Count(count));
    let two = |info, [a, b]: [(&'static str, u64); 2]| {
        let mut family = Family::new(info);
        family.push([a.0.into()], Value::Count(a.1));
        family.push([b.0.into()], Value::Count(b.1));
        family
    };
    let syncs = [("success", counters.synced), ("error", counters.failed)];
    let timeouts = [
        ("creating", counters.creations_expired),
        ("deleting", counters.deletions_expired),
    ];
    vec![
        two(&SYNCS, syncs),
        one(&STATUS_WRITES, counters.written),
        one(&CONFLICTS, counters.conflicts),
        one(&DRIFT, counters.drift),
        one(&ADOPTED, counters.adopted),
        one(&COSTS, counters.costs),
        two(&TIMEOUTS, timeouts),
        one(&RESCHEDULED, counters.rescheduled),
        one(&REOPENED, counters.recovered),
    ]
}

fn ledgers(machine: &SpreadController) -> Vec<Family> {
    let names = machine.names();
    let rows = |ws: &WorkloadSpread| {
        let namespace = names.text(ws.key.namespace).to_owned();
        let name = ws.key.name.to_string();
        let rows: Vec<Row> = ws.status.overall.clone();
        rows.into_iter()
            .map(move |row| ([namespace.clone(), name.clone(), row.name.to_string()], row))
    };
    let mut subsets = machine.spreads().iter().flat_map(|ws| rows(ws));
    let mut replicas = Family::new(&REPLICAS);
    let mut missing = Family::new(&MISSING);
    let mut closed = Family::new(&CLOSED);
    for (labels, row) in subsets.by_ref().take(SUBSETS_MAX) {
        let labels = labels.map(Into::into);
        let is_closed = row.schedulable.is_some_and(|condition| !condition.holds);
        replicas.push(labels.clone(), Value::Number(row.replicas.into()));
        missing.push(labels.clone(), Value::Number(row.missing.into()));
        closed.push(labels, Value::Number(u8::from(is_closed).into()));
    }
    let left_out = subsets.count();
    let all = machine.spreads().iter();
    let of_revisions = all.flat_map(|ws| ws.status.versioned.values().flatten());
    let (mut creating, mut deleting) = (0, 0);
    for row in of_revisions {
        creating += row.creating.len();
        deleting += row.deleting.len();
    }
    let mut entries = Family::new(&ENTRIES);
    entries.push(["creating".into()], Value::number(creating));
    entries.push(["deleting".into()], Value::number(deleting));
    let left_out = Family::of(&LEFT_OUT, Value::number(left_out));
    vec![replicas, missing, closed, entries, left_out]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use strew_model::Interner;
    use strew_workloadspread::controller::Limits;

    use super::*;

    #[test]
    fn every_metric_is_told() {
        let (limits, served) = (Limits::production(), Arc::default());
        let spreads = Spreads::new(Interner::new(), limits, "here".to_owned(), served);
        let told = families(&spreads, 0);
        let told: Vec<&str> = told.iter().map(|family| family.info.name).collect();
        let all: Vec<&str> = ALL.iter().map(|info| info.name).collect();
        assert_eq!(told, all);
    }
}
