//! Metrics of rebalancing.

use strew_scheduler::metrics::{Family, Sample, Value};

use super::super::survey::locked;
use super::Rebalances;

strew_scheduler::catalogue! {
    LABELLED = "strew_rebalance_workloads", Gauge, ["state"],
        "Workloads with the label rebalance.strew.dev/spread=true by state: even, uneven, waiting (a pod is not ready, or it rests after a step that went otherwise than planned)";
    PLANNED = "strew_rebalance_planned_evictions", Gauge, [],
        "The evictions of the last plan";
    LEFT = "strew_rebalance_left_uneven", Gauge, ["namespace", "workload", "topology_key"],
        "The least number of pods that must still change their domain after the last plan, for constraints that it does not mend";
    LEFT_OUT = "strew_rebalance_series_left_out", Gauge, [],
        "Series of strew_rebalance_left_uneven without a place: those past --rebalance-max-series, the least uneven";
    EVICTIONS = "strew_rebalance_evictions_total", Counter, ["result"],
        "Evictions that were asked for: evicted, refused (by a budget, or otherwise), lost (without an answer)";
    STOPPED = "strew_rebalance_plans_stopped_total", Counter, [],
        "Plans that ended before their last step, because something went otherwise than planned";
    SUCCEEDED = "strew_rebalance_last_success_timestamp_seconds", Gauge, [],
        "When the last plan that could be made was begun, as a Unix time; none before the first";
    RUNS = "strew_rebalance_runs_total", Counter, ["result"],
        "Looks at the whole cluster by result: success, error";
}

impl Rebalances {
    /// All metrics; those about the cluster have no series while this replica does not lead.
    pub(in crate::controller) fn families(&self) -> Vec<Family> {
        let state = locked(&self.state);
        let leads = self.leads.now();
        let mut labelled = Family::new(&LABELLED);
        let mut planned = Family::new(&PLANNED);
        let mut left = Family::new(&LEFT);
        if let (true, Some(found)) = (leads, &state.found) {
            let even = found
                .n_labelled
                .saturating_sub(found.n_uneven + found.n_waiting);
            let states = [
                ("even", even),
                ("uneven", found.n_uneven),
                ("waiting", found.n_waiting),
            ];
            for (name, n) in states {
                labelled.push([name.into()], Value::number(n));
            }
            planned.push([], Value::number(found.n_evictions));
            left.samples = { found.left.iter() }
                .map(|left| Sample {
                    labels: left.labels().map(Into::into).into(),
                    value: Value::Number(left.moves as f64),
                })
                .collect();
        }
        let counters = &state.counters;
        let mut evictions = Family::new(&EVICTIONS);
        let counts = [
            ("evicted", counters.n_evicted),
            ("refused", counters.n_refused),
            ("lost", counters.n_lost),
        ];
        for (result, n) in counts {
            evictions.push([result.into()], Value::Count(n));
        }
        let [left_out, succeeded, runs] = state.families([&LEFT_OUT, &SUCCEEDED, &RUNS], leads);
        vec![
            labelled,
            planned,
            left,
            left_out,
            evictions,
            Family::of(&STOPPED, Value::Count(counters.n_stopped)),
            succeeded,
            runs,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::leading::Leads;

    #[test]
    fn every_metric_is_told_and_has_its_labels() {
        let rebalances = Rebalances {
            state: std::sync::Arc::default(),
            leads: Leads::always(Clock::new()),
        };
        let families = rebalances.families();
        let told: Vec<&str> = families.iter().map(|family| family.info.name).collect();
        let all: Vec<&str> = ALL.iter().map(|info| info.name).collect();
        assert_eq!(told, all);
    }
}
