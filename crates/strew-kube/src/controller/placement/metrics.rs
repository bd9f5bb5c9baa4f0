//! Metrics of the placement controller, with OCM's names where the meaning is the same.
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
        "Time from the change that triggered a decision to its first write";
    BIND_DURATION = "scheduling_bind_duration_seconds", Histogram(BUCKETS), ["name"],
        "Time from the first write of a decision to the last one, or to the one that failed";
    CEL_DURATION = "scheduling_cel_runtime_duration_seconds", Histogram(BUCKETS), ["name"],
        "Time to evaluate the CEL selectors of a predicate for a cluster, cached answers included";
    DECIDED = "strew_placement_decisions_total", Counter, ["result"],
        "Decisions about Placements, by result: success, warning, misconfigured, error (a set cannot be read)";
    RUNS = "strew_placement_runs_total", Counter, [],
        "Selections of clusters; a decision repeats the selection until its result is stable";
    WRITES = "strew_placement_writes_total", Counter, ["resource", "operation"],
        "Writes of PlacementDecisions (create, update, delete) and of statuses of Placements";
    CONFLICTS = "strew_placement_conflicts_total", Counter, [],
        "Writes refused because an object had changed; the Placement is decided again";
    FAILED = "strew_placement_failed_writes_total", Counter, [],
        "Writes that failed or got no answer, and were retried";
    PLACEMENTS = "strew_placement_placements", Gauge, ["standing"],
        "Placements by standing, each counted once: misconfigured, short (fewer clusters than asked for), skewed (spread otherwise than asked for), satisfied";
    PENDING = "strew_placement_effects_pending", Gauge, [],
        "Requests to the API server without a result yet";
}

/// All metrics of the controller; `waiting`: the number of requests without an outcome.
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
    let standing = placements.machine().standing();
    let mut placed = Family::new(&PLACEMENTS);
    for (word, count) in [
        ("misconfigured", standing.misconfigured),
        ("short", standing.short),
        ("skewed", standing.skewed),
        ("satisfied", standing.satisfied),
    ] {
        placed.push([word.into()], Value::number(count));
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
        placed,
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
