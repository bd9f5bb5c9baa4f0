//! Every metric of the scheduler: names, labels, buckets and help texts.
//!
//! Names that begin with `scheduler_` are kube-scheduler's, with its labels and buckets; strew's own begin with
//! `strew_`. Source: spec/scheduler §5.7; KEP-1258 for `e2e_scheduling_duration_seconds`.

use super::histogram::Buckets;

const ATTEMPTS: Buckets = Buckets::seconds(0.001, 2.0, 15);
const POINTS: Buckets = Buckets::seconds(0.0001, 2.0, 12);
const PLUGINS: Buckets = Buckets::seconds(0.00001, 1.5, 20);
const LONG: Buckets = Buckets::seconds(0.01, 2.0, 20);
const SCORES: Buckets = Buckets::ones(1.0, 2.0, 10);

crate::catalogue! {
    SCHEDULE_ATTEMPTS = "scheduler_schedule_attempts_total", Counter, ["result", "profile"],
        "Attempts to schedule pods, by result: scheduled (bound), unschedulable (no node found), error";
    SCHEDULING_ATTEMPT_DURATION = "scheduler_scheduling_attempt_duration_seconds", Histogram(ATTEMPTS),
        ["result", "profile"], "Duration of an attempt: the decision, and for scheduled pods the binding";
    E2E_SCHEDULING_DURATION = "scheduler_e2e_scheduling_duration_seconds", Histogram(ATTEMPTS),
        ["result", "profile"],
        "The same as scheduling_attempt_duration_seconds, under the name that KEP-1258 gives";
    SCHEDULING_ALGORITHM_DURATION = "scheduler_scheduling_algorithm_duration_seconds", Histogram(ATTEMPTS),
        [], "Duration of a decision, PostFilter included";
    EXTENSION_POINT_DURATION = "scheduler_framework_extension_point_duration_seconds", Histogram(POINTS),
        ["extension_point", "status", "profile"],
        "Duration of all plugins of an extension point; PreScore and NormalizeScore are part of Score";
    PLUGIN_EXECUTION_DURATION = "scheduler_plugin_execution_duration_seconds", Histogram(PLUGINS),
        ["plugin", "extension_point", "status"],
        "Duration of a plugin at an extension point, for all nodes of a decision together; in one of ten decisions";
    PLUGIN_EVALUATION = "scheduler_plugin_evaluation_total", Counter,
        ["plugin", "extension_point", "profile"],
        "Evaluations of a node by a plugin; of nodes that are alike, one is evaluated for all";
    POD_SCHEDULING_SLI_DURATION = "scheduler_pod_scheduling_sli_duration_seconds", Histogram(LONG),
        ["attempts"], "Time from a pod's first entry into the active queue to its binding";
    POD_SCHEDULING_ATTEMPTS = "scheduler_pod_scheduling_attempts", Histogram(Buckets::ones(1.0, 2.0, 5)),
        [], "Attempts until a pod was bound";
    POD_SCHEDULED_AFTER_FLUSH = "scheduler_pod_scheduled_after_flush_total", Counter, [],
        "Pods bound in an attempt that a timer triggered, not an event";
    PENDING_PODS = "scheduler_pending_pods", Gauge, ["queue"],
        "Pods without a node, by queue: active, backoff, unschedulable (waits for an event), gated";
    QUEUE_INCOMING_PODS = "scheduler_queue_incoming_pods_total", Counter, ["queue", "event"],
        "Pods added to a queue, by the event that caused it";
    UNSCHEDULABLE_PODS = "scheduler_unschedulable_pods", Gauge, ["plugin", "profile"],
        "Pods in the unschedulable queue that this plugin rejected, possibly with others";
    PREEMPTION_ATTEMPTS = "scheduler_preemption_attempts_total", Counter, [],
        "Attempts to preempt pods for a pod that fits nowhere";
    PREEMPTION_VICTIMS = "scheduler_preemption_victims", Histogram(Buckets::ones(1.0, 2.0, 7)), [],
        "Victims of one preemption";
    PREEMPTION_DURATION = "scheduler_preemption_goroutines_duration_seconds", Histogram(LONG), ["result"],
        "Time until all victims of a preemption were asked to terminate; kube-scheduler always reports success and nearly 0";
    PREEMPTION_EXECUTION = "scheduler_preemption_goroutines_execution_total", Counter, ["result"],
        "Preemptions whose victims were all asked to terminate, by result; kube-scheduler always reports success";
    CACHE_SIZE = "scheduler_cache_size", Gauge, ["type"],
        "Objects in the cache: nodes, pods (on nodes), assumed_pods (bound by a decision that the watch has not shown yet)";
    EVENT_HANDLING_DURATION = "scheduler_event_handling_duration_seconds", Histogram(POINTS), ["event"],
        "Time to process a watch event of a node or a pod";
    INFLIGHT_EVENTS = "scheduler_inflight_events", Gauge, ["event"],
        "Events kept while pods are being scheduled, and these pods (PodPopped)";
    FILTER_REJECTIONS = "strew_filter_rejections_total", Counter,
        ["plugin", "topology_key", "result", "profile"],
        "Nodes that a plugin rejected first: all of them in attempts without a node (unschedulable), up to 128 nodes of one in ten other attempts (scheduled); topology_key is that of the spread constraint";
    SCORE_CHOSEN = "strew_plugin_score_chosen", Histogram(SCORES), ["plugin", "profile"],
        "Weighted score of a plugin for the node that was chosen; in one of ten decisions";
    SCORE_RANGE = "strew_plugin_score_range", Histogram(SCORES), ["plugin", "profile"],
        "A plugin's highest minus its lowest weighted score in a decision, 0 if it made no difference; in one of ten decisions";
    SPREAD_SKEW = "strew_spread_skew", Gauge,
        ["namespace", "workload", "topology_key", "when_unsatisfiable"],
        "Pods in the fullest domain of a workload's spread constraint minus pods in the emptiest";
    SPREAD_MAX_SKEW = "strew_spread_max_skew", Gauge,
        ["namespace", "workload", "topology_key", "when_unsatisfiable"],
        "The skew that the constraint allows";
    SPREAD_PODS = "strew_spread_pods", Gauge,
        ["namespace", "workload", "topology_key", "when_unsatisfiable", "domain"],
        "Pods that the constraint counts in a domain";
    SPREAD_LEFT_OUT = "strew_spread_left_out", Gauge, ["what"],
        "What strew_spread_* leaves out to bound the number of series: workloads past 500 constraints, domains past 2000 or of constraints with more than 32";
    OBJECTS_SET_ASIDE = "strew_objects_set_aside", Gauge, ["resource"],
        "Nodes and pods that are ignored because of invalid values";
    EFFECTS_PENDING = "strew_effects_pending", Gauge, [],
        "Requests to the API server without a result yet";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Kind;

    /// A counter's name ends in `_total`, a duration's in `_seconds`, and no other does.
    #[test]
    fn names_tell_what_they_are() {
        for info in ALL {
            let is_counter = info.kind == Kind::Counter;
            assert_eq!(info.name.ends_with("_total"), is_counter, "{}", info.name);
            let seconds = info.name.ends_with("_seconds");
            let by_unit = match info.kind {
                Kind::Histogram(buckets) => buckets.unit == super::super::Unit::Nanos,
                _ => false,
            };
            assert_eq!(seconds, by_unit, "{}", info.name);
            assert!(!info.help.is_empty() && !info.help.ends_with('.'));
        }
    }

    #[test]
    fn no_name_stands_for_two() {
        let mut names: Vec<&str> = ALL.iter().map(|info| info.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }
}
