//! The metrics of the webhook: names, labels, buckets and help texts.

use strew_model::Instant;
use strew_runtime::admission::{AdmissionMachine, SHARING_BUCKETS};
use strew_scheduler::metrics::{Buckets, Family, Value};

/// Buckets of response times: from half a millisecond to the API server's longest timeout.
pub(super) const LATENCY_BUCKETS: Buckets = Buckets::seconds(0.0005, 2.0, 17);

/// The number of subsets with series of their own; further ones are only counted.
const SUBSETS_MAX: usize = 1_000;

strew_scheduler::catalogue! {
    INJECTIONS = "strew_workloadspread_injections_total", Counter, ["namespace", "workloadspread", "subset"],
        "Pods that got this subset; the series ends with its WorkloadSpread";
    INJECTIONS_LEFT_OUT = "strew_workloadspread_injections_left_out", Gauge, [],
        "Subsets without a series in strew_workloadspread_injections_total: those past 1000";
    CONFLICTS = "strew_webhook_conflicts_total", Counter, [],
        "Status writes refused for a conflict; each is tried up to four times";
    STATUS_WRITES = "strew_webhook_status_writes_total", Counter, [], "Status writes that succeeded";
    WAITING = "strew_webhook_waiting", Gauge, [], "Requests about pods that wait for a status write";
    QUEUED = "strew_webhook_queued", Gauge, [], "Reviews of pods in the queue";
    BEYOND_BUDGET = "strew_webhook_beyond_budget_total", Counter, [],
        "Creations decided without simulated scheduling because their namespace exceeded its CPU budget";
    UNSEEN = "strew_webhook_unseen_pods", Gauge, [],
        "Admitted pods that the watch has not shown yet; they hold capacity on nodes for 30 s";
    ADMISSIONS = "strew_webhook_admissions_total", Counter, ["operation", "result"],
        "Reviews of pods, by result: injected, passed, denied. Left to the failurePolicy: not_ready, crowded (too many reviews of the client wait, or of its namespace), right_unknown (the user's right could not be checked), timed_out, given_up (the API server closed the connection), bad (the body is no review)";
    LATENCY = "strew_webhook_admission_duration_seconds", Histogram(LATENCY_BUCKETS), ["operation"],
        "Time from the headers of a review of a pod to its answer";
    SHARING = "strew_webhook_requests_per_status_write", Histogram(SHARING_BUCKETS), [],
        "Requests that share a status write";
    VALIDATIONS = "strew_webhook_validations_total", Counter, ["result"],
        "Reviews of WorkloadSpreads, by result: allowed, denied";
    CONVERSIONS = "strew_webhook_conversions_total", Counter, ["result"],
        "Conversion reviews, by result: converted, failed";
    EVICTIONS = "strew_webhook_evictions_total", Counter, ["result"],
        "Reviews of evictions, by result: allowed (no budget by zone, or its zone is claimed), refused, unclaimed (the plain budget decides, since no claim could be written). Left to the failurePolicy: failed, timed_out";
    CERTIFICATE_EXPIRY = "strew_webhook_certificate_expiry_timestamp_seconds", Gauge, ["certificate"],
        "Expiry of a certificate as a Unix time: serving (the webhook's own), authority (the CA that signs it)";
}

/// The metrics of the machine.
pub(super) fn of_machine(admission: &AdmissionMachine) -> Vec<Family> {
    let machine = admission.machine();
    let (counters, names) = (machine.counters(), machine.names());
    let mut injections = Family::new(&INJECTIONS);
    for ((key, subset), count) in counters.injected.iter().take(SUBSETS_MAX) {
        let namespace = names.text(key.namespace).to_owned();
        let labels = [namespace, key.name.to_string(), subset.to_string()];
        injections.push(labels.map(Into::into), Value::Count(*count));
    }
    let left_out = counters.injected.len().saturating_sub(SUBSETS_MAX);
    vec![
        injections,
        Family::of(&INJECTIONS_LEFT_OUT, Value::number(left_out)),
        Family::of(&CONFLICTS, Value::Count(counters.conflicts)),
        Family::of(&STATUS_WRITES, Value::Count(counters.written)),
        Family::of(&WAITING, Value::number(machine.waiting())),
        Family::of(&UNSEEN, Value::number(machine.room().unseen())),
        Family::of(&SHARING, Value::histogram(admission.sharing())),
    ]
}

/// When certificates expire; a missing certificate has no value.
pub(super) fn of_certificates(serving: Option<Instant>, authority: Option<Instant>) -> Vec<Family> {
    let mut family = Family::new(&CERTIFICATE_EXPIRY);
    for (name, until) in [("serving", serving), ("authority", authority)] {
        if let Some(until) = until {
            family.push([name.into()], Value::Number(until.secs() as f64));
        }
    }
    vec![family]
}
