//! Metrics of the audits.

use strew_scheduler::metrics::{Family, Info, Sample, Value};

use super::super::survey::locked;
use super::Audits;

strew_scheduler::catalogue! {
    SURVIVES = "strew_audit_workload_survives", Gauge, ["namespace", "workload", "topology_key", "domain", "event"],
        "1 if a workload survives the event (loss, shift, drain) of the domain, else 0; none if that is unknown";
    LOST = "strew_audit_workload_lost", Gauge, ["namespace", "workload", "topology_key", "domain", "event"],
        "1 for a workload that is LOST: at rest no pod is ready, or fewer than before and than a budget asks for";
    OUTAGE = "strew_audit_workload_outage", Gauge, ["namespace", "workload", "topology_key", "domain", "event"],
        "The seconds without a ready pod of a workload that comes back by itself, if it asks for more than one pod";
    DEGRADED = "strew_audit_workload_degraded", Gauge, ["namespace", "workload", "topology_key", "domain", "event"],
        "The pods that a workload lacks at rest, while some are ready";
    BUDGET_UNSATISFIABLE = "strew_audit_budget_unsatisfiable", Gauge, ["namespace", "budget"],
        "1 for a PodDisruptionBudget that allows no eviction though all its pods are healthy";
    DRAIN_DEADLOCK = "strew_audit_drain_deadlock", Gauge, ["namespace", "workload", "topology_key", "domain"],
        "The pods of a workload that a drain of the domain never evicts";
    HEADROOM = "strew_audit_headroom", Gauge, ["topology_key", "domain", "resource"],
        "What is free elsewhere minus what the pods of the domain request: cpu in cores, memory in bytes; negative: too little";
    LEFT_OUT = "strew_audit_series_left_out", Gauge, [],
        "Series of the metrics above without a place: those past --audit-max-series, the least bad";
    SUCCEEDED = "strew_audit_last_success_timestamp_seconds", Gauge, [],
        "When the last audit that succeeded began, as a Unix time; none before the first";
    DURATION = "strew_audit_last_duration_seconds", Gauge, [],
        "How long that audit took";
    RUNS = "strew_audit_runs_total", Counter, ["result"],
        "Audits by result: success, error";
}

/// A metric about the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// [`SURVIVES`]
    Survives,
    /// [`LOST`]
    Lost,
    /// [`OUTAGE`]
    Outage,
    /// [`DEGRADED`]
    Degraded,
    /// [`BUDGET_UNSATISFIABLE`]
    BudgetUnsatisfiable,
    /// [`DRAIN_DEADLOCK`]
    DrainDeadlock,
    /// [`HEADROOM`]
    Headroom,
}

impl Metric {
    /// In the order of the output.
    const ALL: [Self; 7] = [
        Self::Survives,
        Self::Lost,
        Self::Outage,
        Self::Degraded,
        Self::BudgetUnsatisfiable,
        Self::DrainDeadlock,
        Self::Headroom,
    ];

    /// Its description.
    pub fn info(self) -> &'static Info {
        match self {
            Self::Survives => &SURVIVES,
            Self::Lost => &LOST,
            Self::Outage => &OUTAGE,
            Self::Degraded => &DEGRADED,
            Self::BudgetUnsatisfiable => &BUDGET_UNSATISFIABLE,
            Self::DrainDeadlock => &DRAIN_DEADLOCK,
            Self::Headroom => &HEADROOM,
        }
    }
}

/// A series about the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its metric.
    pub metric: Metric,
    /// The values of the metric's labels, in their order.
    pub labels: Vec<String>,
    /// Its value.
    pub value: f64,
}

impl Audits {
    /// All metrics; those about the cluster have no series while this replica does not lead.
    pub(in crate::controller) fn families(&self) -> Vec<Family> {
        let state = locked(&self.state);
        let leads = self.leads.now();
        let of = |metric: Metric| {
            let mut family = Family::new(metric.info());
            let its = state.found.iter().flatten();
            let its = its.filter(|series| leads && series.metric == metric);
            family.samples = its
                .map(|series| Sample {
                    labels: series.labels.iter().cloned().map(Into::into).collect(),
                    value: Value::Number(series.value),
                })
                .collect();
            family
        };
        let mut families: Vec<Family> = Metric::ALL.into_iter().map(of).collect();
        let mut took = Family::new(&DURATION);
        if let Some((_, span)) = state.succeeded {
            took.push([], Value::Number(span.0 as f64 / 1e9));
        }
        let [left_out, succeeded, runs] = state.families([&LEFT_OUT, &SUCCEEDED, &RUNS], leads);
        families.extend([left_out, succeeded, took, runs]);
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::leading::Leads;

    #[test]
    fn every_metric_is_told_and_has_its_labels() {
        let audits = Audits {
            state: std::sync::Arc::default(),
            leads: Leads::always(Clock::new()),
        };
        let families = audits.families();
        let told: Vec<&str> = families.iter().map(|family| family.info.name).collect();
        let all: Vec<&str> = ALL.iter().map(|info| info.name).collect();
        assert_eq!(told, all);
    }
}
