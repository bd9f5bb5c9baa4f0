//! The scenarios of WorkloadSpread: `scenarios/workloadspread/`.

library! {
    "workloadspread/";
    unschedulable_pods_move_on_after_30_seconds: "adaptive-rescheduled.yaml",
    a_full_subset_is_passed_over_at_once: "adaptive-simulated.yaml",
    pods_that_were_there_are_adopted: "adoption.yaml",
    all_pods_die_and_come_back_in_order: "all-pods-die.yaml",
    a_peak_is_elastic: "autoscaled-peak.yaml",
    the_ledger_heals_after_bad_weather: "bad-weather.yaml",
    a_denied_eviction_leaves_no_room_behind: "budget-denied.yaml",
    limits_hold_while_the_controller_is_away: "controller-down.yaml",
    costs_of_a_deployment_follow_the_limit: "deletion-cost.yaml",
    costs_of_a_clone_set_follow_the_limit: "deletion-cost-cloneset.yaml",
    ten_own_machines_and_the_rest_elastic: "elastic.yaml",
    a_hundred_on_normal_nodes: "hundred-on-normal.yaml",
    finished_pods_hold_no_room: "job.yaml",
    a_paused_rollout_freezes_nothing: "paused-rollout.yaml",
    slots_of_denied_pods_come_back: "quota-denied.yaml",
    a_new_revision_ends_as_the_old_one_was: "rolling-update.yaml",
    ordinals_decide_for_stateful_sets_of_kruise: "kruise-stateful-set.yaml",
    ordinals_decide_for_stateful_sets: "stateful-set.yaml",
    pods_of_a_renamed_subset_are_orphans: "subset-renamed.yaml",
    one_to_one_to_three: "three-zones.yaml",
    each_architecture_has_its_limits: "two-architectures.yaml",
    the_first_by_name_handles_a_pod: "two-for-one-target.yaml",
    no_pod_goes_past_the_webhook: "webhook-down.yaml",
}
