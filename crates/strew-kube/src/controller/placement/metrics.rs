//! What the controller of Placements has done, as metrics: OCM's names where the thing is the same.
//!
//! Source: spec/placement §2.12.

use std::borrow::Cow;

use strew_placement::machine::Durations;
use strew_runtime::placement::{BUCKETS, Placements};
use strew_scheduler::metrics::{Family, Histogram, Value};

/// The label `name` of OCM's metrics.
const SCHEDULING: Cow<'static, str> = Cow::Borrowed("placement_scheduling");

strew_scheduler::catalogue! {
    SCHEDULING_DURATION = "scheduling_scheduling_duration_seconds", Histogram(BUCKETS), ["name"],
        "From the change that made a decision necessary to the begin of its writes";
    BIND_DURATION = "scheduling_bind_duration_seconds", Histogram(BUCKETS), ["name"],
        "From there to the end of the writes, or to the one that failed";
    CEL_DURATION = "scheduling_cel_runtime_duration_seconds", Histogram(BUCKETS), ["name"],
        "Answering the CEL selectors of a predicate for a cluster; an answer that is known is as quick as it is";
    DECIDED = "strew_placement_decisions_total", Counter, ["result"],
        "Placements that were decided, by result: success, warning, misconfigured, or error where a set cannot be read";
    RUNS = "strew_placement_runs_total", Counter, [],
        "How often clusters were selected: more often than decided where a result was tried until it stood";
    WRITES = "strew_placement_writes_total", Counter, ["resource", "operation"],
        "PlacementDecisions that were created, updated and deleted, and statuses of Placements that were written";
    CONFLICTS = "strew_placement_conflicts_total", Counter, [],
        "Writes that met another world than they were made for, and were decided anew";
    FAILED = "strew_placement_failed_writes_total", Counter, [],
        "Writes that failed, or that nobody knows of, and were tried again";
    PENDING = "strew_placement_effects_pending", Gauge, [],
        "Requests to the API server whose outcome is waited for";
}

/// All of it, as it stands; `waiting`: requests whose outcome is waited for.
pub(in crate::controller) fn families(placements: &Placements, waiting: usize) -> Vec<Family> {
    let counters = placements.machine().counters();
    let cel = placements.cel_durations();
    let told = |info, histogram: &Histogram| {
        let mut family = Family::new(info);
        family.push([SCHEDULING], Value::histogram(histogram));
        family
    };
    let succeeded = counters.decided - counters.misconfigured - counters.warned;
    let mut decided = Family::new(&DECIDED);
    for (result, count) in [
        ("success", succeeded),
        ("warning", counters.warned),
        ("misconfigured", counters.misconfigured),
        ("error", counters.unreadable),
    ] {
        decided.push([result.into()], Value::Count(count));
    }
    let mut writes = Family::new(&WRITES);
    for (resource, operation, count) in [
        ("placementdecisions", "create", counters.created),
        ("placementdecisions", "update", counters.updated),
        ("placementdecisions", "delete", counters.deleted),
        ("placements/status", "update", counters.statuses),
    ] {
        writes.push([resource.into(), operation.into()], Value::Count(count));
    }
    vec![
        told(&SCHEDULING_DURATION, &histogram(&counters.scheduling)),
        told(&BIND_DURATION, &histogram(&counters.binding)),
        told(&CEL_DURATION, &cel),
        decided,
        Family::of(&RUNS, Value::Count(counters.runs)),
        writes,
        Family::of(&CONFLICTS, Value::Count(counters.conflicts)),
        Family::of(&FAILED, Value::Count(counters.failed)),
        Family::of(&PENDING, Value::number(waiting)),
    ]
}

fn histogram(durations: &Durations) -> Histogram {
    let Durations { count, sum, within } = durations;
    Histogram::of(BUCKETS, within, *count, sum.0)
}

#[cfg(test)]
mod tests {
    use strew_model::Instant;
    use strew_placement::machine::Limits;

    use super::*;

    #[test]
    fn every_metric_is_told_and_the_buckets_are_the_machines() {
        let machine = Placements::new(
            "here".to_owned(),
            Limits::production(),
            Instant::from_secs(1),
        );
        let families = families(&machine, 0);
        let told: Vec<&str> = families.iter().map(|family| family.info.name).collect();
        let all: Vec<&str> = ALL.iter().map(|info| info.name).collect();
        assert_eq!(told, all);
        let bounds = BUCKETS.bounds().map(|bound| (bound * 1e9).round() as u64);
        assert!(bounds.eq(Durations::BOUNDS.iter().map(|bound| bound.0)));
    }
}
