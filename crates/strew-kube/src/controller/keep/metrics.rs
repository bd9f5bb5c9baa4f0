//! Metrics of the controller that keeps ReplicaSets spread.

use strew_keep::{CostsDecision, Leaves};
use strew_runtime::keep::Keeping;
use strew_scheduler::metrics::{Family, Value};

strew_scheduler::catalogue! {
    DECISIONS = "strew_keep_decisions_total", Counter, ["result"],
        "Decisions about the order of a ReplicaSet's pods, by result: same, reordered";
    WRITES = "strew_keep_deletion_costs_total", Counter, [],
        "Deletion costs written to pods, or removed from them";
    FAILED = "strew_keep_failed_writes_total", Counter, [],
        "Writes that failed or got no answer, and were retried";
    SETS = "strew_keep_replicasets", Gauge, ["standing"],
        "ReplicaSets that ask for costs, by standing: kept, or why they get none (workloadspread, costs-of-others, no-constraint)";
    PENDING = "strew_keep_effects_pending", Gauge, [],
        "Requests to the API server without a result yet";
}

/// All metrics of the controller; `waiting`: the number of requests without an outcome.
pub(in crate::controller) fn families(keeping: &Keeping, waiting: usize) -> Vec<Family> {
    let machine = keeping.machine();
    let counters = machine.counters();
    let mut decisions = Family::new(&DECISIONS);
    for (result, count) in [
        ("same", counters.decided - counters.reordered),
        ("reordered", counters.reordered),
    ] {
        decisions.push([result.into()], Value::Count(count));
    }
    let standings = [CostsDecision::Kept].into_iter();
    let standings = standings.chain(Leaves::ALL.map(CostsDecision::Left));
    let mut sets = Family::new(&SETS);
    for standing in standings {
        let all = machine.standings();
        let n = all.filter(|(_, other)| *other == standing).count();
        let name = match standing {
            CostsDecision::Kept => "kept",
            CostsDecision::Left(why) => why.name(),
        };
        sets.push([name.into()], Value::number(n));
    }
    vec![
        decisions,
        Family::of(&WRITES, Value::Count(counters.written)),
        Family::of(&FAILED, Value::Count(counters.failed)),
        sets,
        Family::of(&PENDING, Value::number(waiting)),
    ]
}

#[cfg(test)]
mod tests {
    use strew_keep::Limits;
    use strew_model::Interner;

    use super::*;

    #[test]
    fn every_metric_is_told() {
        let keeping = Keeping::new(Interner::new(), Vec::new(), Limits::production());
        let told = families(&keeping, 0);
        let told: Vec<&str> = told.iter().map(|family| family.info.name).collect();
        let all: Vec<&str> = ALL.iter().map(|info| info.name).collect();
        assert_eq!(told, all);
    }
}
